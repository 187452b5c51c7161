"""Partition values: from the text in a log to typed values and back, and to directories' names.

Delta keeps the value of a partition column as text beside each file. A missing or null text is
null; so is an empty one, unless the column is string or binary. What can't be read is an error.

>>> from millpond.plan.types import DATE, Decimal
>>> read_value("2024-05-31", DATE, column="day", table="t")
datetime.date(2024, 5, 31)
>>> read_value("1.5E1", Decimal(5, 2), column="m", table="t")
Decimal('15.00')
>>> directory([("site", "a/b"), ("day", None)])
'site=a%2Fb/day=__HIVE_DEFAULT_PARTITION__'
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CorruptLogError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow
from millpond.plan.scalars import fit_decimal, fits, require_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null in directories' names, and nowhere else."""

_AROUND: Final = "".join(map(chr, range(0x21))) + "\x7f"
"""What is ignored around a value that is not a text, as in casts."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMED: Final = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_DAY: Final = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_DATE: Final = re.compile(_DAY)
_MOMENT: Final = re.compile(
    _DAY + r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:(?P<utc>Z)|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2}))?)?"
)
_ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def read_value(text: str | None, type_: t.DataType, *, column: str, table: str) -> Any:
    """A partition value's text as the Python value that a literal of this type has."""
    if type_ not in (t.STRING, t.BINARY) and not text:
        text = None
    if text is None:
        return None
    try:
        return _reader(type_)(text)
    except (ValueError, ArithmeticError) as error:
        raise CorruptLogError(
            f"the partition value {text!r} of the column {column!r} of {table} is not a {type_}",
            table=table,
            hint="correct the add action that holds it, or the column's type",
        ) from error


def read_column(
    values: pa.Array | pa.ChunkedArray, key: str, type_: t.DataType, *, column: str, table: str
) -> pa.Array | pa.ChunkedArray:
    """The values of one key of a map<string,string> column; each different text is read once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.ChunkedArray):
        read = [read_column(c, key, type_, column=column, table=table) for c in values.chunks]
        return pa.chunked_array(read, to_arrow(type_))
    texts = pc.map_lookup(values, pa.scalar(key, values.type.key_type), "first")
    if type_ in (t.STRING, t.BINARY):
        return texts.cast(to_arrow(type_))
    coded = texts.dictionary_encode()
    read = [
        read_value(text, type_, column=column, table=table) for text in coded.dictionary.to_pylist()
    ]
    return pa.array(read, to_arrow(type_)).take(coded.indices)


def write_value(value: Any, type_: t.DataType) -> str | None:
    """A value as the text of a partition value, in the form that Delta's writers use.

    >>> write_value(1e10, t.DOUBLE), write_value(True, t.BOOLEAN), write_value(None, t.LONG)
    ('1.0E10', 'true', None)
    """
    require_value(value, type_)
    if value is None:
        return None
    if type_ == t.BOOLEAN:
        return "true" if value else "false"
    if t.is_fractional(type_):
        return _java_number(value, type_)
    if isinstance(type_, t.Decimal):
        return f"{value:f}"
    if type_ == t.TIMESTAMP_NTZ:
        text: str = value.isoformat(sep=" ")
        return text
    if type_ == t.TIMESTAMP:  # without a zone, it would be one of the machine that reads it
        moment = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{moment}Z"
    if type_ == t.BINARY:
        try:
            return bytes(value).decode()
        except UnicodeDecodeError as error:
            raise TypeMismatchError(
                f"{value!r} can't be a partition value: it is not UTF-8",
                hint="Delta keeps binary partition values as text; partition by another column",
            ) from error
    return str(value)


def directory(values: Iterable[tuple[str, str | None]]) -> str:
    """The directory for a file with these partition values' texts, as Hive names it.

    This is the path in the store; in a log it is percent-encoded once more.
    """
    parts = []
    for name, text in values:
        parts.append(f"{_escaped(name)}={_escaped(text) if text else DEFAULT_PARTITION}")
    return "/".join(parts)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _reader(type_: t.DataType) -> Callable[[str], Any]:
    if isinstance(type_, t.Decimal):
        return lambda text: _decimal(text.strip(_AROUND), type_)
    if t.is_integral(type_):
        return lambda text: _whole(text.strip(_AROUND), type_)
    found = _READERS.get(type_)
    if found is None:
        raise ValueError(f"{type_} can't be the type of a partition column")
    return found


def _whole(text: str, type_: t.DataType) -> int:
    if not _WHOLE.fullmatch(text) or len(text) > 40:
        raise ValueError(text)
    value = int(text)
    if not fits(value, type_):
        raise ValueError(text)
    return value


def _decimal(text: str, type_: t.Decimal) -> decimal.Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    value = fit_decimal(decimal.Decimal(text), type_)
    if value is None:
        raise ValueError(text)
    return value


def _double(text: str) -> float:
    text = text.strip(_AROUND)
    if not _NUMBER.fullmatch(text) and not _NAMED.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _float(text: str) -> float:
    import pyarrow as pa

    value = _double(text)
    if value != value or value in (float("inf"), float("-inf")):
        return value
    # Straight from the text: by way of 64 bits it would be rounded twice.
    plain = text.strip(_AROUND).removeprefix("+")
    single: float = pa.scalar(plain).cast(pa.float32()).as_py()
    return single


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.strip(_AROUND).lower())
    if found is None:
        raise ValueError(text)
    return found


def _date(text: str) -> dt.date:
    match = _DATE.fullmatch(text.strip(_AROUND))
    if match is None:
        raise ValueError(text)
    return dt.date(*map(int, match.groups()))


def _timestamp(text: str) -> dt.datetime:
    match = _MOMENT.fullmatch(text.strip(_AROUND))
    if match is None:
        raise ValueError(text)
    moment = _wall_clock(match).replace(tzinfo=dt.UTC)
    if match["sign"] is None:
        return moment
    hours, minutes = int(match["hours"]), int(match["minutes"])
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        raise ValueError(text)
    east = dt.timedelta(hours=hours, minutes=minutes)
    return moment - east if match["sign"] == "+" else moment + east


def _timestamp_ntz(text: str) -> dt.datetime:
    match = _MOMENT.fullmatch(text.strip(_AROUND))
    if match is None or match["utc"] or match["sign"]:
        raise ValueError(text)
    return _wall_clock(match)


def _wall_clock(match: re.Match[str]) -> dt.datetime:
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "")[:6].ljust(6, "0"))
    return dt.datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001


_READERS: Final[Mapping[t.DataType, Callable[[str], Any]]] = {
    t.STRING: str,
    t.BINARY: str.encode,
    t.BOOLEAN: _boolean,
    t.FLOAT: _float,
    t.DOUBLE: _double,
    t.DATE: _date,
    t.TIMESTAMP: _timestamp,
    t.TIMESTAMP_NTZ: _timestamp_ntz,
}


def _java_number(value: float, type_: t.DataType) -> str:
    """The fewest digits that read back; an exponent for the very large and the very small."""
    import numpy as np

    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = str(np.float32(value)) if type_ == t.FLOAT else repr(value)
    exact = decimal.Decimal(shortest)
    sign = "-" if exact.is_signed() else ""
    if exact.is_zero():
        return f"{sign}0.0"
    digits = "".join(map(str, exact.normalize().as_tuple().digits))
    power = exact.adjusted()
    if -3 <= power < 7:
        text = f"{abs(exact.normalize()):f}"
        return f"{sign}{text if '.' in text else text + '.0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"

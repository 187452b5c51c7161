"""JSON text as values, one text at a time: any text, any type.

Numbers keep their text until a type says what they are, and objects their pairs, so that a decimal
is exact, and any value can be written back as text.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import json
import math
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from millpond.engine.arrow.eval.cast_numbers import fit_decimal, nearest_float
from millpond.engine.arrow.eval.format import java_double
from millpond.engine.arrow.eval.json_deep import TooDeepError, decode_deep
from millpond.engine.arrow.eval.parse import read_decimal, read_moment
from millpond.engine.arrow.eval.values import map_unique
from millpond.plan.arrow import to_arrow
from millpond.plan.literals import fits
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
    is_fractional,
    is_integral,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa


class _Whole(str):
    """A number without point and exponent, as it was written."""

    __slots__ = ()


class _Real(str):
    """Any other number, as it was written."""

    __slots__ = ()


class _Written(str):
    """A part of a text that is being written."""

    __slots__ = ()


class _Members(tuple[tuple[str, Any], ...]):
    """An object's names and values, in order, repeated names included."""

    __slots__ = ()


_NESTED: Final = (_Members, list)
_SHOWN: Final = 60
_UNFIT: Final = object()
_NO_TIME: Final = object()
"""Text where a time should be: it counts as the value of its name, and is null in the end."""
_NAMED_NUMBERS: Final = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
}
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=_Whole, parse_float=_Real, parse_constant=_Real
)
_NAMES: Final = {None: "null", True: "true", False: "false"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-f]{4}|.)")


def read_exactly(column: pa.Array, type_: DataType) -> pa.Array:
    """A column of JSON text as values of a type, each different text read once."""
    return map_unique(lambda text: read_json(text, type_), column, to_arrow(type_))


def read_json(text: str, type_: DataType) -> Any:
    """One text as a Python value; where it does not fit, null, or a struct of nulls."""
    try:
        value = _fit(_decoded(text), type_)
    except ValueError:
        value = _UNFIT
    if isinstance(type_, Struct) and not isinstance(value, dict):
        return dict.fromkeys(type_.names)
    return None if value is _UNFIT or value is _NO_TIME else value


class Misfit(NamedTuple):
    """A value of a JSON text that its type does not take."""

    member: str
    value: str
    type: DataType

    def __str__(self) -> str:
        shown = self.value if len(self.value) <= _SHOWN else self.value[:_SHOWN] + "…"
        return f"member {self.member!r} is {shown}, which is not of type {self.type}"


def first_misfit(text: str, type_: Struct, *, exactly: bool = False) -> Misfit | None:
    """Return the first value of a JSON object that does not fit its type.

    `exactly` also refuses what would only be converted: numbers as text, text as numbers, rounding.

    >>> from millpond.plan.types import LONG
    >>> print(first_misfit('{"a": {"b": 1.5}}', Struct.of(a=Struct.of(b=LONG))))
    member 'a.b' is 1.5, which is not of type long
    """
    try:
        value = _decoded(text)
    except ValueError:
        return None
    return _misfit(value, type_, "", exactly)


def _misfit(value: Any, type_: DataType, member: str, exactly: bool) -> Misfit | None:
    """As deep as the type is, not the text."""
    if value is None:
        return None
    inner: Iterable[tuple[Any, DataType, str]]
    if isinstance(type_, Struct) and isinstance(value, _Members):
        dot = "." if member else ""
        fields = ((name, item, type_.get(name)) for name, item in value)
        inner = ((i, f.type, f"{member}{dot}{name}") for name, i, f in fields if f is not None)
    elif isinstance(type_, List) and isinstance(value, list):
        inner = ((item, type_.element, f"{member}[{n}]") for n, item in enumerate(value))
    elif isinstance(type_, Map) and type_.key == STRING and isinstance(value, _Members):
        inner = ((item, type_.value, f"{member}.{name}") for name, item in value)
    elif _is_scalar_of(value, type_) and not (exactly and _is_changed(value, type_)):
        return None
    else:
        return Misfit(member, _clean(write_json(value)), type_)
    found = (_misfit(item, of, name, exactly) for item, of, name in inner)
    return next((one for one in found if one is not None), None)


def _is_scalar_of(value: Any, type_: DataType) -> bool:
    if isinstance(type_, Struct | List | Map):
        return False
    fitted = _fit(value, type_)
    is_whole = type_ != STRING or not _is_text(value) or fitted == value  # no half surrogate pair
    return fitted is not _UNFIT and fitted is not _NO_TIME and is_whole


def _is_changed(value: Any, type_: DataType) -> bool:
    """Whether a value fits a type only after a conversion."""
    if type_ == STRING or type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return not _is_text(value)
    if isinstance(type_, Decimal):
        return _is_text(value) or decimal.Decimal(value) != _fit_decimal(value, type_)
    if is_fractional(type_):
        return _is_text(value) or not math.isfinite(_fit_float(value, type_))
    return False


def is_json_object(text: str) -> bool:
    """Whether a text is one JSON object, as `read_json` reads it.

    >>> is_json_object('{"a": 1}'), is_json_object("[]"), is_json_object('{"a": 1')
    (True, False, False)
    """
    try:
        return isinstance(_decoded(text), _Members)
    except ValueError:
        return False


def is_too_deep(text: str) -> bool:
    """Whether a text has more levels than are read.

    >>> is_too_deep("[" * 100_000), is_too_deep("[[]")
    (True, False)
    """
    try:
        _decoded(text)
    except TooDeepError:
        return True
    except ValueError:
        return False
    return False


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        return decode_deep(text, _DECODER)


def _fit(value: Any, type_: DataType) -> Any:
    """A JSON value as a value of a type, or `_UNFIT`. As deep as the type is, not the text."""
    if value is None:
        return None
    if isinstance(type_, Struct):
        return _fit_struct(value, type_)
    if isinstance(type_, List):
        if not isinstance(value, list):
            return _UNFIT
        items = [_fit(item, type_.element) for item in value]
        return _unfit_among(items) or items
    if isinstance(type_, Map):
        return _fit_map(value, type_)
    if isinstance(type_, Decimal):
        return _fit_decimal(value, type_)
    if is_integral(type_):
        good = isinstance(value, _Whole) and len(value) < 30 and fits(int(value), type_)
        return int(value) if good else _UNFIT
    if is_fractional(type_):
        return _fit_float(value, type_)
    reader = _SCALARS.get(type_)
    return _UNFIT if reader is None else reader(value, type_)


def _fit_struct(value: Any, type_: Struct) -> Any:
    if not isinstance(value, _Members):
        return _UNFIT
    fitted = dict.fromkeys(type_.names)
    for name, item in value:
        field = type_.get(name)
        found = _UNFIT if field is None else _fit(item, field.type)
        if found is not _UNFIT:  # of a repeated name, the last value that fits
            fitted[name] = None if found is _NO_TIME else found
    return fitted


def _fit_map(value: Any, type_: Map) -> Any:
    if not isinstance(value, _Members) or type_.key != STRING:
        return _UNFIT
    items = [(_clean(name), _fit(item, type_.value)) for name, item in value]
    if any(item is _UNFIT for _, item in items):
        return _UNFIT
    last = dict(items)
    return _unfit_among(last.values()) or list(last.items())


def _unfit_among(items: Iterable[Any]) -> Any:
    """What a list or a map is because of what is in it; None if all of that fits."""
    found = [item for item in items if item is _UNFIT or item is _NO_TIME]
    if not found:
        return None
    return _UNFIT if any(item is _UNFIT for item in found) else _NO_TIME


def _fit_decimal(value: Any, type_: Decimal) -> Any:
    fitted: decimal.Decimal | None = None
    if isinstance(value, _Whole | _Real) and value not in _NAMED_NUMBERS:
        fitted = fit_decimal(decimal.Decimal(value), type_)
    elif _is_text(value):
        fitted = read_decimal(value, type_)
    return _UNFIT if fitted is None else fitted


def _fit_float(value: Any, type_: DataType) -> Any:
    if not isinstance(value, str) or (_is_text(value) and value not in _NAMED_NUMBERS):
        return _UNFIT
    if value in _NAMED_NUMBERS:
        return _NAMED_NUMBERS[value]
    if value == "-0":  # it is a whole number, and those have one zero
        return 0.0
    return nearest_float(decimal.Decimal(value)) if type_ == FLOAT else float(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, _Whole | _Real)


def _fit_boolean(value: Any, type_: DataType) -> Any:
    del type_
    return value if isinstance(value, bool) else _UNFIT


def _fit_string(value: Any, type_: DataType) -> Any:
    del type_
    return _clean(value if _is_text(value) else write_json(value))


def _fit_binary(value: Any, type_: DataType) -> Any:
    del type_
    try:
        return base64.b64decode(value, validate=True) if _is_text(value) else _UNFIT
    except (binascii.Error, ValueError):
        return _UNFIT


def _fit_moment(value: Any, type_: DataType) -> Any:
    text = _fit_string(value, STRING)
    moment = read_moment(text, type_, zones=type_ != TIMESTAMP_NTZ)
    return _NO_TIME if moment is None else moment


_SCALARS: Final[dict[DataType, Callable[[Any, DataType], Any]]] = {
    BOOLEAN: _fit_boolean,
    STRING: _fit_string,
    BINARY: _fit_binary,
    **dict.fromkeys((DATE, TIMESTAMP, TIMESTAMP_NTZ), _fit_moment),
}


def _clean(text: str) -> str:
    """Half a surrogate pair can't be stored; it becomes a question mark, as in Java."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_json(value: Any) -> str:
    """A decoded value as compact JSON text.

    >>> write_json(_DECODER.decode('{"x": [1, 2.50, "a/b", true, null]}'))
    '{"x":[1,2.5,"a/b",true,null]}'
    """
    written: list[str] = []
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, _Members):
            todo += _parts("{", ((f"{_quoted(name)}:", item) for name, item in one), "}")
        elif isinstance(one, list):
            todo += _parts("[", (("", item) for item in one), "]")
        else:
            written.append(one if isinstance(one, _Written) else _scalar(one))
    return "".join(written)


def _parts(text: str, items: Iterable[tuple[str, Any]], closing: str) -> list[Any]:
    """What is written for an object or a list, the last part first: texts, what is inside."""
    parts: list[Any] = []
    between = ""
    for before, item in items:
        text += between + before
        between = ","
        if isinstance(item, _NESTED):
            parts += (_Written(text), item)
            text = ""
        else:
            text += _scalar(item)
    parts.append(_Written(text + closing))
    return parts[::-1]


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is _Whole:
        return "0" if value == "-0" else str(value)
    if kind is _Real:
        text = java_double(float(value))
        return text if math.isfinite(float(value)) else f'"{text}"'
    return _NAMES[value]


def _quoted(text: str) -> str:
    """Control characters are written with capital digits, as Java's writer does."""
    plain = encode_basestring(text)
    if "\\" not in plain:
        return plain
    return _ESCAPE.sub(lambda m: f"\\u{m[1][1:].upper()}" if len(m[1]) == 5 else m[0], plain)

"""Rows as text: CSV and JSON lines, batch by batch. `files.py` writes them to files.

Times are ISO 8601, in UTC with a Z; bytes are base64. In CSV an unquoted empty field is null and
nested values are JSON; in JSON, numbers that it has no words for are texts: "NaN", "Infinity".
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval.format import to_text
from millpond.plan.types import (
    BINARY,
    DATE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DataType,
    List,
    Map,
    Struct,
    is_fractional,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES: Final = 4 << 20
"""So much of a batch is made into text at a time."""
_JSON: Final = msgspec.json.Encoder(decimal_format="number")
_TEXT: Final = pa.large_string()
_NEEDS_QUOTES: Final = r'[",\r\n]|^$|^\s|\s$'


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices of bounded size, one row at least in each."""
    if not batch.num_rows:
        return
    step = max(1, int(batch.num_rows * PIECE_BYTES / max(batch.nbytes, 1)))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


# CSV


def csv_header(schema: Struct) -> bytes:
    """The line with the names of the columns."""
    names = _quoted(pa.array(schema.names, _TEXT)).to_pylist()
    return (",".join(names) + "\n").encode()


def csv_lines(batch: pa.RecordBatch, schema: Struct) -> bytes:
    """The rows as lines."""
    columns = [
        _field(column, field.type, field.name)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    if not columns:
        return b"\n" * int(batch.num_rows)
    comma = pa.scalar(",", _TEXT)
    lines = pc.binary_join_element_wise(
        *columns, comma, null_handling="replace", null_replacement=""
    )
    return _joined(lines)


def _joined(lines: pa.Array) -> bytes:
    """All lines, each with its end, in one go."""
    ended = pc.binary_join_element_wise(lines, pa.scalar("\n", _TEXT), pa.scalar("", _TEXT))
    characters = ended.buffers()[2]
    return b"" if characters is None else bytes(characters.slice(*_span(ended)))


def _span(array: pa.Array) -> tuple[int, int]:
    """Where the characters of an array of large strings begin in its buffer, and how many."""
    offsets = pa.Array.from_buffers(
        pa.int64(), len(array) + 1, [None, array.buffers()[1]], offset=array.offset
    )
    first, last = offsets[0].as_py(), offsets[len(array)].as_py()
    return first, last - first


def _field(column: pa.Array, type_: DataType, name: str) -> pa.Array:
    if type_ == NULL:
        return pa.nulls(len(column), _TEXT)
    if type_ == STRING:
        return _quoted(column.cast(_TEXT))
    if type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _times(column, type_)
    if type_ in (BINARY, VARIANT) or isinstance(type_, Struct | List | Map):
        values = json_values(column, type_, name)
        texts = [None if v is None else v if isinstance(v, str) else _encoded(v) for v in values]
        return _quoted(pa.array(texts, _TEXT))
    return to_text(column, type_).cast(_TEXT)


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts in quotes, where CSV needs them: an empty text is not null."""
    needs = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if not pc.any(needs).as_py():
        return texts
    quote, nothing = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise(quote, doubled, quote, nothing), texts)


def _times(column: pa.Array, type_: DataType) -> pa.Array:
    texts = to_text(column, type_).cast(_TEXT)
    if type_ == DATE:
        return texts
    texts = pc.replace_substring(texts, " ", "T")
    if type_ == TIMESTAMP:
        texts = pc.binary_join_element_wise(texts, pa.scalar("Z", _TEXT), pa.scalar("", _TEXT))
    return texts


# JSON


def json_lines(batch: pa.RecordBatch, schema: Struct) -> bytes:
    """The rows as JSON objects, one a line."""
    columns = [
        json_values(column, field.type, field.name)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    if not columns:
        return b"{}\n" * int(batch.num_rows)
    names = schema.names
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return b"".join(_JSON.encode(row) + b"\n" for row in rows)


def json_values(column: pa.Array, type_: DataType, name: str) -> list[Any]:
    """The values of a column as JSON has them."""
    if type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        texts: list[Any] = _times(column, type_).to_pylist()
        return texts
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError, KeyError) as error:
        raise EvaluationError(
            f"a value of column {name!r} can't be written as text: {error}",
            engine="arrow",
            hint="write it as Parquet or Arrow, or leave the column out with --sql",
        ) from error
    if _is_plain(type_):
        return values
    return [_plain(value, type_) for value in values]


def _is_plain(type_: DataType) -> bool:
    """Whether values are in JSON what they are in Python."""
    if isinstance(type_, List):
        return _is_plain(type_.element)
    if isinstance(type_, Struct):
        return all(_is_plain(field.type) for field in type_)
    if isinstance(type_, Map):
        return type_.key == STRING and _is_plain(type_.value)
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return not (is_fractional(type_) or type_ in (BINARY, VARIANT) or type_ in times)


def _plain(value: Any, type_: DataType) -> Any:
    if value is None:
        return None
    if isinstance(type_, Struct):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if isinstance(type_, List):
        return [_plain(item, type_.element) for item in value]
    if isinstance(type_, Map):
        return {_key(k, type_.key): _plain(v, type_.value) for k, v in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else _unbounded(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):  # a variant
        return {name: _plain(item, BINARY) for name, item in value.items()}
    if type_ in (DATE, TIMESTAMP_NTZ):
        return value.isoformat()
    if type_ == TIMESTAMP:
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value


def _key(value: Any, type_: DataType) -> str:
    plain = _plain(value, type_)
    return plain if isinstance(plain, str) else _encoded(plain)


def _unbounded(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _encoded(value: Any) -> str:
    return _JSON.encode(value).decode()

"""Schemas of text files, inferred by pyarrow from a bounded sample."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from millpond.base.errors import SchemaError
from millpond.engine.arrow.source.csvfile import head_of, no_csv
from millpond.engine.arrow.source.files import ENGINE, unreadable
from millpond.engine.arrow.source.jsonlines import check_lines
from millpond.engine.arrow.source.stream import unpacked
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.sources import CsvOptions, Format

if TYPE_CHECKING:
    from millpond.engine.arrow.source.files import Files
    from millpond.plan.types import Struct

_SAMPLE_BYTES = 1 << 20
_LINE_BYTES = 256 << 20


def guess_schema(path: str, format_: Format, csv: CsvOptions | None, files: Files) -> Struct:
    """The schema of the first megabyte of a text file (of its first line, if that is longer).

    What later lines hold beyond it is not read; what does not fit it is null (JSON) or an error
    (CSV). Columns that are null throughout the sample are text.
    """
    file = files.open(path)
    try:
        sample = _sample(unpacked(path, file))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    finally:
        files.release(file)
    if format_ == "json":
        table = _read_json(path, sample)
    else:
        table = _read_csv(path, sample, csv or CsvOptions())
    fields = [pa.field(f.name, _settled(f.type), f.nullable) for f in table.schema]
    if not fields:
        raise SchemaError(f"{path} shows no columns", hint="give schema=Struct.of(...)")
    return from_arrow_schema(pa.schema(fields))


def _sample(stream: Any) -> bytes:
    data: bytes = stream.read(_SAMPLE_BYTES)
    while b"\n" not in data and len(data) < _LINE_BYTES:
        more = stream.read(_SAMPLE_BYTES)
        if not more:
            return data
        data += more
    whole = len(data) < _SAMPLE_BYTES
    return data if whole else data[: data.rfind(b"\n") + 1]


def _read_json(path: str, sample: bytes) -> pa.Table:
    import pyarrow.json as pj

    if not sample.strip():
        return pa.table({})
    check_lines(path, sample)
    options = pj.ReadOptions(use_threads=False, block_size=max(len(sample), 1) + 1)
    try:
        return pj.read_json(io.BytesIO(sample), read_options=options)
    except pa.ArrowException as error:
        raise unreadable(path, error, hint="give schema=Struct.of(...)") from error


def _read_csv(path: str, sample: bytes, csv: CsvOptions) -> pa.Table:
    import pyarrow.csv as pc

    if not sample.strip():
        return pa.table({})
    if csv.has_header:
        head = head_of(path, pa.BufferReader(sample), csv)
        head.check(head.names, path=path, engine=ENGINE)
    read = pc.ReadOptions(
        use_threads=False,
        block_size=len(sample) + 1,
        autogenerate_column_names=not csv.has_header,
    )
    parse = pc.ParseOptions(delimiter=csv.delimiter, quote_char=csv.quote, newlines_in_values=True)
    try:
        table = pc.read_csv(io.BytesIO(sample), read_options=read, parse_options=parse)
    except pa.ArrowException as error:
        raise no_csv(path, error) from error
    for field in table.schema:
        if at.is_binary(field.type):
            raise no_csv(path, ValueError(f"column {field.name} is not UTF-8"))
    return table


def _settled(type_: pa.DataType) -> pa.DataType:
    """Types as we keep them: no nulls, no times of day, no seconds."""
    if at.is_null(type_) or at.is_time(type_):
        return pa.string()
    if at.is_timestamp(type_):
        return pa.timestamp("us", tz=None if type_.tz is None else "UTC")
    if at.is_struct(type_):
        members = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(m.name, _settled(m.type)) for m in members])
    if at.is_list(type_):
        return pa.list_(_settled(type_.value_type))
    return type_

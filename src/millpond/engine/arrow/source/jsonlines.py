"""JSON lines: blocks of whole lines, each line read as `parse_json` reads text.

So a member that is missing or does not fit is null. A line that is not a JSON object is an error
that names the file and the line. Blank lines are no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import SourceError
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.eval.json_exact import is_json_object
from millpond.engine.arrow.source.files import ENGINE, unreadable
from millpond.engine.arrow.source.parquet import batch_of
from millpond.engine.arrow.source.stream import open_stream
from millpond.plan.bound import BoundParseJson, BoundPath
from millpond.plan.paths import Name
from millpond.plan.types import STRING, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.scan import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_BLOCK_BYTES = 4 << 20
_LINE = BoundPath((Name("line"),), STRING)
_AROUND = " \t\r\n\ufeff"
_SHOWN = 60


def read_json_lines(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a file, block by block; only the columns that are needed are built."""
    wanted = Struct(tuple(f for f in spec.columns if f.name not in entry.constants))
    parse = BoundParseJson(_LINE, wanted)
    before = 0
    for block in _blocks(entry.path, context):
        lines = split_lines(block)
        context.counters.add("batches_decoded")
        context.counters.add("rows_decoded", len(lines))
        parsed = None
        if len(lines) and wanted.fields:
            parsed = evaluate(parse, pa.record_batch([lines], ["line"]))
            if not all(map(is_json_object, _doubtful(lines, parsed))):
                check_lines(entry.path, block, before)
        before += block.count(b"\n")
        if not len(lines):
            continue
        arrays = []
        for field in spec.columns:
            if field.name in entry.constants:
                arrays.append(entry.constants[field.name].repeat(len(lines)))
            else:
                assert parsed is not None
                arrays.append(parsed.field(field.name))
        yield batch_of(arrays, spec.columns, len(lines))


def _doubtful(lines: pa.Array, parsed: pa.Array) -> list[str]:
    """The lines that gave nothing but nulls: all that are no objects are among them."""
    nulls = parsed.field(0).is_null()
    for number in range(1, parsed.type.num_fields):
        nulls = pc.and_(nulls, parsed.field(number).is_null())
    found: list[str] = lines.filter(nulls).to_pylist()
    return found


def check_lines(path: str, block: bytes, before: int = 0) -> None:
    """Refuse a block of lines of which one is no JSON object; so many lines were before it."""
    for number, line in enumerate(block.split(b"\n"), before + 1):
        text = line.decode(errors="replace").strip(_AROUND)
        if text and not is_json_object(text):
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise SourceError(
                f"line {number} of {path} is not a JSON object: {shown}",
                engine=ENGINE,
                path=path,
                hint="one JSON object per line is expected, each whole on its line",
            )


def _blocks(path: str, context: Context) -> Iterator[bytes]:
    """Whole lines, about four megabytes at a time; a longer line is a block of its own."""
    file, stream = open_stream(path, context)
    rest: list[bytes] = []
    try:
        while True:
            try:
                chunk = stream.read(_BLOCK_BYTES)
            except (OSError, pa.ArrowException) as error:
                raise unreadable(path, error) from error
            context.counters.add("bytes_read", len(chunk))
            if not chunk:
                break
            end = chunk.rfind(b"\n") + 1
            if end:
                yield b"".join((*rest, chunk[:end]))
                rest = []
            rest.append(chunk[end:])
        last = b"".join(rest)
        if last:
            yield last
    finally:
        context.files.release(file)


def split_lines(block: bytes) -> pa.Array:
    """The lines of a block that are not blank, without copying where they are all right."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == 0x0A) + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    raw = pa.Array.from_buffers(pa.binary(), len(ends), buffers)
    lines = _as_text(raw)
    first = data[offsets[:-1]]
    if (first <= 0x20).any() or first[0] == 0xEF:
        lines = pc.utf8_trim(lines, _AROUND)
        lines = lines.filter(pc.greater(pc.binary_length(lines), 0))
    return lines


def _as_text(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        # Bytes that are not UTF-8 become U+FFFD, as everywhere else.
        texts = [value.decode(errors="replace") for value in raw.to_pylist()]
        return pa.array(texts, pa.string())

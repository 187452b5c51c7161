"""JSON lines: blocks of whole lines, each line read as `parse_json` reads text.

So a member that is missing or does not fit is null. A line that is not a JSON object is an error
that names the file and the line. Blank lines are no rows.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import SourceError
from millpond.engine.arrow.eval.json import read_pieces
from millpond.engine.arrow.eval.json_exact import is_json_object
from millpond.engine.arrow.eval.json_typed import read_typed
from millpond.engine.arrow.source.absent import AbsentMembers
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.files import ENGINE, unreadable
from millpond.engine.arrow.source.stream import open_stream
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.eval.json import Piece
    from millpond.engine.arrow.source.scan import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_BLOCK_BYTES = 4 << 20
_AROUND = " \t\r\n\ufeff"
_OPEN, _CLOSE = b"{}"
_SHOWN = 60
_TOGETHER = 1024
"""So many lines are judged at once; only where one does not fit, each by itself."""


def read_json_lines(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a file, block by block; only the columns that are needed are built."""
    absent = AbsentMembers(spec)
    for number, block in enumerate(_blocks(entry.path, context)):
        if absent.rule_out(block):
            context.counters.add("batches_pruned")
            continue
        lines, _ = split_lines(block)
        parsed = parse_lines(lines, spec, context)
        before = partial(_lines_before, number, entry.path, context)
        check_block(parsed, entry.path, block, spec, before)
        if len(lines):
            constants = {n: c.repeat(len(lines)) for n, c in entry.constants.items()}
            yield line_batch(parsed.values, constants, spec)


def _lines_before(number: int, path: str, context: Context) -> int:
    """How many lines there are before a block: only who has to tell of a mistake wants to know."""
    return sum(block.count(b"\n") for block in islice(_blocks(path, context), number))


class Parsed(NamedTuple):
    """Lines as structs of the columns that files hold, and what is sure of all of them."""

    values: pa.Array
    are_objects: bool = True
    are_strict: bool = True


def parse_lines(lines: pa.Array, spec: ScanSpec, context: Context) -> Parsed:
    """Lines as structs."""
    context.counters.add("batches_decoded")
    context.counters.add("rows_decoded", len(lines))
    wanted = file_columns(spec)
    if not wanted.fields or not len(lines):
        return Parsed(pa.nulls(len(lines), to_arrow(wanted)))
    pieces = list(read_pieces(lines, wanted))
    return Parsed(
        pa.concat_arrays([piece.values for piece in pieces]),
        all(piece.is_strict or _are_objects(piece) for piece in pieces),
        all(piece.is_strict for piece in pieces),
    )


def check_block(
    parsed: Parsed,
    path: str,
    block: bytes,
    spec: ScanSpec,
    before: Callable[[], int] = lambda: 0,
) -> None:
    """Refuse lines of a file that are no objects, or that a strict scan does not take."""
    if not parsed.are_objects:
        check_lines(path, block, before())
    if spec.strict and not (parsed.are_strict and _is_text(block)):
        check_strictly(path, block, spec, before())


def _is_text(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def line_batch(parsed: pa.Array, constants: dict[str, pa.Array], spec: ScanSpec) -> pa.RecordBatch:
    """Parsed lines and the constants of their files as a batch."""
    arrays = [
        constants[field.name] if field.name in constants else parsed.field(field.name)
        for field in spec.columns
    ]
    return batch_of(arrays, spec.columns, len(parsed))


def _are_objects(piece: Piece) -> bool:
    """Whether all lines are; one that is not has given nothing but nulls."""
    nulls = piece.values.field(0).is_null()
    for number in range(1, piece.values.type.num_fields):
        nulls = pc.and_(nulls, piece.values.field(number).is_null())
    return all(map(is_json_object, piece.texts.filter(nulls).to_pylist()))


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


def check_strictly(path: str, block: bytes, spec: ScanSpec, before: int = 0) -> None:
    """Refuse a block with a line that does not fit the columns as they are."""
    wanted = file_columns(spec)
    held: list[tuple[int, str]] = []
    for number, line in enumerate(block.split(b"\n"), before + 1):
        try:
            text = line.decode("utf-8-sig").strip(_AROUND)
        except UnicodeDecodeError as error:
            raise _misfit(path, number, "is not UTF-8") from error
        if text:
            held.append((number, text))
        if len(held) == _TOGETHER:
            _check_fit(path, held, wanted)
            held = []
    _check_fit(path, held, wanted)


def _check_fit(path: str, lines: list[tuple[int, str]], wanted: Struct) -> None:
    if not wanted.fields or read_typed(pa.array([text for _, text in lines]), wanted) is not None:
        return
    for number, text in lines:
        if read_typed(pa.array([text]), wanted) is None:
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise _misfit(path, number, f"does not fit what is read of it: {shown}")


def _misfit(path: str, number: int, problem: str) -> SourceError:
    return SourceError(
        f"line {number} of {path} {problem}",
        engine=ENGINE,
        path=path,
        hint="the file is damaged, or was written by something that breaks its rules",
    )


def file_columns(spec: ScanSpec) -> Struct:
    """The columns that files hold themselves."""
    return Struct(tuple(f for f in spec.columns if f.name not in spec.constants))


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


def split_lines(block: bytes) -> tuple[pa.Array, NDArray[np.int64]]:
    """The lines of a block that are not blank, and where they start.

    Lines that are objects and nothing else are not copied, and keep their line ends.
    """
    if not block.endswith(b"\n"):
        block += b"\n"
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == 0x0A)
    starts = np.concatenate([[0], ends[:-1] + 1])
    offsets = np.append(starts, len(data)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    lines = _as_text(pa.Array.from_buffers(pa.binary(), len(ends), buffers))
    if (data[starts] == _OPEN).all() and (data[ends - 1] == _CLOSE).all():
        return lines, starts
    lines = pc.utf8_trim(lines, _AROUND)
    full = pc.greater(pc.binary_length(lines), 0)
    return lines.filter(full), starts[full.to_numpy(zero_copy_only=False)]


def _as_text(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        # Bytes that are not UTF-8 become U+FFFD, as everywhere else.
        texts = [value.decode(errors="replace") for value in raw.to_pylist()]
        return pa.array(texts, pa.string())

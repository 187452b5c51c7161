"""JSON lines: blocks of whole lines, each line read as `parse_json` reads text.

A member that is missing is null. One that does not fit its column is an error that names file, line
and member, or null where the scan says so. A line that is not a JSON object is an error. Blank
lines are no rows. The same reader serves scans of files and the formats of the provider.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import SourceError
from millpond.base.settings import process_limits
from millpond.base.textseals import is_of_log
from millpond.engine.arrow.eval.json import PIECE, Piece, read_pieces
from millpond.engine.arrow.eval.json_deep import MOST_LEVELS
from millpond.engine.arrow.eval.json_exact import (
    first_misfit,
    is_json_object,
    is_too_deep,
    read_exactly,
)
from millpond.engine.arrow.eval.json_lean import LeanReader
from millpond.engine.arrow.eval.json_typed import read_typed, reader_of
from millpond.engine.arrow.source.absent import AbsentMembers
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.commits import check_seal, is_sealed
from millpond.engine.arrow.source.entry import repeated
from millpond.engine.arrow.source.files import ENGINE, unreadable
from millpond.engine.arrow.source.lines import AROUND, is_text, split_lines
from millpond.engine.arrow.source.stream import open_stream
from millpond.engine.looks import DECLARE
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.lines import Lines
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.sources import OnError

_BLOCK_BYTES = 1 << 20
"""So much is read at once: it stays in the processor's cache, and its memory is used again."""
_MOST_BLOCKS = 4
_SHOWN = 60
_TOGETHER = 1024
"""So many lines are judged at once; only where one does not fit, each by itself."""


def read_json_lines(
    entry: Entry, spec: ScanSpec, reader: LeanReader, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of a file: first those of one block, then of two, then of four at a time.

    Only the columns that are needed are built.
    """
    absent = AbsentMembers(spec)
    held: list[pa.Array] = []
    most = 1
    for number, block in enumerate(_checked_blocks(entry.path, context)):
        if absent.rule_out(block):
            context.counters.add("batches_pruned")
            continue
        lines = split_lines(block)
        parsed = parse_lines(lines, file_columns(spec), reader, context)
        before = partial(_lines_before, number, entry.path, context)
        check_block(parsed, entry.path, block, rules_of(spec), before)
        held.append(parsed.values)
        if len(held) == most:
            yield from _batch(held, entry, spec)
            held, most = [], min(2 * most, _MOST_BLOCKS)
    yield from _batch(held, entry, spec)


def _batch(held: list[pa.Array], entry: Entry, spec: ScanSpec) -> Iterator[pa.RecordBatch]:
    rows = sum(map(len, held))
    if rows:
        constants = {
            field.name: repeated(entry.constants[field.name], field.type, rows)
            for field in spec.columns
            if field.name in entry.constants
        }
        yield line_batch(pa.concat_arrays(held), constants, spec)


def _lines_before(number: int, path: str, context: Context) -> int:
    """How many lines there are before a block: only who has to tell of a mistake wants to know."""
    return sum(block.count(b"\n") for block in islice(_blocks(path, context), number))


class Rules(NamedTuple):
    """What the lines of a file have to be."""

    columns: Struct
    strict: bool = True
    on_error: OnError = "error"


def rules_of(spec: ScanSpec) -> Rules:
    """Return the rules of a scan."""
    return Rules(file_columns(spec), spec.strict, spec.on_error)


def read_exact_lines(
    blocks: Iterable[bytes], path: str, columns: Struct
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of blocks of lines whose columns are known; what does not fit is an error."""
    reader, before = LeanReader(columns), 0
    for block in blocks:
        lines = split_lines(block)
        parsed = _parsed(lines, columns, reader)
        check_block(parsed, path, block, Rules(columns), lambda: before)  # noqa: B023 - called now
        before += block.count(b"\n")
        if len(lines):
            arrays = [parsed.values.field(name) for name in columns.names]
            yield batch_of(arrays, columns, len(lines))


class Parsed(NamedTuple):
    """Lines as structs of the columns that files hold, and what is sure of all of them."""

    values: pa.Array
    are_objects: bool = True
    are_strict: bool = True
    are_text: bool = False
    """Whether what they come from is known to be UTF-8."""


def parse_lines(lines: Lines, wanted: Struct, reader: LeanReader, context: Context) -> Parsed:
    """Lines as structs."""
    context.counters.add("batches_decoded")
    context.counters.add("rows_decoded", len(lines))
    return _parsed(lines, wanted, reader)


def _parsed(lines: Lines, wanted: Struct, reader: LeanReader) -> Parsed:
    are_text = lines.plain is not None
    if not wanted.fields or not len(lines):
        return Parsed(pa.nulls(len(lines), to_arrow(wanted)), are_text=are_text)
    pieces = list(_pieces(lines, wanted, reader))
    return Parsed(
        pa.concat_arrays([piece.values for piece in pieces]),
        all(piece.is_strict or _are_objects(piece) for piece in pieces),
        all(piece.is_strict for piece in pieces),
        are_text,
    )


def _pieces(lines: Lines, wanted: Struct, reader: LeanReader) -> Iterator[Piece]:
    """Lines piece by piece; of a plain block they are read as they stand there."""
    if lines.plain is None:
        yield from read_pieces(lines.texts(), wanted)
        return
    for start in range(0, len(lines), PIECE):
        count = min(PIECE, len(lines) - start)
        values = reader.read(lines.bytes_of(start, count), count)
        if values is not None:
            yield Piece(None, values, is_strict=True)
        else:
            texts = lines.texts().slice(start, count)
            yield Piece(texts, read_exactly(texts, wanted), is_strict=False)


def check_block(
    parsed: Parsed,
    path: str,
    block: bytes,
    rules: Rules,
    before: Callable[[], int] = lambda: 0,
) -> None:
    """Refuse lines of a file that are not objects, or that do not fit what the scan wants."""
    if not parsed.are_objects:
        check_lines(path, block, before())
    if rules.on_error == "error" and not (
        parsed.are_strict and (parsed.are_text or is_text(block))
    ):
        check_fit(path, block, rules, before())


def line_batch(parsed: pa.Array, constants: dict[str, pa.Array], spec: ScanSpec) -> pa.RecordBatch:
    """Parsed lines and the constants of their files as a batch."""
    arrays = [
        constants[field.name] if field.name in constants else parsed.field(field.name)
        for field in spec.columns
    ]
    return batch_of(arrays, spec.columns, len(parsed))


def _are_objects(piece: Piece) -> bool:
    """Whether all lines are; one that is not has given nothing but nulls."""
    assert piece.texts is not None
    nulls = piece.values.field(0).is_null()
    for number in range(1, piece.values.type.num_fields):
        nulls = pc.and_(nulls, piece.values.field(number).is_null())
    return all(map(is_json_object, piece.texts.filter(nulls).to_pylist()))


def check_lines(path: str, block: bytes, before: int = 0) -> None:
    """Refuse a block of lines of which one is no JSON object; so many lines were before it."""
    for number, line in enumerate(block.split(b"\n"), before + 1):
        text = line.decode(errors="replace").strip(AROUND)
        if text and not is_json_object(text):
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            fault = f"is not a JSON object: {shown}"
            hint = "one JSON object per line is expected, each whole on its line"
            if is_too_deep(text):
                fault = f"is nested deeper than {MOST_LEVELS} levels: {shown}"
                hint = "write what is so deep as text, in a string"
            raise SourceError(
                f"line {number} of {path} {fault}", engine=ENGINE, path=path, hint=hint
            )


def check_fit(path: str, block: bytes, rules: Rules, before: int = 0) -> None:
    """Refuse a block with a line that does not fit the columns as they are."""
    held: list[tuple[int, str]] = []
    for number, line in enumerate(block.split(b"\n"), before + 1):
        try:
            text = line.decode("utf-8-sig").strip(AROUND)
        except UnicodeDecodeError as error:
            raise _misfit(path, number, "is not UTF-8", rules) from error
        if text:
            held.append((number, text))
        if len(held) == _TOGETHER:
            _check_together(path, held, rules)
            held = []
    _check_together(path, held, rules)


def _check_together(path: str, lines: list[tuple[int, str]], rules: Rules) -> None:
    wanted = rules.columns
    if not wanted.fields or read_typed(pa.array([text for _, text in lines]), wanted) is not None:
        return
    for number, text in lines:
        if read_typed(pa.array([text]), wanted) is not None:
            continue
        found = first_misfit(text, wanted, exactly=rules.strict)
        if found is not None:
            raise _misfit(path, number, f"does not fit what is read of it: {found}", rules)
        if rules.strict and reader_of(wanted) is not None:
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise _misfit(path, number, f"does not fit what is read of it: {shown}", rules)


def _misfit(path: str, number: int, problem: str, rules: Rules) -> SourceError:
    damaged = "the file is damaged, or was written by something that breaks its rules"
    return SourceError(
        f"line {number} of {path} {problem}",
        engine=ENGINE,
        path=path,
        hint=damaged if rules.strict else DECLARE,
    )


def file_columns(spec: ScanSpec) -> Struct:
    """The columns that files hold themselves."""
    return Struct(tuple(f for f in spec.columns if f.name not in spec.constants))


def _checked_blocks(path: str, context: Context) -> Iterator[bytes]:
    """The blocks of a file; a commit of ours is read to its end before any of them is believed."""
    blocks = _blocks(path, context)
    first = next(blocks, b"")
    if is_of_log(path) and is_sealed(path, first):
        check_seal(path, chain((first,), blocks))
        yield from _blocks(path, context)
    else:
        yield first
        yield from blocks


def _blocks(path: str, context: Context) -> Iterator[bytes]:
    """Whole lines, about a megabyte at a time; a longer line is a block of its own."""
    file, stream = open_stream(path, context)

    def read(size: int) -> bytes:
        try:
            chunk: bytes = stream.read(size)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error
        context.counters.add("bytes_read", len(chunk))
        return chunk

    try:
        yield from line_blocks(read, path)
    finally:
        context.files.release(file)


def line_blocks(read: Callable[[int], bytes], path: str) -> Iterator[bytes]:
    """Cut what is read into blocks of whole lines, of about a megabyte or one line."""
    rest: list[bytes] = []
    most, held, at = process_limits().line_bytes, 0, 0
    while chunk := read(_BLOCK_BYTES):
        end = chunk.rfind(b"\n") + 1
        if end:
            # Of megabytes, one copy at most.
            is_whole = end == len(chunk) and not rest
            yield chunk if is_whole else b"".join((*rest, memoryview(chunk)[:end]))
            rest = []
            at, held = at + held + end, -end
        rest.append(chunk[end:])
        held += len(chunk)
        if held > most:
            raise line_too_long(path, f"the line that begins at byte {at:,}", most)
    last = b"".join(rest)
    if last:
        yield last


def line_too_long(path: str, what: str, most: int) -> SourceError:
    """Return the error for a line or row that is longer than it may be."""
    return SourceError(
        f"{what} of {path} is longer than {most:,} bytes",
        engine=ENGINE,
        path=path,
        hint="check that the lines end with newlines; if they do, raise limits.line_bytes",
    )

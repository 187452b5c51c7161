"""Many JSON files: small ones are read whole and parsed together, others block by block."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.base.textseals import is_of_log, may_be_ours
from millpond.engine.arrow.eval.json_lean import LeanReader
from millpond.engine.arrow.source.absent import AbsentMembers
from millpond.engine.arrow.source.commits import check_seal
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.engine.arrow.source.jsonlines import (
    check_block,
    file_columns,
    line_batch,
    parse_lines,
    read_json_lines,
    rules_of,
)
from millpond.engine.arrow.source.lines import split_lines
from millpond.engine.arrow.source.stream import is_packed
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_SMALL_BYTES = 1 << 20
_TOGETHER_BYTES = 2 << 20


def read_json_files(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of files. First eight are parsed together, then 64, and so on.

    Who wants few rows reads few files: one, then two, then four.
    """
    held: list[Entry] = []
    contents: list[bytes] = []
    size, (most, times) = 0, (1, 2) if context.stops_early else (8, 8)
    absent, counts = AbsentMembers(spec), _Counts(context)
    reader, unused = LeanReader(file_columns(spec)), context.files.unused
    try:
        for entry in entries:
            content = unused.take(entry.path, entry.size)
            if content is None:
                content = _small_content(entry, context)
                if content is not None:
                    if may_be_ours(content) and is_of_log(entry.path):
                        check_seal(entry.path, (content,))
                    counts.opened += 1
                    counts.bytes += len(content)
            if content is not None:
                if absent.rule_out(content):
                    counts.pruned += 1
                    unused.keep(entry.path, content)
                    continue
                held.append(entry)
                contents.append(content)
                size += len(content)
            if content is None or size >= _TOGETHER_BYTES or len(held) >= most:
                counts.flush()
                yield from _together(held, contents, spec, reader, context)
                held, contents, size, most = [], [], 0, times * most
            if content is None:
                yield from read_json_lines(entry, spec, reader, context)
        counts.flush()
        yield from _together(held, contents, spec, reader, context)
    finally:
        counts.flush()


@dataclass(slots=True)
class _Counts:
    """What was done since the counters were told: of a thousand small files, many at once."""

    context: Context
    opened: int = 0
    bytes: int = 0
    pruned: int = 0

    def flush(self) -> None:
        """Tell the counters."""
        counters = self.context.counters
        for name, count in (
            ("files_opened", self.opened),
            ("bytes_read", self.bytes),
            ("batches_pruned", self.pruned),
        ):
            if count:
                counters.add(name, count)
        self.opened = self.bytes = self.pruned = 0


def _small_content(entry: Entry, context: Context) -> bytes | None:
    """The content of a small file as it is, or None for others."""
    path = entry.path
    if is_packed(path):
        return None
    try:
        return _read(path, entry.size, context)
    except (OSError, MillpondError) as error:
        raise unreadable(path, error) from error


def _read(path: str, size: int | None, context: Context) -> bytes | None:
    local = local_path(path)
    if local is not None:
        return _read_local(local, size)
    address, name = split_url(path)
    store = context.files.store(address)
    return store.get(name) if store.head(name).size <= _SMALL_BYTES else None


def _read_local(path: str, size: int | None = None) -> bytes | None:
    """With the fewest calls to the system: a log has thousands of files, whose sizes are known."""
    # What is no file but a pipe must not keep us waiting before that is seen.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not size or size > _SMALL_BYTES:
            return _measured(file)
        content = os.read(file, size + 1)
        if len(content) == size:
            return content
    finally:
        os.close(file)
    return _read_local(path)  # it is no more what it was


def _measured(file: int) -> bytes | None:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _SMALL_BYTES:
        return None
    content = os.read(file, found.st_size + 1)
    if len(content) == found.st_size:
        return content
    parts = [content]  # it grows or shrinks meanwhile, or did not come at once
    while parts[-1]:
        parts.append(os.read(file, _SMALL_BYTES))
    return b"".join(parts)


def _together(
    entries: list[Entry],
    contents: list[bytes],
    spec: ScanSpec,
    reader: LeanReader,
    context: Context,
) -> Iterator[pa.RecordBatch]:
    """The rows of these files as one batch; their contents are given away."""
    if not entries:
        return
    whole = [text if text.endswith(b"\n") else text + b"\n" for text in contents]
    ends = np.cumsum([len(text) for text in whole])
    block = b"".join(whole)
    contents.clear()
    whole.clear()
    lines = split_lines(block)
    parsed = parse_lines(lines, file_columns(spec), reader, context)
    is_fine = parsed.are_objects and parsed.are_strict and parsed.are_text
    if not is_fine and (spec.on_error == "error" or not parsed.are_objects):
        for entry, start, end in zip(entries, [0, *ends], ends, strict=False):
            check_block(parsed, entry.path, block[start:end], rules_of(spec))
    if not len(lines):
        return
    rows = np.searchsorted(ends, lines.starts, side="right")
    constants = {}
    for field in spec.columns:
        if field.name in spec.constants:
            values = [entry.constants[field.name] for entry in entries]
            constants[field.name] = pa.array(values, to_arrow(field.type)).take(pa.array(rows))
    yield line_batch(parsed.values, constants, spec)

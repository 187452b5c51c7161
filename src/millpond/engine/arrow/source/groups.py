"""The rows of Parquet files, row group by row group, and the pieces that threads read of them."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from millpond.engine.arrow.source.files import local_path
from millpond.engine.arrow.source.parquet import ParquetSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_SHARE_BYTES: Final = 4 << 20
"""Small files are read by one thread until they are so large together."""
_LARGE_BYTES: Final = 256 << 20
"""A file from this size on is read by several threads, each a part of its row groups. Threads that
filter hinder each other, so that they take a tenth more CPU time: too much for less work."""
_RUN_BYTES: Final = 8 << 20
"""So much, unpacked, is a part: less is not worth another reader of the file."""


def scan_parquet(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a file."""
    source = ParquetSource.of(entry, spec, context)
    try:
        yield from _scan_groups(entry, source, open_groups(source, spec, context), spec, context)
    finally:
        source.close()


def parquet_pieces(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
    """The same of many files in pieces, each for one thread: small files, or a part of one."""
    share: list[Entry] = []
    size = 0
    for entry in entries:
        own = _size(entry)
        is_large = own is not None and own >= _LARGE_BYTES
        if not is_large:
            share.append(entry)
            size += _SHARE_BYTES if own is None else own
        if share and (is_large or size >= _SHARE_BYTES):
            yield partial(_scan_each, share, spec, context)
            share, size = [], 0
        if is_large:
            yield from _parts(entry, spec, context)
    if share:
        yield partial(_scan_each, share, spec, context)


def _size(entry: Entry) -> int | None:
    """How large a file is, if that is known or quickly found."""
    local = local_path(entry.path) if entry.size is None else None
    if local is None:
        return entry.size
    try:
        return os.stat(local).st_size  # noqa: PTH116 - of thousands of files, several times faster
    except (OSError, ValueError):  # who opens it says what is wrong
        return None


def _scan_each(entries: list[Entry], spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    try:
        while entries:
            yield from scan_parquet(entries.pop(0), spec, context)
    finally:
        context.counters.add("early_exit_batches_skipped", len(entries))


def _parts(
    entry: Entry, spec: ScanSpec, context: Context
) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
    """A large file: its footer is read here, and once."""
    source = ParquetSource.of(entry, spec, context)
    try:
        runs = _runs(source, open_groups(source, spec, context))
    finally:
        source.close()
    try:
        while runs:
            yield partial(_scan_run, entry, source, runs.pop(0), spec, context)
    finally:
        context.counters.add("early_exit_batches_skipped", sum(map(len, runs)))


def _runs(source: ParquetSource, groups: list[int]) -> list[list[int]]:
    """Row groups in a row that are worth a reader."""
    runs: list[list[int]] = []
    size = _RUN_BYTES
    for group in groups:
        if size >= _RUN_BYTES:
            runs.append([])
            size = 0
        runs[-1].append(group)
        size += source.metadata.row_group(group).total_byte_size
    return runs


def _scan_run(
    entry: Entry, source: ParquetSource, groups: list[int], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    twin = source.twin()
    try:
        yield from _scan_groups(entry, twin, groups, spec, context)
    finally:
        twin.close()


def _scan_groups(
    entry: Entry, source: ParquetSource, groups: list[int], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups; those that nobody asks for any more are counted."""
    try:
        while groups:
            group = source.group(groups.pop(0))
            context.note(spec.scan_node, group.rows)
            if not spec.conditions:
                gone = gone_rows(entry, source, group.number)
                if gone is None or len(gone) < group.rows:
                    yield from spec.results(group, None, gone)
                continue
            rows = spec.survivors(group, initial_rows(entry, source, group.number), context.note)
            if rows is None or len(rows):
                yield from spec.results(group, rows)
    finally:
        context.counters.add("early_exit_batches_skipped", len(groups))


def open_groups(source: ParquetSource, spec: ScanSpec, context: Context) -> list[int]:
    """The row groups of a file that statistics do not rule out; the others are counted."""
    every = range(source.metadata.num_row_groups)
    groups = [g for g in every if source.may_hold(g, spec.predicates) and source.group_rows[g]]
    empty = int((source.group_rows == 0).sum())
    context.counters.add("batches_pruned", len(every) - len(groups) - empty)
    if len(every) > empty and not groups:
        context.counters.add("files_pruned")
    return groups


def initial_rows(entry: Entry, source: ParquetSource, group: int) -> NDArray[np.int64] | None:
    """The rows of a row group that are not deleted; None stands for all."""
    gone = gone_rows(entry, source, group)
    if gone is None:
        return None
    there = np.ones(source.group_rows[group], bool)
    there[gone] = False
    return np.flatnonzero(there)


def gone_rows(entry: Entry, source: ParquetSource, group: int) -> NDArray[np.int64] | None:
    """The rows of a row group that are deleted; None if there are none."""
    if entry.deleted is None:
        return None
    start, end = source.group_starts[group], source.group_starts[group + 1]
    first, last = np.searchsorted(entry.deleted, (start, end))
    return None if first == last else entry.deleted[first:last] - start

"""The operator over files: file by file, row group by row group, decoding late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.ahead import read_ahead
from millpond.engine.arrow.source.bounds import Bounds, constant_bounds
from millpond.engine.arrow.source.bytesfile import read_bytes
from millpond.engine.arrow.source.csvfile import read_csv
from millpond.engine.arrow.source.jsonfiles import read_json_files
from millpond.engine.arrow.source.parquet import Constant, ParquetSource
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan.types import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.types import DataType

_LONGS = 1 << 63
_SHARE_BYTES = 4 << 20


class Entry(NamedTuple):
    """A file to read: its path, its constants by name, and row positions to leave out."""

    path: str
    constants: dict[str, Constant]
    deleted: NDArray[np.int64] | None = None
    rows: int | None = None
    size: int | None = None


class ScanFiles(Operator):
    """The rows of files that are known beforehand."""

    def __init__(self, spec: ScanSpec, entries: Sequence[Entry], context: Context) -> None:
        super().__init__()
        self.spec = spec
        self.entries = entries
        self.context = context

    def run(self) -> Steps:
        """File by file; what is not needed in the end is counted."""
        entries = iter(self.entries)
        try:
            yield from scan_entries(entries, self.spec, self.context)
        finally:
            # How many row groups a file has is not known before it is opened: it counts as one.
            left = sum(1 for _ in entries)
            self.context.counters.add("early_exit_batches_skipped", left)

    def describe(self) -> str:
        """The format, the files, and what is decoded when."""
        count = f"{len(self.entries)} file{'' if len(self.entries) == 1 else 's'}"
        return f"Scan {self.spec.format} [{count}]" + describe_spec(self.spec)


def describe_spec(spec: ScanSpec) -> str:
    """The order of work within a scan, for explain."""
    if spec.format != "parquet":
        return ": files pruned by constants" if spec.conditions else ""
    parts = ["row groups pruned by statistics"] if spec.conditions else []
    for condition in spec.conditions:
        names = ", ".join(map(str, condition.need)) or "no column"
        parts.append(f"decode ({names}), keep {condition.expr}")
    parts.append(f"decode ({', '.join(map(str, spec.result_need))})")
    if spec.project is not None:
        parts.append(f"compute {', '.join(map(str, spec.project))}")
    return ": " + "; ".join(parts)


def scan_entries(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of files, one after the other; those that can't match are not opened."""
    if spec.constant_predicates:
        entries = _matching(entries, spec, context)
    if spec.format == "bytes":
        yield from read_bytes(entries, spec, context)
        return
    if spec.format == "json":
        yield from read_json_files(entries, spec, context)
        return
    if spec.format == "parquet" and context.threads > 1:
        yield from read_ahead(
            _shares(entries), lambda share: _scan_share(share, spec, context), context.threads
        )
        return
    read = _scan_parquet if spec.format == "parquet" else read_csv
    for entry in entries:
        yield from read(entry, spec, context)


def _shares(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """What one thread reads: a large file, or small ones that are enough together."""
    share: list[Entry] = []
    size = 0
    for entry in entries:
        share.append(entry)
        size += _SHARE_BYTES if entry.size is None else entry.size
        if size >= _SHARE_BYTES:
            yield share
            share, size = [], 0
    if share:
        yield share


def _scan_share(share: list[Entry], spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    for entry in share:
        yield from _scan_parquet(entry, spec, context)


def _matching(entries: Iterator[Entry], spec: ScanSpec, context: Context) -> Iterator[Entry]:
    for entry in entries:
        if may_match(entry, spec):
            yield entry
        else:
            context.counters.add("files_pruned")


def may_match(entry: Entry, spec: ScanSpec) -> bool:
    """Whether a file's constants leave it open that some row meets all conditions."""

    def lookup(steps: tuple[str, ...], type_: DataType) -> Bounds | None:
        constant = entry.constants.get(steps[0])
        if constant is None or len(steps) > 1:
            return None
        return constant_bounds(constant.value, type_)

    return all(may_hold(predicate, lookup) for predicate in spec.constant_predicates)


def _scan_parquet(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    source = ParquetSource.of(entry, spec, context)
    groups: list[int] = []
    try:
        groups = open_groups(source, spec, context)
        while groups:
            group = source.group(groups.pop(0))
            context.note(spec.scan_node, group.rows)
            if not spec.conditions:
                gone = gone_rows(entry, source, group.number)
                if gone is None or len(gone) < group.rows:
                    yield from spec.results(group, None, gone)
                continue
            rows = spec.survivors(group, initial_rows(entry, source, group.number), context)
            if rows is None or len(rows):
                yield from spec.results(group, rows)
    finally:
        context.counters.add("early_exit_batches_skipped", len(groups))
        source.close()


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


def entries_of(scan: Any) -> list[Entry]:
    """The files of a `Scan` node with their constants as typed values."""
    from millpond.plan.literals import literal

    types = [scan.columns.field(name).type for name in scan.constants]
    found = []
    for file in scan.files:
        constants = {
            name: Constant(value if _is_plain(value, type_) else literal(value, type_).value, type_)
            for name, type_, value in zip(scan.constants, types, file.constants, strict=True)
        }
        found.append(Entry(file.path, constants, None, file.rows, file.size))
    return found


def _is_plain(value: Any, type_: DataType) -> bool:
    """Whether a constant is what a literal would make of it: of a million files, most are."""
    return value is None or (type(value) is int and type_ == LONG and -_LONGS <= value < _LONGS)

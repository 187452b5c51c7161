"""The operator over files: file by file, row group by row group, decoding late."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.ahead import read_ahead
from millpond.engine.arrow.source.bounds import Bounds, constant_bounds
from millpond.engine.arrow.source.bytesfile import read_bytes
from millpond.engine.arrow.source.csvfile import read_csv
from millpond.engine.arrow.source.entry import Entry
from millpond.engine.arrow.source.groups import parquet_pieces, scan_parquet
from millpond.engine.arrow.source.jsonfiles import read_json_files
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan.types import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.types import DataType

_LONGS = 1 << 63


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
        pieces = parquet_pieces(entries, spec, context)
        yield from read_ahead(pieces, lambda piece: piece(), context.threads)
        return
    read = scan_parquet if spec.format == "parquet" else read_csv
    for entry in entries:
        yield from read(entry, spec, context)


def _matching(entries: Iterator[Entry], spec: ScanSpec, context: Context) -> Iterator[Entry]:
    for entry in entries:
        if may_match(entry, spec):
            yield entry
        else:
            context.counters.add("files_pruned")


def may_match(entry: Entry, spec: ScanSpec) -> bool:
    """Whether a file's constants leave it open that some row meets all conditions."""

    def lookup(steps: tuple[str, ...], type_: DataType) -> Bounds | None:
        if len(steps) > 1 or steps[0] not in entry.constants:
            return None
        return constant_bounds(entry.constants[steps[0]], type_)

    return all(may_hold(predicate, lookup) for predicate in spec.constant_predicates)


def entries_of(scan: Any) -> list[Entry]:
    """The files of a `Scan` node with their constants as typed values."""
    from millpond.plan.literals import literal

    names, files = scan.constants, scan.files
    columns = []
    for number, name in enumerate(names):
        type_ = scan.columns.field(name).type
        values = [file.constants[number] for file in files]
        if not _are_plain(values, type_):
            values = [literal(value, type_).value for value in values]
        columns.append(values)
    known = (dict(zip(names, row)) for row in zip(*columns)) if names else repeat({})  # noqa: B905
    return [
        Entry(file.path, constants, None, file.rows, file.size)
        for file, constants in zip(files, known)  # noqa: B905 - as many as there are files
    ]


def _are_plain(values: list[Any], type_: DataType) -> bool:
    """Whether constants are what literals would make of them: of a million files, most are."""
    kinds = set(map(type, values))
    if kinds == {int} and type_ == LONG:
        return bool(min(values) >= -_LONGS and max(values) < _LONGS)
    return kinds <= {type(None)}

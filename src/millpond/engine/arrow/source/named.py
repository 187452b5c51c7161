"""Operators over the files that an input's rows name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from millpond.base.errors import SourceError
from millpond.engine.arrow.operator import Operator, gather
from millpond.engine.arrow.source.entry import Entry
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.scan import describe_spec, scan_entries
from millpond.engine.arrow.source.spec import concat, kept_rows, take

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.bound import BoundExpr
    from millpond.plan.sources import DynamicScan

OverFiles: TypeAlias = Callable[[Sequence[Entry]], Operator]


class NamedFiles(Sequence[Entry]):
    """Rows that name files. An entry is made when it is asked for: there may be very many."""

    def __init__(self, rows: pa.RecordBatch, scan: DynamicScan) -> None:
        self._count: int = rows.num_rows
        self._paths = rows.column(scan.path_column)
        self._deleted = None if scan.deleted is None else rows.column(scan.deleted)
        self._constants = [(name, rows.column(name)) for name in scan.constants]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        if not 0 <= row < self._count:
            raise IndexError(row)
        path = self._paths[row].as_py()
        if path is None:
            raise SourceError(
                "a row names no file: its path is null",
                engine=ENGINE,
                path="",
                hint="filter the rows that name the files",
            )
        constants = {name: column[row].as_py() for name, column in self._constants}
        return Entry(path, constants, self._positions(row))

    def _positions(self, row: int) -> NDArray[np.int64] | None:
        positions = None if self._deleted is None else self._deleted[row]
        if positions is None or not positions.is_valid or not len(positions):
            return None
        found: NDArray[np.int64] = positions.values.to_numpy(zero_copy_only=False)
        return found


class ScanNamed(Operator):
    """The rows of the files, in the order in which they are named."""

    def __init__(
        self, spec: ScanSpec, scan: DynamicScan, source: Operator, context: Context
    ) -> None:
        super().__init__(source)
        self.spec = spec
        self.scan = scan
        self.context = context

    def run(self) -> Steps:
        """Batch by batch of the input, file by file."""
        while (batch := (yield self.inputs[0])) is not None:
            yield from scan_entries(iter(NamedFiles(batch, self.scan)), self.spec, self.context)

    def describe(self) -> str:
        """Where paths come from, and what is decoded when."""
        return f"Scan {self.spec.format} by {self.scan.path_column}" + describe_spec(self.spec)


class OverNamed(Operator):
    """An operator that wants to know all its files: they are gathered first."""

    def __init__(self, make: OverFiles, scan: DynamicScan, source: Operator) -> None:
        super().__init__(source)
        self.make = make
        self.scan = scan

    def run(self) -> Steps:
        """The rows of the operator over the files."""
        batches = yield from gather(self.inputs[0])
        if batches:
            yield from self.make(NamedFiles(concat(batches), self.scan)).run()

    def describe(self) -> str:
        """Where paths come from, and what is done with the files."""
        return f"Files by {self.scan.path_column}: {self.make(()).describe()}"


class KeepFiles(Operator):
    """The rows for which a predicate is true, where rows are files: the others are pruned."""

    def __init__(self, source: Operator, predicate: BoundExpr, context: Context) -> None:
        super().__init__(source)
        self.predicate = predicate
        self.context = context

    def run(self) -> Steps:
        """Batch by batch."""
        while (batch := (yield self.inputs[0])) is not None:
            kept = kept_rows(self.predicate, batch)
            if kept is None:
                yield batch
                continue
            self.context.counters.add("files_pruned", batch.num_rows - len(kept))
            if len(kept):
                yield take(batch, kept)

    def describe(self) -> str:
        """The predicate."""
        return f"Keep files {self.predicate}"

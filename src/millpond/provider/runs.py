"""`Runs`: bundles that are missing are computed, neighbours together, and each is kept by itself.

An engine that writes files writes one for each bundle; else rows come here and are written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.plan.parts import Parts
from millpond.provider import reading as readings
from millpond.provider.stretch import BUNDLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept, Result
    from millpond.provider.reading import Reading
    from millpond.provider.stretch import Bundle

RUN_ROWS: Final = 4_000_000
"""Neighbours that are missing are computed together, about so many rows at once."""
SPARK_RUN_ROWS: Final = 16_000_000
"""The same on Spark, which needs a second for each job."""
RUN_CELLS: Final = 96_000_000
"""More values than this are not held at once."""
WRITTEN_ROWS: Final = 1_000_000
"""Spark writes so many by itself, or more: it takes a while to begin and to end."""
WRITTEN_RUN_ROWS: Final = 200_000_000
"""So many at once, about: what a job has done is lost if it fails."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A cheaper plan that is right unless its column `check` is true somewhere."""

    plan: Plan
    check: str


@dataclass(frozen=True)
class Runs:
    """How bundles are made."""

    reading: Reading
    kept: Kept
    time: str
    schema: Struct
    cells: float
    """How many values come of a row of an input, if each time is in every input."""
    is_light: bool
    """Whether few rows are computed in this process, whatever engine was chosen."""
    plan_for: Callable[[Sequence[Bundle]], Plan]
    quick_for: Callable[[Sequence[Bundle]], Checked | None]

    def made(self, missing: Sequence[Bundle]) -> dict[str, Result]:
        """Compute what is missing, and keep it."""
        found = self._written(missing)
        return found | self._read([each for each in missing if each.key not in found])

    # By an engine that writes

    def _written(self, missing: Sequence[Bundle]) -> dict[str, Result]:
        """What an engine can write by itself."""
        found: dict[str, Result] = {}
        if self.reading.is_on_spark and all(each.width for each in missing):
            for run in _runs(missing, WRITTEN_RUN_ROWS):
                if sum(each.rows for each in run) >= WRITTEN_ROWS:
                    found |= self._write(run)
        return found

    def _write(self, run: Sequence[Bundle]) -> dict[str, Result]:
        quick = self.quick_for(run)
        found = None if quick is None else self._write_plan(run, quick.plan, quick.check)
        return self._write_plan(run, self.plan_for(run)) or {} if found is None else found

    def _write_plan(
        self, run: Sequence[Bundle], plan: Plan, check: str | None = None
    ) -> dict[str, Result] | None:
        """Have the engine write what a plan gives; None if it can't, or the check fails.

        The column of a check stays in the files, false throughout: no scan of them reads it.
        """
        from tempfile import TemporaryDirectory

        from millpond.plan.arrow import to_arrow_schema

        with TemporaryDirectory(prefix="millpond-") as directory:
            told = self.reading.run_into(plan, self._parts(run, directory))
            if told is None:
                return None
            files = {row["start"]: row["file"] for batch in told for row in batch.to_pylist()}
            if check is not None and any(_is_true(file, check) for file in files.values()):
                return None
            found: dict[str, Result] = {}
            for each in run:
                file = files.pop(each.start, None)
                if file is None:
                    found[each.key] = self.kept.keep(each.key, to_arrow_schema(self.schema), ())
                else:
                    found[each.key] = self.kept.keep_file(each.key, Path(file))
            assert not files, "each row is in a part of its own time"
        return found

    def _parts(self, run: Sequence[Bundle], directory: str) -> Parts:
        starts = [each.start or 0 for each in run]
        width = run[0].width
        narrow = [start for start, each in zip(starts, run, strict=True) if not each.is_wide]
        since = narrow[0] if narrow else starts[-1] + BUNDLE * width
        rows = int(sum(each.rows for each in run))
        return Parts(self.time, BUNDLE * width, width, since, starts[-1], rows, directory)

    # By us

    def _read(self, missing: Sequence[Bundle]) -> dict[str, Result]:
        """Compute neighbours together, and keep each while the next ones are computed."""
        from concurrent.futures import Future, ThreadPoolExecutor

        found: dict[str, Result] = {}
        runs = list(_runs(missing, self._most_rows))
        if len(runs) == 1:
            return self._keep(runs[0], self._table(runs[0]))
        with ThreadPoolExecutor(1) as writer:
            writing: Future[dict[str, Result]] | None = None
            for run in runs:
                table = self._table(run)
                if writing is not None:
                    found |= writing.result()
                writing = writer.submit(self._keep, run, table)
            if writing is not None:
                found |= writing.result()
        return found

    @property
    def _most_rows(self) -> float:
        """How many rows of all inputs are computed at once, if each time is in every input."""
        wanted = SPARK_RUN_ROWS if self.reading.is_on_spark else RUN_ROWS
        return min(wanted, RUN_CELLS / self.cells)

    def _table(self, run: Sequence[Bundle]) -> pa.Table:
        import pyarrow.compute as pc

        quick = self.quick_for(run)
        if quick is not None:
            table = self._run(run, quick.plan)
            if not pc.any(table.column(quick.check)).as_py():
                return table.drop_columns(quick.check)
        return self._run(run, self.plan_for(run))

    def _run(self, run: Sequence[Bundle], plan: Plan) -> pa.Table:
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        here = self.is_light and sum(each.rows for each in run) <= readings.FEW_ROWS
        batches = self.reading.run(plan, ordered=False, here=here)
        return pa.Table.from_batches(list(batches), to_arrow_schema(plan.schema))

    def _keep(self, run: Sequence[Bundle], table: pa.Table) -> dict[str, Result]:
        """Each bundle by itself, in the order of time."""
        ends = [each.stretches[-1].end for each in run]
        parts = zip(run, _cut(table, self.time, ends), strict=True)
        return {e.key: self.kept.keep(e.key, table.schema, p.to_batches()) for e, p in parts}


def _is_true(file: str, column: str) -> bool:
    """Return whether a column of booleans is true in some row, by the statistics of a file."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    at = metadata.schema.names.index(column)
    groups = (metadata.row_group(n).column(at) for n in range(metadata.num_row_groups))
    # Without statistics it is not known to be false.
    return any(g.statistics is None or g.statistics.max is not False for g in groups)


def _runs(bundles: Sequence[Bundle], most_rows: float) -> Iterator[list[Bundle]]:
    """Neighbours to be computed together."""
    run: list[Bundle] = []
    for each in bundles:
        is_next = bool(run) and run[-1].number + 1 == each.number
        if run and not (is_next and sum(b.rows for b in run) + each.rows <= most_rows):
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _cut(table: pa.Table, time: str, ends: Sequence[int | None]) -> Iterator[pa.Table]:
    """The rows up to each end, in the order of time; rows without a time go with the last one."""
    import numpy as np
    import pyarrow as pa

    table = table.sort_by(time)
    column = table.column(time).cast(pa.int64()).drop_null()
    times = column.to_numpy() if len(column) else np.array([], dtype=np.int64)
    cuts = [int(np.searchsorted(times, end or 0)) for end in ends[:-1]]
    for start, end in pairwise([0, *cuts, table.num_rows]):
        yield table.slice(start, end - start)

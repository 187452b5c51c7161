"""`Stretches`: rows that are computed for one stretch of time after the other, each kept.

What a join or a pivot gives for an hour depends on the rows of that hour alone. So time is cut into
stretches of equal length, and the key of a stretch is made of the keys of the pieces that reach
into it: after an append or a late row, only stretches that it touches are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from millpond.provider import reading
from millpond.provider.kept import scan_of
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import in_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept, Result
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

STRETCH_ROWS: Final = 4_000
"""About so many rows of all inputs are in a stretch, or more."""
BUNDLE: Final = 64
"""So many neighbours are kept as one, as soon as there are rows of a later time."""
RUN_ROWS: Final = 4_000_000
"""Neighbours that are missing are computed together, about so many rows at once."""
SPARK_RUN_ROWS: Final = 16_000_000
"""The same on Spark, which needs a second for each job."""
RUN_CELLS: Final = 96_000_000
"""More values than this are not held at once."""
SHORTEST: Final = 60_000_000
"""A minute."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time, and the pieces of each input that reach into it."""

    key: str
    start: int | None
    """The first microsecond; None where time is not cut."""
    end: int | None
    """The first one after it."""
    pieces: Mapping[str, tuple[Piece, ...]] = field(compare=False)
    rows: float = 0.0
    bundle: int | None = None
    """Which one it belongs to."""

    @property
    def asked(self) -> Asked:
        """Its rows."""
        return Asked(self.start, None if self.end is None else self.end - 1)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Stretches that are kept as one."""

    key: str
    stretches: tuple[Stretch, ...]

    @property
    def asked(self) -> Asked:
        """Its rows."""
        return Asked(self.stretches[0].start, self.stretches[-1].asked.end)

    @property
    def rows(self) -> float:
        """About how many rows of all inputs are in it."""
        return sum(each.rows for each in self.stretches)


@dataclass(frozen=True)
class Stretches:
    """Rows computed from inputs, stretch by stretch."""

    path: str
    inputs: Mapping[str, Rows]
    """As `timed` gives them."""
    reading: Reading
    kept: Kept
    salt: str
    """Names what is computed: the configuration."""
    time: str
    schema: Struct
    compute: Callable[[Mapping[str, Plan]], Plan]
    """From the rows of inputs, by their names; inputs without rows are left out."""
    is_light: bool = False
    """Whether it is computed from few rows that were computed before."""
    shortest: int = SHORTEST
    """Stretches are as long as this, or twice, or four times …: no bucket is cut."""

    @cached_property
    def all(self) -> list[Stretch]:
        """All stretches in which there are rows, in order."""
        pieces = {name: tuple(rows.pieces()) for name, rows in self.inputs.items()}
        if not any(pieces.values()):
            return []
        width = _width([p for found in pieces.values() for p in found], self.shortest)
        if width is None:
            keys = [(name, *(piece.key for piece in found)) for name, found in pieces.items()]
            return [Stretch(key_of("stretch", self.salt, keys), None, None, pieces)]
        inside: dict[int, dict[str, list[Piece]]] = {}
        for name, found in pieces.items():
            for piece in found:
                assert piece.first is not None
                assert piece.last is not None
                for at in range(piece.first // width, piece.last // width + 1):
                    inside.setdefault(at, {}).setdefault(name, []).append(piece)
        return [self._stretch(at, width, inside[at]) for at in sorted(inside)]

    def _stretch(self, at: int, width: int, inside: Mapping[str, list[Piece]]) -> Stretch:
        keys = [(name, *(piece.key for piece in found)) for name, found in sorted(inside.items())]
        start, end = at * width, (at + 1) * width
        rows = sum(_share(piece, start, end) for found in inside.values() for piece in found)
        found = {name: tuple(pieces) for name, pieces in inside.items()}
        key = key_of("stretch", self.salt, start, end, keys)
        return Stretch(key, start, end, found, rows, at // BUNDLE)

    @cached_property
    def _bundles(self) -> list[Bundle]:
        """Stretches as they are kept: the newest one by one, older ones in bundles."""
        groups: dict[int | None, list[Stretch]] = {}
        for each in self.all:
            groups.setdefault(each.bundle, []).append(each)
        last = self.all[-1].bundle if self.all else None
        found: list[Bundle] = []
        for number, inside in groups.items():
            if number == last:
                found += [Bundle(each.key, (each,)) for each in inside]
            else:
                key = key_of("bundle", *(each.key for each in inside))
                found.append(Bundle(key, tuple(inside)))
        return found

    def pieces(self) -> list[Piece]:
        """Each bundle is a piece of the outcome."""
        return [
            Piece(each.key, each.asked.start, each.asked.end, int(each.rows), 8 * int(each.rows))
            for each in self._bundles
        ]

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted; bundles that they are in are computed if they are missing."""
        return in_range(self._rows(self._wanted(asked)), self.time, asked)

    def has(self, asked: Asked) -> bool:
        """Whether all that is wanted is kept."""
        return all(self.kept.find(each.key) is not None for each in self._wanted(asked))

    def _wanted(self, asked: Asked) -> list[Bundle]:
        return [b for b in self._bundles if asked.overlaps(b.asked.start, b.asked.end)]

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some bundles."""
        keys = {piece.key for piece in pieces}
        chosen = [each for each in self._bundles if each.key in keys]
        return self._rows(chosen)

    def _rows(self, bundles: Sequence[Bundle]) -> Plan:
        if self.reading.computes:
            return scan_of(self._results(bundles), self.schema)
        found = [self.kept.find(each.key) for each in bundles]
        known = scan_of([result for result in found if result is not None], self.schema)
        missing = [each for each, result in zip(bundles, found, strict=True) if result is None]
        return known.union(self._plan_for(missing)) if missing else known

    def _plan_for(self, run: Sequence[Bundle]) -> Plan:
        """How neighbours are computed."""
        stretches = [stretch for each in run for stretch in each.stretches]
        whole = Asked(stretches[0].start, stretches[-1].asked.end)
        plans: dict[str, Plan] = {}
        for name, rows in self.inputs.items():
            pieces = dict.fromkeys(p for each in stretches for p in each.pieces.get(name, ()))
            if pieces:
                plan, own = rows.plan_of(list(pieces)), rows.time_column
                plans[name] = plan if own is None else in_range(plan, own, whole)
        return self.compute(plans)

    def _results(self, bundles: Sequence[Bundle]) -> list[Result]:
        found = {each.key: self.kept.find(each.key) for each in bundles}
        missing = [each for each in bundles if found[each.key] is None]
        for each in missing:
            found[each.key] = self._put_together(each)
        found |= self._made([each for each in missing if found[each.key] is None])
        return [result for result in found.values() if result is not None]

    def _put_together(self, bundle: Bundle) -> Result | None:
        """A bundle out of its stretches, if some of them were kept; else None."""
        from millpond.plan.arrow import to_arrow_schema

        if len(bundle.stretches) == 1:
            return None
        alone = [Bundle(each.key, (each,)) for each in bundle.stretches]
        known = {each.key: self.kept.find(each.key) for each in alone}
        if not any(known.values()):
            return None
        known |= self._made([each for each in alone if known[each.key] is None])
        scans = scan_of([result for result in known.values() if result], self.schema)
        batches = scans.execute(engine="arrow")
        return self.kept.keep(bundle.key, to_arrow_schema(self.schema), batches)

    def _run(self, run: Sequence[Bundle]) -> Iterable[pa.RecordBatch]:
        here = self.is_light and sum(each.rows for each in run) <= reading.FEW_ROWS
        return self.reading.run(self._plan_for(run), ordered=False, here=here)

    def _made(self, missing: Sequence[Bundle]) -> dict[str, Result | None]:
        """Compute neighbours together, and keep each while the next ones are computed."""
        from concurrent.futures import Future, ThreadPoolExecutor

        found: dict[str, Result | None] = {}
        with ThreadPoolExecutor(1) as writer:
            writing: Future[dict[str, Result | None]] | None = None
            for run in _runs(missing, self._most_rows):
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
        return min(wanted, RUN_CELLS * len(self.inputs) / len(self.schema))

    def _table(self, run: Sequence[Bundle]) -> pa.Table:
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        return pa.Table.from_batches(list(self._run(run)), to_arrow_schema(self.schema))

    def _keep(self, run: Sequence[Bundle], table: pa.Table) -> dict[str, Result | None]:
        """Each bundle by itself, in the order of time."""
        ends = [each.stretches[-1].end for each in run]
        parts = zip(run, _cut(table, self.time, ends), strict=True)
        return {e.key: self.kept.keep(e.key, table.schema, p.to_batches()) for e, p in parts}


def _width(pieces: Sequence[Piece], shortest: int) -> int | None:
    """How long stretches are: the shortest doubled until about the right number is in one.

    It depends on how dense rows are and not on how many, so that it stays when more are appended.
    """
    firsts = [piece.first for piece in pieces if piece.first is not None]
    lasts = [piece.last for piece in pieces if piece.last is not None]
    counts = [piece.rows for piece in pieces if piece.rows is not None]
    if not pieces or not len(firsts) == len(lasts) == len(counts) == len(pieces):
        return None
    span = max(max(lasts) - min(firsts), shortest)
    width = shortest
    while width * sum(counts) / span < STRETCH_ROWS and width <= span:
        width *= 2
    return width


def _share(piece: Piece, start: int, end: int) -> float:
    """How many rows of a piece are in a stretch, if they are spread evenly."""
    assert piece.first is not None
    assert piece.last is not None
    length = piece.last - piece.first + 1
    inside = min(piece.last + 1, end) - max(piece.first, start)
    return (piece.rows or 0) * inside / length


def _runs(bundles: Sequence[Bundle], most_rows: float) -> Iterator[list[Bundle]]:
    """Neighbours to be computed together."""
    run: list[Bundle] = []
    for each in bundles:
        is_next = bool(run) and run[-1].stretches[-1].end == each.asked.start is not None
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

"""`Stretches`: rows that are computed for one stretch of time after the other, each kept.

What a join or a pivot gives for an hour depends on the rows of that hour alone. So time is cut into
stretches of equal length, and the key of a stretch is made of the keys of the pieces that reach
into it: after an append or a late row, only stretches that it touches are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.provider import reading
from millpond.provider.kept import scan_of
from millpond.provider.reduce.measures import BUCKET
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.runs import Checked, Runs
from millpond.provider.stretch import BUNDLE, SHORTEST, Bundle, Stretch, share, width_of
from millpond.provider.times import in_range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept, Result
    from millpond.provider.reading import Reading
    from millpond.provider.reduce.partials import Partials
    from millpond.provider.rows import Rows


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
    quick: Callable[[Mapping[str, Plan], str], Plan | None] | None = None
    """The same where no two rows have one key and time, cheaper, with one more column of this name
    that is true where two do; None if that can't be seen."""
    partials: Partials | None = None
    """The input, if it is few rows that were computed before, and there is no other."""
    has_neighbours: bool = False
    """Whether an input gives other rows, too, beside those of the pieces that it is asked for."""
    shortest: int = SHORTEST
    """Stretches are as long as this, or twice, or four times …: no bucket is cut."""

    @cached_property
    def all(self) -> list[Stretch]:
        """All stretches in which there are rows, in order."""
        pieces = {name: tuple(rows.pieces()) for name, rows in self.inputs.items()}
        if not any(pieces.values()):
            return []
        width = width_of([p for found in pieces.values() for p in found], self.shortest)
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
        rows = sum(share(piece, start, end) for found in inside.values() for piece in found)
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
        for at, (bundle, inside) in enumerate(groups.items()):
            if bundle == last:
                found += [Bundle(each.key, (each,), n) for n, each in enumerate(inside, at)]
            else:
                key = key_of("bundle", *(each.key for each in inside))
                found.append(Bundle(key, tuple(inside), at, is_wide=True))
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
        """Return how neighbours are computed."""
        return self.compute(self._inputs_of(run))

    def _quick_for(self, run: Sequence[Bundle]) -> Checked | None:
        if self.quick is None:
            return None
        check = self.schema.unused("repeats")
        plan = self.quick(self._inputs_of(run), check)
        return None if plan is None else Checked(plan, check)

    def _inputs_of(self, run: Sequence[Bundle]) -> dict[str, Plan]:
        """Return the rows of each input that neighbours are computed from."""
        stretches = [stretch for each in run for stretch in each.stretches]
        whole = Asked(stretches[0].start, stretches[-1].asked.end)
        is_light = self.reading.computes and sum(each.rows for each in run) <= reading.FEW_ROWS
        plans: dict[str, Plan] = {}
        for name, rows in self.inputs.items():
            pieces = dict.fromkeys(p for each in stretches for p in each.pieces.get(name, ()))
            if pieces and is_light and self.partials is not None:
                near = self.partials.near(list(pieces), whole)
                plans[name] = in_range(near, BUCKET, whole)
            elif pieces:
                plans[name] = self._inside(rows, list(pieces), whole)
        return plans

    def _inside(self, rows: Rows, pieces: Sequence[Piece], whole: Asked) -> Plan:
        """The rows of pieces that are in a range."""
        plan, own = rows.plan_of(pieces), rows.time_column
        is_all = all(whole.covers(piece.first, piece.last) for piece in pieces)
        if own is None or (is_all and not self.has_neighbours):
            return plan
        return in_range(plan, own, whole)

    @cached_property
    def _runs(self) -> Runs:
        return Runs(
            self.reading,
            self.kept,
            self.time,
            self.schema,
            cells=len(self.schema) / len(self.inputs),
            is_light=self.partials is not None,
            plan_for=self._plan_for,
            quick_for=self._quick_for,
        )

    def _results(self, bundles: Sequence[Bundle]) -> list[Result]:
        found = {each.key: self.kept.find(each.key) for each in bundles}
        missing = [each for each in bundles if found[each.key] is None]
        for each in missing:
            found[each.key] = self._put_together(each)
        found |= self._runs.made([each for each in missing if found[each.key] is None])
        return [result for result in found.values() if result is not None]

    def _put_together(self, bundle: Bundle) -> Result | None:
        """A bundle out of its stretches, if some of them were kept; else None."""
        from millpond.plan.arrow import to_arrow_schema

        if len(bundle.stretches) == 1:
            return None
        alone = [Bundle(each.key, (each,), at) for at, each in enumerate(bundle.stretches)]
        known = {each.key: self.kept.find(each.key) for each in alone}
        if not any(known.values()):
            return None
        known |= self._runs.made([each for each in alone if known[each.key] is None])
        scans = scan_of([result for result in known.values() if result], self.schema)
        batches = self.reading.run(scans, here=True)
        return self.kept.keep(bundle.key, to_arrow_schema(self.schema), batches)

"""Partials of pieces, and partials of partials: a tree that grows at its end.

Sixteen neighbours have one partial above them, sixteen of those one more, and so on. After an
append only the new piece is reduced, and perhaps a few nodes above it are merged. Each node is kept
under a key made of the keys below it, so nothing has to be remembered beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import Values
from millpond.provider import reading
from millpond.provider.kept import scan_of
from millpond.provider.reduce.measures import BUCKET
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.stretch import STRETCH_ROWS
from millpond.provider.times import in_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept, Result
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

FANOUT: Final = 16


@dataclass(frozen=True, slots=True)
class Node:
    """Some pieces in a row."""

    key: str
    pieces: tuple[Piece, ...]
    below: tuple[Node, ...] = ()


def cover(pieces: Sequence[Piece], salt: str) -> list[Node]:
    """As few nodes as there can be over all pieces; only the last ones change with an append.

    >>> found = cover([Piece(str(number)) for number in range(37)], "")
    >>> [len(node.pieces) for node in found]
    [16, 16, 1, 1, 1, 1, 1]
    """
    level = [Node(key_of(salt, piece.key), (piece,)) for piece in pieces]
    done: list[list[Node]] = []
    while len(level) >= FANOUT:
        whole = len(level) // FANOUT * FANOUT
        done.append(level[whole:])
        level = [_above(level[at : at + FANOUT]) for at in range(0, whole, FANOUT)]
    done.append(level)
    return [node for nodes in reversed(done) for node in nodes]


def _above(nodes: Sequence[Node]) -> Node:
    pieces = tuple(piece for node in nodes for piece in node.pieces)
    return Node(key_of("above", *(node.key for node in nodes)), pieces, tuple(nodes))


@dataclass(frozen=True, slots=True)
class Held:
    """Partials in memory: those of pieces, in a range."""

    keys: tuple[str, ...]
    range: Asked
    rows: Values


@dataclass(frozen=True)
class Partials:
    """The partials of some rows, which are rows themselves: those of a piece, its partials."""

    rows: Rows
    reading: Reading
    kept: Kept
    salt: str
    """Names what is computed: the configuration."""
    reduce: Callable[[Plan], Plan]
    merge: Callable[[Plan], Plan]
    schema: Struct
    """The columns of a partial."""
    width: int
    """Of its buckets, in microseconds."""

    @property
    def path(self) -> str:
        """Where the rows are."""
        return self.rows.path

    @property
    def time_column(self) -> str | None:
        """The buckets, if it is known when the rows are."""
        return None if self.rows.time_column is None else BUCKET

    @property
    def key(self) -> str:
        """The rows, and what is made of them."""
        return key_of(self.salt, self.rows.key)

    def pieces(self) -> list[Piece]:
        """Those of the rows; there is no more than one partial for a bucket in each."""
        return [replace(piece, rows=self._count(piece)) for piece in self.rows.pieces()]

    def _count(self, piece: Piece) -> int | None:
        if piece.first is None or piece.last is None or piece.rows is None:
            return piece.rows
        return min(piece.rows, piece.last // self.width - piece.first // self.width + 1)

    @cached_property
    def _nodes(self) -> list[Node]:
        return cover(self.rows.pieces(), self.salt)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The partials of pieces, and of some of their neighbours."""
        keys = {piece.key for piece in pieces}
        return self._plan([n for n in self._nodes if any(p.key in keys for p in n.pieces)], ALL)

    def near(self, pieces: Sequence[Piece], asked: Asked) -> Plan:
        """The same from memory, for a range: there are more resolutions that ask for it.

        Coarser ones reach further back, so more than the range is held; all of it is few rows.
        """
        import pyarrow as pa

        if asked.start is None or asked.end is None:
            return self.plan_of(pieces)
        keys = tuple(piece.key for piece in pieces)
        for held in self._held:
            if held.keys == keys and held.range.covers(asked.start, asked.end):
                return held.rows
        wide = Asked(2 * asked.start - asked.end, asked.end)
        rows = in_range(self.plan_of(pieces), BUCKET, wide)
        batches = self.reading.run(rows, here=True)  # in order: the newest of a time is the last
        table = pa.Table.from_batches(batches, to_arrow_schema(self.schema))
        self._held[:] = [Held(keys, wide, Values(table.combine_chunks()))]
        return self._held[0].rows

    @cached_property
    def _held(self) -> list[Held]:
        """What was asked for last, if anything was."""
        return []

    def plan(self, asked: Asked = ALL) -> Plan:
        """Partials that together are those of all rows, or at least of those that are wanted."""
        return self._plan(self._nodes, asked)

    def _plan(self, nodes: Sequence[Node], asked: Asked) -> Plan:
        if self.reading.computes:
            found = [result for node in nodes for result in self._wanted(node, asked)]
            return scan_of(found, self.schema)
        known, missing = self._known(nodes, asked)
        scan = scan_of(known, self.schema)
        return scan.union(self.reduce(self.rows.plan_of(missing))) if missing else scan

    def _known(self, nodes: Sequence[Node], asked: Asked) -> tuple[list[Result], list[Piece]]:
        """What is kept, and the pieces of which nothing is."""
        results: list[Result] = []
        missing: list[Piece] = []
        for node in nodes:
            if not any(asked.overlaps(piece.first, piece.last) for piece in node.pieces):
                continue
            result = self.kept.find(node.key)
            if result is not None:
                results.append(result)
            elif node.below:
                below = self._known(node.below, asked)
                results += below[0]
                missing += below[1]
            else:
                missing += node.pieces
        return results, missing

    def _wanted(self, node: Node, asked: Asked) -> list[Result]:
        if not any(asked.overlaps(piece.first, piece.last) for piece in node.pieces):
            return []
        known = self.kept.find(node.key)
        if known is not None:
            return [known]
        if asked.is_all or not node.below:
            return [self._made(node)]
        return [result for below in node.below for result in self._wanted(below, asked)]

    def _made(self, node: Node) -> Result:
        """Compute a node from rows, or, if something below it is known, from that."""
        if not self._is_known_below(node):
            rows = _total(piece.rows for piece in node.pieces)
            return self._keep(node.key, self.reduce(self.rows.plan_of(node.pieces)), rows)
        below = [self.kept.find(each.key) or self._made(each) for each in node.below]
        rows = _total(self._count(piece) for piece in node.pieces)
        return self._keep(node.key, self.merge(scan_of(below, self.schema)), rows)

    def _is_known_below(self, node: Node) -> bool:
        return any(
            self.kept.find(each.key) is not None or self._is_known_below(each)
            for each in node.below
        )

    def _keep(self, key: str, plan: Plan, rows: int | None) -> Result:
        here = rows is not None and rows <= reading.FEW_ROWS
        batches = self.reading.run(plan, ordered=False, here=here)
        schema = to_arrow_schema(self.schema)
        return self.kept.keep(key, schema, batches, group_rows=STRETCH_ROWS)


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total

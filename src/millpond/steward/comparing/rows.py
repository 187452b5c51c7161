"""Two tables, stored or computed: columns that came, went or changed their type, and rows.

Files that both have are left out, and so are pieces of computed rows. Where files only came, or
only went, their rows are what differs.
Otherwise rows are compared one by one, if they are not too many; if they are, the rows of the files
are counted, and it is said that this is all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from millpond.base.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Piece, Rows

MOST_ROWS: Final = 1_000_000
"""So many rows are compared one by one."""

By = Literal["files", "rows", "counts"]


@dataclass(frozen=True, slots=True)
class RowDiff:
    """How the rows of two tables differ."""

    columns: tuple[str, ...]
    """What became of columns, a line each."""
    added: int | None
    removed: int | None
    """None where nothing tells how many."""
    by: By
    """`files`: whole files came or went, exact. `rows`: compared one by one, exact. `counts`: the
    rows of files that differ; one that was only written anew counts as removed and as added."""
    added_rows: tuple[str, ...] = ()
    """The first ones, as JSON."""
    removed_rows: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not (self.columns or self.added or self.removed)


class _Side(Protocol):
    """What one of the two has and the other has not."""

    @property
    def is_empty(self) -> bool: ...

    def count(self) -> int | None: ...

    def plan(self) -> Plan: ...

    def engine(self, plan: Plan) -> Any: ...


@dataclass(frozen=True, slots=True)
class _Files:
    table: DeltaTable
    chosen: Any
    files: dict[Any, dict[str, Any]]
    """The live files that the other side has not."""

    @property
    def is_empty(self) -> bool:
        return not self.files

    def engine(self, plan: Plan) -> Any:
        del plan
        return self.chosen

    def count(self) -> int | None:
        """How many rows they have, if statistics tell."""
        from millpond.kernel.write.stats import record_count

        counts = [record_count(file) for file in self.files.values()]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def plan(self) -> Plan:
        """Their rows."""
        return self.table.scan().only(file["path"] for file in self.files.values()).plan()


@dataclass(frozen=True, slots=True)
class _Pieces:
    rows: Rows
    pieces: list[Piece]
    """Those that the other side has not."""
    choose: Callable[[Plan], Any]

    @property
    def is_empty(self) -> bool:
        return not self.pieces

    def engine(self, plan: Plan) -> Any:
        return self.choose(plan)

    def count(self) -> int:
        """How many rows they have; of what is computed it is not known before."""
        if self.is_empty:
            return 0
        plan = self.plan()
        return plan.count(engine=self.engine(plan))

    def plan(self) -> Plan:
        """Their rows."""
        return self.rows.plan_of(self.pieces)


def compare_tables(old: DeltaTable, new: DeltaTable, *, engine: Any, limit: int) -> RowDiff:
    """Compare two tables, or two versions of one; at most so many rows are shown of each kind."""
    before, after = _files(old), _files(new)
    gone = _Files(old, engine, {k: f for k, f in before.items() if k not in after})
    come = _Files(new, engine, {k: f for k, f in after.items() if k not in before})
    return _compared(tuple(_columns(old.schema, new.schema)), come, gone, limit)


def compare_computed(old: Rows, new: Rows, *, engine: Callable[[Plan], Any], limit: int) -> RowDiff:
    """The same for rows of which one side at least is computed."""
    before, after = ({piece.key: piece for piece in rows.pieces()} for rows in (old, new))
    gone = _Pieces(old, [p for key, p in before.items() if key not in after], engine)
    come = _Pieces(new, [p for key, p in after.items() if key not in before], engine)
    return _compared(tuple(_columns(old.schema, new.schema)), come, gone, limit)


def _compared(columns: tuple[str, ...], come: _Side, gone: _Side, limit: int) -> RowDiff:
    added, removed = come.count(), gone.count()
    if gone.is_empty or come.is_empty:
        return RowDiff(columns, added, removed, "files", *_first_rows(come, gone, limit))
    if added is None or removed is None or added + removed > MOST_ROWS:
        return RowDiff(columns, added, removed, "counts")
    try:
        return _one_by_one(columns, come, gone, limit)
    except SchemaError:  # the types have nothing in common, so neither have the rows
        return RowDiff(columns, added, removed, "counts")


def _files(table: DeltaTable) -> dict[Any, dict[str, Any]]:
    """The live files; what they are called, and which of their rows are deleted, makes them."""
    columns = ("path", "size", "stats", "deletionVector")
    rows = table.files(columns=columns).to_arrow().to_pylist()
    return {(table.location, row["path"], str(row["deletionVector"])): row for row in rows}


def _columns(old: Struct, new: Struct) -> Iterator[str]:
    for field in old:
        other = new.get(field.name)
        if other is None:
            yield f"- {field}"
        elif other.type != field.type:
            yield f"~ {field.name}: {field.type} -> {other.type}"
    for field in new:
        if field.name not in old:
            yield f"+ {field}"


def _first_rows(come: _Side, gone: _Side, limit: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = []
    for side in (come, gone):
        plan = None if side.is_empty or not limit else side.plan().head(limit)
        found.append(() if plan is None else tuple(_lines(plan, side.engine(plan))))
    return found[0], found[1]


def _one_by_one(columns: tuple[str, ...], come: _Side, gone: _Side, limit: int) -> RowDiff:
    """The rows that one side has more often than the other; NaN is equal to itself."""
    from millpond.plan.unite import fitted_by_name

    plans = fitted_by_name({"new": come.plan(), "old": gone.plan()})
    counts: Counter[bytes] = Counter()
    for name, sign in (("new", 1), ("old", -1)):
        side = come if name == "new" else gone
        for line in _lines(plans[name], side.engine(plans[name])):
            counts[_digest(line)] += sign
    added = sum(count for count in counts.values() if count > 0)
    removed = -sum(count for count in counts.values() if count < 0)
    shown = []
    for name, side, wanted in (("new", come, 1), ("old", gone, -1)):
        lines: list[str] = []
        if limit and (added if wanted > 0 else removed):
            for line in _lines(plans[name], side.engine(plans[name])):
                digest = _digest(line)
                if counts[digest] * wanted > 0:
                    counts[digest] -= wanted
                    lines.append(line)
                    if len(lines) == limit:
                        break
        shown.append(tuple(lines))
    return RowDiff(columns, added, removed, "rows", shown[0], shown[1])


def _lines(plan: Plan, engine: Any) -> Iterator[str]:
    """Rows as JSON."""
    from millpond.steward.rows.text import json_lines, pieces

    for batch in plan.execute(engine=engine):
        for piece in pieces(batch):
            yield from json_lines(piece, plan.schema).decode().split("\n")[:-1]


def _digest(line: str) -> bytes:
    return blake2b(line.encode(), digest_size=16).digest()

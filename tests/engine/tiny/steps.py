"""What the tiny engine's nodes do: functions from the rows of inputs to rows."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Any

from tests.engine.tiny.values import EXACT, fail, fitted, hashed, in_range, key, ordered, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.engine.tiny.expressions import Expression, Measure, Named, SortKey

Row = tuple[Any, ...]
Rows = list[Row]


class Rowset:
    """Rows and the names of their columns, as expressions see them."""

    def __init__(self, names: Sequence[str], rows: Rows) -> None:
        self.names = tuple(names)
        self.rows = rows

    def each(self, *expressions: Expression) -> list[Row]:
        """The values of some expressions for each row."""
        found = []
        for row in self.rows:
            members = dict(zip(self.names, row, strict=True))
            found.append(tuple(expression(members) for expression in expressions))
        return found


def keep(given: Rowset, predicate: Expression) -> Rows:
    return [r for r, (ok,) in zip(given.rows, given.each(predicate), strict=True) if ok is True]


def project(given: Rowset, columns: list[Named]) -> Rows:
    return given.each(*(column.expression for column in columns))


def sort(given: Rowset, keys: list[SortKey]) -> Rows:
    """Sorted by the last key first: each sort is stable, so the first key decides in the end."""
    found = list(zip(given.each(*(k.expression for k in keys)), given.rows, strict=True))
    for at in reversed(range(len(keys))):
        # Descending turns the order of nulls round, too.
        last = keys[at].nulls_first == keys[at].descending

        def place(item: tuple[Row, Row], at: int = at, last: bool = last) -> tuple[bool, Any]:
            value = item[0][at]
            return ((value is None) == last, 0 if value is None else ordered(value))

        found.sort(key=place, reverse=keys[at].descending)
    return [row for _, row in found]


def take(given: Rowset, indices: Sequence[int]) -> Rows:
    if indices and max(indices) >= len(given.rows):
        raise fail(f"there is no row {max(indices)}, only {len(given.rows)} rows")
    return [given.rows[index] for index in indices]


def by_chance(given: Rowset, seed: int) -> list[int]:
    """Positions in the order of their hashes."""
    return sorted(range(len(given.rows)), key=lambda at: (hashed(seed, at), at))


def sample(given: Rowset, seed: int, n: int | None, fraction: float | None) -> Rows:
    if n is not None:
        return [given.rows[at] for at in sorted(by_chance(given, seed)[:n])]
    assert fraction is not None
    unsigned = ((hashed(seed, at) & (1 << 64) - 1) >> 11 for at in range(len(given.rows)))
    chances = (value / 2**53 for value in unsigned)
    return [row for row, chance in zip(given.rows, chances, strict=True) if chance < fraction]


def join(
    left: Rowset,
    right: Rowset,
    how: str,
    keys: tuple[list[Expression], list[Expression]],
    *,
    nulls_equal: bool,
) -> Rows:
    partners: dict[Row, list[int]] = {}
    for at, values in enumerate(right.each(*keys[1])):
        if nulls_equal or None not in values:
            partners.setdefault(key(values), []).append(at)
    found: Rows = []
    used: set[int] = set()
    for row, values in zip(left.rows, left.each(*keys[0]), strict=True):
        matches = partners.get(key(values), []) if nulls_equal or None not in values else []
        if how in ("semi", "anti"):
            found.extend([row] if bool(matches) == (how == "semi") else [])
            continue
        used.update(matches)
        found.extend((*row, *right.rows[at]) for at in matches)
        if not matches and how != "inner":
            found.append((*row, *[None] * len(right.names)))
    if how == "full":
        nothing = [None] * len(left.names)
        found.extend((*nothing, *r) for at, r in enumerate(right.rows) if at not in used)
    return found


def aggregate(given: Rowset, keys: list[Named], measures: list[Measure]) -> Rows:
    groups: dict[Row, list[int]] = {} if keys else {(): []}
    shown: dict[Row, Row] = {(): ()}
    for at, values in enumerate(given.each(*(k.expression for k in keys))):
        group = key(values)
        groups.setdefault(group, []).append(at)
        # A group of zeros is shown as 0.0, whichever zero came first.
        shown.setdefault(group, tuple(v + 0.0 if isinstance(v, float) else v for v in values))
    order = sorted(groups, key=lambda g: [(v is None, 0 if v is None else v) for v in g])
    columns = [
        _measured(given, measure, [groups[group] for group in order]) for measure in measures
    ]
    return [(*shown[g], *(column[at] for column in columns)) for at, g in enumerate(order)]


def _measured(given: Rowset, measure: Measure, groups: list[list[int]]) -> list[Any]:
    args = given.each(measure.argument) if measure.argument else [(1,)] * len(given.rows)
    wheres = given.each(measure.where) if measure.where else [(True,)] * len(given.rows)
    return [
        _one(measure, [args[at][0] for at in group if wheres[at][0] is True]) for group in groups
    ]


def _one(measure: Measure, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    name = measure.function
    if name == "count":
        return len(present)
    if name == "count_distinct":
        return len({ordered(value) for value in present})
    if name in ("first", "last"):
        return None if not values else values[0 if name == "first" else -1]
    if not present:
        return None
    if name in ("min", "max"):
        found = (min if name == "min" else max)(present, key=ordered)
        return found + 0.0 if isinstance(found, float) else found  # a zero is 0.0
    return _sum(measure, present)


def _sum(measure: Measure, values: list[Any]) -> Any:
    if measure.function == "mean":
        return math.fsum(values) / len(values) if _are_finite(values) else sum(values) / len(values)
    if measure.type.kind == "long":
        return in_range(sum(values), measure.type)
    if measure.type.kind == "double":
        return rounded(float(sum(values)), measure.type)
    total = decimal.Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return fitted(total, measure.type)


def _are_finite(values: list[float]) -> bool:
    return all(map(math.isfinite, values))

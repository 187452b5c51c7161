"""Data skipping: from a predicate over a table to one over its add actions.

The result is false only for a file in which no row can satisfy the predicate, by its partition
values (column `partitionValues`, texts by physical name) or its statistics (column `stats`). True
or null: the file has to be read. A part of the predicate that is not understood may be anything.

>>> from millpond.kernel.mapping import TableColumns
>>> from millpond.plan.bind import bind
>>> from millpond.plan.expr import col
>>> from millpond.plan.types import LONG, STRING, Struct
>>> schema = Struct.of(a=LONG, p=STRING)
>>> columns = TableColumns.of(schema, "none", table="t")
>>> found = skipping_for(bind((col("a") < 3) & (col("p") == "x"), schema), columns, ["p"])
>>> print(found.stats)
struct<minValues: struct<a: long>>
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.kernel.limits import Leaves, Limits, keeps_order
from millpond.kernel.widening import TYPE_CHANGES
from millpond.plan import types as t
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    conjuncts,
    row_paths,
)
from millpond.plan.casts import can_cast
from millpond.plan.expr import CallExpr, CastExpr, Expr, PathExpr, call, if_else, lit
from millpond.plan.paths import Name
from millpond.plan.raising import can_raise
from millpond.plan.tree import topological, transform

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.kernel.mapping import TableColumns

_MIRRORED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@dataclass(frozen=True, slots=True)
class Skipping:
    """An expression over add actions, and what of their statistics it looks at."""

    keep: Expr
    """False: no row of the file can satisfy the predicate. True or null: it has to be read."""
    stats: t.Struct
    """The members of the column `stats` that `keep` needs; none, if partition values decide."""


def skipping_for(
    predicate: BoundExpr, columns: TableColumns, partition_columns: Iterable[str]
) -> Skipping | None:
    """How to skip files for a predicate over the logical columns; None if no file can be."""
    leaves = Leaves()
    keep = _Reader(columns, frozenset(partition_columns), leaves).verdict(predicate)
    return None if keep is None else Skipping(keep, leaves.struct())


def split(
    predicate: BoundExpr, partition_columns: Iterable[str]
) -> tuple[tuple[BoundExpr, ...], tuple[BoundExpr, ...]]:
    """The conjuncts that look at partition columns alone, and all others."""
    names = frozenset(partition_columns)
    exact: list[BoundExpr] = []
    others: list[BoundExpr] = []
    for part in conjuncts(predicate):
        (exact if columns_of(part) <= names else others).append(part)
    return tuple(exact), tuple(others)


def columns_of(expr: BoundExpr) -> frozenset[str]:
    """The names of the columns that an expression looks at."""
    firsts = (path.steps[0] for path in row_paths(expr))
    return frozenset(step.name for step in firsts if isinstance(step, Name))


class _Reader:
    """Builds the expression for one predicate. A verdict of None is: not known, keep the file.

    Each part is asked whether some row may make it true, or, below an odd number of `not`s, false.
    """

    def __init__(self, columns: TableColumns, partitions: frozenset[str], leaves: Leaves) -> None:
        self.columns = columns
        self.partitions = partitions
        self.leaves = leaves
        self.values: dict[str, Expr] = {}

    def verdict(self, predicate: BoundExpr) -> Expr | None:
        """Whether some row of a file may satisfy the predicate."""
        found: list[Expr | None] = []
        todo: list[tuple[bool, BoundExpr, bool]] = [(False, predicate, True)]
        while todo:
            ready, node, wanted = todo.pop()
            logical = isinstance(node, BoundCall) and node.function in ("and", "or", "not")
            if not logical:
                found.append(self._leaf(node, wanted=wanted))
                continue
            assert isinstance(node, BoundCall)
            if ready:
                parts = found[len(found) - len(node.args) :]
                del found[len(found) - len(node.args) :]
                found.append(_combined(node.function, parts, wanted=wanted))
            else:
                todo.append((True, node, wanted))
                inner = not wanted if node.function == "not" else wanted
                todo.extend((False, part, inner) for part in reversed(node.args))
        return found[0]

    def _leaf(self, node: BoundExpr, *, wanted: bool) -> Expr | None:
        if isinstance(node, BoundLiteral):
            return None if node.value is wanted else lit(False)
        used = columns_of(node)
        if used and used <= self.partitions:
            return self._by_partition(node, wanted=wanted)
        if used & self.partitions:
            return None
        if isinstance(node, BoundPath):
            limits = self._limits(node)
            return None if limits is None else limits.may("eq", wanted)
        return self._by_statistics(node, wanted=wanted) if isinstance(node, BoundCall) else None

    def _by_partition(self, node: BoundExpr, *, wanted: bool) -> Expr | None:
        """All rows have the same values, so the predicate itself decides."""
        node = transform(node, _without_failing)
        if can_raise(node):
            return None
        plain = self._unbound(node)
        if plain is None:
            return None
        verdict = (plain if wanted else ~plain).coalesce(False)
        types = {name: self.columns.schema.field(name).type for name in sorted(columns_of(node))}
        known = [self._is_read(name) for name, type_ in types.items() if _may_be_unread(type_)]
        if not known:
            return verdict
        all_read = known[0] if len(known) == 1 else call("and", *known)
        return if_else(all_read, verdict, lit(None, t.BOOLEAN))

    def _unbound(self, node: BoundExpr) -> Expr | None:
        """An expression over columns as one over the texts of their partition values."""
        made: dict[int, Expr] = {}
        for part in topological(node):
            args = tuple(made[id(child)] for child in part.children if id(child) in made)
            if isinstance(part, BoundLiteral):
                made[id(part)] = lit(part.value, part.type)
            elif isinstance(part, BoundPath):
                value = self._value(part)
                if value is None:
                    return None
                made[id(part)] = value
            elif isinstance(part, BoundCall):
                made[id(part)] = CallExpr(part.function, args)
            elif isinstance(part, BoundCast):
                made[id(part)] = CastExpr(args[0], part.type, part.on_error)
            else:
                return None
        return made[id(node)]

    def _value(self, path: BoundPath) -> Expr | None:
        """A partition column's value: null where its text says null, or can't be read."""
        first = path.steps[0] if path.scope == "row" and len(path.steps) == 1 else None
        if not isinstance(first, Name) or not can_cast(t.STRING, path.type):
            return None
        if first.name not in self.values:
            text = self._text(first.name)
            typed = text if path.type == t.STRING else text.cast(path.type, on_error="null")
            self.values[first.name] = typed
        return self.values[first.name]

    def _text(self, name: str) -> PathExpr:
        (physical,) = self.columns.physical_path((name,))
        return PathExpr((Name("partitionValues"), Name(physical)))

    def _is_read(self, name: str) -> Expr:
        """Whether a cast understood the text; `partitions.py` reads more forms, or refuses them."""
        text = self._text(name)
        return text.is_null() | (text == "") | self.values[name].is_not_null()

    def _by_statistics(self, node: BoundCall, *, wanted: bool) -> Expr | None:
        name, args = node.function, node.args
        if name in _MIRRORED or name == "eq_null_safe":
            return self._comparison(node, wanted=wanted)
        limits = self._limits(args[0])
        if limits is None:
            return None
        if name in ("is_null", "is_not_null"):
            return limits.some_null() if (name == "is_null") is wanted else limits.some_value()
        if name == "in":
            return _membership(limits, [_value_of(arg) for arg in args[1:]], wanted=wanted)
        if name in ("starts_with", "like") and isinstance(args[1], BoundLiteral):
            if args[1].value is None:
                return lit(False)
            if name == "starts_with" and not wanted:
                return limits.may_not_start_with(args[1].value)
            like = name == "like"
            prefix = _before_wildcards(args[1].value) if like else args[1].value
            return limits.may_start_with(prefix) if wanted else limits.some_value()
        return None

    def _comparison(self, node: BoundCall, *, wanted: bool) -> Expr | None:
        name, (left, right) = node.function, node.args
        if isinstance(left, BoundLiteral):
            name, left, right = _MIRRORED.get(name, name), right, left
        limits = self._limits(left)
        if limits is None or not isinstance(right, BoundLiteral):
            return None
        if name != "eq_null_safe":
            return limits.may(name if wanted else _NEGATED[name], right.value)
        if right.value is None:
            return limits.some_null() if wanted else limits.some_value()
        if wanted:
            return limits.may("eq", right.value)
        return limits.may_differ_or_be_null(right.value)

    def _limits(self, expr: BoundExpr) -> Limits | None:
        """The limits of a column or a member of a struct, below casts that keep its order."""
        casts: list[t.DataType] = []
        while isinstance(expr, BoundCast):
            if not keeps_order(expr.arg.type, expr.type):
                return None
            casts.append(expr.type)
            expr = expr.arg
        if not isinstance(expr, BoundPath) or expr.scope != "row":
            return None
        names = [step.name for step in expr.steps if isinstance(step, Name)]
        current: t.DataType = self.columns.schema
        metadata: dict[str, Any] = {}
        for name in names:
            if not isinstance(current, t.Struct):
                return None  # a map's value
            found = current.field(name)
            current, metadata = found.type, found.metadata_dict()
        if len(names) < len(expr.steps) or isinstance(current, t.Struct):
            return None
        path = self.columns.physical_path(names)
        # A float's limits are written in few digits, which as a double are another number.
        changes = metadata.get(TYPE_CHANGES) if expr.type == t.DOUBLE else None
        casts.reverse()
        return Limits(self.leaves, path, expr.type, tuple(casts), bounded=not changes)


def _combined(function: str, parts: list[Expr | None], *, wanted: bool) -> Expr | None:
    if function == "not":
        return parts[0]
    known = [part for part in parts if part is not None]
    together = "and" if (function == "and") is wanted else "or"
    if not known or (together == "or" and len(known) < len(parts)):
        return None
    return known[0] if len(known) == 1 else call(together, *known)


def _membership(limits: Limits, values: list[Any], *, wanted: bool) -> Expr:
    some = [value for value in values if value is not None]
    if wanted:
        return limits.may_be_in(some)
    # With a null among the values, `in` is never false.
    return limits.may_be_outside(some) if len(some) == len(values) else lit(False)


def _value_of(arg: BoundExpr) -> Any:
    assert isinstance(arg, BoundLiteral)  # `in` takes nothing else
    return arg.value


def _before_wildcards(pattern: str) -> str:
    """The text with which everything begins that is like a pattern."""
    prefix, position = [], 0
    while position < len(pattern) and pattern[position] not in "%_":
        position += pattern[position] == "\\"
        prefix.append(pattern[position : position + 1])
        position += 1
    return "".join(prefix)


def _without_failing(node: BoundExpr) -> BoundExpr:
    """A day is a timestamp, unless it lies outside of all tables' time: then it is null."""
    if isinstance(node, BoundCast) and node.arg.type == t.DATE and node.on_error == "error":
        return replace(node, on_error="null")
    return node


def _may_be_unread(type_: t.DataType) -> bool:
    return type_ not in (t.STRING, t.BINARY)

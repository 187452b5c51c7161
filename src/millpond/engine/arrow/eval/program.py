"""An expression made ready for many batches: equal parts shared, literals built, facts known.

Made once for an expression and kept. Binding copies what an expression uses twice; here equal parts
become one object again, so that they are computed once.
"""

from __future__ import annotations

import decimal
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.engine.arrow.eval.heavy import is_heavy
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.raising import raises_itself
from millpond.plan.tree import topological, transform
from millpond.plan.types import Decimal

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The expression with shared parts, and what is known of its nodes, by identity."""

    root: BoundExpr
    scalars: dict[int, pa.Scalar]
    failing: frozenset[int]
    heavy: frozenset[int]
    shared: frozenset[int]

    def may_fail(self, node: BoundExpr) -> bool:
        """Whether some value could make this node, or one below it, an error."""
        return id(node) in self.failing

    def is_heavy(self, node: BoundExpr) -> bool:
        """Whether the node costs enough that fewer rows are worth a selection."""
        return id(node) in self.heavy


class _Identity:
    """An expression as a key, by identity: its digest would cost more than it saves."""

    __slots__ = ("expr",)

    def __init__(self, expr: BoundExpr) -> None:
        self.expr = expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.expr is other.expr

    def __hash__(self) -> int:
        return id(self.expr)


def program(expr: BoundExpr) -> Program:
    """The program of an expression; the ones used last are kept."""
    return _program(_Identity(expr))


@lru_cache(maxsize=512)
def _program(key: _Identity) -> Program:
    root = _share(key.expr)
    scalars: dict[int, pa.Scalar] = {}
    failing: set[int] = set()
    heavy: set[int] = set()
    uses: Counter[int] = Counter()
    for node in topological(root):
        if isinstance(node, BoundLiteral):
            scalars[id(node)] = _scalar(node)
        children = [id(child) for child in node.children]
        uses.update(children)
        if raises_itself(node) or not failing.isdisjoint(children):
            failing.add(id(node))
        if is_heavy(node) or not heavy.isdisjoint(children):
            heavy.add(id(node))
    shared = frozenset(node for node, count in uses.items() if count > 1)
    return Program(root, scalars, frozenset(failing), frozenset(heavy), shared)


def _share(root: BoundExpr) -> BoundExpr:
    seen: dict[Hashable, BoundExpr] = {}
    return transform(root, lambda node: seen.setdefault(_key(node), node))


def _key(node: BoundExpr) -> Hashable:
    """Equal for nodes of equal content, given that their children are shared already."""
    below = tuple(id(child) for child in node.children)
    own: tuple[Any, ...] = ()
    if isinstance(node, BoundPath):
        own = (node.steps, node.scope)
    elif isinstance(node, BoundLiteral):
        own = (type(node.value), repr(node.value))
    elif isinstance(node, BoundCall):
        own = (node.function,)
    elif isinstance(node, BoundCast):
        own = (node.on_error,)
    elif isinstance(node, BoundQuantifier):
        own = (node.kind,)
    return (type(node), node.type, own, below)


def _scalar(node: BoundLiteral) -> pa.Scalar:
    value = node.value
    if isinstance(value, decimal.Decimal) and isinstance(node.type, Decimal):
        with decimal.localcontext(prec=80):
            value = value.quantize(decimal.Decimal(1).scaleb(-node.type.scale))
    return pa.scalar(value, to_arrow(node.type))

"""How expressions grow on the way to Spark, where what is mentioned twice is there twice.

Casts check their value before Spark casts it, so they mention it several times: one in the other,
they would grow by powers. And a plan's expression may mention a part of itself over and over, which
costs nothing until it is a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import EngineError
from millpond.engine.spark.expressions.casts import repeats
from millpond.plan.bound import BoundCast, BoundExpr
from millpond.plan.text import format_expr

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CASTS: Final = 2
"""Casts one in the other that repeat their value. Further ones take it from a lambda, for which
Spark does not generate code."""
_MOST_TERMS: Final = 100_000
_MOST_MENTIONS: Final = 10
"""An expression of so many terms, each mentioned so often, is refused: Spark would hang."""


class Growth:
    """What is known of an expression's parts, which are added before what they are parts of."""

    def __init__(self) -> None:
        self._terms: dict[int, int] = {}
        self._casts: dict[int, int] = {}

    def add(self, node: BoundExpr, inside: Sequence[BoundExpr]) -> bool:
        """Add a part; whether it is a cast that has to compute its value once."""
        below = max((self._casts[id(part)] for part in inside), default=0)
        does_repeat = isinstance(node, BoundCast) and repeats(node.arg.type, node.type)
        self._casts[id(node)] = below + does_repeat
        self._terms[id(node)] = 1 + sum(self._terms[id(part)] for part in inside)
        return does_repeat and below >= _MOST_CASTS

    def check(self, root: BoundExpr) -> None:
        """Refuse an expression of which Spark would make a tree that is too large."""
        terms, parts = self._terms[id(root)], len(self._terms)
        if terms <= max(_MOST_TERMS, _MOST_MENTIONS * parts):
            return
        raise EngineError(
            f"an expression of {parts:,} parts mentions some of them over and over: Spark would"
            f" compute {terms:,} terms for {format_expr(root, limit=200)}",
            engine="spark",
            hint='compute such a part by a select() of its own first, or use engine="arrow"',
        )

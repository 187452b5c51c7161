"""The walk over a bound expression: children before parents, without recursion.

Only a quantifier's predicate is compiled inside the lambda that Spark calls for it; how deep those
nest is bounded by the types of the lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millpond.engine.spark.expressions.calls import call
from millpond.engine.spark.expressions.casts import cast
from millpond.engine.spark.expressions.floats import bare, unjudged
from millpond.engine.spark.expressions.growth import Growth
from millpond.engine.spark.expressions.json import parse_json
from millpond.engine.spark.expressions.literals import literal
from millpond.engine.spark.expressions.origin import made_for
from millpond.engine.spark.expressions.paths import follow
from millpond.engine.spark.expressions.quantifiers import question_of, sought_element
from millpond.engine.spark.lambdas import each, once, safe
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundParseJson,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.paths import Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api
    from millpond.plan.types import DataType, Struct

_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Expressions:
    """Compiles expressions over rows of one schema; `resolve` gives a top-level column."""

    api: Api
    schema: Struct
    resolve: Callable[[str], Column]

    def column(self, expr: BoundExpr) -> Column:
        """The expression as a column."""
        return self._compile(expr, _NOTHING)

    def condition(self, predicate: BoundExpr) -> Column:
        """The predicate of a filter, of which Spark's reader may judge parts by itself."""
        return self._compile(predicate, bare(predicate))

    def _compile(
        self,
        root: BoundExpr,
        judged: frozenset[int],
        element: Column | None = None,
        element_type: DataType | None = None,
    ) -> Column:
        done: dict[int, Column] = {}
        growth = Growth()
        stack: list[tuple[BoundExpr, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            inside = (node.list,) if isinstance(node, BoundQuantifier) else node.children
            if not expanded:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(inside))
                continue
            args = [done[id(child)] for child in inside]
            is_deep = growth.add(node, inside)
            if isinstance(node, BoundPath):
                done[id(node)] = self._path(node, element, element_type)
            else:
                with made_for(node, self.api):
                    args = unjudged(node, args, self.api, is_bare=id(node) in judged)
                    done[id(node)] = self._build(node, args, is_deep=is_deep)
        growth.check(root)
        return done[id(root)]

    def _path(
        self, node: BoundPath, element: Column | None, element_type: DataType | None
    ) -> Column:
        if node.scope == "element":
            assert element is not None
            assert element_type is not None
            return follow(element, element_type, node.steps, self.api)
        first = node.steps[0]
        assert isinstance(first, Name)
        type_ = self.schema.field(first.name).type
        return follow(self.resolve(first.name), type_, node.steps[1:], self.api)

    def _build(self, node: BoundExpr, args: list[Column], *, is_deep: bool = False) -> Column:
        if isinstance(node, BoundLiteral):
            return literal(node.value, node.type, self.api)
        if isinstance(node, BoundCast):
            return self._cast(node, args[0], is_deep=is_deep)
        if isinstance(node, BoundCall):
            return call(node, args, self.api)
        if isinstance(node, BoundParseJson):
            return parse_json(args[0], node.type, self.api)
        assert isinstance(node, BoundQuantifier)
        return self._quantifier(node, args[0])

    def _cast(self, node: BoundCast, column: Column, *, is_deep: bool) -> Column:
        def of(value: Column) -> Column:
            source, on_error = node.arg.type, node.on_error
            return cast(value, source, node.type, on_error=on_error, api=self.api)

        return once(column, of, self.api) if is_deep else of(column)

    def _quantifier(self, node: BoundQuantifier, elements: Column) -> Column:
        question = question_of(node)
        for member in question.members:
            elements = elements.getField(member)
        sought = sought_element(node.kind, question.predicate)
        if sought is not None:
            # The same three values as `exists`, without a lambda for each element.
            found: Column = self.api.functions.array_contains(elements, self._build(sought, []))
            return found
        if not question.members:
            elements = safe(elements, question.element, self.api)
        return each(
            self.api,
            "exists" if node.kind == "any" else "forall",
            elements,
            lambda x: self._compile(question.predicate, _NOTHING, x, question.element),
        )

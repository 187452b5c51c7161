"""`ExpressionVisitor`: bound expressions as calls, one a node, arguments first.

A `type_id` is the id of a field list with one field without a name: the type (`visit_type`).
What the functions mean stands in docs/expressions.md; casts stand in the expression, so arguments
have the right types already.
"""

# ruff: noqa: ARG002  (methods that refuse by default look at no argument)

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import UnsupportedExpressionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.visitor.schema import SchemaVisitor


class ExpressionVisitor:
    """Receives expressions. Implement `make_expression_list` and what the engine knows."""

    engine: str = "visiting"
    """The engine's name, for errors."""
    schemas: SchemaVisitor
    """Receives the types."""

    def make_expression_list(self, reserve: int) -> int:
        """A new list for about so many expressions; its id."""
        raise NotImplementedError(f"{type(self).__name__} makes no expression lists")

    def refuse(self, kind: str) -> None:
        """Called for an expression that the visitor does not implement."""
        raise UnsupportedExpressionError(kind, self.engine)

    def visit_shared(self, sibling_list_id: int, shared_list_id: int) -> None:
        """The one expression of `shared_list_id` once more. It may stand in several scopes: an
        engine that remembers its value remembers one for each row *and* element."""
        self.refuse("shared expressions")

    def visit_unknown(
        self, sibling_list_id: int, kind: str, expression: object, child_list_id: int
    ) -> None:
        """An expression that this package does not know, as an opaque object."""
        self.refuse(kind)

    def visit_path(
        self,
        sibling_list_id: int,
        steps: Sequence[str | int | None],
        in_element: bool,
        type_id: int,
    ) -> None:
        """A place in the row, or in the element that the innermost `any` or `all` looks at.

        A step is a member's name, an element's index (negative: from the end), or None for every
        element. No steps: the element itself.
        """
        self.refuse("paths")

    def visit_literal_null(self, sibling_list_id: int, type_id: int) -> None:
        """Null of a type."""
        self.refuse("null literals")

    def visit_literal_boolean(self, sibling_list_id: int, value: bool) -> None:
        """True or false."""
        self.refuse("boolean literals")

    def visit_literal_byte(self, sibling_list_id: int, value: int) -> None:
        """A whole number of 8 bits."""
        self.refuse("byte literals")

    def visit_literal_short(self, sibling_list_id: int, value: int) -> None:
        """A whole number of 16 bits."""
        self.refuse("short literals")

    def visit_literal_integer(self, sibling_list_id: int, value: int) -> None:
        """A whole number of 32 bits."""
        self.refuse("integer literals")

    def visit_literal_long(self, sibling_list_id: int, value: int) -> None:
        """A whole number of 64 bits."""
        self.refuse("long literals")

    def visit_literal_float(self, sibling_list_id: int, value: float) -> None:
        """A floating point number of 32 bits."""
        self.refuse("float literals")

    def visit_literal_double(self, sibling_list_id: int, value: float) -> None:
        """A floating point number of 64 bits."""
        self.refuse("double literals")

    def visit_literal_decimal(
        self, sibling_list_id: int, unscaled: int, precision: int, scale: int
    ) -> None:
        """`unscaled / 10**scale`; the whole number has up to 128 bits."""
        self.refuse("decimal literals")

    def visit_literal_string(self, sibling_list_id: int, value: str) -> None:
        """A text."""
        self.refuse("string literals")

    def visit_literal_binary(self, sibling_list_id: int, value: bytes) -> None:
        """Bytes."""
        self.refuse("binary literals")

    def visit_literal_date(self, sibling_list_id: int, days: int) -> None:
        """Days since 1970-01-01."""
        self.refuse("date literals")

    def visit_literal_timestamp(self, sibling_list_id: int, micros: int) -> None:
        """Microseconds since 1970-01-01 00:00 UTC."""
        self.refuse("timestamp literals")

    def visit_literal_timestamp_ntz(self, sibling_list_id: int, micros: int) -> None:
        """Microseconds of a wall clock since 1970-01-01 00:00."""
        self.refuse("timestamp_ntz literals")

    def visit_call(
        self, sibling_list_id: int, function: str, type_id: int, child_list_id: int
    ) -> None:
        """A function of the table in `millpond.plan.functions`, and its result's type."""
        self.refuse(function)

    def visit_cast(
        self, sibling_list_id: int, null_on_error: bool, type_id: int, child_list_id: int
    ) -> None:
        """A value as another type."""
        self.refuse("cast")

    def visit_parse_json(self, sibling_list_id: int, type_id: int, child_list_id: int) -> None:
        """JSON text read as a type."""
        self.refuse("parse_json")

    def visit_any(self, sibling_list_id: int, child_list_id: int) -> None:
        """Whether some element of the first child satisfies the second."""
        self.refuse("any")

    def visit_all(self, sibling_list_id: int, child_list_id: int) -> None:
        """Whether every element of the first child satisfies the second."""
        self.refuse("all")

    # What nodes make of expressions.

    def visit_named(self, sibling_list_id: int, name: str, child_list_id: int) -> None:
        """A column: its name and its one expression."""
        self.refuse("named columns")

    def visit_sort_key(
        self, sibling_list_id: int, descending: bool, nulls_first: bool, child_list_id: int
    ) -> None:
        """A key of an order: its direction, where nulls go, and its one expression."""
        self.refuse("sort keys")

    def visit_measure(
        self,
        sibling_list_id: int,
        name: str,
        function: str,
        type_id: int,
        argument_list_id: int | None,
        where_list_id: int | None,
    ) -> None:
        """An aggregate function; None: no argument, no condition."""
        self.refuse(function)

    def visit_window_call(
        self,
        sibling_list_id: int,
        name: str,
        function: str,
        type_id: int,
        argument_list_id: int | None,
        partition_list_id: int,
        order_list_id: int,
        frame_start: int | None,
        frame_end: int | None,
        offset: int,
    ) -> None:
        """A window function; a frame counts rows from the current one, None is unbounded."""
        self.refuse(function)

    def visit_stateful_mapping(
        self,
        sibling_list_id: int,
        name: str,
        function_name: str,
        function: object,
        type_id: int,
        argument_list_id: int,
        where_list_id: int | None,
        partition_list_id: int,
    ) -> None:
        """A stateful function, an opaque `StatefulDefinition`, and what it is called with."""
        self.refuse(function_name)

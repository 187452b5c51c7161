"""`PlanVisitor`: a plan as calls, one a node, inputs first.

A `schema_list_id` is the id of a field list: the columns that the node gives. Expressions, columns,
keys and measures are visited first, through `expressions`, and passed as the ids of their lists.
"""

# ruff: noqa: ARG002  (methods that refuse by default look at no argument)

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import UnsupportedNodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.visitor.expression import ExpressionVisitor
    from millpond.plan.visitor.schema import SchemaVisitor


class PlanVisitor:
    """Receives the nodes of a plan. Implement `make_plan_list` and what the engine runs.

    What stands in a plan for estimates only (statistics of columns) is not passed.
    """

    engine: str = "visiting"
    """The engine's name, for errors."""
    expressions: ExpressionVisitor
    """Receives expressions, and through its `schemas` schemas and types."""

    @property
    def schemas(self) -> SchemaVisitor:
        """Receives schemas."""
        return self.expressions.schemas

    def make_plan_list(self, reserve: int) -> int:
        """A new list for about so many plans; its id."""
        raise NotImplementedError(f"{type(self).__name__} makes no plan lists")

    def make_file_list(self, reserve: int) -> int:
        """A new list for about so many files; its id. Only scans need it."""
        raise NotImplementedError(f"{type(self).__name__} makes no file lists")

    def refuse(self, kind: str) -> None:
        """Called for a node that the visitor does not implement."""
        raise UnsupportedNodeError(kind, self.engine)

    def visit_shared(self, sibling_list_id: int, shared_list_id: int) -> None:
        """The one plan of `shared_list_id` once more: a node with several parents."""
        self.refuse("shared nodes")

    def visit_unknown(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        kind: str,
        node: object,
        child_list_id: int,
    ) -> None:
        """A node that this package does not know (a plugin's), as an opaque object."""
        self.refuse(kind)

    # Sources.

    def visit_file(
        self,
        sibling_list_id: int,
        path: str,
        size: int | None,
        rows: int | None,
        constant_list_id: int,
    ) -> None:
        """A file of a scan, what is known about it, and its constants: literals in a list."""
        self.refuse("Scan")

    def visit_list_files(
        self, sibling_list_id: int, schema_list_id: int, path: str, start_from: str | None
    ) -> None:
        """The files right below a path."""
        self.refuse("ListFiles")

    def visit_scan(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        format: str,  # noqa: A002
        file_list_id: int,
        constants: Sequence[str],
        csv_delimiter: str,
        csv_quote: str,
        csv_has_header: bool,
        strict: bool,
        on_error: str,
    ) -> None:
        """The rows of files; the columns named in `constants` come from the files' constants."""
        self.refuse("Scan")

    def visit_dynamic_scan(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        format: str,  # noqa: A002
        path_column: str,
        constants: Sequence[str],
        deleted_column: str | None,
        on_error: str,
        child_list_id: int,
    ) -> None:
        """The rows of the files that the input's rows name."""
        self.refuse("DynamicScan")

    def visit_values(self, sibling_list_id: int, schema_list_id: int, data: object) -> None:
        """Rows in memory: an Arrow table (across a C ABI: an Arrow stream)."""
        self.refuse("Values")

    def visit_stored(self, sibling_list_id: int, schema_list_id: int, path: str) -> None:
        """A path of a pond that no scope has resolved yet."""
        self.refuse("Stored")

    # Rows.

    def visit_filter(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        predicate_list_id: int,
        child_list_id: int,
    ) -> None:
        """The rows for which the predicate is true."""
        self.refuse("Filter")

    def visit_filter_ordered(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        name: str,
        columns: Sequence[str],
        row_filter: object,
        child_list_id: int,
    ) -> None:
        """The rows that a stateful filter keeps, an opaque `RowFilter` over these columns."""
        self.refuse("FilterOrdered")

    def visit_project(
        self, sibling_list_id: int, schema_list_id: int, column_list_id: int, child_list_id: int
    ) -> None:
        """Each row's columns computed anew."""
        self.refuse("Project")

    def visit_parse_json(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        column: str,
        parsed_schema_list_id: int,
        output: str,
        child_list_id: int,
    ) -> None:
        """A column of JSON text read into a struct, as one more column."""
        self.refuse("ParseJson")

    def visit_union(self, sibling_list_id: int, schema_list_id: int, child_list_id: int) -> None:
        """All rows of the first input, then all of the second, and so on."""
        self.refuse("Union")

    def visit_join(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        how: str,
        left_key_list_id: int,
        right_key_list_id: int,
        nulls_equal: bool,
        child_list_id: int,
    ) -> None:
        """Pairs of rows of the two inputs whose keys are equal."""
        self.refuse("Join")

    def visit_aggregate(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        key_list_id: int,
        measure_list_id: int,
        child_list_id: int,
    ) -> None:
        """One row a group, in the order of the keys."""
        self.refuse("Aggregate")

    # Order.

    def visit_sort(
        self, sibling_list_id: int, schema_list_id: int, key_list_id: int, child_list_id: int
    ) -> None:
        """All rows by these keys, stably."""
        self.refuse("Sort")

    def visit_top_k(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        n: int,
        key_list_id: int,
        child_list_id: int,
    ) -> None:
        """The first rows by these keys."""
        self.refuse("TopK")

    def visit_head(
        self, sibling_list_id: int, schema_list_id: int, n: int, child_list_id: int
    ) -> None:
        """The first rows."""
        self.refuse("Head")

    def visit_tail(
        self, sibling_list_id: int, schema_list_id: int, n: int, child_list_id: int
    ) -> None:
        """The last rows."""
        self.refuse("Tail")

    def visit_take(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        indices: Sequence[int],
        child_list_id: int,
    ) -> None:
        """The rows at these positions."""
        self.refuse("Take")

    def visit_sample(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        seed: int,
        n: int | None,
        fraction: float | None,
        child_list_id: int,
    ) -> None:
        """A random choice of rows: so many, or each with this chance; the other is None."""
        self.refuse("Sample")

    def visit_shuffle(
        self, sibling_list_id: int, schema_list_id: int, seed: int, child_list_id: int
    ) -> None:
        """All rows in a random order."""
        self.refuse("Shuffle")

    # Streams.

    def visit_stateful_function(
        self, sibling_list_id: int, schema_list_id: int, mapping_list_id: int, child_list_id: int
    ) -> None:
        """Columns added by functions that are called once a row, in order, and remember."""
        self.refuse("StatefulFunction")

    def visit_window(
        self, sibling_list_id: int, schema_list_id: int, call_list_id: int, child_list_id: int
    ) -> None:
        """Columns added by window functions."""
        self.refuse("Window")

    def visit_sql(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        text: str,
        names: Sequence[str],
        child_list_id: int,
    ) -> None:
        """A query text over inputs with these names."""
        self.refuse("Sql")

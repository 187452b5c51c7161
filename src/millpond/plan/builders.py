"""The fluent face of a plan: `scan(...).filter(col("a") > 3).select("a", "b").head(10)`.

Each method binds its expressions against the plan's schema and returns a new node. The nodes
themselves take bound expressions only. The methods that run a plan are in `runner.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from millpond.base.errors import PlanError, SchemaError
from millpond.plan import expr as e
from millpond.plan.arguments import (
    items_of,
    plan_of,
    schema_of,
    text_of,
    whole_of,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.aggregates import Measure
    from millpond.plan.arguments import AnySchema
    from millpond.plan.bound import BoundExpr
    from millpond.plan.joins import JoinChoice
    from millpond.plan.node import Plan
    from millpond.plan.python import RowFilter, StatefulDefinition
    from millpond.plan.types import Struct


class Builders:
    """Methods that put one more node on top of a plan."""

    __slots__ = ()

    @property
    def _plan(self) -> Plan:
        return cast("Plan", self)

    def filter(self, *predicates: e.Expr) -> Plan:
        """Only the rows for which the predicate is true; of several, all."""
        from millpond.plan.bind import bind_predicate
        from millpond.plan.bound import conjoin
        from millpond.plan.rows import Filter

        if not predicates:
            raise PlanError("filter() takes at least one predicate", hint="filter(col('a') > 3)")
        bound = tuple(bind_predicate(one, self._plan.schema) for one in predicates)
        return Filter(self._plan, conjoin(bound))

    def filter_ordered(self, row_filter: RowFilter) -> Plan:
        """Only the rows that a stateful filter keeps, which sees them in order."""
        from millpond.plan.python import RowFilter
        from millpond.plan.rows import FilterOrdered

        if isinstance(row_filter, type) or not isinstance(row_filter, RowFilter):
            hint = "an object with name, columns, config and open(): see millpond.plan.python"
            raise wrong("filter_ordered()", "a row filter", row_filter, hint=hint)
        return FilterOrdered(self._plan, row_filter)

    def select(self, *columns: e.Expr | e.Named | str, **named: e.Expr | str) -> Plan:
        """Return these columns: names, paths, or expressions with a name.

        A string is a column, here and in every argument of a plan's methods; a constant is
        `lit("text")`: `select("site", place="area", unit=lit("m"))`.
        """
        from millpond.plan.bind import bind_named
        from millpond.plan.rows import Project

        schema = self._plan.schema
        items = (*columns, *(_output(name, expr, schema) for name, expr in named.items()))
        return Project(self._plan, tuple(bind_named(item, schema) for item in items))

    def with_columns(self, **named: e.Expr | str) -> Plan:
        """Return all columns, some of them replaced, new ones at the end.

        A string is a column, a constant is `lit("text")`.
        """
        from millpond.plan.bind import bind_named
        from millpond.plan.rows import Project

        schema = self._plan.schema
        columns = {name: e.Named(name, e.col(name)) for name in schema.names}
        columns |= {name: _output(name, expr, schema) for name, expr in named.items()}
        return Project(self._plan, tuple(bind_named(each, schema) for each in columns.values()))

    def drop(self, *names: str) -> Plan:
        """All columns but these."""
        for name in names:
            self._plan.schema.field(text_of(name, "drop()", "columns' names, one by one"))
        return self.select(*(n for n in self._plan.schema.names if n not in names))

    def rename(self, names: Mapping[str, str] | None = None, /, **renames: str) -> Plan:
        """All columns, some under a new name: `rename(old="new")` or `rename({"old": "new"})`."""
        if names is not None and not isinstance(names, Mapping):
            raise wrong("rename()", "new names by old ones", names, hint='rename({"old": "new"})')
        new = {**(names or {}), **renames}
        for name in new:
            self._plan.schema.field(name)
        return self.select(*(e.col(n).alias(new.get(n, n)) for n in self._plan.schema.names))

    def distinct(self, *columns: e.Expr | e.Named | str) -> Plan:
        """Each different row once, or each combination of these columns.

        Nulls are alike, NaNs are alike; rows come by their values ascending, nulls last.
        """
        return self.aggregate(columns or self._plan.schema.names)

    def parse_json(self, column: str, schema: AnySchema, *, output: str) -> Plan:
        """One more column: the JSON text of another, read into a struct."""
        from millpond.plan.rows import ParseJson

        text_of(column, "parse_json()", "a column's name")
        return ParseJson(self._plan, column, schema_of(schema, "parse_json()"), output)

    def union(self, *others: Plan) -> Plan:
        """All rows of this plan, then those of the others, which have the same columns."""
        from millpond.plan.rows import Union

        return Union((self._plan, *(plan_of(other, "union()") for other in others)))

    def join(
        self,
        other: Plan,
        *,
        on: str | Sequence[str | tuple[e.Expr | str, e.Expr | str]] = (),
        how: JoinChoice = "inner",
        nulls_equal: bool = False,
        suffix: str | None = None,
    ) -> Plan:
        """Rows of both plans whose keys are equal; of a cross join, all pairs.

        A name in `on` is a column of both sides and appears once in the result; a pair is an
        expression for each side, and the result has both sides' columns. With a suffix, columns of
        the right side whose name the left side has, too, get it. Rows are in the left side's
        order, of a right join in the right side's.
        """
        from millpond.plan.joins import build_join

        right = plan_of(other, "join()")
        return build_join(self._plan, right, on=on, how=how, nulls_equal=nulls_equal, suffix=suffix)

    def aggregate(
        self,
        by: str | e.Expr | e.Named | Sequence[str | e.Expr | e.Named] = (),
        **measures: Measure,
    ) -> Plan:
        """One row a group: `aggregate("site", n=agg.count(), top=agg.max("level"))`."""
        from millpond.plan.aggregates import Measure, bind_measure
        from millpond.plan.bind import bind_named
        from millpond.plan.rows import Aggregate

        schema = self._plan.schema
        keys = items_of(by, "aggregate(by=...)", "a key or a list of keys")
        for name, measure in measures.items():
            if not isinstance(measure, Measure):
                raise PlanError(f"{name}={measure!r} is not a measure", hint="such as agg.sum('x')")
        bound = tuple(bind_measure(name, m, schema) for name, m in measures.items())
        return Aggregate(self._plan, tuple(bind_named(k, schema) for k in keys), bound)

    def sort(self, *keys: e.SortKey | e.Expr | str) -> Plan:
        """All rows by these keys; equal rows stay in their order, nulls go last."""
        from millpond.plan.bind import bind_key
        from millpond.plan.order import Sort

        return Sort(self._plan, tuple(bind_key(key, self._plan.schema) for key in keys))

    def top_k(self, n: int, *keys: e.SortKey | e.Expr | str) -> Plan:
        """The first rows by these keys."""
        from millpond.plan.bind import bind_key
        from millpond.plan.order import TopK

        return TopK(self._plan, tuple(bind_key(key, self._plan.schema) for key in keys), n)

    def head(self, n: int = 5) -> Plan:
        """The first rows."""
        from millpond.plan.order import Head

        return Head(self._plan, n)

    def tail(self, n: int = 5) -> Plan:
        """The last rows."""
        from millpond.plan.order import Tail

        return Tail(self._plan, n)

    def take(self, indices: Sequence[int]) -> Plan:
        """The rows at these positions, in the order given."""
        from millpond.plan.order import Take

        return Take(self._plan, items_of(indices, "take()", "a list of positions"))

    def sample(self, n: int | None = None, *, fraction: float | None = None, seed: int) -> Plan:
        """A random choice of rows that depends on the seed alone."""
        from millpond.plan.order import Sample

        return Sample(self._plan, seed, n, fraction)

    def shuffle(self, *, seed: int) -> Plan:
        """All rows in a random order that depends on the seed alone."""
        from millpond.plan.order import Shuffle

        return Shuffle(self._plan, seed)

    def dynamic_scan(
        self,
        columns: AnySchema,
        *,
        format: Literal["parquet", "json", "csv", "bytes"] = "parquet",  # noqa: A002
        path_column: str = "path",
        constants: Sequence[str] = (),
        deleted: str | None = None,
        on_error: Literal["error", "null"] = "error",
    ) -> Plan:
        """Read the files that this plan's rows name.

        A value of a text file that does not fit its column is an error, or null with
        `on_error="null"`.
        """
        from millpond.plan.sources import DynamicScan

        schema = schema_of(columns, "dynamic_scan()")
        names = items_of(constants, "dynamic_scan(constants=...)", "a list of columns' names")
        return DynamicScan(
            self._plan, format, schema, path_column, names, deleted, on_error=on_error
        )

    def stateful(
        self,
        name: str,
        function: StatefulDefinition,
        *args: e.Expr | str,
        where: e.Expr | None = None,
        partition_by: e.Expr | str | Sequence[e.Expr | str] = (),
    ) -> Plan:
        """One more column: a function that is called for each row in order, and remembers."""
        from millpond.plan.bind import as_bound, bind_predicate
        from millpond.plan.python import StatefulDefinition
        from millpond.plan.streams import StatefulFunction, StatefulMapping

        if isinstance(function, type) or not isinstance(function, StatefulDefinition):
            hint = "an object with name, config, return_type() and create_instance()"
            raise wrong("stateful()", "a stateful function", function, hint=hint)
        schema = self._plan.schema
        bound = tuple(as_bound(arg, schema) for arg in args)
        mapping = StatefulMapping(
            name,
            function,
            bound,
            function.return_type(tuple(arg.type for arg in bound)),
            None if where is None else bind_predicate(where, schema),
            _keys(partition_by, schema),
        )
        return StatefulFunction(self._plan, (mapping,))

    def window(
        self,
        name: str,
        function: str,
        arg: e.Expr | str | None = None,
        *,
        partition_by: e.Expr | str | Sequence[e.Expr | str] = (),
        order_by: e.SortKey | e.Expr | str | Sequence[e.SortKey | e.Expr | str] = (),
        rows: tuple[int | None, int | None] = (None, 0),
        offset: int = 1,
    ) -> Plan:
        """One more column: a SQL window function."""
        from millpond.plan.bind import as_bound, bind_key
        from millpond.plan.streams import WINDOW_FUNCTIONS, Window, WindowCall, window_type

        schema = self._plan.schema
        if function not in WINDOW_FUNCTIONS:
            raise PlanError(
                f"unknown window function {function!r}",
                hint=f"one of {', '.join(WINDOW_FUNCTIONS)}",
            )
        bound = None if arg is None else as_bound(arg, schema)
        type_ = window_type(function, None if bound is None else bound.type)
        keys = _keys(partition_by, schema)
        order = tuple(bind_key(key, schema) for key in items_of(order_by, "order_by"))
        call = WindowCall(name, function, type_, bound, keys, order, *_frame(rows), offset)
        return Window(self._plan, (call,))


def _output(name: str, given: e.Expr | str, schema: Struct) -> e.Named:
    """Name an output column; a string that is not a column may have been meant as a constant."""
    from millpond.plan.bind import as_expr

    if isinstance(given, str) and given not in schema:
        hint = f"a constant is lit({given!r}); {schema.near(given)}"
        raise SchemaError(f"there is no column {given!r} for {name}=", hint=hint)
    return e.Named(name, as_expr(given))


def _keys(given: object, schema: Struct) -> tuple[BoundExpr, ...]:
    """Bind the keys that rows are grouped by."""
    from millpond.plan.bind import as_bound, as_key

    items = items_of(given, "partition_by")
    return tuple(as_bound(as_key(key, "partition_by"), schema) for key in items)


def _frame(rows: object) -> tuple[int | None, int | None]:
    """Where a window's frame starts and ends, counted in rows from the current one."""
    wanted = "(start, end) as whole numbers or None"
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise wrong("window(rows=...)", wanted, rows, hint="(-2, 0): the row and two before it")
    start, end = (None if at is None else whole_of(at, "window(rows=...)", wanted) for at in rows)
    return start, end

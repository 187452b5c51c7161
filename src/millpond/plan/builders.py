"""The fluent face of a plan: `scan(...).filter(col("a") > 3).select("a", "b").head(10)`.

Each method binds its expressions against the plan's schema and returns a new node. The nodes
themselves take bound expressions only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan import expr as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from millpond.plan.aggregates import Measure
    from millpond.plan.executor import Execution, Executor, Scope
    from millpond.plan.explain import AnalyzeReport
    from millpond.plan.node import Plan
    from millpond.plan.python import RowFilter, StatefulDefinition
    from millpond.plan.rows import JoinKind
    from millpond.plan.types import Struct


class Builders:
    """Methods that put one more node on top of a plan, and those that run it."""

    __slots__ = ()

    @property
    def _plan(self) -> Plan:
        return cast("Plan", self)

    def filter(self, predicate: e.Expr) -> Plan:
        """Only the rows for which the predicate is true."""
        from millpond.plan.bind import bind_predicate
        from millpond.plan.rows import Filter

        return Filter(self._plan, bind_predicate(predicate, self._plan.schema))

    def filter_ordered(self, row_filter: RowFilter) -> Plan:
        """Only the rows that a stateful filter keeps, which sees them in order."""
        from millpond.plan.rows import FilterOrdered

        return FilterOrdered(self._plan, row_filter)

    def select(self, *columns: e.Expr | e.Named | str, **named: e.Expr) -> Plan:
        """These columns: names, paths, or expressions with a name."""
        from millpond.plan.bind import bind_named
        from millpond.plan.rows import Project

        items = (*columns, *(e.Named(name, expr) for name, expr in named.items()))
        return Project(self._plan, tuple(bind_named(i, self._plan.schema) for i in items))

    def with_columns(self, **named: e.Expr) -> Plan:
        """All columns, some of them computed anew or added at the end."""
        from millpond.plan.bind import bind
        from millpond.plan.bound import BoundNamed
        from millpond.plan.rows import Project

        schema = self._plan.schema
        given = {name: e.col(name) for name in schema.names} | {
            k: e.lit(v) for k, v in named.items()
        }
        return Project(self._plan, tuple(BoundNamed(n, bind(x, schema)) for n, x in given.items()))

    def drop(self, *names: str) -> Plan:
        """All columns but these."""
        for name in names:
            self._plan.schema.field(name)
        return self.select(*(n for n in self._plan.schema.names if n not in names))

    def rename(self, **renames: str) -> Plan:
        """All columns, some under a new name: `rename(old="new")`."""
        for name in renames:
            self._plan.schema.field(name)
        columns = (e.col(n).alias(renames.get(n, n)) for n in self._plan.schema.names)
        return self.select(*columns)

    def parse_json(self, column: str, schema: Struct, *, output: str) -> Plan:
        """One more column: the JSON text of another, read into a struct."""
        from millpond.plan.rows import ParseJson

        return ParseJson(self._plan, column, schema, output)

    def union(self, *others: Plan) -> Plan:
        """All rows of this plan, then those of the others, which have the same columns."""
        from millpond.plan.rows import Union

        return Union((self._plan, *(_plan_of(other) for other in others)))

    def join(
        self,
        other: Plan,
        *,
        on: str | Sequence[str | tuple[e.Expr | str, e.Expr | str]],
        how: JoinKind = "inner",
        nulls_equal: bool = False,
    ) -> Plan:
        """Rows of both plans whose keys are equal.

        A name in `on` is a column of both sides and appears once in the result; a pair is an
        expression for each side, and the result has both sides' columns.
        """
        from millpond.plan.joins import build_join

        return build_join(self._plan, _plan_of(other), on=on, how=how, nulls_equal=nulls_equal)

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
        keys = (by,) if isinstance(by, str | e.Expr | e.Named) else tuple(by)
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

        if isinstance(indices, int):
            raise PlanError("take() wants a list of positions", hint=f"take([{indices}])")
        return Take(self._plan, tuple(indices))

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
        columns: Struct,
        *,
        format: Literal["parquet", "json", "csv"] = "parquet",  # noqa: A002
        path_column: str = "path",
        constants: Sequence[str] = (),
        deleted: str | None = None,
    ) -> Plan:
        """The rows of the files that this plan's rows name."""
        from millpond.plan.sources import DynamicScan

        return DynamicScan(self._plan, format, columns, path_column, tuple(constants), deleted)

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
        from millpond.plan.streams import StatefulFunction, StatefulMapping

        schema = self._plan.schema
        bound = tuple(as_bound(arg, schema) for arg in args)
        mapping = StatefulMapping(
            name,
            function,
            bound,
            function.return_type(tuple(arg.type for arg in bound)),
            None if where is None else bind_predicate(where, schema),
            tuple(as_bound(key, schema) for key in _each(partition_by)),
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
        keys = tuple(as_bound(key, schema) for key in _each(partition_by))
        order = tuple(bind_key(key, schema) for key in _each(order_by))
        call = WindowCall(name, function, type_, bound, keys, order, rows[0], rows[1], offset)
        return Window(self._plan, (call,))

    def execute(
        self,
        *,
        engine: str | Executor = "auto",
        scope: Scope | None = None,
        optimize: bool = True,
        ordered: bool = True,
    ) -> Execution:
        """Run the plan: an iterator of Arrow record batches with counters."""
        from millpond.plan.run import execute

        return execute(self._plan, engine=engine, scope=scope, optimize=optimize, ordered=ordered)

    def to_arrow(
        self, *, engine: str | Executor = "auto", scope: Scope | None = None, optimize: bool = True
    ) -> pa.Table:
        """Run the plan and gather all rows in memory."""
        import pyarrow as pa

        run = self.execute(engine=engine, scope=scope, optimize=optimize)
        return pa.Table.from_batches(list(run), schema=run.schema)

    def to_pylist(
        self, *, engine: str | Executor = "auto", scope: Scope | None = None
    ) -> list[Any]:
        """Run the plan and gather all rows as dictionaries."""
        rows: list[Any] = self.to_arrow(engine=engine, scope=scope).to_pylist()
        return rows

    def explain(
        self,
        *,
        logical: bool = True,
        optimized: bool = True,
        physical: bool = False,
        decode: bool = True,
        costs: bool = False,
        steps: bool = False,
        engine: str | Executor = "auto",
        format: Literal["text", "json"] = "text",  # noqa: A002
        scope: Scope | None = None,
    ) -> str:
        """What would happen, without reading any data."""
        from millpond.plan.explain import explain

        return explain(
            self._plan,
            logical=logical,
            optimized=optimized,
            physical=physical,
            decode=decode,
            costs=costs,
            steps=steps,
            engine=engine,
            format=format,
            scope=scope,
        )

    def explain_analyze(
        self,
        *,
        engine: str | Executor = "auto",
        scope: Scope | None = None,
        max_rows: int | None = None,
        time_budget_ms: float | None = None,
        format: Literal["text", "json"] = "text",  # noqa: A002
    ) -> AnalyzeReport:
        """Run the plan and report what was observed next to what was estimated."""
        from millpond.plan.explain import explain_analyze

        return explain_analyze(
            self._plan,
            engine=engine,
            scope=scope,
            max_rows=max_rows,
            time_budget_ms=time_budget_ms,
            format=format,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        if requested_schema is not None:
            raise TypeMismatchError("a plan gives its own schema", hint="cast in the plan")
        run = self.execute()
        return pa.RecordBatchReader.from_batches(run.schema, run).__arrow_c_stream__()


def _plan_of(given: object) -> Plan:
    """A plan, or an error that says what was given instead."""
    from millpond.plan.node import Plan

    if not isinstance(given, Plan):
        raise PlanError(
            f"a plan is wanted, not a {type(given).__name__}",
            hint="make one with values() or scan()",
        )
    return given


def _each(items: Any) -> tuple[Any, ...]:
    """Several items, or one that stands for itself: a name is not a sequence of letters."""
    return (items,) if isinstance(items, str | e.Expr | e.SortKey) else tuple(items)

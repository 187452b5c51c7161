"""The methods of a plan that run it, and those that say what a run would do or did.

Where rows leave a plan: as Arrow batches, as a table, as dictionaries, on the screen, as a stream
that other libraries read. `run.py` finds the engine and starts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from millpond.base.errors import MillpondError, TypeMismatchError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    from millpond.plan.executor import AnyEngine, Scope
    from millpond.plan.explain import AnalyzeReport
    from millpond.plan.node import Plan
    from millpond.plan.reading import Reading


class Runner:
    """Methods that run a plan. `engine` is a name, an engine, or None for the setting's choice."""

    __slots__ = ()

    @property
    def _plan(self) -> Plan:
        return cast("Plan", self)

    def execute(
        self,
        *,
        engine: AnyEngine = "auto",
        scope: Scope | None = None,
        optimize: bool = True,
        ordered: bool = True,
    ) -> Reading:
        """Run the plan: an iterator of Arrow record batches with counters, to be read once."""
        from millpond.plan.run import execute

        return execute(self._plan, engine=engine, scope=scope, optimize=optimize, ordered=ordered)

    def to_arrow(
        self, *, engine: AnyEngine = "auto", scope: Scope | None = None, optimize: bool = True
    ) -> pa.Table:
        """Run the plan and gather all rows in memory."""
        import pyarrow as pa

        run = self.execute(engine=engine, scope=scope, optimize=optimize)
        return pa.Table.from_batches(list(run), schema=run.schema)

    def to_pylist(self, *, engine: AnyEngine = "auto", scope: Scope | None = None) -> list[Any]:
        """Run the plan and gather all rows as dictionaries."""
        table = self.to_arrow(engine=engine, scope=scope)
        try:
            rows: list[Any] = table.to_pylist()
        except (OverflowError, ValueError) as error:
            raise MillpondError(
                f"some value can't be one of Python's: {error}",
                hint="take the rows as Arrow, by to_arrow(); Python knows the years 1 to 9999",
            ) from error
        return rows

    def to_pandas(self, *, engine: AnyEngine = "auto", scope: Scope | None = None) -> pd.DataFrame:
        """Run the plan and gather all rows in a pandas DataFrame."""
        table = self.to_arrow(engine=engine, scope=scope)
        try:
            return table.to_pandas()
        except ModuleNotFoundError as error:
            raise MillpondError(
                "to_pandas() needs the package pandas", hint="pip install pandas, or use to_arrow()"
            ) from error

    def count(self, *, engine: AnyEngine = "auto", scope: Scope | None = None) -> int:
        """Run the plan and count its rows; columns that do not decide about rows are not read."""
        from millpond.plan.aggregates import count

        rows = self._plan.select().aggregate(rows=count()).to_arrow(engine=engine, scope=scope)
        return int(rows["rows"][0].as_py())

    def show(self, n: int = 10, *, engine: AnyEngine = "auto", scope: Scope | None = None) -> None:
        """Run the plan for its first rows and print them as a table."""
        from millpond.plan.show import print_rows

        self._plan.head(n)  # refuses what is not a number of rows
        # One row more tells whether there are more.
        table = self._plan.head(n + 1).to_arrow(engine=engine, scope=scope)
        print_rows(table, self._plan.schema, n)

    def explain(
        self,
        *,
        logical: bool = True,
        optimized: bool = True,
        physical: bool = False,
        decode: bool = True,
        costs: bool = False,
        steps: bool = False,
        engine: AnyEngine = "auto",
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
        engine: AnyEngine = "auto",
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

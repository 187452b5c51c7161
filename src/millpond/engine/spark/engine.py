"""The Spark engine: a plan becomes one DataFrame, its rows come back as Arrow batches.

Plans go to a warm engine where a command finds one (`warm/`), else to the session of this process
(`local.py`), which is started when the first plan needs it. What that takes is imported then: a
command that finds a warm engine compiles nothing.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Final

from millpond.plan import order as o
from millpond.plan import rows as r
from millpond.plan import sources as s
from millpond.plan import streams as m
from millpond.plan.attendant import attendant
from millpond.plan.executor import Capabilities, check_supported, resolve_stored
from millpond.plan.functions import FUNCTIONS
from millpond.plan.sqltext import check_sql, note_checked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millpond.base.settings import Settings
    from millpond.engine.spark.execution import SparkExecution
    from millpond.engine.spark.local import Local
    from millpond.engine.spark.progress import Progress
    from millpond.engine.spark.warm.client import Warm, WarmRun
    from millpond.plan.executor import Scope
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.plan.types import Struct

_NODES: Final = (
    *(s.Scan, s.Values, s.ListFiles, s.DynamicScan),
    *(r.Filter, r.Project, r.ParseJson, r.Union, r.Aggregate, r.FilterOrdered, r.Join),
    *(o.Sort, o.TopK, o.Head, o.Tail, o.Take, o.Sample, o.Shuffle),
    *(m.StatefulFunction, m.Window, m.Sql),
)
_CAPABILITIES: Final = Capabilities(
    nodes=frozenset(node.kind for node in _NODES),
    functions=frozenset(FUNCTIONS),
    distributed=True,
)


class SparkEngine:
    """Runs plans on Spark: in this process, on a cluster, or through Spark Connect.

    `progress` is called now and then while a plan runs.
    """

    def __init__(
        self,
        session: SparkSession | None = None,
        settings: Settings | None = None,
        *,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self._given = session
        self._made: tuple[SparkSession, Local] | None = None
        self._settings = settings
        self._progress = progress
        self._kept = contextlib.ExitStack()
        weakref.finalize(self, self._kept.close)

    @property
    def name(self) -> str:
        """`spark`."""
        return "spark"

    @property
    def capabilities(self) -> Capabilities:
        """Every node and every function; known without starting Spark."""
        return _CAPABILITIES

    @property
    def session(self) -> SparkSession:
        """The session that plans run in; started now if there is none yet."""
        return self._local.session

    def check_available(self) -> str:
        """What Spark would run on here, without starting it; an error if it could not."""
        from millpond.engine.spark.runtime import describe_runtime

        return describe_runtime(self._settings)

    def execute(self, plan: Plan, scope: Scope | None = None) -> SparkExecution | WarmRun:
        """Run the plan; batches come in the order of the plan's rows."""
        return self._run(plan, scope, ordered=True)

    def execute_parallel(self, plan: Plan, scope: Scope | None = None) -> SparkExecution | WarmRun:
        """Run the plan; rows come in any order."""
        return self._run(plan, scope, ordered=False)

    def execute_into(self, plan: Plan, parts: Parts) -> SparkExecution | WarmRun | None:
        """Write the plan's rows into files, where Spark is on this machine: see `parts`."""
        from millpond.engine.spark.parts import cut_of

        plan = self._checked(plan, None)
        if cut_of(plan, parts) is None:
            return None
        if (warm := self._warm(plan)) is not None:
            return warm.execute(plan, parts=parts, progress=self._watching())
        return self._local.run_into(plan, parts, self._watching())

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        """Spark's physical plan, and that of each part that has to run before it."""
        plan = self._checked(plan, scope)
        if (warm := self._warm(plan)) is not None:
            return warm.explain(plan)
        return self._local.explain(plan)

    def to_dataframe(
        self, plan: Plan, scope: Scope | None = None, *, ordered: bool = False
    ) -> DataFrame:
        """The plan as a Spark DataFrame, to go on with in Spark.

        Files that it needs are kept as long as this engine.
        """
        df, context = self._local.compile(self._checked(plan, scope), ordered=ordered)
        self._kept.enter_context(context.resources)
        if self._given is None:
            return df
        from millpond.engine.spark.api import in_session

        return in_session(df, self._given)

    def sql_schema(
        self, text: str, inputs: Mapping[str, Struct], *, allow: m.SqlAllow = "inputs"
    ) -> Struct:
        """The columns that a query gives over inputs of these schemas.

        The text is checked before Spark sees it, so that its errors have positions.
        """
        if (warm := self._warm(tells=False)) is not None:
            found = warm.sql_schema(text, inputs, allow=allow)  # which has checked it
            note_checked(text)
            return found
        check_sql(text)
        self._warm()  # tells why there is none
        from millpond.engine.spark.sql import sql_schema

        return self._local.ask(sql_schema, text, inputs, allow)

    def pushed_ranges(
        self,
        text: str,
        inputs: Mapping[str, Struct],
        times: Mapping[str, str],
        wanted: tuple[str, int | None, int | None],
    ) -> dict[str, tuple[int | None, int | None]]:
        """When rows of inputs matter for a range of what a query gives: see `pushed`."""
        if (warm := self._warm()) is not None:
            return warm.pushed_ranges(text, inputs, times, wanted)
        from millpond.engine.spark.pushed import pushed_ranges

        return self._local.ask(pushed_ranges, text, inputs, times, wanted)

    def _run(self, plan: Plan, scope: Scope | None, *, ordered: bool) -> SparkExecution | WarmRun:
        plan = self._checked(plan, scope)
        if (warm := self._warm(plan)) is not None:
            return warm.execute(plan, ordered=ordered, progress=self._watching())
        return self._local.run(plan, self._watching(), ordered=ordered)

    @property
    def _local(self) -> Local:
        """What runs plans in the session that was given, else in the one of this process.

        The latter is asked for each time: the last one may have been stopped, or have crashed.
        """
        from millpond.base.settings import Settings
        from millpond.engine.spark.local import Local
        from millpond.engine.spark.session import fit_session, spark_session

        session = self._given
        if session is None:
            session = spark_session(self._settings)
        made = self._made
        if made is None or made[0] is not session:
            verify = (self._settings or Settings.load()).spark.verify
            made = self._made = session, Local(fit_session(session), verify)
        return made[1]

    def _watching(self) -> Callable[[Progress], object] | None:
        watcher = attendant()
        return self._progress or (None if watcher is None else watcher.on_progress)

    def _checked(self, plan: Plan, scope: Scope | None) -> Plan:
        plan = resolve_stored(plan, scope)
        check_supported(plan, self)
        return plan

    def _warm(self, plan: Plan | None = None, *, tells: bool = True) -> Warm | None:
        """An engine that runs already, where this process may use one; see `warm/`."""
        if self._given is not None or attendant() is None:
            return None
        from millpond.engine.spark.warm.client import can_go, found

        return found(self._settings, tells=tells) if plan is None or can_go(plan) else None

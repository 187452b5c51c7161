"""The Spark engine: a plan becomes one DataFrame, its rows come back as Arrow batches.

`compile.py` compiles, `execution.py` runs, `session.py` has the session. Sessions are started when
the first plan needs one.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Final

from millpond.base.unsaid import cause_of
from millpond.engine.spark import tail
from millpond.engine.spark.api import is_single_machine
from millpond.engine.spark.compile import NODES, compile_plan
from millpond.engine.spark.context import Context
from millpond.engine.spark.errors import translate, translated
from millpond.engine.spark.execution import SparkExecution, stream, watched
from millpond.engine.spark.expressions.calls import FUNCTIONS
from millpond.engine.spark.fuse import fuse
from millpond.engine.spark.interrupts import held_interrupt
from millpond.engine.spark.observe import physical_plan
from millpond.engine.spark.parts import cut_of, write
from millpond.engine.spark.sql import sql_schema
from millpond.engine.spark.stream import arrow_schema
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.attendant import attendant
from millpond.plan.executor import Capabilities, check_supported, resolve_stored
from millpond.plan.sources import DynamicScan
from millpond.plan.sqltext import check_sql
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.base.settings import Settings
    from millpond.engine.spark.jobs import Jobs
    from millpond.engine.spark.progress import Progress
    from millpond.engine.spark.warm.client import Warm, WarmRun
    from millpond.plan.executor import Scope
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.plan.types import Struct

_CAPABILITIES: Final = Capabilities(nodes=NODES, functions=FUNCTIONS, distributed=True)


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
        self._session = session
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
        if self._session is None:
            from millpond.engine.spark.session import spark_session

            self._session = spark_session(self._settings)
        return self._session

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
        plan = fuse(self._checked(plan, None))
        cut = cut_of(plan, parts)
        if cut is None:
            return None
        progress = self._watching()
        if (warm := self._warm(plan)) is not None:
            return warm.execute(plan, parts=parts, progress=progress)
        if not is_single_machine(self.session):
            return None
        context = Context.of(plan, self.session, self._part)
        context.cut = cut

        def batches(jobs: Jobs) -> Iterator[pa.RecordBatch]:
            with jobs.started_here(), _released_on_error(context):
                frame = compile_plan(plan, context, ordered=True)
            return watched(self.session, write(frame, parts, context), jobs, progress)

        return SparkExecution(plan, batches, context, parts.schema())

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        """Spark's physical plan, and that of each part that has to run before it."""
        plan = self._checked(plan, scope)
        if (warm := self._warm(plan)) is not None:
            return warm.explain(plan)
        plan = fuse(plan)
        texts = []
        for part, title in _parts(plan):
            context = Context.of(part, self.session, self._part)
            context.reads = False
            with context.resources, _released_on_error(context):
                text = physical_plan(self._frame(part, context, ordered=True))
            texts.append(f"{title}{text}")
        return "\n".join(texts)

    def to_dataframe(
        self, plan: Plan, scope: Scope | None = None, *, ordered: bool = False
    ) -> DataFrame:
        """The plan as a Spark DataFrame, to go on with in Spark.

        Files that it needs are kept as long as this engine.
        """
        df, context = self._compile(plan, scope, ordered=ordered)
        self._kept.enter_context(context.resources)
        return df

    def sql_schema(self, text: str, inputs: Mapping[str, Struct]) -> Struct:
        """The columns that a query gives over inputs of these schemas."""
        check_sql(text)  # a command would run while Spark analyses it
        if (warm := self._warm()) is not None:
            return warm.sql_schema(text, inputs)
        with translated(), held_interrupt():
            return sql_schema(text, inputs, self.session)

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

        with translated(), held_interrupt():
            return pushed_ranges(text, inputs, times, wanted, self.session)

    def _run(self, plan: Plan, scope: Scope | None, *, ordered: bool) -> SparkExecution | WarmRun:
        schema = to_arrow_schema(plan.schema)
        plan = self._checked(plan, scope)
        progress = self._watching()
        if (warm := self._warm(plan)) is not None:
            return warm.execute(plan, ordered=ordered, progress=progress)
        plan = fuse(plan)
        context = Context.of(plan, self.session, self._part)

        def batches(jobs: Jobs) -> Iterator[pa.RecordBatch]:
            with jobs.started_here():
                parts = tail.split(plan) if ordered else None
                if parts is None:
                    df, ending = self._frame(plan, context, ordered=ordered), None
                else:
                    df, ending = self._with_tail(*parts, context)
            rows = stream(df, schema if ending is None else arrow_schema(df))
            made = watched(self.session, rows, jobs, progress)
            return made if ending is None else tail.run(made, ending)

        return SparkExecution(plan, batches, context)

    def _watching(self) -> Callable[[Progress], object] | None:
        watcher = attendant()
        return self._progress or (None if watcher is None else watcher.on_progress)

    def _checked(self, plan: Plan, scope: Scope | None) -> Plan:
        plan = resolve_stored(plan, scope)
        check_supported(plan, self)
        return plan

    def _prepared(self, plan: Plan, scope: Scope | None) -> Plan:
        return fuse(self._checked(plan, scope))

    def _warm(self, plan: Plan | None = None) -> Warm | None:
        """An engine that runs already, where this process may use one; see `warm/`."""
        if self._session is not None:
            return None
        from millpond.engine.spark.warm.client import can_go, found

        return found(self._settings) if plan is None or can_go(plan) else None

    def _with_tail(
        self, below: Plan, nodes: list[Plan], context: Context
    ) -> tuple[DataFrame, tail.Tail]:
        with _released_on_error(context):
            frame = compile_plan(below, context, ordered=True)
            return tail.build(frame, nodes, context)

    def _frame(self, plan: Plan, context: Context, *, ordered: bool) -> DataFrame:
        with _released_on_error(context):
            frame = compile_plan(plan, context, ordered=ordered)
            return frame.in_order(context) if ordered else frame.visible(context)

    def _compile(
        self, plan: Plan, scope: Scope | None, *, ordered: bool
    ) -> tuple[DataFrame, Context]:
        plan = self._prepared(plan, scope)
        context = Context.of(plan, self.session, self._part)
        return self._frame(plan, context, ordered=ordered), context

    def _part(self, plan: Plan, ordered: bool) -> Iterator[pa.RecordBatch]:
        return self.execute(plan) if ordered else self.execute_parallel(plan)


@contextlib.contextmanager
def _released_on_error(context: Context) -> Iterator[None]:
    """What a compilation has opened is let go when it fails, with an error of ours."""
    try:
        with held_interrupt():
            yield
    except BaseException as error:
        context.resources.close()
        if isinstance(error, Exception):
            raise translate(error) from cause_of(error)
        raise


def _parts(plan: Plan) -> list[tuple[Plan, str]]:
    """The plan, and the inputs of dynamic scans: they name the files, so they run first."""
    scans = [node for node in topological(plan) if isinstance(node, DynamicScan)]
    inputs = [(node.input, f"== Input of DynamicScan {node.label()} ==\n") for node in scans]
    return [(plan, ""), *inputs]

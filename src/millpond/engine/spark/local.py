"""`Local`: plans on a session that this process has, be it its own, a cluster's or Connect's.

`compile.py` compiles, `execution.py` runs, `session.py` has the session.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from millpond.base.unsaid import cause_of
from millpond.engine.spark import tail
from millpond.engine.spark.api import is_single_machine
from millpond.engine.spark.compile import compile_plan
from millpond.engine.spark.context import Context
from millpond.engine.spark.errors import translate, translated
from millpond.engine.spark.execution import SparkExecution, stream, watched
from millpond.engine.spark.fuse import fuse
from millpond.engine.spark.interrupts import held_interrupt
from millpond.engine.spark.narrow import narrow
from millpond.engine.spark.observe import physical_plan
from millpond.engine.spark.parts import cut_of, write
from millpond.engine.spark.stream import arrow_schema
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import DynamicScan
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.engine.spark.jobs import Jobs
    from millpond.engine.spark.progress import Progress
    from millpond.engine.spark.verify import Verify
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts

    Report = Callable[[Progress], object]

T = TypeVar("T")


@dataclass(frozen=True)
class Local:
    """Plans without stored paths, of nodes that are known."""

    session: SparkSession
    verify: Verify = "pages"

    def run(self, plan: Plan, progress: Report | None, *, ordered: bool) -> SparkExecution:
        """The rows of a plan."""
        schema = to_arrow_schema(plan.schema)
        plan = narrow(fuse(plan))
        context = self._context(plan, progress)

        def batches(jobs: Jobs) -> Iterator[pa.RecordBatch]:
            with jobs.started_here():
                parts = tail.split(plan) if ordered else None
                if parts is None:
                    df, ending = _frame(plan, context, ordered=ordered), None
                else:
                    df, ending = _with_tail(*parts, context)
            rows = stream(df, schema if ending is None else arrow_schema(df))
            made = watched(self.session, rows, jobs, progress)
            return made if ending is None else tail.run(made, ending)

        return SparkExecution(plan, batches, context)

    def run_into(self, plan: Plan, parts: Parts, progress: Report | None) -> SparkExecution | None:
        """The files of a plan; None where others than this machine would write them."""
        plan = narrow(fuse(plan))
        cut = cut_of(plan, parts)
        if cut is None or not is_single_machine(self.session):
            return None
        context = self._context(plan, progress)
        context.cut = cut

        def batches(jobs: Jobs) -> Iterator[pa.RecordBatch]:
            with jobs.started_here(), _released_on_error(context):
                frame = compile_plan(plan, context, ordered=True)
            return watched(self.session, write(frame, parts, context), jobs, progress)

        return SparkExecution(plan, batches, context, parts.schema())

    def explain(self, plan: Plan) -> str:
        """Spark's physical plan, and that of each part that has to run before it."""
        texts = []
        for part, title in _parts(narrow(fuse(plan))):
            context = self._context(part)
            context.reads = False
            with context.resources, _released_on_error(context):
                text = physical_plan(_frame(part, context, ordered=True))
            texts.append(f"{title}{text}")
        return "\n".join(texts)

    def compile(self, plan: Plan, *, ordered: bool) -> tuple[DataFrame, Context]:
        """A plan as a DataFrame, and what has to be kept as long as it."""
        plan = narrow(fuse(plan))
        context = self._context(plan)
        return _frame(plan, context, ordered=ordered), context

    def ask(self, question: Callable[..., T], *given: object) -> T:
        """What Spark can tell without running anything; `question` takes the session at last."""
        with translated(), held_interrupt():
            return question(*given, self.session)

    def _context(self, plan: Plan, progress: Report | None = None) -> Context:
        def part(below: Plan, ordered: bool) -> Iterator[pa.RecordBatch]:
            return self.run(below, progress, ordered=ordered)

        return Context.of(plan, self.session, part, self.verify)


def _with_tail(below: Plan, nodes: list[Plan], context: Context) -> tuple[DataFrame, tail.Tail]:
    with _released_on_error(context):
        frame = compile_plan(below, context, ordered=True)
        return tail.build(frame, nodes, context)


def _frame(plan: Plan, context: Context, *, ordered: bool) -> DataFrame:
    with _released_on_error(context):
        frame = compile_plan(plan, context, ordered=ordered)
        return frame.in_order(context) if ordered else frame.visible(context)


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

"""Which engine runs a plan: the one that was asked for, or the one that will be done first.

`auto` goes by what each engine can run, by estimated rows and memory, and by what Spark costs to
start. The Arrow engine is in this process and begins at once; Spark brings more cores and spills
everything. The choice comes with its reason, which `explain` shows.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millpond.base.errors import UnsupportedExpressionError, UnsupportedNodeError
from millpond.base.machine import cores
from millpond.base.settings import Settings
from millpond.plan.arguments import wrong
from millpond.plan.cost import Estimate, estimate_nodes
from millpond.plan.cost.numbers import show_bytes, show_rows
from millpond.plan.executor import Executor, check_supported, resolve_stored
from millpond.plan.run import engine_named
from millpond.plan.sources import ListFiles, Scan, Stored
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.executor import AnyEngine, Scope
    from millpond.plan.node import Plan

ARROW_ROWS: Final = 50_000_000
"""Below this many rows on the way, starting Spark does not pay whatever the plan does."""
MEMORY_SHARE: Final = 0.5
"""The part of the machine's memory that sorts, joins and groups may hold."""
COLD_START: Final = 8_000_000.0
WARM_START: Final = 700_000.0
"""What Spark needs before the first row, in microseconds, without and with a running session."""
SPARK_ROW_FACTOR: Final = 2.0
"""How much more a row costs one of Spark's cores than it costs the Arrow engine."""
CLUSTER_CORES: Final = 32
"""What a cluster is taken to have; asking it would mean to connect."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine, its name, and why, in one sentence."""

    executor: Executor
    name: str
    reason: str


def choose(
    plan: Plan,
    engine: AnyEngine = "auto",
    *,
    scope: Scope | None = None,
    settings: Settings | None = None,
) -> Choice:
    """The engine for a plan: by call, else by the setting `engine`, else the cheapest one.

    An engine that was asked for and can't run the plan is an `UnsupportedNodeError`.
    """
    resolved = resolve_stored(plan, scope) if scope is not None and _has_stored(plan) else plan
    if engine is None:
        engine = "auto"
    if not isinstance(engine, str):
        if isinstance(engine, type) or not isinstance(engine, Executor):
            raise wrong("engine", "'auto', an engine's name or an engine", engine)
        return _asked(resolved, engine, "the engine that was given")
    if engine != "auto":
        return _asked(resolved, engine_named(engine), "asked for by name")
    settings = settings or Settings.load()
    if settings.engine != "auto":
        return _asked(resolved, engine_named(settings.engine), "the setting `engine` says so")
    return _cheapest(resolved, settings)


def _has_stored(plan: Plan) -> bool:
    return any(isinstance(node, Stored) for node in topological(plan))


def _asked(plan: Plan, executor: Executor, why: str) -> Choice:
    check_supported(plan, executor)
    return Choice(executor, executor.name, f"{executor.name}: {why}")


def _cheapest(plan: Plan, settings: Settings) -> Choice:
    arrow = engine_named("arrow")
    try:
        check_supported(plan, arrow)
    except (UnsupportedNodeError, UnsupportedExpressionError) as error:
        spark = engine_named("spark")
        check_supported(plan, spark)
        what = error.node if isinstance(error, UnsupportedNodeError) else error.function
        return Choice(spark, spark.name, f"spark: {what} runs only there")
    name, why = _weigh(plan, settings)
    if name == "arrow":
        return Choice(arrow, arrow.name, f"arrow: {why}")
    spark = engine_named("spark")
    try:
        check_supported(plan, spark)
    except (UnsupportedNodeError, UnsupportedExpressionError) as error:
        what = error.node if isinstance(error, UnsupportedNodeError) else error.function
        return Choice(arrow, arrow.name, f"arrow: {what} runs only there")
    return Choice(spark, spark.name, f"spark: {why}")


def _weigh(plan: Plan, settings: Settings) -> tuple[str, str]:
    """The engine's name and the reason, for a plan that both may be able to run."""
    order = topological(plan)
    estimates = estimate_nodes(plan)
    rows = _most_rows(estimates)
    warm = is_spark_running()
    if rows is None:
        return _weigh_unknown(order, estimates, warm=warm)
    if importlib.util.find_spec("pyspark") is None:
        return "arrow", f"{show_rows(rows)} estimated, and Spark is not installed"
    memory = _memory() * MEMORY_SHARE
    for node, item in zip(order, estimates, strict=True):
        if item.held_bytes is not None and item.held_bytes > memory:
            return "spark", (
                f"{node.kind} would hold {show_bytes(item.held_bytes)}, "
                f"more than the {show_bytes(memory)} allowed here"
            )
    if rows < ARROW_ROWS:
        return "arrow", f"{show_rows(rows)} estimated, below {ARROW_ROWS:,}"
    cost = sum(item.cost or 0.0 for item in estimates)
    start = WARM_START if warm else COLD_START
    theirs = start + cost * SPARK_ROW_FACTOR / _cores(settings)
    if theirs < cost:
        return "spark", f"about {theirs / 1e6:,.0f} s against {cost / 1e6:,.0f} s on one core"
    return "arrow", f"about {cost / 1e6:,.0f} s, Spark would take about {theirs / 1e6:,.0f} s"


def _most_rows(estimates: tuple[Estimate, ...]) -> float | None:
    """The rows of the busiest step, as far as limits let them through; None if one is unknown."""
    found = 0.0
    for item in estimates:
        if item.rows is None:
            return None
        found = max(found, item.rows * item.asked)
    return found


def _weigh_unknown(
    order: list[Plan], estimates: tuple[Estimate, ...], *, warm: bool
) -> tuple[str, str]:
    pairs = list(zip(order, estimates, strict=True))
    source = next(_name(node) for node, item in pairs if item.rows is None)
    holds = next((node.kind for node, item in pairs if item.held_bytes is None), None)
    if warm and holds is not None:
        return "spark", f"nothing is known about {source}, {holds} has to hold it, and Spark runs"
    if warm:
        return "arrow", f"nothing is known about {source}, and it only streams through"
    return "arrow", f"nothing is known about {source}, and Spark would take seconds to start"


def _name(node: Plan) -> str:
    if isinstance(node, Stored | ListFiles):
        return node.path
    if isinstance(node, Scan):
        return node.files[0].path if len(node.files) == 1 else f"{len(node.files)} files"
    return node.kind


def is_spark_running() -> bool:
    """Whether this process has a Spark session; asked without importing Spark."""
    classic = sys.modules.get("pyspark.sql.session")
    if classic is not None and classic.SparkSession._instantiatedSession is not None:  # noqa: SLF001
        return True
    connect = sys.modules.get("pyspark.sql.connect.session")
    return connect is not None and connect.SparkSession.getActiveSession() is not None


def _cores(settings: Settings) -> int:
    master = settings.spark.master or "local[*]"
    if not master.startswith("local"):
        return CLUSTER_CORES
    inside = master.partition("[")[2].rstrip("]").partition(",")[0]
    return int(inside) if inside.isdecimal() and int(inside) else cores()


def _memory() -> float:
    """The machine's memory in bytes; without a way to ask, a modest machine is assumed."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 8.0 * 2**30

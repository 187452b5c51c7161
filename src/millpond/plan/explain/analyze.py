"""`explain_analyze`: run a plan, perhaps not to its end, and say what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millpond.base.clock import SystemClock
from millpond.base.errors import PlanError
from millpond.plan.arguments import whole_of, wrong
from millpond.plan.choose import choose
from millpond.plan.cost import estimate_nodes
from millpond.plan.executor import resolve_stored
from millpond.plan.explain.describe import check_format
from millpond.plan.explain.drain import drain
from millpond.plan.explain.report import AnalyzeReport, NodeReport
from millpond.plan.optimizer import optimize
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.base.clock import Clock
    from millpond.plan.executor import AnyEngine, Observation, Scope
    from millpond.plan.node import Plan


def explain_analyze(
    plan: Plan,
    *,
    engine: AnyEngine = "auto",
    scope: Scope | None = None,
    max_rows: int | None = None,
    time_budget_ms: float | None = None,
    format: Literal["text", "json"] = "text",  # noqa: A002
    clock: Clock | None = None,
) -> AnalyzeReport:
    """Run the plan and report what was observed next to what was estimated.

    At most `max_rows` rows are taken. When the time is up the run is cancelled, also before its
    first batch; starting an engine can't be. A run that one of them stopped is marked as partial.
    The counters are those of this run alone.
    """
    check_format(format)
    for name, bound in (("max_rows", max_rows), ("time_budget_ms", time_budget_ms)):
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise wrong(name, "a number", bound)
        if name == "max_rows":
            whole_of(bound, name)
        if not bound >= 0:
            raise PlanError(f"{name} is 0 or more, not {bound}", hint="None is no bound")
    final = optimize(plan if scope is None else resolve_stored(plan, scope))
    choice = choose(final, engine, scope=scope)
    clock = clock or SystemClock()
    start = clock.monotonic()
    run = choice.executor.execute(final, scope)
    try:
        rows, batches, partial = drain(run, max_rows, time_budget_ms, start, clock)
    finally:
        run.close()
    seconds = clock.monotonic() - start
    observations = run.observations()
    return AnalyzeReport(
        plan=final,
        engine=choice.name,
        reason=choice.reason,
        nodes=_nodes(final, observations),
        engine_steps=tuple(seen for seen in observations if seen.node is None),
        counters=run.counters.to_dict(),
        rows=rows,
        batches=batches,
        seconds=seconds,
        partial=partial,
        format=format,
    )


def _nodes(plan: Plan, observations: tuple[Observation, ...]) -> tuple[NodeReport, ...]:
    seen = {item.node: item for item in observations if item.node is not None}
    estimates = estimate_nodes(plan)
    reports = []
    for number, node in enumerate(topological(plan)):
        expected, item = estimates[number].rows, seen.get(number)
        if item is None:
            reports.append(NodeReport(number, node.kind, expected))
        else:
            reports.append(
                NodeReport(
                    *(number, node.kind, expected, item.rows, item.batches, item.seconds),
                    details=item.details,
                )
            )
    return tuple(reports)

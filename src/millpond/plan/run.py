"""Running a plan: find the engine by name, optimize, execute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.plugins import ENGINES

if TYPE_CHECKING:
    from millpond.plan.executor import AnyEngine, Executor, Scope
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.plan.reading import Reading


def engine_named(name: str) -> Executor:
    """The engine of this name, made once."""
    made = _ENGINES.get(name)
    if made is None:
        made = _ENGINES[name] = ENGINES.get(name)()
    return made


_ENGINES: dict[str, Executor] = {}


def execute(
    plan: Plan,
    *,
    engine: AnyEngine = "auto",
    scope: Scope | None = None,
    optimize: bool = True,
    ordered: bool = True,
) -> Reading:
    """Run a plan on an engine, or on the one that `auto` finds the cheapest.

    Stored paths are resolved first, so that the optimizer sees the files behind them.
    """
    from millpond.plan.choose import choose
    from millpond.plan.executor import resolve_stored
    from millpond.plan.optimizer import optimize as optimized
    from millpond.plan.reading import Reading

    bound = resolve_stored(plan, scope)
    chosen = optimized(bound) if optimize else bound
    runner = choose(chosen, engine, scope=scope).executor
    start = runner.execute if ordered else runner.execute_parallel
    return Reading(start(chosen, scope), runner.name)


def execute_into(plan: Plan, parts: Parts, *, engine: AnyEngine) -> Reading | None:
    """Have an engine write the rows of a plan into files; None if it can't."""
    from millpond.plan.choose import choose
    from millpond.plan.optimizer import optimize
    from millpond.plan.parts import Writer
    from millpond.plan.reading import Reading

    chosen = optimize(plan)
    runner = choose(chosen, engine).executor
    run = runner.execute_into(chosen, parts) if isinstance(runner, Writer) else None
    return None if run is None else Reading(run, runner.name)

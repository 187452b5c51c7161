"""Which engine runs a table's plans: by name, with the settings that the table was opened with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from millpond.base.settings import Settings
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

_KEPT_BYTES: Final = 8 << 20


def row_engine(engine: str | Executor, settings: Settings | None = None) -> str | Executor:
    """The engine for rows. With settings, `auto` is what they say, or else the Arrow engine."""
    if settings is None or not isinstance(engine, str):
        return engine
    name = settings.engine if engine == "auto" else engine
    return _made("arrow" if name == "auto" else name, settings)


def plan_engine(plan: Plan, settings: Settings | None = None) -> str | Executor:
    """The engine for the rows of a plan: the Arrow engine, or Spark where only that can run it.

    What the settings name is taken, whether it can or not: it will say so.
    """
    from millpond.base.settings import Settings as Loaded
    from millpond.plan.executor import can_run
    from millpond.plan.run import engine_named

    chosen = (settings or Loaded.load()).engine
    if chosen == "auto":
        chosen = "arrow" if can_run(plan, engine_named("arrow")) else "spark"
    return chosen if settings is None else _made(chosen, settings)


def plan_reason(plan: Plan, settings: Settings) -> str:
    """Return why `plan_engine` chooses the engine that it does."""
    from millpond.base.errors import UnsupportedExpressionError, UnsupportedNodeError
    from millpond.plan.executor import check_supported
    from millpond.plan.run import engine_named

    if settings.engine != "auto":
        return "the setting `engine` says so"
    try:
        check_supported(plan, engine_named("arrow"))
    except UnsupportedNodeError as error:
        return f"{error.node} runs only there"
    except UnsupportedExpressionError as error:
        return f"{error.function} runs only there"
    return "it can run all of this plan, and has nothing to start"


def log_engine(engine: str | Executor, settings: Settings | None = None) -> str | Executor:
    """The engine for logs, which are small: `auto` reads them in this process.

    By one thread: how much memory a log takes does not depend on how many files it is in. Commits
    that were read for protocol and metadata are kept for who asks this engine for files.
    """
    from millpond.base.settings import Settings as Loaded

    if not isinstance(engine, str):
        return engine
    if engine not in ("auto", "arrow"):
        return engine if settings is None else _made(engine, settings)
    known = settings or Loaded.load()
    one = replace(known, arrow=replace(known.arrow, threads=1))
    return _made("arrow", one, keep_bytes=_KEPT_BYTES)


def is_arrow(engine: str | Executor) -> bool:
    """Whether rows are read in this process."""
    return (engine if isinstance(engine, str) else engine.name) in ("arrow", "auto")


def _made(name: str, settings: Settings, **how: Any) -> Executor:
    from millpond.plan.plugins import ENGINES

    make: Any = ENGINES.get(name)
    made: Executor = make(settings=settings, **how)
    return made

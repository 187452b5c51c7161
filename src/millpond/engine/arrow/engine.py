"""`ArrowEngine`: runs plans in this process, as they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millpond.base.settings import ArrowSettings, Settings
from millpond.engine.arrow.source.unused import Unused
from millpond.plan.executor import Capabilities, check_supported, resolve_stored

if TYPE_CHECKING:
    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.execution import ArrowExecution
    from millpond.plan.executor import Scope
    from millpond.plan.node import Plan


@dataclass(frozen=True)
class ArrowEngine:
    """The engine of this process: vectorised, streaming, in bounded memory.

    >>> from millpond.plan.make import values
    >>> plan = values([{"a": 1}, {"a": 2}, {"a": 3}]).tail(2)
    >>> [batch.to_pylist() for batch in ArrowEngine().execute(plan)]
    [[{'a': 2}, {'a': 3}]]
    """

    settings: Settings = field(default_factory=Settings.load)
    max_group_keys: int | None = None
    """More groups than this are a `BudgetExceededError`; None is no limit."""
    keep_bytes: int = 0
    """So much of small files that were read and not needed is kept for a run that needs it.

    That is for who reads files that never change, twice, and has an engine of its own."""
    _unused: Unused = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_unused", Unused(self.keep_bytes))

    @property
    def name(self) -> str:
        """`arrow`."""
        return "arrow"

    @property
    def capabilities(self) -> Capabilities:
        """All nodes but SQL texts and window functions."""
        from millpond.engine.arrow.compile import NODES
        from millpond.engine.arrow.eval import ARROW_FUNCTIONS

        return Capabilities(NODES, frozenset(ARROW_FUNCTIONS))

    def execute(self, plan: Plan, scope: Scope | None = None) -> ArrowExecution:
        """Run the plan; batches come in the order of the plan's rows."""
        from millpond.engine.arrow.compile import compile_plan
        from millpond.engine.arrow.execution import ArrowExecution

        resolved = self._checked(plan, scope)
        context = self._context()
        return ArrowExecution(resolved, compile_plan(resolved, context), context)

    def execute_parallel(self, plan: Plan, scope: Scope | None = None) -> ArrowExecution:
        """Run the plan. Here the order is kept all the same: giving it up would save nothing."""
        return self.execute(plan, scope)

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        """The operators that would run, one a line. Nothing is opened: footers decide later."""
        from millpond.engine.arrow.compile import compile_plan
        from millpond.engine.arrow.explain import format_operators

        return format_operators(compile_plan(self._checked(plan, scope), self._context()))

    def _checked(self, plan: Plan, scope: Scope | None) -> Plan:
        resolved = resolve_stored(plan, scope)
        check_supported(resolved, self)
        return resolved

    def _context(self) -> Context:
        from millpond.engine.arrow.context import Context
        from millpond.engine.arrow.source.files import Files
        from millpond.plan.counters import Counters

        settings: ArrowSettings = self.settings.arrow
        files = Files(self.settings, self._unused)
        return Context(settings, Counters.begin(), files, self.max_group_keys)

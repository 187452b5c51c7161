"""What an engine is to a plan: the `Executor` protocol, the scope it reads in, what a run tells.

The protocol lives beside the plan, so that whoever makes plans and whoever runs them never import
each other. Engines are found by name through the entry points `millpond.engines`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from millpond.base.errors import PlanError, UnsupportedExpressionError, UnsupportedNodeError
from millpond.plan.arguments import wrong
from millpond.plan.codec import expressions_of
from millpond.plan.sources import Stored
from millpond.plan.text import shorten
from millpond.plan.tree import topological, transform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from millpond.plan.counters import Counters
    from millpond.plan.node import Plan


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can run: node kinds, and functions of expressions by name."""

    nodes: frozenset[str]
    functions: frozenset[str]
    distributed: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of one step of a run: a node of the plan, or a step of the engine's own.

    `node` is the node's number in `topological(plan)` of the executed plan, children first.
    """

    name: str
    node: int | None = None
    rows: int | None = None
    batches: int | None = None
    seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Scope(Protocol):
    """A pinned version of a pond: it says what a stored path's rows are."""

    def resolve(self, stored: Stored) -> Plan:
        """A plan of the same schema that reads that path in this scope."""


@runtime_checkable
class Execution(Protocol):
    """A run: an iterator of Arrow record batches that can be closed early."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch; it is there before the first one."""

    @property
    def counters(self) -> Counters:
        """What this run has done so far."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def __next__(self) -> pa.RecordBatch: ...

    def cancel(self) -> None:
        """Stop, from any thread: who waits for a batch soon gets a `RunCancelledError`."""

    def close(self) -> None:
        """Stop and release everything; closing twice is harmless."""

    def observations(self) -> tuple[Observation, ...]:
        """What was seen of each step so far."""


@runtime_checkable
class Executor(Protocol):
    """An engine. It runs a plan as it stands: optimizing is the caller's choice."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can run; known without starting anything."""

    def execute(self, plan: Plan, scope: Scope | None = None) -> Execution:
        """Run the plan; batches come in the order of the plan's rows."""

    def execute_parallel(self, plan: Plan, scope: Scope | None = None) -> Execution:
        """Run the plan; rows may come in any order."""

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        """The engine's own view of how it would run the plan, without reading data."""


AnyEngine: TypeAlias = str | Executor | None
"""An engine's name, an engine, or None, which is `auto`."""


def resolve_stored(plan: Plan, scope: Scope | None) -> Plan:
    """The plan with every stored path exchanged for what the scope says it is, to the bottom."""
    done: dict[Stored, Plan] = {}
    within: dict[str, None] = {}
    open_: list[tuple[Stored | None, Plan, Iterator[Stored]]] = [(None, plan, _stored(plan))]
    while True:
        name, body, todo = open_[-1]
        missing = next((node for node in todo if node not in done), None)
        if missing is not None:
            if missing.path in within:
                shown = " -> ".join((*within, missing.path))
                raise PlanError(f"a stored path is defined by itself: {shown}")
            within[missing.path] = None
            found = _answer(missing, scope)
            open_.append((missing, found, _stored(found)))
            continue
        resolved = transform(body, lambda node: done[node] if isinstance(node, Stored) else node)
        open_.pop()
        if name is None:
            return resolved
        done[name] = resolved
        del within[name.path]


def _stored(plan: Plan) -> Iterator[Stored]:
    return (node for node in topological(plan) if isinstance(node, Stored))


def _answer(node: Stored, scope: Scope | None) -> Plan:
    if scope is None:
        raise PlanError(
            f"{node.path} is a path of a pond, but no scope was given",
            hint="run the plan with scope=pond.read()",
        )
    if not isinstance(scope, Scope):
        raise wrong("scope", "a pinned version of a pond", scope, hint="scope=pond.read()")
    found = scope.resolve(node)
    if found.schema != node.schema:
        raise PlanError(
            shorten(f"{node.path} has {found.schema} in this scope, not {node.schema}", 1000)
        )
    return found


def can_run(plan: Plan, executor: Executor) -> bool:
    """Whether an engine knows every node and every function of a plan."""
    try:
        check_supported(plan, executor)
    except (UnsupportedNodeError, UnsupportedExpressionError):
        return False
    return True


def check_supported(plan: Plan, executor: Executor) -> None:
    """Refuse a plan with a node or a function that the engine does not know."""
    known = executor.capabilities
    for node in topological(plan):
        if node.kind not in known.nodes and not isinstance(node, Stored):
            raise UnsupportedNodeError(node.kind, executor.name)
        for function in expressions_of(node):
            if function not in known.functions:
                raise UnsupportedExpressionError(function, executor.name)

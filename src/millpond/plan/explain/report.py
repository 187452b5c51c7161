"""What `explain_analyze` returns: what was observed, beside what was estimated."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millpond.plan.cost.numbers import show_rows
from millpond.plan.explain.layout import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.executor import Observation
    from millpond.plan.node import Plan


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node: the rows that were expected of it and what was seen; None was not seen."""

    id: int
    kind: str
    estimated_rows: float | None
    rows: int | None = None
    batches: int | None = None
    seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with stable keys."""
        return {
            "id": self.id,
            "kind": self.kind,
            "estimated_rows": self.estimated_rows,
            "rows": self.rows,
            "batches": self.batches,
            "seconds": self.seconds,
            "details": dict(self.details),
        }

    def to_text(self) -> str:
        """What goes behind the node's line."""
        seen = "not seen" if self.rows is None else show_rows(self.rows)
        parts = [f"{seen}, {show_rows(self.estimated_rows)} estimated"]
        if self.batches is not None:
            parts.append(f"{self.batches} batch{'' if self.batches == 1 else 'es'}")
        if self.seconds is not None:
            parts.append(f"{self.seconds * 1000:.1f} ms")
        parts += [f"{name} {value}" for name, value in self.details.items()]
        return f"  [{', '.join(parts)}]"


@dataclass(frozen=True, slots=True)
class AnalyzeReport:
    """One run of a plan. `partial` says what stopped it early; None when it ran to its end."""

    plan: Plan
    engine: str
    reason: str
    nodes: tuple[NodeReport, ...]
    engine_steps: tuple[Observation, ...]
    counters: Mapping[str, int]
    rows: int
    batches: int
    seconds: float
    partial: str | None = None
    format: Literal["text", "json"] = "text"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `partial, engine, rows, batches, seconds, nodes, engine_steps, counters`."""
        return {
            "partial": self.partial,
            "engine": {"name": self.engine, "reason": self.reason},
            "rows": self.rows,
            "batches": self.batches,
            "seconds": self.seconds,
            "nodes": [node.to_dict() for node in self.nodes],
            "engine_steps": [_step_data(step) for step in self.engine_steps],
            "counters": dict(self.counters),
        }

    def to_text(self) -> str:
        """The report as text; its first line says whether it is about the whole run."""
        head = f"PARTIAL: {self.partial}" if self.partial else "Complete"
        batches = f"{self.batches} batch{'' if self.batches == 1 else 'es'}"
        lines = [
            head,
            f"  {show_rows(self.rows)} in {batches}, {self.seconds * 1000:.1f} ms",
            "",
            "Plan",
            *(f"  {line}" for line in layout(self.plan, self._suffixes())),
        ]
        if self.engine_steps:
            lines += ["", "Steps of the engine", *(f"  {_step_text(s)}" for s in self.engine_steps)]
        counted = {name: value for name, value in self.counters.items() if value}
        lines += ["", "Counters", *(f"  {name} {value:,}" for name, value in counted.items())]
        return "\n".join([*lines, "", "Engine", f"  {self.reason}"])

    def __str__(self) -> str:
        if self.format == "json":
            return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, default=str)
        return self.to_text()

    def _suffixes(self) -> dict[int, str]:
        return {node.id: node.to_text() for node in self.nodes}


def _step_data(step: Observation) -> dict[str, Any]:
    return {
        "name": step.name,
        "rows": step.rows,
        "batches": step.batches,
        "seconds": step.seconds,
        "details": dict(step.details),
    }


def _step_text(step: Observation) -> str:
    parts = [] if step.rows is None else [show_rows(step.rows)]
    if step.seconds is not None:
        parts.append(f"{step.seconds * 1000:.1f} ms")
    parts += [f"{name} {value}" for name, value in step.details.items()]
    return f"{step.name}: {', '.join(parts)}" if parts else step.name

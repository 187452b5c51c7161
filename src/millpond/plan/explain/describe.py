"""`explain`: what a plan does, how it was optimized, what it reads and who runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from millpond.base.errors import PlanError
from millpond.base.unsaid import masked
from millpond.plan.choose import choose
from millpond.plan.cost import Estimate, estimate_nodes
from millpond.plan.cost.numbers import show_bytes, show_cost, show_rows
from millpond.plan.executor import resolve_stored
from millpond.plan.explain.decode import decodings
from millpond.plan.explain.layout import layout
from millpond.plan.explain.notes import order_notes
from millpond.plan.optimizer import optimize, optimize_steps
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.executor import AnyEngine, Scope
    from millpond.plan.node import Plan


def explain(
    plan: Plan,
    *,
    logical: bool = True,
    optimized: bool = True,
    physical: bool = False,
    decode: bool = True,
    costs: bool = False,
    steps: bool = False,
    engine: AnyEngine = "auto",
    format: Literal["text", "json"] = "text",  # noqa: A002
    scope: Scope | None = None,
    reason: str | None = None,
) -> str:
    """Describe what would happen, without reading any data.

    The package's docstring lists the JSON keys. `reason` says why this engine was given.
    """
    check_format(format)
    known = plan if scope is None else resolve_stored(plan, scope)
    final = optimize(known)
    choice = choose(final, engine, scope=scope)
    sections: dict[str, Any] = {}
    texts: list[tuple[str, list[str]]] = []

    def add(key: str, title: str, data: Any, lines: list[str]) -> None:
        sections[key] = data
        texts.append((title, lines))

    if logical:
        add("logical", "Logical plan", nodes_of(plan, costs=costs), _drawn(plan, costs=costs))
    if steps:
        add("steps", "Steps", *_steps(known, costs=costs))
    if optimized:
        add("optimized", "Optimized plan", nodes_of(final, costs=costs), _drawn(final, costs=costs))
    if decode:
        found = decodings(final, known)
        data = [item.to_dict() for item in found]
        add("decode", "Decode", data, [item.to_text() for item in found])
    notes = order_notes(final)
    order = [{"node": number, "kind": kind, "note": note} for number, kind, note in notes]
    add("order", "Order", order, [f"#{number} {kind} {note}" for number, kind, note in notes])
    why = choice.reason if reason is None else f"{choice.name}: {reason}"
    add("engine", "Engine", {"name": choice.name, "reason": why}, [why])
    if physical:
        text = choice.executor.explain(final, scope)
        add("physical", f"Physical plan ({choice.name})", text, text.splitlines())
    if format == "json":
        return json.dumps(masked(sections), ensure_ascii=False, indent=2)
    return "\n\n".join(_section(title, masked(lines)) for title, lines in texts if lines)


def check_format(format: str) -> None:  # noqa: A002
    """Refuse a format that explain does not write."""
    if format not in ("text", "json"):
        raise PlanError(f"explain writes text or json, not {format!r}")


def nodes_of(plan: Plan, *, costs: bool) -> list[dict[str, Any]]:
    """The nodes as plain data, children first."""
    order = topological(plan)
    numbers = {id(node): number for number, node in enumerate(order)}
    estimates = estimate_nodes(plan) if costs else ()
    nodes: list[dict[str, Any]] = []
    for number, node in enumerate(order):
        inputs = [numbers[id(child)] for child in node.children]
        item = {"id": number, "kind": node.kind, "inputs": inputs, "label": node.label()}
        nodes.append(item | ({"estimate": estimate_data(estimates[number])} if costs else {}))
    return nodes


def estimate_data(item: Estimate) -> dict[str, Any]:
    """An estimate as plain data."""
    return {
        "rows": item.rows,
        "bytes_read": item.bytes_read,
        "files": item.files,
        "row_groups": item.row_groups,
        "cpu_per_row": item.cpu_per_row,
        "cost": item.cost,
        "total_cost": item.total_cost,
    }


def _drawn(plan: Plan, *, costs: bool) -> list[str]:
    if not costs:
        return layout(plan)
    estimates = enumerate(estimate_nodes(plan))
    return layout(plan, {number: f"  [{_priced(item)}]" for number, item in estimates})


def _priced(item: Estimate) -> str:
    read = f", reads {show_bytes(item.bytes_read)}" if item.bytes_read != 0 else ""
    return (
        f"{show_rows(item.rows)}{read}, {show_cost(item.cost)}, {show_cost(item.total_cost)} in all"
    )


def _steps(plan: Plan, *, costs: bool) -> tuple[list[dict[str, Any]], list[str]]:
    data: list[dict[str, Any]] = []
    lines: list[str] = []
    for number, step in enumerate(optimize_steps(plan), start=1):
        data.append({"rule": step.rule, "plan": nodes_of(step.after, costs=costs)})
        lines.append(f"{number}. {step.rule}")
        lines.extend(f"   {line}" for line in layout(step.after))
    return data, lines


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])

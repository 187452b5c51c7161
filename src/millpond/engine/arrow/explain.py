"""Operators as text: one a line, inputs indented below, no recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.engine.arrow.operator import Operator

_DEEPEST = 60
"""Beyond this depth lines are no longer indented: a chain of 10,000 stays readable."""


def format_operators(root: Operator) -> str:
    """The operators below and including this one."""
    lines: list[str] = []
    stack: list[tuple[Operator, int]] = [(root, 0)]
    while stack:
        operator, depth = stack.pop()
        number = "" if operator.node is None else f"#{operator.node} "
        lines.append("  " * min(depth, _DEEPEST) + number + operator.describe())
        stack.extend((child, depth + 1) for child in reversed(operator.inputs))
    return "\n".join(lines)

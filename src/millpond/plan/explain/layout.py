"""A plan as an indented text, the root first.

A chain stays at one indentation however long it is; only the inputs of a node with several go one
step in. What two nodes share is drawn once and referred to by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.node import Plan

DEEPEST = 24
"""Beyond this, branches are no longer moved to the right."""


def layout(plan: Plan, suffixes: Mapping[int, str] | None = None) -> list[str]:
    """The lines of a plan; `suffixes` go behind a node's line, by its number.

    >>> from millpond.plan.make import values
    >>> rows = values([{"a": 1}])
    >>> print("\\n".join(layout(rows.head(1).union(rows.sort("a")).tail(2))))
    #4 Tail 2
    #3 Union
      - #1 Head 1
        #0 Values [1 rows] (a: long)
      - #2 Sort a
        #0 (see above)
    """
    numbers = {id(node): number for number, node in enumerate(topological(plan))}
    seen: set[int] = set()
    lines: list[str] = []
    todo: list[tuple[Plan, int, bool]] = [(plan, 0, False)]
    while todo:
        node, depth, begins = todo.pop()
        number = numbers[id(node)]
        margin = "    " * min(depth, DEEPEST)
        if depth:
            margin = margin[:-2] + ("- " if begins else "  ")
        if id(node) in seen:
            lines.append(f"{margin}#{number} (see above)")
            continue
        seen.add(id(node))
        label = node.label()
        text = f"{margin}#{number} {node.kind}{f' {label}' if label else ''}"
        lines.append(text + (suffixes or {}).get(number, ""))
        branches = len(node.children) > 1
        below = depth + 1 if branches else depth
        todo.extend((child, below, branches) for child in reversed(node.children))
    return lines

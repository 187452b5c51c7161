"""What the order of rows costs, node by node: what is held, and what can't be done in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.cost.estimate import POSITION_BYTES
from millpond.plan.cost.sizes import width
from millpond.plan.order import Shuffle, Sort, Tail, TopK
from millpond.plan.rows import Aggregate, FilterOrdered, Join
from millpond.plan.streams import Sql, StatefulFunction, Window
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def order_notes(plan: Plan) -> tuple[tuple[int, str, str], ...]:
    """The number, the kind and the note of each node that has something to say.

    >>> from millpond.plan.make import values
    >>> order_notes(values([{"a": 1}]).sort("a"))
    ((1, 'Sort', 'keeps 16 bytes a row besides 8 of its keys'),)
    """
    found = []
    for number, node in enumerate(topological(plan)):
        note = _note(node)
        if note is not None:
            found.append((number, node.kind, note))
    return tuple(found)


def _note(node: Plan) -> str | None:
    if isinstance(node, Sort):
        keys = sum(width(key.expr.type) for key in node.keys)
        return f"keeps {POSITION_BYTES} bytes a row besides {keys} of its keys"
    if isinstance(node, Shuffle):
        return f"keeps {POSITION_BYTES} bytes a row"
    if isinstance(node, TopK | Tail):
        return f"keeps {node.n:,} rows"
    if isinstance(node, Join):
        return "keeps the rows of the right side"
    if isinstance(node, Aggregate) and node.keys:
        return "keeps a row a group; groups come in the order of their keys"
    if isinstance(node, FilterOrdered):
        return "sees every row in order: one partition"
    if isinstance(node, StatefulFunction):
        alone = [m.name for m in node.mappings if not m.partition_by]
        return f"global order without keys ({', '.join(alone)}): one partition" if alone else None
    if isinstance(node, Window):
        alone = [call.name for call in node.calls if not call.partition_by]
        return f"a window without keys ({', '.join(alone)}): one partition" if alone else None
    return "row order is what its own ORDER BY says" if isinstance(node, Sql) else None

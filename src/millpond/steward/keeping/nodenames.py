"""Where nodes are, or were: paths out of all rows of a pond, also of what was removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.fs.entry import MOVED_TO, ROOT
from millpond.fs.paths import join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.fs.entry import Row


class NodeNames:
    """The last path of every node."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._last: dict[str, Row] = {}
        for row in rows:
            known = self._last.get(row.node_id)
            # A node that was moved has two rows of one transaction: where it went counts.
            if MOVED_TO not in row.attributes and (known is None or row.txn_seq >= known.txn_seq):
                self._last[row.node_id] = row

    def path(self, node_id: str) -> str:
        """The path of a node; what was removed says so."""
        names: list[str] = []
        is_gone, seen = False, set[str]()
        while node_id != ROOT and node_id not in seen:
            seen.add(node_id)
            row = self._last.get(node_id)
            if row is None:
                names.append("?")
                break
            names.append(row.name)
            is_gone = is_gone or row.removed
            node_id = row.part_id
        return join(*reversed(names)) + (" (removed)" if is_gone else "")

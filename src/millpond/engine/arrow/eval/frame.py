"""The rows that an expression looks at: a batch, the elements of lists, or some rows of either.

A frame remembers what was computed on it. A branch of a condition is computed on `select(indices)`,
a frame of the rows that take it, which copies only the columns that the branch reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.engine.arrow.eval.paths import walk

if TYPE_CHECKING:
    from millpond.engine.arrow.eval.program import Program
    from millpond.engine.arrow.eval.values import Value
    from millpond.plan.bound import BoundExpr, BoundPath


class Frame:
    """All rows of a batch, or all elements of some lists, with what was computed on them."""

    __slots__ = ("inside", "length", "memo", "program", "source")

    def __init__(self, program: Program, source: pa.RecordBatch | pa.Array, length: int) -> None:
        self.program = program
        self.source = source
        self.length = length
        self.memo: dict[int, Value] = {}
        self.inside: dict[int, Frame] = {}

    def select(self, indices: pa.Array) -> Frame:
        """A frame of these rows only."""
        return Selection(self, self, indices, indices)

    def elements(self, lists: BoundExpr, values: pa.Array) -> Frame:
        """A frame whose rows are the elements of a node's lists; the same one each time."""
        found = self.inside.get(id(lists))
        if found is None:
            found = self.inside[id(lists)] = Frame(self.program, values, len(values))
        return found

    def known(self, node: BoundExpr) -> Value | None:
        """The value of a node that was computed here before."""
        return self.memo.get(id(node))

    def remember(self, node: BoundExpr, value: Value) -> None:
        """Keep the value of a node that is used again; the others are dropped to save memory."""
        if id(node) in self.program.shared:
            self.memo[id(node)] = value

    def path(self, node: BoundPath) -> pa.Array:
        """What a path leads to, a value a row."""
        found = self.memo.get(id(node))
        if found is None:
            found = self.memo[id(node)] = walk(node, self.source)
        return found


class Selection(Frame):
    """Some rows of another frame."""

    __slots__ = ("base", "indices", "local", "parent")

    def __init__(self, parent: Frame, base: Frame, indices: pa.Array, local: pa.Array) -> None:
        super().__init__(base.program, base.source, len(indices))
        self.parent = parent
        self.base = base
        self.indices = indices
        """The rows, as rows of the base: paths are taken in one step however deep branches nest."""
        self.local = local
        """The same rows, as rows of the parent."""

    def select(self, indices: pa.Array) -> Frame:
        """A frame of these rows only."""
        return Selection(self, self.base, self.indices.take(indices), indices)

    def known(self, node: BoundExpr) -> Value | None:
        """The value of a node that was computed here, or where these rows were taken from."""
        found = self.memo.get(id(node))
        if found is None:
            found = self.parent.memo.get(id(node))
            if found is not None and not isinstance(found, pa.Scalar):
                found = self.memo[id(node)] = found.take(self.local)
        return found

    def path(self, node: BoundPath) -> pa.Array:
        """What a path leads to, for these rows."""
        found = self.memo.get(id(node))
        if found is None:
            found = self.memo[id(node)] = self.base.path(node).take(self.indices)
        return found

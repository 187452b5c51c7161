"""One walk for plans and expressions: children first, shared nodes once, no recursion."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar

from millpond.plan.tree import Tree, topological

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T", bound=Tree)
T_contra = TypeVar("T_contra", bound=Tree, contravariant=True)
_Step: TypeAlias = tuple[Literal["enter", "open", "visit", "share"], T, int, int]
NO_LIST: Final = -1


class Sink(Protocol[T_contra]):
    """What the walk calls: a visitor seen from the side of one kind of tree."""

    def make_list(self, reserve: int) -> int:
        """A new list of the engine."""

    def is_worth_sharing(self, node: T_contra) -> bool:
        """Whether a node with several parents is visited once, not once for each of them."""

    def is_leaf(self, node: T_contra) -> bool:
        """Whether the node is of a kind that never has children, so that no list is made."""

    def visit(self, node: T_contra, siblings: int, children: int) -> None:
        """A node whose children stand in a list; a leaf gets `NO_LIST`."""

    def share(self, siblings: int, shared: int) -> None:
        """A node that was visited before, into a list of its own."""


def walk(roots: Sequence[tuple[T, int]], sink: Sink[T]) -> None:
    """Visit trees, each into its list of siblings. What they share is visited once."""
    parents = _count_parents([root for root, _ in roots])
    shared: dict[int, int] = {}
    todo: list[_Step[T]] = [("enter", root, into, NO_LIST) for root, into in reversed(roots)]
    while todo:
        action, node, siblings, children = todo.pop()
        if action == "enter" and parents[id(node)] > 1 and sink.is_worth_sharing(node):
            own = shared.get(id(node))
            if own is None:
                own = shared[id(node)] = sink.make_list(1)
                todo.append(("share", node, siblings, own))
                todo.append(("open", node, own, NO_LIST))
            else:
                sink.share(siblings, own)
        elif action in ("enter", "open"):
            if sink.is_leaf(node):
                sink.visit(node, siblings, NO_LIST)
                continue
            below = node.children
            children = sink.make_list(len(below))
            todo.append(("visit", node, siblings, children))
            todo.extend(("enter", child, children, NO_LIST) for child in reversed(below))
        elif action == "visit":
            sink.visit(node, siblings, children)
        else:
            sink.share(siblings, children)


def _count_parents(roots: Sequence[T]) -> Counter[int]:
    parents: Counter[int] = Counter(map(id, roots))
    seen: set[int] = set()
    for root in roots:
        if id(root) in seen:
            continue
        for node in topological(root):
            if id(node) not in seen:
                seen.add(id(node))
                parents.update(map(id, node.children))
    return parents

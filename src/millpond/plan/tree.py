"""What plans and bound expressions share: identity by content, and walks that never recurse.

A `Tree` is compared and hashed by its digest, which `codec.py` computes from its wire form, so that
a chain of 10,000 nodes can be compared, hashed, rewritten and printed without a stack overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T", bound="Tree")


class Tree:
    """A node of an immutable DAG."""

    __slots__ = ("_digest",)
    _digest: bytes

    @property
    def children(self) -> tuple[Any, ...]:
        """The nodes of the same kind right below this one, in order."""
        return ()

    def with_children(self, children: tuple[Any, ...]) -> Any:
        """A copy over other children; only called for nodes that have some."""
        raise AssertionError(f"{type(self).__name__} has no children to replace: {children}")

    @property
    def digest(self) -> bytes:
        """16 bytes that are equal for equal content, in every process and on every machine."""
        try:
            return self._digest
        except AttributeError:
            from millpond.plan.codec import compute_digest

            digest = compute_digest(self)
            object.__setattr__(self, "_digest", digest)
            return digest

    @property
    def fingerprint(self) -> str:
        """The digest as text."""
        return self.digest.hex()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.digest == other.digest if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return int.from_bytes(self.digest[:8], "big", signed=True)

    def __reduce__(self) -> tuple[object, ...]:
        from millpond.plan.codec import dumps, loads

        return loads, (dumps(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo  # what can't change needs no second copy
        return self


def topological(root: T) -> list[T]:
    """Every node once, children before parents, the root last."""
    if not root.children:
        return [root]
    order: list[T] = []
    done: set[int] = set()
    entered: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        key = id(node)
        if key not in done:
            children = node.children
            if children and key not in entered:
                entered.add(key)
                stack.extend(reversed(children))
                continue
            done.add(key)
            order.append(node)
        stack.pop()
    return order


def transform(root: T, function: Callable[[T], T]) -> T:
    """Rebuild from the leaves up: each node, over its new children, goes through `function`.

    What does not change keeps its identity, so an unchanged tree is returned as it is.
    """
    built: dict[int, T] = {}
    for node in topological(root):
        old = node.children
        new = tuple(built[id(child)] for child in old)
        changed = any(a is not b for a, b in zip(old, new, strict=True))
        built[id(node)] = function(node.with_children(new) if changed else node)
    return built[id(root)]


def replace(root: T, old: T, new: T) -> T:
    """The tree with every occurrence of `old` (by content) exchanged for `new`."""
    # Digests, not `==`: that builds an expression where trees are unbound expressions.
    wanted = old.digest
    return transform(root, lambda node: new if node.digest == wanted else node)


def find(root: T, accept: Callable[[T], bool]) -> Iterator[T]:
    """The nodes that `accept` likes, children before parents."""
    return (node for node in topological(root) if accept(node))

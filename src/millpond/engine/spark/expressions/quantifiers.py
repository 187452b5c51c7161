"""Questions about the elements of a list, asked so that Spark has less to do for each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from millpond.plan.bound import BoundCall, BoundLiteral, BoundPath, BoundQuantifier
from millpond.plan.paths import Name
from millpond.plan.tree import topological, transform
from millpond.plan.types import DataType, List, Struct

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr


class Question(NamedTuple):
    """What is asked of the elements, or of the member of each that these names lead to."""

    members: tuple[str, ...]
    element: DataType
    predicate: BoundExpr


def question_of(node: BoundQuantifier) -> Question:
    """A predicate that looks at one member alone is asked of a list of those members.

    Spark takes that list out of the column in one go; a row for each element, from which a lambda
    would take the member, costs more than the rest. A null element has a null member.
    """
    assert isinstance(node.list.type, List)
    found = Question((), node.list.type.element, node.predicate)
    if any(isinstance(inside, BoundQuantifier) for inside in topological(node.predicate)):
        return found
    while isinstance(found.element, Struct):
        member = _shared_member(found.predicate)
        if member is None:
            break
        found = Question(
            (*found.members, member),
            found.element.field(member).type,
            transform(found.predicate, _without_first),
        )
    return found


def _shared_member(predicate: BoundExpr) -> str | None:
    """The member of the element through which all its paths lead."""
    inside = topological(predicate)
    paths = [node for node in inside if isinstance(node, BoundPath) and node.scope == "element"]
    firsts = {path.steps[0] if path.steps else None for path in paths}
    if len(firsts) != 1:
        return None
    first = firsts.pop()
    return first.name if isinstance(first, Name) else None


def _without_first(node: BoundExpr) -> BoundExpr:
    if isinstance(node, BoundPath) and node.scope == "element":
        return replace(node, steps=node.steps[1:])
    return node


def sought_element(kind: str, test: BoundExpr) -> BoundLiteral | None:
    """The literal of `any(list, element = literal)`; None if it is another question."""
    if kind != "any" or not isinstance(test, BoundCall) or test.function != "eq":
        return None
    paths = [arg for arg in test.args if isinstance(arg, BoundPath) and not arg.steps]
    given = [arg for arg in test.args if isinstance(arg, BoundLiteral) and arg.value is not None]
    return given[0] if len(paths) == len(given) == 1 else None

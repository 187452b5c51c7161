"""`Plan`, the base of every node. The nodes stand in `sources`, `rows`, `order` and `streams`.

A node is a frozen dataclass. It computes its schema when it is built and refuses what can't be, so
an invalid plan never exists. `label()` is what explain shows of it; `codec.py` reads its fields for
the wire form and the digest. How to add one: CONTRIBUTING.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from millpond.base.unsaid import masked
from millpond.plan.builders import Builders
from millpond.plan.runner import Runner
from millpond.plan.text import format_plan, one_line, shorten
from millpond.plan.tree import Tree

if TYPE_CHECKING:
    from millpond.plan.types import Struct

NODES: dict[str, type[Plan]] = {}
"""Every node class by its kind."""


class Plan(Builders, Runner, Tree):
    """What is to be computed, as an immutable DAG. It knows no engine and no snapshot."""

    __slots__ = ("_schema",)
    kind: ClassVar[str] = ""
    _schema: Struct

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = cls.__name__
        NODES[cls.kind] = cls

    @property
    def schema(self) -> Struct:
        """The columns of the rows that this plan gives."""
        return self._schema

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The plans whose rows this node takes."""
        return self.children

    def label(self) -> str:
        """What this node does, on one line, without its inputs."""
        return ""

    def _set_schema(self, schema: Struct) -> None:
        object.__setattr__(self, "_schema", schema)

    def __str__(self) -> str:
        return str(masked(format_plan(self)))

    def __repr__(self) -> str:
        label = masked(one_line(self.label()))
        return f"<{shorten(f'{self.kind} {label}'.rstrip())}>"


class Unary:
    """A node over one plan, in its field `input`."""

    __slots__ = ()
    input: Plan

    @property
    def children(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)

    def with_children(self, children: tuple[Plan, ...]) -> Any:
        """A copy over another input."""
        from dataclasses import replace

        return replace(self, input=children[0])  # type: ignore[type-var]

"""`Reading`: what a factory sees of a pond while it computes: one version of it, and what is kept.

The steward makes it for a scope. A factory never sees the pond itself, so what it gives depends on
its configuration and on what it has read, and on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from millpond.fs.entry import EntryType
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.provider.kept import Kept
    from millpond.provider.rows import Rows


FEW_ROWS = 200_000
"""So many are summed up here before a job of Spark has begun."""


@dataclass(frozen=True, slots=True)
class Match:
    """A path that a pattern names, and what its wildcards stand for there."""

    path: str
    captures: tuple[str, ...]
    kind: EntryType


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a path without computing it."""

    size: int | None
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class Exported:
    """Where an export puts a path, below its directory, with `/` between names."""

    place: str
    """A file, or a directory, which ends with a slash."""
    files: tuple[str, ...]


class Reading(Protocol):
    """One version of a pond, as the factory of one node sees it."""

    @property
    def path(self) -> str:
        """The node that is being computed; relative references begin in its directory."""
        ...

    @property
    def variables(self) -> Mapping[str, str]:
        """What `-v key=value` says."""
        ...

    @property
    def kept(self) -> Kept:
        """Results that were kept."""
        ...

    def match(self, url: str) -> list[Match]:
        """The paths that a URL names, in the order of their names; there may be none."""
        ...

    def rows(self, url: str, match: Match) -> Rows:
        """The rows of one of them, read as the URL says."""
        ...

    def united(self, url: str, matches: Sequence[Match] | None = None) -> Rows:
        """The rows of all of them, by the names of columns."""
        ...

    @property
    def computes(self) -> bool:
        """Whether what is missing is computed and kept; else its plan is only to be shown."""
        ...

    @property
    def is_on_spark(self) -> bool:
        """Whether Spark runs plans, which takes many rows at once better than many times some."""
        ...

    def run(
        self, plan: Plan, *, ordered: bool = True, here: bool = False
    ) -> Iterable[pa.RecordBatch]:
        """The rows of a plan, on the engine that suits it; in any order if that does not matter.

        `here` is for what has few rows to read: it is done in this process, if it can be.
        """
        ...

    def run_into(self, plan: Plan, parts: Parts) -> Iterable[pa.RecordBatch] | None:
        """Have the engine write rows into files, and tell them; None if it can't."""
        ...

    @property
    def exported(self) -> Mapping[str, Exported]:
        """Where paths are put by the export that asks; nothing, if none does."""
        ...

    def facts(self, url: str, match: Match) -> Facts:
        """What is known of one of them."""
        ...

    def content(self, match: Match) -> bytes:
        """The bytes of one of them."""
        ...

    def transformed(self, plan: Plan, transforms: Sequence[object]) -> Plan:
        """Rows after transforms: paths of nodes, or `{factory: …, config: …}`."""
        ...

    def transforms_key(self, transforms: Sequence[object]) -> str:
        """Names what transforms do: it changes when one of them does."""
        ...

    def at(self, path: str) -> Reading:
        """The same for another node: who computes that can't ask for this one again."""
        ...

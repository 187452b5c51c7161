"""Where rows are kept: what `memory` and `oplog` promise. `millpond.testing.fs` holds it as tests.

A commit takes the rows of one transaction and makes them the next tree, all of them or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from millpond.base.errors import TransactionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree


@dataclass(frozen=True, slots=True)
class Commit:
    """What a transaction says of itself, beside its rows."""

    txn_id: str
    info: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Persistence(Protocol):
    """Rows of transactions in their order."""

    def latest(self) -> Tree:
        """The pond as it is now."""
        ...

    def refresh(self, tree: Tree) -> Tree:
        """The pond as it is now, reading only what came after a tree; the same one if nothing."""
        ...

    def as_of(self, *, txn_seq: int | None = None, micros: int | None = None) -> Tree:
        """The pond as it was after a transaction, or at a time; it can't be committed behind."""
        ...

    def commit(self, base: Tree, rows: Sequence[Row], commit: Commit) -> Tree | None:
        """Write one transaction behind a tree; None if another one came first.

        Rows get their `txn_seq` and `timestamp` here: later than all before, whatever clocks say.
        """
        ...


def seq_of(txn_seq: int | None, *, last: int) -> int:
    """The number of a transaction that was asked for; None is the last one."""
    if txn_seq is None:
        return last
    if not 0 <= txn_seq <= last:
        raise TransactionNotFoundError(
            f"there is no transaction {txn_seq}",
            hint=f"name one from 0, when the pond was empty, to {last}, the last one",
        )
    return txn_seq

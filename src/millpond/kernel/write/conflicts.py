"""Whether a commit that came between spoils what a transaction relied on: Delta's own rules.

A transaction relies on the protocol and metadata, on the files it read, on predicates by which it
chose them, on its app transactions and its domains. Blind appends rely on nothing that is data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millpond.base.errors import ConflictError
from millpond.kernel.paths import canonical
from millpond.kernel.replay import unique_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.kernel.replay import Key

Isolation = Literal["Serializable", "WriteSerializable", "SnapshotIsolation"]
ISOLATIONS: tuple[Isolation, ...] = ("Serializable", "WriteSerializable", "SnapshotIsolation")


@dataclass(slots=True)
class Reads:
    """What a transaction relied on."""

    files: set[Key] = field(default_factory=set)
    """The files that it read."""
    matches: list[Callable[[Sequence[Mapping[str, Any]]], Sequence[bool]]] = field(
        default_factory=list
    )
    """For each predicate by which it chose files: which of some adds it may concern."""

    @property
    def is_blind(self) -> bool:
        """Whether it read nothing of the table's data."""
        return not self.files and not self.matches


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit that came between, by its actions."""

    version: int
    actions: Mapping[str, Sequence[Mapping[str, Any]]]

    @property
    def is_blind_append(self) -> bool:
        """Whether it says that it only appended without reading."""
        info = self.actions.get("commitInfo") or ({},)
        return info[0].get("isBlindAppend") is True


@dataclass(frozen=True, slots=True)
class Mine:
    """What the transaction is about to commit."""

    removes: frozenset[Key]
    app_ids: frozenset[str]
    domains: frozenset[str]
    changes_metadata: bool
    changes_protocol: bool


def check_conflict(
    winner: Winner, mine: Mine, reads: Reads, isolation: Isolation, table: str
) -> None:
    """Raise if the winner changed what this transaction relied on."""
    _check_table(winner, mine, table)
    _check_names(winner, mine, table)
    removed = {key_of(remove) for remove in winner.actions.get("remove", ())}
    again = removed & mine.removes
    if again:
        raise _conflict(winner, table, f"removed {_shown(again)}, which this one removes, too")
    if isolation == "SnapshotIsolation":
        return
    gone = removed & reads.files
    if gone:
        raise _conflict(winner, table, f"removed {_shown(gone)}, which this one has read")
    ignores_blind = isolation == "WriteSerializable" and not mine.changes_metadata
    if winner.is_blind_append and ignores_blind:
        return
    adds = [add for add in winner.actions.get("add", ()) if _counts(add, winner, isolation)]
    for matches in reads.matches if adds else ():
        hits = [add for add, hit in zip(adds, matches(adds), strict=True) if hit]
        if hits:
            raise _conflict(
                winner, table, f"added {hits[0]['path']}, where this one has looked for rows"
            )


def _counts(add: Mapping[str, Any], winner: Winner, isolation: Isolation) -> bool:
    """Files that were only rearranged bring no new rows."""
    del winner
    return isolation == "Serializable" or add.get("dataChange") is not False


def _check_table(winner: Winner, mine: Mine, table: str) -> None:
    if winner.actions.get("protocol"):
        raise _conflict(winner, table, "changed the protocol")
    if winner.actions.get("metaData"):
        raise _conflict(winner, table, "changed the table's metadata")
    if mine.changes_protocol and winner.actions.get("add"):
        raise _conflict(winner, table, "added files while this one changes the protocol")


def _check_names(winner: Winner, mine: Mine, table: str) -> None:
    for txn in winner.actions.get("txn", ()):
        if txn.get("appId") in mine.app_ids:
            raise _conflict(winner, table, f"wrote for the same application {txn['appId']!r}")
    for domain in winner.actions.get("domainMetadata", ()):
        if domain.get("domain") in mine.domains:
            raise _conflict(winner, table, f"set the same domain {domain['domain']!r}")


def key_of(action: Mapping[str, Any]) -> Key:
    """The file that an add or a remove is about."""
    vector = action.get("deletionVector") or {}
    found = unique_id(vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset"))
    return canonical(action["path"]), found


def _shown(keys: set[Key]) -> str:
    first = min(path for path, _ in keys)
    return first if len(keys) == 1 else f"{first} and {len(keys) - 1} more"


def _conflict(winner: Winner, table: str, what: str) -> ConflictError:
    return ConflictError(
        f"version {winner.version} of {table}, by another writer, {what}",
        table=table,
        version=winner.version,
        hint="open the table anew and try again",
    )

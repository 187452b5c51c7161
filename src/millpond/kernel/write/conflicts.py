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

    from millpond.kernel.commits import Commit
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
class Mine:
    """What the transaction is about to commit."""

    removes: frozenset[Key]
    app_ids: frozenset[str]
    domains: frozenset[str]
    changes_metadata: bool


def check_conflict(
    winner: Commit, mine: Mine, reads: Reads, isolation: Isolation, table: str
) -> None:
    """Raise if the winner changed what this transaction relied on."""
    if winner.actions.get("protocol"):
        raise _conflict(winner, table, "changed the protocol")
    if winner.actions.get("metaData"):
        raise _conflict(winner, table, "changed the table's metadata")
    _check_names(winner, mine, table)
    removed = {key_of(remove) for remove in winner.actions.get("remove", ())}
    again = removed & mine.removes
    if again:
        raise _conflict(winner, table, f"removed {_shown(again)}, which this one removes, too")
    gone = removed & reads.files
    if gone:
        raise _conflict(winner, table, f"removed {_shown(gone)}, which this one has read")
    adds = _adds_that_count(winner, mine, isolation)
    for matches in reads.matches if adds else ():
        hits = [add for add, hit in zip(adds, matches(adds), strict=True) if hit]
        if hits:
            raise _conflict(
                winner, table, f"added {hits[0]['path']}, where this one has looked for rows"
            )


def _adds_that_count(
    winner: Commit, mine: Mine, isolation: Isolation
) -> Sequence[Mapping[str, Any]]:
    """The files that this transaction would have had to look at, had it come after the winner."""
    adds = winner.actions.get("add", ())
    if isolation == "Serializable":
        return adds
    if isolation == "SnapshotIsolation":
        return ()
    if winner.is_blind_append and not mine.changes_metadata:
        return ()  # as if the appending one had come second
    # Files that were only rearranged bring no new rows.
    return [add for add in adds if add.get("dataChange") is not False]


def _check_names(winner: Commit, mine: Mine, table: str) -> None:
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


def _conflict(winner: Commit, table: str, what: str) -> ConflictError:
    return ConflictError(
        f"version {winner.version} of {table}, by another writer, {what}",
        table=table,
        version=winner.version,
        hint="open the table anew and try again",
    )

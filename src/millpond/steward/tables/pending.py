"""What one transaction does to the table of one node, until the OpLog names it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millpond.base.errors import SchemaError, StoreError
from millpond.base.store import open_store
from millpond.base.store.local import LocalStore
from millpond.kernel.table import DeltaTable
from millpond.kernel.write.conflicts import key_of
from millpond.kernel.write.transaction import Transaction

if TYPE_CHECKING:
    from millpond.base.settings import Settings
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.write.commit import StagedCommit

_log = logging.getLogger("millpond.steward")


@dataclass
class PendingTable:
    """What a transaction does to one node's table."""

    table: DeltaTable
    path: str
    """Of the node, for errors."""
    is_new: bool
    tx: Transaction | None = None
    staged: list[StagedCommit] = field(default_factory=list)
    done: list[Transaction] = field(default_factory=list)
    """Those that are staged."""
    earlier: list[Transaction] = field(default_factory=list)
    """Those whose files were staged again; what they put is still in use."""

    def transaction(self) -> Transaction:
        """The open transaction of the table."""
        if self.tx is None:
            self.tx = Transaction(self.table)
        return self.tx

    def stage(self) -> DeltaTable:
        """Stage what is open; the table as it will be."""
        if self.tx is not None:
            tx, self.tx = self.tx, None
            self.done.append(tx)
            self.staged.append(tx.stage())
            self.table = tx.ratified(self.staged[-1])
        return self.table

    def published(self) -> DeltaTable:
        """The table when all that was staged is published; nothing is read for it."""
        snapshot = self.table.snapshot
        places = {staged.version: staged.published() for staged in self.staged}
        commits = tuple(places.get(file.name.version, file) for file in snapshot.segment.commits)
        segment = replace(snapshot.segment, commits=commits)
        return DeltaTable(replace(snapshot, segment=segment), self.table.settings)

    @property
    def adds(self) -> list[dict[str, Any]]:
        """The files that are to become part of the table."""
        done = [*self.done, *([self.tx] if self.tx else [])]
        return [dict(add) for tx in done for add in tx.pending.adds.values()]

    def restage(self, newer: DeltaTable) -> None:
        """The same on top of what others have done meanwhile: appended, or rearranged files."""
        first, last = self.done[0], self.done[-1]
        again = Transaction(newer, operation="WRITE")
        if not _has_columns(newer.snapshot, last.view):
            if newer.metadata != first.base.metadata:
                raise SchemaError("both transactions have changed its columns")
            again.view = replace(again.base, protocol=last.view.protocol, metadata=last.metadata)
        if any(tx.pending.removes for tx in self.done):
            self._replace(again)
        else:
            again.add_files(self.adds)
        store = open_store(self.table.location, settings=self.table.settings)
        for staged in self.staged:
            store.delete(staged.path)
        self.earlier += self.done
        self.staged, self.done, self.table, self.tx = [], [], newer, again
        self.stage()

    def _replace(self, again: Transaction) -> None:
        """Have a table hold the files that it was to hold, and no others."""
        wanted, live = (
            {
                key_of(add): add
                for add in table.files().to_arrow().to_pylist(maps_as_pydicts="lossy")
            }
            for table in (self.table, again.table)
        )
        again.remove_files([add["path"] for key, add in live.items() if key not in wanted])
        new = [add for key, add in wanted.items() if key not in live]
        again.add_files({k: v for k, v in add.items() if v is not None} for add in new)

    def rollback(self) -> None:
        """Take back everything that was put for it."""
        for tx in (*self.earlier, *self.done, *([self.tx] if self.tx else [])):
            tx.rollback()
        if self.is_new:
            discard(self.table.location, self.path, self.table.settings)


def discard(location: str, path: str, settings: Settings | None) -> None:
    """Remove what there is of a table that nobody knows of."""
    store = open_store(location, settings=settings)
    try:
        for meta in list(store.list()):
            store.delete(meta.path)
        if isinstance(store, LocalStore):
            store.remove_directories()
    except StoreError as error:
        _log.warning("the table of %s in %s is of no use, but could not be removed: %s", path,
                     location, error.message)  # fmt: skip


def _has_columns(snapshot: Snapshot, other: Snapshot) -> bool:
    """Whether files that were written for one table can be read as files of another."""
    mine, theirs = (
        {field.name: replace(field, nullable=True) for field in table.columns.scan_columns()}
        for table in (other, snapshot)
    )
    return mine.items() <= theirs.items()

"""Transactions that are open: the records of each are in a file of its own until it ends.

To begin a transaction is thus one small put, for which no two writers ever race; when it ends, its
records go to the control table together. What is left of a process that died is found here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from millpond.base.errors import IntegrityError, ObjectNotFoundError, StoreError
from millpond.steward.control.records import from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.base.store import PutMode, Store
    from millpond.steward.control.records import Record

DIRECTORY: Final = "_open"
"""Below the control table, where its readers do not look."""
_log = logging.getLogger("millpond.steward")


class OpenTransactions:
    """Those of one pond; those of this process are known without reading."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mine: dict[str, list[Record]] = {}

    def note(self, txn_id: str, records: Sequence[Record]) -> None:
        """Add records to an open transaction, or open one."""
        known = self._mine.setdefault(txn_id, [])
        is_new = not known
        known += records
        self.write(txn_id, known, is_new=is_new)

    def write(self, txn_id: str, records: Sequence[Record], *, is_new: bool = False) -> None:
        """Write all records of a transaction: they are in memory, and go to the table later."""
        mode: PutMode = "create" if is_new else "overwrite"
        try:
            self._store.put(_path(txn_id), to_text(records), mode=mode)
        except StoreError as error:
            _log.warning("the transaction %s could not be noted: %s", txn_id, error)

    def taken(self, txn_id: str) -> list[Record]:
        """The records of a transaction that ends: `forget` it when they are in the table."""
        known = self._mine.pop(txn_id, None)
        if known is not None:
            return known
        try:
            return self._read(_path(txn_id))
        except (ObjectNotFoundError, IntegrityError):
            return []

    def forget(self, txn_id: str) -> None:
        """A transaction is over."""
        self._mine.pop(txn_id, None)
        self._store.delete(_path(txn_id))

    def all(self) -> dict[str, list[Record]]:
        """The records of all open transactions, by id; one that ends meanwhile is left out."""
        found: dict[str, list[Record]] = {}
        for meta in self._store.list(f"{DIRECTORY}/"):
            try:
                found[_txn_id(meta.path)] = self._read(meta.path)
            except ObjectNotFoundError:
                continue
            except IntegrityError as error:
                _log.warning("%s", error)
        return found

    def _read(self, path: str) -> list[Record]:
        try:
            return from_text(self._store.get(path))
        except ValueError as error:
            raise IntegrityError(
                f"{path} of the control table can't be read: {error}",
                path=path,
                hint="remove it: a transaction that was open is then forgotten",
            ) from error


def _path(txn_id: str) -> str:
    return f"{DIRECTORY}/{txn_id}.json"


def _txn_id(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")

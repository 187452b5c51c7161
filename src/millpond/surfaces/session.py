"""`Session`: where a filesystem reads and writes: the newest state, a transaction, or the past.

Threads may share a filesystem: each has the transactions of its own operations. One that was begun
for several operations belongs to the thread that began it, and others get an error meanwhile.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from millpond.base.errors import ScopeError, WriteConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from millpond.steward.pond import Pond
    from millpond.steward.scope import Scope
    from millpond.steward.write import WriteScope

MOST_ATTEMPTS: Final = 20


class Session:
    """A pond, and what is open in it."""

    def __init__(self, pond: Pond, as_of: int | datetime | None = None) -> None:
        self.pond = pond
        self._past = None if as_of is None else pond.read(as_of=as_of)
        self._begun: WriteScope | None = None
        self._local = _Local()

    def scope(self) -> Scope:
        """Where the next operation reads."""
        return self._begun or self._local.scope or self._past or self.pond.read()

    @contextmanager
    def pin(self, scope: Scope | None = None) -> Iterator[Scope]:
        """See one version of the pond within a block."""
        before, found = self._local.scope, scope or self.scope()
        self._local.scope = found
        try:
            yield found
        finally:
            self._local.scope = before

    @property
    def tx(self) -> WriteScope:
        """The transaction that is open here."""
        found = self._begun or self._local.tx
        assert found is not None
        return found

    def run(self, what: str, work: Callable[[], None]) -> None:
        """Do something in the transaction that is open, or in one of its own.

        If another writer was in its way, it is done anew on what is there now.
        """
        if self._begun is not None or self._local.tx is not None:
            work()
            return
        for attempt in range(1, MOST_ATTEMPTS + 1):
            with self._write(what) as tx:
                self._local.tx = tx
                try:
                    with self.pin(tx):
                        work()
                finally:
                    self._local.tx = None
                try:
                    tx.commit()
                except WriteConflictError:
                    if attempt == MOST_ATTEMPTS:
                        raise
                else:
                    return

    def begin(self) -> None:
        """Begin a transaction of several operations."""
        self._begun = self._write("transaction")

    def end(self, *, commit: bool) -> None:
        """End it, and keep all of it or nothing."""
        tx, self._begun = self._begun, None
        if tx is None:
            return
        if commit:
            tx.commit()
        else:
            tx.rollback()

    def _write(self, what: str) -> WriteScope:
        if self._past is not None:
            raise ScopeError(
                "this filesystem shows the pond as it was, and can't be written",
                hint="open it without as_of",
            )
        return self.pond.write(f"fsspec: {what}")


class _Local(threading.local):
    """What a thread has open."""

    scope: Scope | None = None
    tx: WriteScope | None = None

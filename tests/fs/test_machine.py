"""Two writers at random on every persistence, beside the naive model; some die in their commit."""

from __future__ import annotations

import tempfile
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from tests.fs.ponds import rows_of

from millpond.base.ids import TxnId
from millpond.fs.memory import MemoryPersistence
from millpond.fs.oplog.persistence import OpLog
from millpond.fs.persistence import Commit
from millpond.testing.fs import PersistenceStateMachine

if TYPE_CHECKING:
    from millpond.base.clock import Clock
    from millpond.base.store import Store
    from millpond.fs.persistence import Persistence
    from millpond.fs.working import Working


class MemoryMachine(PersistenceStateMachine):
    def make_persistence(self, clock: Clock) -> Persistence:
        return MemoryPersistence(clock=clock)

    def reopen(self, persistence: Persistence) -> Persistence:
        return persistence


TestMemoryMachine = MemoryMachine.TestCase


class Death(BaseException):
    """The end of a process."""


class DyingStore:
    """Ends the process before a put; what was put before is there, and nothing is taken back."""

    def __init__(self, store: Store, puts: int) -> None:
        self._store = store
        self._left = puts

    def put(self, *args: Any, **how: Any) -> Any:
        self._left -= 1
        return self._alive().put(*args, **how)

    def _alive(self) -> Store:
        if self._left < 0:
            raise Death
        return self._store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._alive(), name)


class OpLogMachine(PersistenceStateMachine):
    def location(self) -> str:
        return f"memory://{uuid.uuid4()}"

    def make_persistence(self, clock: Clock) -> Persistence:
        self.clock_of_all = clock
        return OpLog.create(self.location(), {}, clock=clock)

    def reopen(self, persistence: Persistence) -> Persistence:
        assert isinstance(persistence, OpLog)
        return OpLog(persistence.location, clock=self.clock_of_all)

    def die(self, persistence: Persistence, work: Working) -> None:
        dying = self.reopen(persistence)
        assert isinstance(dying, OpLog)
        rows = rows_of(work)
        files = len({row.part_id for row in rows})
        # Before the first file, after some of them, or with all of them but the commit.
        dying.log.store = DyingStore(dying.log.store, len(self.past) % (files + 1))
        if persistence.refresh(work.base) is work.base:
            with pytest.raises(Death):
                dying.commit(work.base, rows, Commit(str(TxnId.new())))


class DiskMachine(OpLogMachine):
    def location(self) -> str:
        self.directory = tempfile.TemporaryDirectory()
        return self.directory.name

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.directory.cleanup()


FEW = settings(max_examples=max(4, settings().max_examples // 6), stateful_step_count=20)

TestOpLogMachine = OpLogMachine.TestCase
TestOpLogMachine.settings = FEW
TestDiskMachine = DiskMachine.TestCase
TestDiskMachine.settings = FEW

"""Every persistence keeps every promise: in memory, on disk, in a store in memory, and on S3."""

from __future__ import annotations

import uuid
from itertools import count
from typing import TYPE_CHECKING

import pytest

from millpond.fs.memory import MemoryPersistence
from millpond.fs.oplog.persistence import OpLog
from millpond.testing.fs import PersistenceConformance

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.base.clock import ManualClock
    from millpond.fs.persistence import Persistence
    from millpond.testing.fs import Reopen
    from millpond.testing.s3 import S3Server

BUCKETS = count()


class TestMemory(PersistenceConformance):
    @pytest.fixture
    def persistence(self, clock: ManualClock) -> Persistence:
        return MemoryPersistence(clock=clock)

    @pytest.fixture
    def reopen(self, persistence: Persistence) -> Reopen:
        return lambda: persistence


class TestOpLogOnDisk(PersistenceConformance):
    @pytest.fixture
    def persistence(self, clock: ManualClock, tmp_path: Path) -> Persistence:
        return OpLog.create(str(tmp_path / "pond"), {}, clock=clock)

    @pytest.fixture
    def reopen(self, persistence: Persistence, clock: ManualClock, tmp_path: Path) -> Reopen:
        return lambda: OpLog(str(tmp_path / "pond"), clock=clock)


class TestOpLogInMemory(PersistenceConformance):
    @pytest.fixture
    def location(self) -> str:
        return f"memory://{uuid.uuid4()}"

    @pytest.fixture
    def persistence(self, clock: ManualClock, location: str) -> Persistence:
        return OpLog.create(location, {}, clock=clock)

    @pytest.fixture
    def reopen(self, persistence: Persistence, clock: ManualClock, location: str) -> Reopen:
        return lambda: OpLog(location, clock=clock)


@pytest.mark.s3
class TestOpLogOnS3(PersistenceConformance):
    @pytest.fixture
    def location(self, s3_server: S3Server) -> str:
        return s3_server.create_bucket(f"oplog-{next(BUCKETS)}") + "/pond"

    @pytest.fixture
    def persistence(self, clock: ManualClock, location: str, s3_server: S3Server) -> Persistence:
        return OpLog.create(location, {}, clock=clock, settings=s3_server.settings())

    @pytest.fixture
    def reopen(
        self, persistence: Persistence, clock: ManualClock, location: str, s3_server: S3Server
    ) -> Reopen:
        return lambda: OpLog(location, clock=clock, settings=s3_server.settings())

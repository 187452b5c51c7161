"""The in-memory store: it is the model, so it must itself keep every promise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from millpond.base.clock import ManualClock
from millpond.base.store.memory import MemoryStore
from millpond.testing.store import StoreConformance, StoreStateMachine

if TYPE_CHECKING:
    from millpond.base.store import Store


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class MemoryMachine(StoreStateMachine):
    def make_store(self) -> Store:
        return MemoryStore()


TestMemoryMachine = MemoryMachine.TestCase


def test_modified_is_the_clocks_time() -> None:
    moment = datetime(2024, 2, 29, tzinfo=UTC)
    assert MemoryStore(clock=ManualClock(moment)).put("a", b"").modified == moment


def test_named_stores_are_shared_and_others_are_not() -> None:
    MemoryStore.named("test-memory").put("a", b"1", mode="overwrite")
    assert MemoryStore.named("test-memory").get("a") == b"1"
    assert list(MemoryStore.named("test-memory-2").list()) == []
    assert list(MemoryStore().list()) == []


def test_repr_shows_the_url() -> None:
    assert repr(MemoryStore.named("x")) == "MemoryStore('memory://x')"

"""The in-memory store: it is the model, so it must itself keep every promise."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest

from millpond.base.clock import ManualClock
from millpond.base.errors import StoreError
from millpond.base.store import open_store
from millpond.base.store.memory import MemoryStore
from millpond.testing.store import StoreConformance, StoreStateMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.store import Store

NUMBERS = count()


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestBelow(StoreConformance):
    """What lies below a directory of a store is a store, and knows nothing of its neighbours."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        whole = MemoryStore.named(f"below-{next(NUMBERS)}")
        for path in ("a", "some/a", "some/place", "some/place-2/a", "some/places/a", "z"):
            whole.put(path, b"not mine")
        yield open_store(f"{whole.url}/some/place")
        others = [m.path for m in whole.list() if not m.path.startswith("some/place/")]
        assert others == ["a", "some/a", "some/place", "some/place-2/a", "some/places/a", "z"]


def test_what_is_below_is_in_the_whole() -> None:
    whole, part = open_store("memory://whole"), open_store("memory://whole/a/b/")
    part.put("c", b"1")
    assert whole.get("a/b/c") == open_store("memory://whole/a").get("b/c") == b"1"
    assert (part.url, part.head("c").path) == ("memory://whole/a/b", "c")
    whole.delete("a/b/c")
    assert list(part.list()) == []
    with pytest.raises(StoreError, match="can't name an object"):
        open_store("memory://whole/a/../b")


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

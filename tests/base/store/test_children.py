"""Listing one directory of a store: what lies deeper is passed by, and leapt over if it is much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.store.children import children
from millpond.base.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.store import ObjectMeta


class Counting(MemoryStore):
    """Counts the objects that were listed."""

    seen = 0

    def list(self, prefix: str = "", *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        for meta in super().list(prefix, start_after=start_after):
            self.seen += 1
            yield meta


def store_with(*names: str) -> Counting:
    store = Counting()
    for name in names:
        store.put(name, b"")
    return store


def found(store: Counting, prefix: str = "", start_from: str | None = None) -> list[str]:
    return [meta.path for meta in children(store, prefix, start_from=start_from)]


@pytest.mark.parametrize(
    ("prefix", "start_from", "expected"),
    [
        ("", None, ["a", "c"]),
        ("", "b", ["c"]),
        ("b/", None, ["b/1", "b/2"]),
        ("b/", "2", ["b/2"]),
        ("b/", "3", []),
        ("zz/", None, []),
    ],
)
def test_only_what_is_right_below(prefix: str, start_from: str | None, expected: list[str]) -> None:
    store = store_with("a", "b/1", "b/1/deep", "b/2", "b2/x", "c", "d/e")
    assert found(store, prefix, start_from) == expected


def test_a_large_directory_is_leapt_over() -> None:
    deep = [f"log/_side/{n:05}" for n in range(5000)]
    store = store_with("log/0", *deep, "log/_side0", "log/_tail", "log/x/y", "log/z")
    assert found(store, "log/") == ["log/0", "log/_side0", "log/_tail", "log/z"]
    assert store.seen < 1100

"""The objects right below a prefix, without paging through all that lies deeper.

>>> from millpond.base.store.memory import MemoryStore
>>> store = MemoryStore()
>>> for name in ("log/1", "log/2", "log/deep/3"):
...     _ = store.put(name, b"")
>>> [meta.path for meta in children(store, "log/", start_from="2")]
['log/2']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.store.protocol import ObjectMeta, Store

_PATIENCE: Final = 1000
"""So many objects below one directory are passed by; then the listing begins anew behind it."""
_LAST: Final = "\U0010ffff"


def children(
    store: Store, prefix: str = "", *, start_from: str | None = None
) -> Iterator[ObjectMeta]:
    """The objects named `prefix` and one segment more, by name, from `start_from` on.

    The prefix is empty or ends with `/`.
    """
    # `start_after` leaves its own name out, so begin a little before and compare.
    after = prefix + start_from[:-1] if start_from else None
    while True:
        passed = 0
        for meta in store.list(prefix, start_after=after):
            name, slash, _ = meta.path[len(prefix) :].partition("/")
            if not slash:
                if start_from is None or name >= start_from:
                    yield meta
                continue
            passed += 1
            if passed == _PATIENCE:
                after = f"{prefix}{name}/{_LAST}"
                break
        else:
            return

"""A pond with a bit of everything, one transaction over many of its nodes, and what is seen of it.

Tests crash in the middle of `deed`: what they see afterwards has to be all of it or nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import millpond as mp
from millpond.fs.entry import EntryType

if TYPE_CHECKING:
    from millpond.steward.committing.commit import Committed
    from millpond.steward.pond import Pond
    from millpond.steward.scope import Scope

START = datetime(2024, 1, 1, tzinfo=UTC)
BLOB = bytes(range(256)) * 800
"""Too large for a row."""


def measured(first: int, count: int = 1) -> list[dict[str, Any]]:
    """Rows of a series."""
    return [
        {"timestamp": START + timedelta(hours=n), "level": float(n)}
        for n in range(first, first + count)
    ]


def prepare(location: str) -> Pond:
    """A pond with files, tables and series."""
    pond = mp.create(location)
    with pond.write("prepare") as tx:
        tx.make_directory("/a/b", parents=True)
        tx.make_directory("/e")
        tx.write_bytes("/a/file", b"old")
        tx.write_bytes("/a/gone", b"to be removed")
        tx.write_bytes("/a/b/deep", b"moved with its directory")
        tx.write_bytes("/log", b"one\n", series=True)
        tx.write_table("/t", [{"id": 1, "name": "one"}])
        tx.append_series("/s", measured(0, 3))
        tx.commit()
    return pond


def deed(pond: Pond) -> Committed:
    """One transaction over many nodes."""
    with pond.write("deed") as tx:
        tx.write_bytes("/new", b"new")
        tx.write_bytes("/blob", BLOB)
        tx.write_bytes("/a/file", b"changed")
        tx.write_bytes("/log", b"two\n", series=True)
        tx.write_table("/t2", [{"x": 1.5}, {"x": 2.5}])
        tx.write_table("/t", [{"id": 2, "name": "two", "extra": True}])
        tx.append_series("/s", measured(10, 2))
        tx.move("/a/b", "/e/b")
        tx.remove("/a/gone")
        tx.make_link("/link", "/e/b/deep")
        return tx.commit()


def seen(scope: Scope) -> dict[str, Any]:
    """Everything in a pond by its path, read whole."""
    found: dict[str, Any] = {}
    todo = ["/"]
    while todo:
        for stat in scope.children(todo.pop()).values():
            kind, path = stat.entry_type, stat.path
            found[path] = (str(kind), stat.version, _content(scope, path, kind))
            if kind.is_directory:
                todo.append(path)
    return found


def _content(scope: Scope, path: str, kind: EntryType) -> Any:
    if kind.is_directory:
        return None
    if kind is EntryType.SYMLINK:
        return scope.stat(path, follow=False).target
    if kind.is_bytes:
        return scope.read_bytes(path)
    rows = scope.to_arrow(path).to_pylist()
    return sorted(rows, key=lambda row: sorted(map(str, row.items())))


def after_deed(before: dict[str, Any]) -> dict[str, Any]:
    """What is seen after the deed, if it was prepared by `prepare`."""
    found = {
        path: value
        for path, value in before.items()
        if path != "/a/gone" and not path.startswith("/a/b")
    }
    series = [*before["/s"][2], *measured(10, 2)]
    return {
        **found,
        "/new": ("data", 1, b"new"),
        "/blob": ("data", 1, BLOB),
        "/a/file": ("data", 2, b"changed"),
        "/log": ("data:series", 2, b"one\ntwo\n"),
        "/t2": ("table", 1, [{"x": 1.5}, {"x": 2.5}]),
        "/t": ("table", 2, [{"id": 2, "name": "two", "extra": True}]),
        "/s": ("series", 2, sorted(series, key=lambda row: sorted(map(str, row.items())))),
        "/e/b": before["/a/b"],
        "/e/b/deep": before["/a/b/deep"],
        "/link": ("symlink", 1, "/e/b/deep"),
    }

"""Trees: which rows count, what was read, and attributes of rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from tests.fs.ponds import apply, pond_of, stored, tree_of

from millpond.base.ids import NodeId
from millpond.fs import edit
from millpond.fs.entry import ROOT, EntryType, Row, from_micros, to_micros
from millpond.fs.resolve import resolve
from millpond.fs.tree import Partition


def row(name: str, *, node: str | None = None, seq: int = 1, **how: object) -> Row:
    made = Row(ROOT, node or str(NodeId.new()), name, EntryType.DATA, txn_seq=seq)
    return replace(made, **how)  # type: ignore[arg-type]


def test_the_newest_row_counts_in_whatever_order_rows_come() -> None:
    one, two = str(NodeId.new()), str(NodeId.new())
    rows = [
        row("b", node=one, seq=3),
        row("a", node=one, seq=1),
        row("x", node=two, seq=2),
        row("x", node=two, seq=4, removed=True),
        row("a", node=one, seq=2),
    ]
    partition = Partition.of(rows)
    assert {name: found.txn_seq for name, found in partition.live.items()} == {"b": 3}
    assert [found.txn_seq for found in partition.by_node[one]] == [1, 2, 3]
    assert partition.newest == 4
    assert Partition.of([]).newest == 0


def test_a_partition_goes_on_as_if_it_were_read_anew() -> None:
    nodes = [str(NodeId.new()) for _ in range(4)]
    older = [row(name, node=node) for name, node in zip("dbca", nodes, strict=True)]
    newer = [
        row("e", node=nodes[0], seq=2),
        row("b", node=nodes[1], seq=3, removed=True),
        row("b", seq=4),
        row("f", node=nodes[0], seq=5),
    ]
    known = Partition.of(older)
    for is_looked_at in (False, True):
        if is_looked_at:
            assert list(known.live) == ["a", "b", "c", "d"]
        extended = known.extended(newer)
        anew = Partition.of([*older, *newer])
        assert extended.by_node == anew.by_node
        assert list(extended.live.items()) == list(anew.live.items())
        assert extended.newest == 5
    assert list(known.live) == ["a", "b", "c", "d"]


def test_readings_are_counted() -> None:
    tree = tree_of({"/a/b/c": b"", "/x/y": b""})
    resolve(tree, "/a/b/c")
    assert (tree.hits, tree.misses) == (0, 3)
    resolve(tree, "/a/b/c")
    assert (tree.hits, tree.misses) == (3, 3)
    resolve(tree, "/x")
    assert (tree.hits, tree.misses) == (4, 3)
    resolve(tree, "/x/y")
    assert (tree.hits, tree.misses) == (5, 4)
    assert len(tree.known()) == 4


def test_history_follows_a_node_there_and_back() -> None:
    pond = pond_of({"/a/f": b"1", "/b": None, "/c": None})
    for number, (source, target) in enumerate([("/a", "/b"), ("/b", "/c"), ("/c", "/a")], 2):
        move = partial(edit.move, source=f"{source}/f", target=f"{target}/f")
        content = stored(str(number).encode())
        write = partial(edit.write, path=f"{target}/f", entry_type=EntryType.DATA, stored=content)
        apply(pond, move, write)
    apply(pond, lambda work: edit.move(work, "/a/f", "/b/g"))
    tree = pond.latest()
    found = resolve(tree, "/b/g").row
    assert found is not None
    rows = [r for r in tree.history(found.part_id, found.node_id) if not r.removed]
    assert [(r.version, r.txn_seq, tree.content(r)) for r in rows] == [
        (1, 1, b"1"), (2, 2, b"2"), (3, 3, b"3"), (4, 4, b"4"), (4, 5, b"4"),
    ]  # fmt: skip


def test_attributes() -> None:
    plain = row("a")
    assert plain.attributes == {}
    marked = plain.with_attributes(owner="me", tags=["x"], empty="")
    assert marked.attributes == {"owner": "me", "tags": ["x"], "empty": ""}
    assert marked.extended_attributes == '{"empty":"","owner":"me","tags":["x"]}'
    assert marked.with_attributes(owner=None, tags=None, empty=None) == plain


def test_times_are_exact() -> None:
    for text in ("1969-12-31T23:59:59.999999", "2024-02-29T12:30:00.000001", "9999-12-31T00:00:00"):
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        assert from_micros(to_micros(moment)) == moment
    assert row("a", timestamp=1_000_000).time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", EntryType)
def test_kinds(kind: EntryType) -> None:
    told = [kind.is_directory, kind.is_bytes, kind.is_table, kind is EntryType.SYMLINK]
    if kind.is_dynamic:
        assert kind in (
            EntryType.DYNAMIC_DIRECTORY, EntryType.DYNAMIC_FILE, EntryType.DYNAMIC_TABLE,
            EntryType.DYNAMIC_SERIES, EntryType.EXECUTABLE,
        )  # fmt: skip
        assert told.count(True) == (kind is EntryType.DYNAMIC_DIRECTORY)
    else:
        assert told.count(True) == 1
    assert kind.is_appended == (kind in (EntryType.DATA_SERIES, EntryType.SERIES))

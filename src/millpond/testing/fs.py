"""What every `Persistence` promises, as tests: subclass `PersistenceConformance` with two fixtures.

    class TestMyPersistence(PersistenceConformance):
        @pytest.fixture
        def persistence(self, clock: Clock) -> Persistence:
            return MyPersistence(clock)  # an empty one, which takes its time from this clock

        @pytest.fixture
        def reopen(self, persistence: Persistence) -> Reopen:
            return lambda: MyPersistence.open(...)  # as another process would

`PersistenceStateMachine` (in `fs_machine`) lets two writers work at random, beside a naive model.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import TYPE_CHECKING, TypeAlias

import pytest

from millpond.base.clock import ManualClock
from millpond.base.errors import PondError
from millpond.base.ids import NodeId, TxnId
from millpond.fs.entry import MOVED_FROM, ROOT, EntryType, Row, to_micros
from millpond.fs.persistence import Commit, Persistence
from millpond.testing.fs_machine import PersistenceStateMachine

if TYPE_CHECKING:
    from millpond.fs.tree import Tree

__all__ = ["PersistenceConformance", "PersistenceStateMachine", "Reopen"]

Reopen: TypeAlias = Callable[[], Persistence]

START = datetime(2024, 2, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RACERS = 8
ODD_NAMES = (
    " ", "a b", "100%", "a%20b", "a#b", "a=b", "a:b", "a'b", 'a"b', "*", "[a]", "a\\b", "~", "$a",
    ".hidden", "...", "a\nb", "\x7f", "ä", "日本語", "🐟", "e\u0301", "x" * 255, "null", "__HIVE__",
)  # fmt: skip


def new_row(name: str, part_id: str = ROOT, content: bytes | None = None, **how: object) -> Row:
    """The first row of a file."""
    size = None if content is None else len(content)
    row = Row(part_id, str(NodeId.new()), name, EntryType.DATA, content=content, size=size)
    return replace(row, **how)  # type: ignore[arg-type]


def commit(persistence: Persistence, *rows: Row, base: Tree | None = None) -> Tree:
    """Commit rows that nobody is in the way of."""
    base = persistence.latest() if base is None else base
    made = persistence.commit(base, rows, Commit(str(TxnId.new())))
    assert made is not None
    return made


def names(tree: Tree, part_id: str = ROOT) -> list[str]:
    """What is in a directory."""
    return list(tree.children(part_id))


class PersistenceConformance:
    """One test for each promise of `millpond.fs.persistence.Persistence`."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The clock that a persistence takes its time from."""
        return ManualClock(START)

    # Committing ---------------------------------------------------------------------------------

    def test_is_a_persistence(self, persistence: Persistence) -> None:
        """The object has every method of the protocol."""
        assert isinstance(persistence, Persistence)

    def test_empty(self, persistence: Persistence, reopen: Reopen) -> None:
        """A new pond has no transaction and nothing in it."""
        for found in (persistence, reopen()):
            tree = found.latest()
            assert (tree.txn_seq, names(tree), names(tree, str(NodeId.new()))) == (0, [], [])

    def test_commit(self, persistence: Persistence, reopen: Reopen) -> None:
        """What was committed is there, and the tree from before does not know of it."""
        before = persistence.latest()
        row = new_row("a", content=b"hello")
        after = commit(persistence, row, base=before)
        for tree in (after, persistence.latest(), reopen().latest()):
            assert (tree.txn_seq, names(tree)) == (1, ["a"])
            found = tree.child(ROOT, "a")
            assert found is not None
            assert (found.node_id, found.txn_seq, found.size) == (row.node_id, 1, 5)
            assert tree.content(found) == b"hello"
        assert (before.txn_seq, names(before)) == (0, [])

    def test_many_directories_at_once(self, persistence: Persistence, reopen: Reopen) -> None:
        """One transaction writes to many directories, and all of it is one state."""
        parts = [str(NodeId.new()) for _ in range(20)]
        rows = [new_row(f"{i}-{j}", part) for i, part in enumerate(parts) for j in range(3)]
        commit(persistence, *rows)
        tree = reopen().latest()
        assert tree.txn_seq == 1
        for i, part in enumerate(parts):
            assert names(tree, part) == [f"{i}-{j}" for j in range(3)]

    def test_nothing_is_a_transaction_too(self, persistence: Persistence, reopen: Reopen) -> None:
        """A transaction without rows has its number and its place."""
        assert commit(persistence).txn_seq == 1
        assert commit(persistence, new_row("a")).txn_seq == 2
        assert reopen().latest().txn_seq == 2

    def test_second_is_told(self, persistence: Persistence, reopen: Reopen) -> None:
        """Who commits behind a tree that is no longer the newest gets None, and wrote nothing."""
        base = persistence.latest()
        commit(persistence, new_row("first"), base=base)
        for late in (persistence, reopen()):
            assert late.commit(base, [new_row("second")], Commit(str(TxnId.new()))) is None
        assert names(reopen().latest()) == ["first"]
        newest = persistence.refresh(base)
        assert names(commit(persistence, new_row("third"), base=newest)) == ["first", "third"]

    def test_other_objects_commit_too(self, persistence: Persistence, reopen: Reopen) -> None:
        """Two objects that see the same pond take turns."""
        other = reopen()
        mine = persistence.latest()
        for number in range(6):
            writer = (persistence, other)[number % 2]
            mine = commit(writer, new_row(str(number)), base=writer.refresh(mine))
        assert names(mine) == list("012345")

    def test_race(self, persistence: Persistence, reopen: Reopen) -> None:
        """Of those who commit behind one tree exactly one wins; all do who try again."""
        barrier = Barrier(RACERS)

        def race(racer: int) -> int:
            tree, lost = persistence.latest(), 0
            barrier.wait()
            row = new_row(f"racer-{racer}", content=str(racer).encode())
            while persistence.commit(tree, [row], Commit(str(TxnId.new()))) is None:
                tree, lost = persistence.refresh(tree), lost + 1
            return lost

        with ThreadPoolExecutor(RACERS) as pool:
            lost = list(pool.map(race, range(RACERS)))
        tree = reopen().latest()
        assert lost.count(0) == 1
        assert tree.txn_seq == RACERS
        assert names(tree) == [f"racer-{racer}" for racer in range(RACERS)]
        rows = tree.children(ROOT).values()
        assert sorted(row.txn_seq for row in rows) == list(range(1, RACERS + 1))
        assert [tree.content(row) for row in rows] == [str(n).encode() for n in range(RACERS)]

    # Rows ---------------------------------------------------------------------------------------

    def test_every_field(
        self, persistence: Persistence, reopen: Reopen, clock: ManualClock
    ) -> None:
        """A row comes back as it was, whatever is in it."""
        clock.advance(SECOND)
        full = Row(
            *(ROOT, str(NodeId.new()), "full", EntryType.SERIES, 7),
            size=1 << 40,
            blake3="ab" * 32,
            content=bytes(range(256)),
            delta_version=12,
            staged_commit="_delta_log/_staged_commits/1.json",
            min_event_time=-1,
            max_event_time=to_micros(START),
            min_override=0,
            max_override=2**60,
            time_column="Time Stamp",
            factory="sql-derived-table",
            config="factory: x\n",
            extended_attributes='{"ä":[1]}',
        )
        given = {field.name for field in fields(Row) if getattr(full, field.name) != field.default}
        assert given == {field.name for field in fields(Row)} - {"txn_seq", "timestamp", "removed"}
        bare = new_row("bare")
        commit(persistence, full, bare)
        tree = reopen().latest()
        for row in (full, bare):
            found = tree.child(ROOT, row.name)
            assert found is not None
            time = to_micros(START + SECOND)
            assert replace(found, content=None) == replace(
                row, content=None, txn_seq=1, timestamp=time
            )
            assert tree.content(found) == row.content

    @pytest.mark.parametrize("kind", EntryType)
    def test_every_kind(self, persistence: Persistence, reopen: Reopen, kind: EntryType) -> None:
        """Nodes of all kinds are kept."""
        commit(persistence, replace(new_row("a"), entry_type=kind))
        found = reopen().latest().child(ROOT, "a")
        assert found is not None
        assert found.entry_type is kind

    def test_odd_names(self, persistence: Persistence, reopen: Reopen) -> None:
        """Whatever is in a name, it comes back as it was, in the order of code points."""
        commit(persistence, *(new_row(name) for name in ODD_NAMES))
        assert names(reopen().latest()) == sorted(ODD_NAMES)

    def test_contents(self, persistence: Persistence, reopen: Reopen) -> None:
        """No bytes are something else than no content; large and small come back as they were."""
        contents = {"none": None, "empty": b"", "nul": b"\0", "text": b"a\r\n", "ff": b"\xff" * 9}
        contents |= {f"large-{n}": bytes([n]) * 300_000 for n in range(8)}
        commit(persistence, *(new_row(name, content=data) for name, data in contents.items()))
        for tree in (persistence.latest(), reopen().latest()):
            for name, row in tree.children(ROOT).items():
                assert row.content is None, "a tree's rows are light"
                assert tree.content(row) == contents[name], name

    def test_later_rows_count(self, persistence: Persistence, reopen: Reopen) -> None:
        """The newest row of a node says what it is; all of them are its history."""
        row = new_row("a", content=b"1")
        commit(persistence, row)
        commit(persistence, replace(row, version=2, content=b"2"))
        commit(persistence, replace(row, version=2, content=b"2", name="b"))
        commit(persistence, replace(row, version=2, name="b", content=None, removed=True))
        tree = reopen().latest()
        assert names(tree) == []
        last = tree.latest(ROOT, row.node_id)
        assert last is not None
        assert last.removed
        rows = tree.history(ROOT, row.node_id)
        told = [(r.txn_seq, r.version, r.name, r.removed, tree.content(r)) for r in rows]
        assert told == [
            (1, 1, "a", False, b"1"), (2, 2, "a", False, b"2"),
            (3, 2, "b", False, b"2"), (4, 2, "b", True, None),
        ]  # fmt: skip

    def test_history_goes_on_where_a_node_was(
        self, persistence: Persistence, reopen: Reopen
    ) -> None:
        """Rows of a node in other directories are found, also if it came back."""
        other = str(NodeId.new())
        row = new_row("a", content=b"1")
        commit(persistence, row)
        there = replace(row, part_id=other, version=2, content=b"2")
        commit(
            persistence,
            replace(row, content=None, removed=True),
            there.with_attributes(**{MOVED_FROM: ROOT}),
        )
        back = replace(row, version=3, content=b"3").with_attributes(**{MOVED_FROM: other})
        commit(persistence, replace(there, content=None, removed=True), back)
        tree = reopen().latest()
        rows = tree.history(ROOT, row.node_id)
        assert [(r.txn_seq, r.part_id == other, r.removed) for r in rows] == [
            (1, False, False), (2, False, True), (2, True, False), (3, True, True),
            (3, False, False),
        ]  # fmt: skip
        assert [tree.content(r) for r in rows if not r.removed] == [b"1", b"2", b"3"]

    # Time and the past --------------------------------------------------------------------------

    def test_times(self, persistence: Persistence, reopen: Reopen, clock: ManualClock) -> None:
        """Rows of a transaction have one time, later than all before, whatever the clock says."""
        times = []
        for number, seconds in enumerate((1, 1, 2, 0, 2)):
            clock.set(START + seconds * SECOND)
            writer = persistence if number % 2 else reopen()
            tree = commit(writer, new_row(f"a{number}"), new_row(f"b{number}", str(NodeId.new())))
            row = tree.child(ROOT, f"a{number}")
            assert row is not None
            times.append(row.timestamp)
        one, two = to_micros(START + SECOND), to_micros(START + 2 * SECOND)
        assert times == [one, one + 1, two, two + 1, two + 2]

    def test_as_of(self, persistence: Persistence, reopen: Reopen, clock: ManualClock) -> None:
        """The pond as it was after each transaction, and at each time."""
        times = [0]
        for number in range(4):
            clock.advance(SECOND)
            commit(persistence, new_row(str(number), content=str(number).encode()))
            times.append(to_micros(clock.now()))
        for seq, time in enumerate(times):
            until = times[seq + 1] - 1 if seq < 4 else 2**62
            for asked in ({"txn_seq": seq}, {"micros": time}, {"micros": until}):
                tree = reopen().as_of(**asked)
                assert tree.txn_seq == seq
                assert names(tree) == [str(n) for n in range(seq)]
                contents = [tree.content(row) for row in tree.children(ROOT).values()]
                assert contents == [str(n).encode() for n in range(seq)]

    @pytest.mark.parametrize("seq", [-1, 3, 99])
    def test_as_of_what_never_was(self, persistence: Persistence, seq: int) -> None:
        """A transaction that is not there is an error that says which are."""
        commit(persistence, new_row("a"))
        commit(persistence, new_row("b"))
        with pytest.raises(PondError, match=f"there is no transaction {seq}") as caught:
            persistence.as_of(txn_seq=seq)
        assert "to 2" in str(caught.value.hint)

    def test_the_past_is_over(self, persistence: Persistence) -> None:
        """Nothing is committed behind a tree of the past; refreshed, it is the present."""
        commit(persistence, new_row("a"))
        commit(persistence, new_row("b"))
        past = persistence.as_of(txn_seq=1)
        assert persistence.commit(past, [new_row("c")], Commit(str(TxnId.new()))) is None
        assert names(persistence.refresh(past)) == ["a", "b"]
        assert names(past) == ["a"]
        present = persistence.as_of(txn_seq=2)
        assert names(commit(persistence, new_row("c"), base=present)) == ["a", "b", "c"]

    # Trees --------------------------------------------------------------------------------------

    def test_refresh(self, persistence: Persistence, reopen: Reopen) -> None:
        """A tree that is the newest stays; another goes on, and the old one is what it was."""
        tree = commit(persistence, new_row("a"))
        assert persistence.refresh(tree) is tree
        commit(reopen(), new_row("b"))
        commit(reopen(), new_row("c", str(NodeId.new())))
        newer = persistence.refresh(tree)
        assert (newer.txn_seq, names(newer)) == (3, ["a", "b"])
        assert (tree.txn_seq, names(tree)) == (1, ["a"])
        assert persistence.refresh(newer) is newer

    def test_trees_are_for_ever(self, persistence: Persistence) -> None:
        """A tree that was never looked into still is what it was, however much came after."""
        trees = [persistence.latest()]
        trees += [
            commit(persistence, new_row(f"{number:02}", content=b"x")) for number in range(12)
        ]
        for seq, tree in enumerate(trees):
            assert names(tree) == [f"{n:02}" for n in range(seq)]
            assert all(tree.content(row) == b"x" for row in tree.children(ROOT).values())

    def test_a_directory_is_read_once(self, persistence: Persistence, reopen: Reopen) -> None:
        """Looking again is counted as a hit, and only what is looked into is read."""
        part = str(NodeId.new())
        commit(persistence, new_row("a"), new_row("b", part), new_row("c", str(NodeId.new())))
        tree = reopen().latest()
        assert (tree.hits, tree.misses) == (0, 0)
        assert names(tree) == ["a"]
        assert (tree.hits, tree.misses) == (0, 1)
        assert tree.child(ROOT, "a") is not None
        assert tree.child(ROOT, "z") is None
        assert (tree.hits, tree.misses) == (2, 1)
        assert names(tree, part) == names(tree, part) == ["b"]
        assert (tree.hits, tree.misses) == (3, 2)

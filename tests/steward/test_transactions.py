"""Two writers on one pond: who goes on behind the other, and who is in the way, and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable as TheirTable
from tests.steward.deeds import after_deed, deed, measured, seen
from tests.steward.places import At
from tests.steward.wholeness import check_tables, rubbish

import millpond as mp
from millpond.base.errors import (
    PathExistsError,
    PathNotFoundError,
    PathSyntaxError,
    PathTypeError,
    StoreAccessError,
    StoreError,
    WriteConflictError,
)
from millpond.base.store.local import LocalStore
from millpond.steward.committing import race as race_
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond
    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope


@pytest.fixture
def pond(place: str) -> Pond:
    return mp.open(place)


def committed(pond: Pond, change: Callable[[WriteScope], Any]) -> int:
    with pond.write() as tx:
        change(tx)
        return tx.commit().txn_seq


def appending(first: int) -> Callable[[WriteScope], Any]:
    return lambda tx: tx.append_series("/s", measured(first))


def removing(path: str) -> Callable[[WriteScope], Any]:
    return lambda tx: tx.remove(path, recursive=True)


def restoring(path: str) -> Callable[[WriteScope], Any]:
    return lambda tx: tx.restore(path)


def race(place: str, mine: Callable[[WriteScope], Any], theirs: Callable[[WriteScope], Any]) -> Any:
    """Mine begins first and commits second."""
    tx = mp.open(place).write()
    mine(tx)
    committed(mp.open(place), theirs)
    return tx.commit()


# Many tables, one moment


def test_a_transaction_over_many_tables_is_one(place: str, pond: Pond) -> None:
    before = seen(pond.read())
    assert deed(pond).txn_seq == 2
    for each in (pond, mp.open(place)):
        assert seen(each.read()) == after_deed(before)
        check_tables(each)
    assert seen(mp.open(place).read(as_of=1)) == before
    assert rubbish(place) == []
    commits = pond.oplog.log.table().history()
    assert len(commits[0]["millpond"]["staged"]) == 3


def test_unpublished_tables_are_read_all_the_same(place: str, pond: Pond) -> None:
    """Between the moment and the publishing, others see all of it or nothing of it."""
    reader = mp.open(place)
    before = seen(reader.read())
    states: list[tuple[str, dict[str, Any]]] = []

    def look(where: str) -> None:
        if not is_looking[0]:
            is_looking[0] = True
            states.append((where, seen(reader.read())))
            is_looking[0] = False

    is_looking = [False]
    steps.observe(look)
    deed(pond)
    steps.observe(None)
    moment = [where for where, _ in states].index("after:oplog")
    assert all(state == before for _, state in states[:moment])
    assert all(state == after_deed(before) for _, state in states[moment:])
    assert len(states) > 30


def test_who_may_not_publish_reads_what_is_staged(
    place: str, pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(pond.read())

    def stop() -> None:
        raise StoreAccessError("no access", path="p")

    steps.observe(At("before:publish", 1, stop))
    deed(pond)
    steps.observe(None)
    tables = {row.node_id for row in map(pond.read().row, ("/t", "/t2", "/s"))}
    for node_id in tables:
        assert TheirTable(f"{place}/tables/{node_id}").version() in (0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put", lambda *args, **named: stop())
        assert seen(mp.open(place).read()) == after_deed(before)
    assert seen(mp.open(place).read()) == after_deed(before)
    check_tables(mp.open(place))


def test_a_table_of_which_one_commit_of_two_is_published(place: str, pond: Pond) -> None:
    def twice(tx: WriteScope) -> None:
        tx.write_table("/t", [{"id": 5, "name": "five"}])
        assert tx.to_arrow("/t").num_rows == 1  # which stages it
        tx.write_table("/t", [{"id": 6, "name": "six"}])

    steps.observe(At("before:publish", 1, lambda: (_ for _ in ()).throw(OSError("stop"))))
    committed(pond, twice)
    steps.observe(None)
    row = pond.read().row("/t")
    first, second = (row.staged_commit or "").split()
    pond.tables.publish_node(row.node_id, [first])
    assert pond.tables.staged(row.node_id, [first, second])[0].path == second
    assert mp.open(place).read().to_arrow("/t").to_pylist() == [{"id": 6, "name": "six"}]
    assert TheirTable(f"{place}/tables/{row.node_id}").version() == row.delta_version == 3


# Writers that do not meet


APART: list[tuple[str, Callable[[WriteScope], Any], Callable[[WriteScope], Any]]] = [
    ("files", lambda tx: tx.write_bytes("/x", b"1"), lambda tx: tx.write_bytes("/y", b"2")),
    (
        "tables",
        lambda tx: tx.write_table("/t", [{"id": 7}]),
        lambda tx: tx.append_series("/s", measured(9)),
    ),
    (
        "a directory that is moved, and a file in it",
        lambda tx: tx.write_bytes("/a/b/more", b"1"),
        lambda tx: tx.move("/a/b", "/e/c"),
    ),
    (
        "a file in a directory, and the directory's new name",
        lambda tx: tx.move("/a", "/z"),
        lambda tx: tx.write_bytes("/a/file", b"2"),
    ),
    (
        "two appends to a series",
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.append_series("/s", measured(9)),
    ),
    (
        "two appends to a file",
        lambda tx: tx.write_bytes("/log", b"mine\n", series=True),
        lambda tx: tx.write_bytes("/log", b"theirs\n", series=True),
    ),
    (
        "an append, and another name for the series",
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.move("/s", "/renamed"),
    ),
    (
        "an append, and bounds",
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.change("/s", min_override=5),
    ),
]


@pytest.mark.parametrize(
    ("mine", "theirs"), [pair[1:] for pair in APART], ids=[p[0] for p in APART]
)
def test_both_win(
    place: str, mine: Callable[[WriteScope], Any], theirs: Callable[[WriteScope], Any]
) -> None:
    done = race(place, mine, theirs)
    assert (done.txn_seq, done.attempts) == (3, 2)
    scope = mp.open(place).read()
    assert scope.txn_seq == 3
    seen(scope)
    check_tables(mp.open(place))
    assert rubbish(place) == []


def test_appends_to_a_series_are_put_one_behind_the_other(place: str) -> None:
    race(
        place,
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.append_series("/s", measured(9, 2)),
    )
    scope = mp.open(place).read()
    assert [row.version for row in scope.versions("/s")] == [1, 2, 3]
    levels = [
        sorted(row["level"] for row in scope.to_arrow(f"/s@v{version}").to_pylist())
        for version in (1, 2, 3)
    ]
    assert levels == [[0.0, 1.0, 2.0], [9.0, 10.0], [8.0]]
    row = scope.row("/s")
    assert row.delta_version == 3
    assert (row.staged_commit or "").count("_staged_commits/") == 1


def test_bytes_are_appended_in_the_order_of_the_transactions(place: str) -> None:
    race(
        place,
        lambda tx: tx.write_bytes("/log", b"mine\n", series=True),
        lambda tx: tx.write_bytes("/log", b"theirs\n", series=True),
    )
    assert mp.open(place)["/log"].read_bytes() == b"one\ntheirs\nmine\n"


def test_bounds_that_another_set_hold_for_an_append(place: str) -> None:
    micros = 1_704_070_800_000_000  # an hour after the first row
    race(
        place,
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.change("/s", min_override=micros),
    )
    scope = mp.open(place).read()
    assert scope.row("/s").min_override == micros
    assert sorted(r["level"] for r in scope.to_arrow("/s").to_pylist()) == [1.0, 2.0, 8.0]


def test_an_append_behind_a_rename_keeps_the_new_name(place: str) -> None:
    race(
        place,
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.move("/s", "/renamed"),
    )
    scope = mp.open(place).read()
    assert not scope.exists("/s")
    assert scope.to_arrow("/renamed").num_rows == 4


def test_what_is_written_and_moved_goes_behind_maintenance(place: str, pond: Pond) -> None:
    for number in range(10):
        committed(pond, appending(10 + number))
    tx = mp.open(place).write()
    tx.append_series("/s", measured(30))
    tx.move("/s", "/e/s")
    assert [item.path for item in mp.open(place).maintain().compacted][:1] == ["/s"]
    tx.commit()
    scope = mp.open(place).read()
    assert scope.to_arrow("/e/s").num_rows == 14
    assert scope.to_arrow("/e/s@v12").num_rows == 1
    check_tables(mp.open(place))


def test_a_full_disk_is_no_conflict(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails while a commit is staged again is told as what it is."""
    tx = mp.open(place).write()
    tx.append_series("/s", measured(8))
    committed(mp.open(place), appending(9))
    tries = [0]
    inner = LocalStore.put

    def put(store: LocalStore, path: str, *args: Any, **named: Any) -> Any:
        if "_staged_commits" in path:
            tries[0] += 1
            if tries[0] == 2:
                raise StoreError("No space left on device", path=path)
        return inner(store, path, *args, **named)

    monkeypatch.setattr(LocalStore, "put", put)
    with pytest.raises(StoreError, match="No space"):
        tx.commit()
    monkeypatch.undo()
    assert mp.open(place)["/s"].to_arrow().num_rows == 4
    assert rubbish(place) == []


def test_an_append_behind_many_others(place: str) -> None:
    """Each lost race stages the commit again on top of what has come."""
    tx = mp.open(place).write()
    tx.append_series("/s", measured(100))
    other = mp.open(place)
    turns = [0]

    def overtake(where: str) -> None:
        if where == "before:oplog" and not turns[0]:
            turns[0] = 1
            for turn in range(12):
                committed(other, appending(turn + 10))

    steps.observe(overtake)
    done = tx.commit()
    steps.observe(None)
    assert done.txn_seq == 14
    scope = mp.open(place).read()
    assert [row.version for row in scope.versions("/s")] == list(range(1, 15))
    assert scope.to_arrow("/s").num_rows == 16
    check_tables(mp.open(place))
    assert rubbish(place) == []


def test_a_writer_that_is_always_overtaken_gives_up(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_, "MOST_ATTEMPTS", 3)
    monkeypatch.setattr("millpond.steward.committing.race.time.sleep", lambda seconds: None)
    other, pond = mp.open(place), mp.open(place)
    count = [0]
    inner = pond.oplog.commit

    def overtaken(*args: Any) -> Any:
        count[0] += 1
        number = count[0]
        committed(other, lambda tx: tx.write_bytes(f"/theirs-{number}", b""))
        return inner(*args)

    monkeypatch.setattr(pond.oplog, "commit", overtaken)
    tx = pond.write()
    tx.append_series("/s", measured(100))
    with pytest.raises(WriteConflictError, match="3 attempts to commit were overtaken"):
        tx.commit()
    assert mp.open(place).read().to_arrow("/s").num_rows == 3
    assert rubbish(place) == []


# Writers that are in each other's way

Conflict = tuple[str, "Callable[[WriteScope], Any]", "Callable[[WriteScope], Any]", str, str]
CONFLICTS: list[Conflict] = [
    (
        "a file is written twice",
        lambda tx: tx.write_bytes("/a/file", b"mine"),
        lambda tx: tx.write_bytes("/a/file", b"theirs"),
        "/a/file",
        "transaction 2 has written /a/file meanwhile",
    ),
    (
        "a table is written twice",
        lambda tx: tx.write_table("/t", [{"id": 8}]),
        lambda tx: tx.write_table("/t", [{"id": 9}]),
        "/t",
        "transaction 2 has written /t meanwhile",
    ),
    (
        "a file is removed",
        lambda tx: tx.write_bytes("/a/file", b"mine"),
        lambda tx: tx.remove("/a/file"),
        "/a/file",
        "transaction 2 has removed /a/file meanwhile",
    ),
    (
        "a series is removed",
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.remove("/s"),
        "/s",
        "transaction 2 has removed /s meanwhile",
    ),
    (
        "a series is moved away",
        lambda tx: tx.append_series("/s", measured(8)),
        lambda tx: tx.move("/s", "/e/s"),
        "/s",
        "transaction 2 has moved /s meanwhile",
    ),
    (
        "a file is moved",
        lambda tx: tx.write_bytes("/a/file", b"mine"),
        lambda tx: tx.move("/a/file", "/e/file"),
        "/a/file",
        "transaction 2 has moved /a/file meanwhile",
    ),
    (
        "a file gets two names",
        lambda tx: tx.move("/a/file", "/a/mine"),
        lambda tx: tx.move("/a/file", "/a/theirs"),
        "/a/mine",
        "transaction 2 has changed /a/mine meanwhile",
    ),
    (
        "a name is given twice",
        lambda tx: tx.write_bytes("/x", b"mine"),
        lambda tx: tx.write_bytes("/x", b"theirs"),
        "/x",
        "transaction 2 has put a data at /x meanwhile",
    ),
    (
        "a table and a directory of the same name",
        lambda tx: tx.write_table("/x", [{"a": 1}]),
        lambda tx: tx.make_directory("/x"),
        "/x",
        "transaction 2 has put a directory at /x meanwhile",
    ),
    (
        "a directory is removed",
        lambda tx: tx.write_bytes("/a/b/more", b"mine"),
        lambda tx: tx.remove("/a", recursive=True),
        "/a/b/more",
        "transaction 2 has removed a, where /a/b/more is",
    ),
    (
        "something is put into a directory that is removed",
        lambda tx: tx.remove("/a", recursive=True),
        lambda tx: tx.write_bytes("/a/b/more", b"theirs"),
        "/a",
        "transaction 2 has changed what is in /a meanwhile",
    ),
    (
        "a file is removed twice",
        lambda tx: tx.remove("/a/file"),
        lambda tx: tx.remove("/a/file"),
        "/a/file",
        "transaction 2 has removed /a/file meanwhile",
    ),
    (
        "a series is restored",
        lambda tx: tx.restore("/s@v1"),
        lambda tx: tx.append_series("/s", measured(8)),
        "/s",
        "transaction 2 has written /s meanwhile",
    ),
    (
        "bounds are set twice",
        lambda tx: tx.change("/s", min_override=5),
        lambda tx: tx.change("/s", min_override=6),
        "/s",
        "transaction 2 has changed /s meanwhile",
    ),
    (
        "two columns of one name and two types",
        lambda tx: tx.append_series("/s", [{**measured(8)[0], "new": "text"}]),
        lambda tx: tx.append_series("/s", [{**measured(9)[0], "new": 1.5}]),
        "/s",
        "/s was changed meanwhile: both transactions have changed its columns",
    ),
]


@pytest.mark.parametrize(
    ("mine", "theirs", "path", "message"), [c[1:] for c in CONFLICTS], ids=[c[0] for c in CONFLICTS]
)
def test_conflicts_name_the_node(
    place: str,
    mine: Callable[[WriteScope], Any],
    theirs: Callable[[WriteScope], Any],
    path: str,
    message: str,
) -> None:
    tx = mp.open(place).write()
    tx.write_bytes("/beside", b"this goes back, too")
    mine(tx)
    committed(mp.open(place), theirs)
    expected = seen(mp.open(place).read())
    with pytest.raises(WriteConflictError) as caught:
        tx.commit()
    assert (caught.value.path, caught.value.txn_seq) == (path, 2)
    assert message in caught.value.message
    assert "try again" in str(caught.value.hint)
    assert seen(mp.open(place).read()) == expected
    assert rubbish(place) == []
    assert mp.open(place).control.records()[-1]["record_type"] == "failed"
    # Once more, and knowing what is there now, the same can be done where it still makes sense.
    check_tables(mp.open(place))


# Versions


def test_one_version_of_a_series_is_what_it_brought(pond: Pond) -> None:
    committed(pond, lambda tx: tx.append_series("/s", measured(10, 2)))
    committed(pond, lambda tx: tx.append_series("/s", measured(20)))
    scope = pond.read()
    counts = [scope.to_arrow(f"/s@v{version}").num_rows for version in (1, 2, 3)]
    assert counts == [3, 2, 1]
    assert scope.to_arrow("/s").num_rows == 6
    assert [pond.read(as_of=n).to_arrow("/s").num_rows for n in (1, 2, 3)] == [3, 5, 6]
    with pytest.raises(PathNotFoundError, match="has no version 4"):
        scope.to_arrow("/s@v4")
    start = measured(11)[0]["timestamp"]
    assert scope.to_arrow("/s@v2", time_start=start).num_rows == 1
    assert scope.to_arrow("/s@v2", columns=["level"]).to_pydict() == {"level": [10.0, 11.0]}


def test_one_version_of_a_series_whose_files_were_rearranged(place: str, pond: Pond) -> None:
    for number in range(10):
        committed(pond, appending(10 + number))
    assert [item.path for item in pond.maintain().compacted][:1] == ["/s"]
    for each in (pond, mp.open(place)):
        scope = each.read()
        assert scope.delta("/s").files().num_rows == 1
        assert scope.to_arrow("/s").num_rows == 13
        assert rows_of_versions(scope) == [3] + [1] * 10
    committed(pond, appending(30))
    assert rows_of_versions(pond.read()) == [3] + [1] * 11
    committed(pond, restoring("/s@v11"))
    assert pond["/s"].to_arrow().to_pylist() == pond["/s@v11"].to_arrow().to_pylist()
    assert pond["/s"].to_arrow().num_rows == 1
    committed(pond, lambda tx: tx.restore("/s", as_of=11))
    assert pond["/s"].to_arrow().num_rows == 13
    check_tables(mp.open(place))


def rows_of_versions(scope: ReadScope) -> list[int]:
    return [scope.to_arrow(f"/s@v{row.version}").num_rows for row in scope.versions("/s")]


def test_one_version_of_a_series_of_bytes(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/log", b"two\n", series=True))

    def twice(tx: WriteScope) -> None:
        tx.write_bytes("/log", b"three\n", series=True)
        tx.write_bytes("/log", b"x" * 100_000, series=True)
        assert tx.read_bytes("/log") == b"one\ntwo\nthree\n" + b"x" * 100_000

    committed(pond, twice)
    scope = pond.read()
    assert scope.read_bytes("/log") == b"one\ntwo\nthree\n" + b"x" * 100_000
    assert scope.read_bytes("/log@v2") == b"two\n"
    assert scope.read_bytes("/log@v3") == b"three\n" + b"x" * 100_000
    assert pond.read(as_of=2).read_bytes("/log") == b"one\ntwo\n"


def test_versions_of_files_are_restored(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/a/file", b"y" * 100_000))
    committed(pond, lambda tx: tx.restore("/a/file@v1"))
    assert pond["/a/file"].read_bytes() == b"old"
    committed(pond, lambda tx: tx.restore("/a/file@v2"))
    scope = pond.read()
    assert scope.read_bytes("/a/file") == b"y" * 100_000
    assert [row.version for row in scope.versions("/a/file")] == [1, 2, 3, 4]


def test_a_version_of_a_series_is_restored_as_it_is_read(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/log", b"two\n", series=True))
    committed(pond, lambda tx: tx.append_series("/s", measured(10, 2)))
    committed(pond, lambda tx: tx.append_series("/s", measured(20)))
    before = pond["/log@v2"].read_bytes(), pond["/s@v2"].to_arrow()
    committed(pond, lambda tx: (tx.restore("/log@v2"), tx.restore("/s@v2")))
    assert (pond["/log"].read_bytes(), pond["/s"].to_arrow()) == before
    assert (pond["/log@v3"].read_bytes(), pond["/s@v4"].to_arrow()) == before
    assert pond["/log"].stat().size == len(before[0])
    stat = pond["/s"].stat()
    assert stat.min_event_time == measured(10)[0]["timestamp"]
    committed(pond, lambda tx: tx.append_series("/s", measured(30)))
    assert pond["/s"].to_arrow().num_rows == 3
    assert pond["/s@v4"].to_arrow() == before[1]


@pytest.mark.parametrize("path", ["/s@v1", "/nothing"])
def test_a_series_as_of_what_is_not_there(pond: Pond, path: str) -> None:
    with pond.write() as tx, pytest.raises((PathSyntaxError, PathNotFoundError)):
        tx.restore(path, as_of=1)


def test_another_node_is_not_restored_as_of_then(pond: Pond) -> None:
    committed(pond, lambda tx: tx.remove("/log"))
    committed(pond, lambda tx: tx.write_bytes("/log", b"new\n", series=True))
    with pond.write() as tx, pytest.raises(PathExistsError, match="another node was at /log"):
        tx.restore("/log", as_of=1)


def test_what_was_removed_is_restored_as_of_then(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/log", b"two\n", series=True))
    committed(pond, lambda tx: tx.remove("/log"))
    committed(pond, lambda tx: tx.restore("/log", as_of=1))
    assert pond["/log"].read_bytes() == b"one\n"


def test_a_series_of_bytes_is_restored_to_what_it_was(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/log", b"two\n", series=True))
    committed(pond, lambda tx: tx.write_bytes("/log", b"three\n", series=True))
    committed(pond, lambda tx: tx.restore("/log", as_of=2))
    scope = pond.read()
    assert scope.read_bytes("/log") == b"one\ntwo\n"
    assert scope.read_bytes("/log@v4") == b"one\ntwo\n"
    committed(pond, lambda tx: tx.write_bytes("/log", b"four\n", series=True))
    scope = pond.read()
    assert scope.read_bytes("/log") == b"one\ntwo\nfour\n"
    assert scope.read_bytes("/log@v5") == b"four\n"
    assert scope.read_bytes("/log@v3") == b"three\n"
    assert pond.read(as_of=3).read_bytes("/log") == b"one\ntwo\nthree\n"
    committed(pond, lambda tx: tx.restore("/log", as_of=3))
    assert pond["/log"].read_bytes() == b"one\ntwo\nthree\n"
    assert pond["/log"].stat().size == pond.read().children()["log"].size == 14
    assert [stat.size for stat in pond["/log"].versions()] == [4, 4, 6, 8, 5, 14]


def test_an_append_goes_behind_a_restored_series_of_bytes(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_bytes("/log", b"two\n", series=True))
    race(
        place,
        lambda tx: tx.write_bytes("/log", b"mine\n", series=True),
        lambda tx: tx.restore("/log@v1"),
    )
    assert mp.open(place)["/log"].read_bytes() == b"one\nmine\n"


def test_a_series_is_restored_to_what_it_was(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.append_series("/s", measured(10, 2)))
    committed(pond, lambda tx: tx.append_series("/s", measured(20)))
    committed(pond, lambda tx: tx.restore("/s", as_of=2))
    scope = pond.read()
    assert scope.to_arrow("/s").num_rows == scope.to_arrow("/s@v4").num_rows == 5
    stat = scope.stat("/s")
    assert stat.min_event_time == measured(0)[0]["timestamp"]
    assert stat.max_event_time == measured(11)[0]["timestamp"]
    committed(pond, lambda tx: tx.append_series("/s", measured(30)))
    scope = pond.read()
    assert scope.to_arrow("/s").num_rows == 6
    assert scope.to_arrow("/s@v5").num_rows == 1
    assert scope.to_arrow("/s@v3").num_rows == 1
    committed(pond, lambda tx: tx.restore("/s", as_of=5))  # which it is already
    assert pond["/s@v6"].to_arrow().num_rows == pond["/s"].to_arrow().num_rows == 6
    check_tables(mp.open(place))


def test_a_table_is_restored_with_its_columns(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 2, "extra": True}], dropped=["name"]))
    committed(
        pond, lambda tx: tx.write_table("/t", [{"key": 3, "extra": False}], renamed={"id": "key"})
    )
    for version, rows in (
        (1, [{"id": 1, "name": "one"}]),
        (2, [{"id": 2, "extra": True}]),
        (3, [{"key": 3, "extra": False}]),
        (1, [{"id": 1, "name": "one"}]),
    ):
        committed(pond, restoring(f"/t@v{version}"))
        assert pond["/t"].to_arrow().to_pylist() == rows
        check_tables(mp.open(place))
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 9, "name": "nine", "more": 1.5}]))
    assert pond["/t"].to_arrow().to_pylist() == [{"id": 9, "name": "nine", "more": 1.5}]
    assert pond["/t@v3"].to_arrow().to_pylist() == [{"key": 3, "extra": False}]
    check_tables(mp.open(place))


def test_what_was_removed_is_restored(place: str, pond: Pond) -> None:
    before = seen(pond.read())
    committed(pond, lambda tx: tx.make_link("/link", "/t"))
    for path in ("/t", "/s", "/log", "/link", "/a/file", "/a"):
        committed(pond, removing(path))
        assert not pond["/a" if path.startswith("/a") else path].exists() or path == "/a/file"
    for path in ("/a", "/a/file", "/link", "/log", "/s", "/t"):
        committed(pond, restoring(path))
    after = seen(mp.open(place).read())
    assert after.pop("/link") == ("symlink", 1, "/t")
    assert after == before
    assert pond["/link"].to_arrow().num_rows == 1


def test_a_version_of_what_was_removed_is_restored(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 2, "name": "two"}]))
    committed(pond, lambda tx: tx.remove("/t"))
    committed(pond, lambda tx: tx.restore("/t@v1"))
    assert pond["/t"].to_arrow().to_pylist() == [{"id": 1, "name": "one"}]
    assert pond["/t"].stat().version == 3


def test_a_link_leads_to_the_versions_behind_it(pond: Pond) -> None:
    committed(pond, lambda tx: tx.make_link("/link", "/a/file"))
    committed(pond, lambda tx: tx.write_bytes("/link", b"new"))
    assert pond["/link@v1"].read_bytes() == b"old"
    committed(pond, lambda tx: tx.restore("/link@v1"))
    assert pond["/a/file"].read_bytes() == b"old"
    assert pond.read().stat("/link", follow=False).target == "/a/file"


def test_directories_have_no_versions(pond: Pond) -> None:
    with pond.write() as tx, pytest.raises(PathTypeError, match="has no versions to restore"):
        tx.restore("/a@v1")


def test_a_version_whose_files_are_gone_is_not_restored(place: str, pond: Pond) -> None:
    from pathlib import Path

    committed(pond, lambda tx: tx.write_table("/t", [{"id": 2, "name": "two"}]))
    node = pond.read().row("/t").node_id
    old = pond.read().delta("/t@v1").files()["path"].to_pylist()
    for path in old:
        (Path(place) / "tables" / node / path).unlink()
    with pond.write() as tx, pytest.raises(PathTypeError, match="is not kept any more") as caught:
        tx.restore("/t@v1")
    assert "/t@v1" in caught.value.message
    assert pond["/t"].to_arrow().to_pylist() == [{"id": 2, "name": "two"}]


def test_facts_that_can_not_be_changed(pond: Pond) -> None:
    with pond.write() as tx, pytest.raises(PathTypeError, match="'version' of /s can't be changed"):
        tx.change("/s", version=7)


def test_what_is_made_and_removed_leaves_nothing(place: str, pond: Pond) -> None:
    def both(tx: WriteScope) -> None:
        tx.write_table("/x", [{"a": 1}])
        tx.remove("/x")
        tx.write_bytes("/y", b"1")

    committed(pond, both)
    assert rubbish(place) == []
    assert not pond["/x"].exists()


def test_what_is_written_and_removed_can_be_restored_as_it_was_written(pond: Pond) -> None:
    def both(tx: WriteScope) -> None:
        tx.write_table("/t", [{"id": 2, "name": "two"}])
        tx.remove("/t")

    committed(pond, both)
    committed(pond, lambda tx: tx.restore("/t"))
    assert pond["/t"].to_arrow().to_pylist() == [{"id": 2, "name": "two"}]
    assert pond["/t"].stat().version == 2


def test_what_is_written_and_moved_comes_along(place: str, pond: Pond) -> None:
    def both(tx: WriteScope) -> None:
        tx.write_table("/t", [{"id": 2, "name": "two"}])
        tx.append_series("/s", measured(10))
        tx.move("/t", "/e/t")
        tx.move("/s", "/e/s")
        tx.append_series("/e/s", measured(11))
        assert tx.to_arrow("/e/s").num_rows == 5

    committed(pond, both)
    scope = mp.open(place).read()
    assert scope.to_arrow("/e/t").to_pylist() == [{"id": 2, "name": "two"}]
    assert scope.to_arrow("/e/t@v1").to_pylist() == [{"id": 1, "name": "one"}]
    assert scope.to_arrow("/e/s").num_rows == 5
    assert scope.to_arrow("/e/s@v2").num_rows == 2
    check_tables(mp.open(place))
    assert rubbish(place) == []

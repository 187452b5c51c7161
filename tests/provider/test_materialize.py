"""`materialize`: a computed path written down, and written again only if its rows have changed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.calls import Cli
from tests.provider.ponds import append, at, make, rows_of
from tests.steward.processes import CONTEXT

import millpond as mp
from millpond.base.errors import FactoryConfigError, PathTypeError
from millpond.steward.committing.postcommit import PostCommitRun
from millpond.steward.running import run_node
from millpond.steward.write import WriteScope

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    append(made, "/s", [{"timestamp": at(hour), "x": hour} for hour in range(3)])
    make(made, "/j", "timeseries-join", inputs=[{"pattern": "/s", "scope": "S"}])
    return made


def test_only_changes_are_written(pond: Pond) -> None:
    make(pond, "/m", "materialize", source="/j", target="/out/joined")
    run_node(pond, "/m")
    assert rows_of(pond, "/out/joined") == rows_of(pond, "/j")
    before = pond.read().txn_seq
    run_node(pond, "/m")
    assert pond.read().txn_seq == before
    append(pond, "/s", [{"timestamp": at(9), "x": 9}])
    assert len(rows_of(pond, "/out/joined")) == 3
    run_node(pond, "/m")
    assert rows_of(pond, "/out/joined") == rows_of(pond, "/j")
    assert pond.read().stat("/out/joined").version == 2
    run_node(pond, "/m", "always")
    assert pond.read().stat("/out/joined").version == 3


def test_after_commits(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_directory("/etc/system.d", parents=True)
        tx.make_factory("/etc/system.d/50-joined", "materialize", {"source": "/j", "target": "/t"})
        tx.commit()
    assert len(rows_of(pond, "/t")) == 3
    append(pond, "/s", [{"timestamp": at(9), "x": 9}])
    assert len(rows_of(pond, "/t")) == 4
    with pond.write() as tx:
        tx.write_bytes("/other", b"x")
        tx.commit()
    assert pond.read().stat("/t").version == 2, "what has not changed is not written"


def test_bad_configurations(pond: Pond) -> None:
    for config, message in (
        ({}, "source: it is missing"),
        ({"source": "/a", "target": "/"}, "target: the root can't be"),
        ({"source": "a", "target": "/b"}, "source: 'a' does not begin with /"),
    ):
        with pytest.raises(FactoryConfigError, match=message):
            make(pond, "/m", "materialize", **config)
    with pytest.raises(PathTypeError, match="can't be run"):
        run_node(pond, "/j")


def test_a_command_that_fails_leaves_no_node(pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/raw.txt", b"no rows")
        tx.commit()
    cli, place = Cli(), str(pond.location)
    for source, target in (("/j", "/j"), ("/raw.txt", "/out"), ("/none", "/out")):
        done = cli("--pond", place, "materialize", source, target)
        assert done.exit_code not in (0, 1), done.output
        scope = pond.read()
        assert not scope.exists("/out")
        assert not scope.exists(f"/etc/materialize{target}")
    before = pond.read().txn_seq
    cli.ok("--pond", place, "materialize", "/j", "/out")
    assert rows_of(pond, "/out") == rows_of(pond, "/j")
    assert pond.read().txn_seq == before + 1, "the node and its rows are one transaction"
    cli.ok("--pond", place, "materialize", "--after-commits", "/j", "/deep/er/out")
    assert rows_of(pond, "/deep/er/out") == rows_of(pond, "/j")
    assert pond.read().txn_seq == before + 2


# Several writers


def hooked(pond: Pond, target: str = "/t") -> None:
    with pond.write() as tx:
        tx.make_directory("/etc/system.d", parents=True)
        tx.make_factory("/etc/system.d/50", "materialize", {"source": "/j", "target": target})
        tx.commit()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_refresh_that_loses_starts_again(
    pond: Pond, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """The refresh of an older state commits while that of a newer one is computed."""
    if is_new:
        pond.control.set({"factory.materialize.mode": "off"})
    hooked(pond)
    pond.control.set({"factory.materialize.mode": "refresh"})
    older, newer = threading.Event(), threading.Event()
    write_table, is_older = WriteScope.write_table, threading.local()

    def slow(tx: WriteScope, path: str, rows: Any) -> Any:
        if getattr(is_older, "yes", False):
            older.set()
            assert newer.wait(60)
        elif not newer.is_set():
            newer.set()
            thread.join(60)
        return write_table(tx, path, rows)

    def append_older() -> None:
        is_older.yes = True
        append(mp.open(pond.location), "/s", [{"timestamp": at(8), "x": 8}])

    monkeypatch.setattr(WriteScope, "write_table", slow)
    thread = threading.Thread(target=append_older)
    thread.start()
    assert older.wait(60)
    append(mp.open(pond.location), "/s", [{"timestamp": at(9), "x": 9}])
    thread.join()
    assert len(rows_of(pond, "/j")) == 5
    assert rows_of(pond, "/t") == rows_of(pond, "/j")


def test_a_refresh_never_writes_an_older_state_over_a_newer_one(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another commit and its refresh happen between the steps of one."""
    hooked(pond)
    begin, left = PostCommitRun.write, [9]

    def overtaken(run: PostCommitRun, message: str | None = None) -> WriteScope:
        if left:
            append(mp.open(pond.location), "/s", [{"timestamp": at(left.pop()), "x": 9}])
        return begin(run, message)

    monkeypatch.setattr(PostCommitRun, "write", overtaken)
    append(pond, "/s", [{"timestamp": at(8), "x": 8}])
    assert len(rows_of(pond, "/j")) == 5
    assert rows_of(pond, "/t") == rows_of(pond, "/j")


def test_a_refresh_that_failed_is_made_up_for_by_the_next_commit(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked(pond)

    def fail(*args: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(WriteScope, "write_table", fail)
        append(pond, "/s", [{"timestamp": at(8), "x": 8}])
    assert len(rows_of(pond, "/t")) == 3
    with pond.write() as tx:
        tx.write_bytes("/other", b"x")
        tx.commit()
    assert rows_of(pond, "/t") == rows_of(pond, "/j")


def write_some(location: str, first: int) -> None:
    pond = mp.open(location)
    for hour in range(first, first + 3):
        append(pond, "/s", [{"timestamp": at(hour), "x": hour}])


def test_processes_that_write_at_once_leave_the_newest_state(pond: Pond) -> None:
    hooked(pond, "/new/published")
    processes = [
        CONTEXT.Process(target=write_some, args=(pond.location, 10 + 3 * number))
        for number in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(rows_of(pond, "/j")) == 15
    assert rows_of(pond, "/new/published") == rows_of(pond, "/j")


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_a_chain_is_fresh_in_any_order_of_paths(pond: Pond, order: str) -> None:
    """Each table is made of the one before it, whatever their nodes are named."""
    append(pond, "/raw", [{"timestamp": at(0), "x": 0.0}])
    sources = {"a": "/raw", "b": "/published/a", "c": "/published/b"}
    for place, name in enumerate(order):
        make(pond, f"/{name}", "timeseries-join", inputs=[{"pattern": sources[name]}])
        with pond.write() as tx:
            tx.make_directory("/etc/system.d", parents=True)
            config = {"source": f"/{name}", "target": f"/published/{name}"}
            tx.make_factory(f"/etc/system.d/{place}-{name}", "materialize", config)
            tx.commit()
    for hour in (1, 2):
        append(pond, "/raw", [{"timestamp": at(hour), "x": float(hour)}])
        scope = pond.read()
        for name in "abc":
            assert scope.to_arrow(f"/published/{name}")["x"].to_pylist() == list(range(hour + 1))
    before = pond.read().txn_seq
    with pond.write() as tx:
        tx.write_bytes("/note", b"")
        tx.commit()
    assert pond.read().txn_seq == before + 1, "nothing has changed, and nothing is written"

"""What scopes promise: when a write is seen, who may use what, and what stays as it was."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.deeds import deed, measured, seen

import millpond as mp
from millpond.base.errors import PathExistsError, PathNotFoundError, ScopeError, WriteConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(place: str) -> Pond:
    return mp.open(place)


# When a write is seen


def test_nothing_is_seen_before_the_commit_and_everything_after(place: str, pond: Pond) -> None:
    other = mp.open(place)
    before = seen(pond.read())
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        tx.append_series("/s", measured(50))
        tx.write_table("/t", [{"id": 5, "name": "five"}])
        for each in (pond, other, mp.open(place)):
            assert seen(each.read()) == before
        made = tx.commit()
        for each in (pond, other, mp.open(place)):
            scope = each.read()
            assert scope.txn_seq == made.txn_seq == 2
            assert scope.read_bytes("/new") == b"1"
            assert scope.to_arrow("/s").num_rows == 4
            assert scope.to_arrow("/t").to_pylist() == [{"id": 5, "name": "five"}]


def test_a_transaction_reads_its_own_writes(pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/a/file", b"mine")
        tx.append_series("/s", measured(50))
        tx.write_table("/t", [{"id": 5, "name": "five"}])
        tx.write_table("/t2", [{"x": 1}])
        tx.move("/a/b", "/e/b")
        tx.remove("/a/gone")
        assert tx.read_bytes("/a/file") == b"mine"
        assert tx["/a/file@v1"].read_bytes() == b"old"
        assert tx["/s"].to_arrow().num_rows == 4
        assert tx["/s@v1"].to_arrow().num_rows == 3
        assert tx["/s@v2"].to_arrow().num_rows == 1
        assert tx["/t"].to_arrow().to_pylist() == [{"id": 5, "name": "five"}]
        assert tx["/t@v1"].to_arrow().to_pylist() == [{"id": 1, "name": "one"}]
        assert tx["/t2"].to_arrow().to_pylist() == [{"x": 1}]
        assert tx.read_bytes("/e/b/deep") == b"moved with its directory"
        assert not tx.exists("/a/gone")
        assert not tx.exists("/a/b")
        # It is written to again after it was read.
        tx.append_series("/s", measured(60))
        tx.write_table("/t", [{"id": 6, "name": "six"}])
        assert tx["/s"].to_arrow().num_rows == 5
        assert tx["/s@v2"].to_arrow().num_rows == 2
        tx.commit()
    scope = pond.read()
    assert [row.version for row in scope.versions("/s")] == [1, 2]
    assert scope.to_arrow("/s").num_rows == 5
    assert scope.to_arrow("/s@v2").num_rows == 2
    assert scope.to_arrow("/t").to_pylist() == [{"id": 6, "name": "six"}]
    assert [row.version for row in scope.versions("/t")] == [1, 2]


def test_writes_of_others_are_not_seen_by_an_open_transaction(place: str, pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/mine", b"1")
        deed(mp.open(place))
        assert not tx.exists("/new")
        assert tx.to_arrow("/s").num_rows == 3
        assert tx.commit().attempts == 2
    assert pond.read().exists("/new")


# How a transaction ends


def test_leaving_without_commit_takes_everything_back_and_says_so(place: str, pond: Pond) -> None:
    before = seen(pond.read())

    def forget() -> None:
        with pond.write() as tx:
            tx.write_bytes("/new", b"1")
            tx.append_series("/s", measured(50))

    with pytest.raises(ScopeError, match=r"left without commit\(\)") as caught:
        forget()
    assert "rollback()" in str(caught.value.hint)
    assert seen(mp.open(place).read()) == before
    assert pond.control.records()[-1]["record_type"] == "failed"


def test_exceptions_pass_through(place: str, pond: Pond) -> None:
    before = seen(pond.read())

    def fail() -> None:
        with pond.write() as tx:
            tx.write_bytes("/new", b"1")
            raise ZeroDivisionError("division by zero")

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen(mp.open(place).read()) == before
    last = pond.control.records()[-1]
    assert (last["record_type"], last["error_message"]) == (
        "failed",
        "ZeroDivisionError: division by zero",
    )
    deed(pond)


def test_rolling_back_on_purpose_is_no_error(pond: Pond) -> None:
    before = seen(pond.read())
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        tx.rollback()
        tx.rollback()
    assert seen(pond.read()) == before


def test_a_transaction_that_does_nothing_leaves_no_trace(pond: Pond) -> None:
    records = len(pond.control.records())
    with pond.write():
        pass
    with pond.write() as tx:
        assert tx.read_bytes("/a/file") == b"old"
        done = tx.commit()
    assert (done.is_empty, done.txn_seq) == (True, 1)
    assert pond.read().txn_seq == 1
    assert len(pond.control.records()) == records


def test_a_transaction_is_over_after_its_end(pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        handle = tx["/new"]
        assert handle.read_bytes() == b"1"
        tx.commit()
        uses: list[Callable[[], Any]] = [
            lambda: tx.write_bytes("/new", b"2"),
            lambda: tx.read_bytes("/new"),
            tx.commit,
            handle.read_bytes,
        ]
        for use in uses:
            with pytest.raises(ScopeError, match="is over"):
                use()
    assert pond["/new"].read_bytes() == b"1"


def test_a_refused_step_leaves_no_trace(pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        with pytest.raises(PathExistsError):
            tx.make_directory("/a")
        with pytest.raises(PathNotFoundError):
            tx.write_bytes("/nowhere/file", b"1")
        tx.commit()
    assert pond.read().read_bytes("/new") == b"1"
    assert pond.read().txn_seq == 2


# Read scopes


def test_a_scope_is_valid_for_ever(place: str, pond: Pond) -> None:
    old = pond.read()
    before = seen(old)
    handle = pond["/s"]
    assert handle.to_arrow().num_rows == 3
    deed(mp.open(place))
    deeds = mp.open(place)
    with deeds.write() as tx:
        tx.remove("/a", recursive=True)
        tx.remove("/s")
        tx.commit()
    assert seen(old) == before
    assert handle.to_arrow().num_rows == 3
    assert pond["/s"].to_arrow().num_rows == 3, "the implicit scope waits for refresh()"
    new = old.refresh()
    assert new is not old
    assert (old.txn_seq, new.txn_seq) == (1, 3)
    assert not new.exists("/s")
    pond.refresh()
    assert not pond["/s"].exists()
    assert handle.to_arrow().num_rows == 3
    assert new.refresh() is new, "there is nothing newer"


def test_a_refreshed_scope_of_the_past_is_of_now(pond: Pond) -> None:
    deed(pond)
    past = pond.read(as_of=1)
    assert not past.exists("/new")
    assert past.to_arrow("/s").num_rows == 3
    assert past.read_bytes("/a/file") == b"old"
    assert past.refresh().exists("/new")
    assert not past.exists("/new")


def test_own_commits_move_the_implicit_scope_on(pond: Pond) -> None:
    assert pond["/a/file"].read_bytes() == b"old"
    deed(pond)
    assert pond["/a/file"].read_bytes() == b"changed"


def test_a_read_scope_is_shared_by_threads(place: str, pond: Pond) -> None:
    scope = pond.read()
    expected = seen(scope)
    deed(mp.open(place))
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: seen(scope), range(16)):
            assert found == expected


def test_writing_in_a_read_scope_is_an_error(pond: Pond, tmp_path: Path) -> None:
    scope = pond.read()
    writes: list[Callable[[], Any]] = [
        lambda: scope.write_bytes("/x", b""),
        lambda: scope.write_file("/x", tmp_path),
        lambda: scope.write_table("/x", []),
        lambda: scope.append_series("/x", [], time_column="t"),
        lambda: scope.make_directory("/x", parents=True),
        lambda: scope.make_link("/x", "y"),
        lambda: scope.move("/x", "/y"),
        lambda: scope.remove("/x"),
        lambda: scope.restore("/x"),
        lambda: scope.change("/x", config="y"),
        lambda: scope.commit(),
        lambda: scope.rollback(),
    ]
    for write in writes:
        with pytest.raises(ScopeError, match="only reads") as caught:
            write()
        assert "pond.write()" in str(caught.value.hint)


def test_a_handle_belongs_to_its_thread(pond: Pond) -> None:
    handle = pond["/s"]
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ScopeError, match="belongs to another thread"):
            pool.submit(handle.to_arrow).result()
        assert pool.submit(lambda: pond["/s"].to_arrow().num_rows).result() == 3


# One transaction for each task


def test_a_second_transaction_in_the_same_task_is_an_error(pond: Pond) -> None:
    with pond.write() as tx:
        with pytest.raises(ScopeError, match="open in the same task"):
            pond.write()
        tx.write_bytes("/new", b"1")
        tx.commit()
        # It is over, so there can be another one inside the block.
        with pond.write() as again:
            again.write_bytes("/more", b"2")
            again.commit()
    with pond.write() as tx:
        tx.rollback()
    assert pond.read().txn_seq == 3


def test_a_forgotten_transaction_is_in_nobodys_way(pond: Pond) -> None:
    pond.write().write_bytes("/new", b"1")
    gc.collect()
    deed(pond)
    assert len(pond.recover().failed) == 1


def test_a_transaction_belongs_to_its_thread(pond: Pond) -> None:
    with pond.write() as tx, ThreadPoolExecutor(1) as pool:
        tx.write_bytes("/new", b"1")
        for use in (lambda: tx.write_bytes("/x", b""), tx.commit, lambda: tx.exists("/new")):
            with pytest.raises(ScopeError, match="another thread or task"):
                pool.submit(use).result()
        tx.commit()


def test_threads_write_at_the_same_time(place: str, pond: Pond) -> None:
    barrier = threading.Barrier(4)

    def append(number: int) -> int:
        barrier.wait()
        for turn in range(5):
            with pond.write(f"thread {number}") as tx:
                tx.append_series("/s", measured(1000 * number + turn))
                tx.write_bytes(f"/file-{number}-{turn}", b"x")
                tx.commit()
        return number

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(append, range(1, 5))) == [1, 2, 3, 4]
    scope = mp.open(place).read()
    levels = [int(row["level"]) for row in scope.to_arrow("/s").to_pylist()]
    expected = [0, 1, 2, *(1000 * n + turn for n in range(1, 5) for turn in range(5))]
    assert sorted(levels) == expected
    assert [row.version for row in scope.versions("/s")] == list(range(1, 22))
    assert sum(name.startswith("file-") for name in scope.children("/")) == 20


def test_tasks_have_transactions_of_their_own(pond: Pond) -> None:
    async def write(number: int) -> None:
        with pond.write() as tx:
            tx.write_bytes(f"/task-{number}", b"x")
            await asyncio.sleep(0)
            with pytest.raises(ScopeError, match="same task"):
                pond.write()
            await asyncio.sleep(0)
            tx.commit()

    async def both() -> None:
        await asyncio.gather(write(1), write(2))
        with pond.write() as tx:
            tx.write_bytes("/outer", b"x")

            async def steal() -> None:
                tx.write_bytes("/stolen", b"x")

            with pytest.raises(ScopeError, match="another thread or task"):
                await asyncio.create_task(steal())
            tx.commit()

    asyncio.run(both())
    found = pond.read().children("/")
    assert {"task-1", "task-2", "outer"} <= set(found)
    assert "stolen" not in found


# The pond


def test_close_refuses_new_work_and_leaves_the_rest_alone(pond: Pond) -> None:
    scope, handle = pond.read(), pond["/s"]
    tx = pond.write()
    tx.write_bytes("/new", b"1")
    pond.close()
    uses: list[Callable[[], Any]] = [
        pond.read,
        pond.write,
        pond.refresh,
        pond.recover,
        scope.refresh,
        lambda: pond["/s"],
    ]
    for use in uses:
        with pytest.raises(ScopeError, match="is closed"):
            use()
    assert scope.read_bytes("/a/file") == b"old"
    assert handle.to_arrow().num_rows == 3
    assert tx.commit().txn_seq == 2
    pond.close()


def test_a_pond_in_a_block_is_closed_behind_it(place: str) -> None:
    with mp.open(place) as pond:
        assert pond.read().exists("/s")
    with pytest.raises(ScopeError, match="is closed"):
        pond.read()


# What a transaction says of itself


def test_what_is_said_of_a_transaction_is_kept(pond: Pond) -> None:
    with pond.write("why", job={"number": 17}) as tx:
        tx.write_bytes("/new", b"1")
        tx.commit()
    last = pond.oplog.log.table().history()[0]["millpond"]
    assert (last["message"], last["job"], last["txn_seq"]) == ("why", {"number": 17}, 2)


def test_what_the_pond_says_of_a_transaction_nobody_else_says(pond: Pond) -> None:
    with pytest.raises(ScopeError, match="'txn_seq' is what the pond itself notes"):
        pond.write(txn_seq=5)
    deed(pond)


def test_a_conflict_ends_a_transaction(place: str, pond: Pond) -> None:
    tx = pond.write()
    tx.write_bytes("/a/file", b"mine")
    deed(mp.open(place))
    with pytest.raises(WriteConflictError) as caught:
        tx.commit()
    assert (caught.value.path, caught.value.txn_seq) == ("/a/file", 2)
    with pond.write() as tx:
        tx.write_bytes("/a/file", b"mine")
        tx.commit()
    assert pond["/a/file"].read_bytes() == b"mine"

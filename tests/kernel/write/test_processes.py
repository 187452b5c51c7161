"""Writers in processes of their own, of both kinds, on one table; and writers that are killed."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from tests.kernel.write.tables import actions, id_list, new_table, ours, theirs
from tests.kernel.write.worker import GROUP
from tests.kernel.write.writers import Writer

from millpond.kernel.table import delta_table

if TYPE_CHECKING:
    from pathlib import Path


def race(path: Path, ours_: int, each: int, theirs_: int, their_each: int) -> None:
    """Every commit has a version of its own, and every row is there once, for every reader."""
    table = new_table(path, partition_by=["site"])
    writers = [Writer("deleting", str(path), 10_000 * n, each) for n in range(ours_)]
    writers += [
        Writer("theirs", str(path), 10_000 * (ours_ + n), their_each) for n in range(theirs_)
    ]
    seen = 0
    while any(writer.process.poll() is None for writer in writers):
        # A reader beside them never sees a part of a commit, and never goes back.
        reader = delta_table(path)
        assert reader.version >= seen
        seen = reader.version
        rows = reader.scan(["id"]).to_arrow()["id"].to_pylist()
        assert len(set(rows)) == len(rows)
        time.sleep(0.2)
    for writer in writers:
        writer.join()
    expected = sorted(id_ for writer in writers for id_ in writer.came - writer.went)
    deletes = ours_ * (each // 5)
    assert len(expected) == GROUP * (ours_ * each + theirs_ * their_each) - deletes
    table = table.update()
    assert table.version == ours_ * each + deletes + theirs_ * their_each
    fresh = delta_table(path)
    assert id_list(ours(table)) == id_list(ours(fresh)) == id_list(theirs(path)) == expected
    ids_ = [info["txnId"] for info in fresh.history() if "txnId" in info]
    assert len(set(ids_)) == len(ids_)
    for version in range(0, table.version + 1, 7):
        past = delta_table(path, version=version)
        assert id_list(ours(past)) == id_list(theirs(path, version=version))


def test_two_kinds_of_writers_on_one_table(tmp_path: Path) -> None:
    race(tmp_path, ours_=3, each=5, theirs_=1, their_each=5)


@pytest.mark.slow
def test_many_writers_of_two_kinds_on_one_table(tmp_path: Path) -> None:
    race(tmp_path, ours_=4, each=15, theirs_=2, their_each=10)


def kill_writers(path: Path, rounds: int, rng: random.Random) -> None:
    """What stands is what was told, and perhaps one commit more, which is whole."""
    table = new_table(path, partition_by=["site"])
    stands: set[int] = set()
    gone: set[int] = set()
    for number in range(rounds):
        first = 10_000 * (number + 1)
        writer = Writer("deleting", str(path), first, 1000)
        writer.wait_ready()
        for _ in range(rng.randrange(3)):
            writer.wait_line()
        time.sleep(rng.random() * 0.2)
        writer.kill()
        table = delta_table(path)
        found = id_list(ours(table))
        assert id_list(theirs(path)) == found
        stands |= writer.came
        gone |= writer.went
        more = set(found) - stands
        less = (stands - gone) - set(found)
        assert len(more) in (0, GROUP), "a commit is there whole or not at all"
        assert len(less) <= 1, "at most one row was deleted by a commit that was not told"
        assert all(id_ - min(more) < GROUP for id_ in more)
        stands |= more
        gone |= less
        for version in range(table.version + 1):
            assert actions(path, version)["commitInfo"], "every commit can be read"
    with table.transaction() as tx:
        tx.append([{"id": 1, "site": "a"}])
    left = sorted((stands - gone) | {1})
    assert id_list(ours(table.update())) == id_list(theirs(path)) == left


def test_killed_writers_leave_a_whole_table(tmp_path: Path) -> None:
    kill_writers(tmp_path, 3, random.Random())


@pytest.mark.slow
def test_many_killed_writers_leave_a_whole_table(tmp_path: Path) -> None:
    kill_writers(tmp_path, 40, random.Random())

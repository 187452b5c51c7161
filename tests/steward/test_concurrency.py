"""Many writers and readers at once: nothing lost, nothing twice, and all that is seen is whole."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.crowd import KINDS, Crowd, read, write_and_tell
from tests.steward.processes import CONTEXT
from tests.steward.wholeness import check_tables, sweep

import millpond as mp
from millpond.steward.committing.turn import Turn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from millpond.testing.s3 import S3Server

BUCKETS = count()


def race(crowd: Crowd, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    said = crowd.run(results)
    seqs = sorted(seq for each in said for seq in each.get("seqs", ()))
    assert seqs == list(range(2, crowd.writers * crowd.each + 2)), "each has a number of its own"
    crowd.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_writers(tmp_path: Path, kind: str) -> None:
    race(Crowd(str(tmp_path / "pond"), kind, writers=4, each=8, readers=1), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_writers(tmp_path: Path, kind: str) -> None:
    race(Crowd(str(tmp_path / "pond"), kind, writers=16, each=50, readers=2), tmp_path)


def in_bucket(server: S3Server, kind: str, **sizes: int) -> Crowd:
    location = server.create_bucket(f"crowd-{next(BUCKETS)}") + "/pond"
    return Crowd(location, kind, endpoint=server.endpoint, **sizes)


@pytest.mark.s3
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_writers_in_an_object_store(s3_server: S3Server, tmp_path: Path, kind: str) -> None:
    race(in_bucket(s3_server, kind, writers=3, each=3, readers=1), tmp_path)


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_writers_in_an_object_store(s3_server: S3Server, tmp_path: Path, kind: str) -> None:
    race(in_bucket(s3_server, kind, writers=16, each=50, readers=2), tmp_path)


# Writers that are killed


def kill_writers(location: str, results: Path, kind: str, kills: int) -> None:
    """Whoever is killed is followed by another one; what was told stands, and all is whole."""
    crowd = Crowd(location, kind, writers=3, each=1000, readers=1)
    rng = random.Random()
    crowd.prepare()
    over = CONTEXT.Event()
    reader = CONTEXT.Process(target=read, args=(crowd, None, over, str(results / "reader")))
    reader.start()
    numbers = count()
    living = [start_writer(crowd, next(numbers), results) for _ in range(crowd.writers)]
    for _ in range(kills):
        time.sleep(rng.uniform(0.1, 0.6))
        victim = living.pop(rng.randrange(len(living)))
        victim.kill()
        victim.join()
        living.append(start_writer(crowd, next(numbers), results))
    for process in living:
        process.kill()
        process.join()
    over.set()
    reader.join()
    said = json.loads((results / "reader").read_text())
    assert "error" not in said, said["error"]
    told = [int(seq) for file in results.glob("told-*") for seq in file.read_text().split()]
    assert len(set(told)) == len(told)
    pond = mp.open(location)
    stands = KINDS[kind].check(pond.read())
    assert set(told) <= set(range(2, stands + 2))
    assert stands - len(told) <= kills + crowd.writers, "each may have been killed before it told"
    pond.recover()
    assert mp.open(location).recover().is_clean
    sweep(location)
    assert KINDS[kind].check(mp.open(location).read()) == stands
    check_tables(mp.open(location))


def start_writer(crowd: Crowd, number: int, results: Path) -> Any:
    process = CONTEXT.Process(
        target=write_and_tell, args=(crowd, number, str(results / f"told-{number}")), daemon=True
    )
    process.start()
    return process


@pytest.mark.parametrize("kind", ["one", "many"])
def test_killed_writers_leave_a_whole_pond(tmp_path: Path, kind: str) -> None:
    results = tmp_path / "results"
    results.mkdir()
    kill_writers(str(tmp_path / "pond"), results, kind, kills=6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_killed_writers_leave_a_whole_pond(tmp_path: Path, kind: str) -> None:
    results = tmp_path / "results"
    results.mkdir()
    kill_writers(str(tmp_path / "pond"), results, kind, kills=60)


# Turns


def hold(location: str, ready: Connection) -> None:
    turn = Turn(location)
    assert turn.take()
    ready.send("mine")
    signal.pause()


def test_a_turn_is_had_by_one_and_given_back_by_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.steward.committing.turn.PATIENCE_S", 0.05)
    location = str(tmp_path)
    here, there = CONTEXT.Pipe()
    other = CONTEXT.Process(target=hold, args=(location, there), daemon=True)
    other.start()
    assert here.recv() == "mine"
    mine = Turn(location)
    assert not mine.take(), "who waits for too long goes on without"
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert mine.take()
    assert mine.take()
    second = Turn(location)
    assert not second.take()
    mine.give()
    mine.give()
    assert second.take()
    second.give()


def test_where_there_is_no_queue_one_goes_on_without(tmp_path: Path) -> None:
    assert not Turn("s3://bucket/pond").take()
    (tmp_path / "cache").write_text("no directory")
    turn = Turn(str(tmp_path))
    assert not turn.take()
    assert not turn.is_mine
    turn.give()

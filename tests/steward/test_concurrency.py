"""Many writers and readers at once: nothing lost, nothing twice, and all that is seen is whole."""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest
from tests.steward.crowd import KINDS, Crowd
from tests.steward.processes import CONTEXT

from millpond.steward.turn import Turn

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
    race(in_bucket(s3_server, kind, writers=3, each=4, readers=1), tmp_path)


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_writers_in_an_object_store(s3_server: S3Server, tmp_path: Path, kind: str) -> None:
    race(in_bucket(s3_server, kind, writers=16, each=50, readers=2), tmp_path)


# Turns


def hold(location: str, ready: Connection) -> None:
    turn = Turn(location)
    assert turn.take()
    ready.send("mine")
    signal.pause()


def test_a_turn_is_had_by_one_and_given_back_by_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.steward.turn.PATIENCE_S", 0.05)
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

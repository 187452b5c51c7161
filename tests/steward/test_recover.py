"""What `recover` finds and mends, what it leaves alone, and that it does so once."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.steward.deeds import after_deed, deed, measured, seen
from tests.steward.places import At
from tests.steward.processes import CONTEXT, die, run
from tests.steward.wholeness import check_whole

import millpond as mp
from millpond.steward.committing import recover, steps
from millpond.steward.control import process

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pytest


def killed_at(location: str, place: str) -> None:
    pond = mp.open(location)
    steps.observe(At(place, 1, die))
    deed(pond)


def kinds(location: str) -> list[str]:
    """The records of the last transaction."""
    records = [row for row in mp.open(location).control.records() if row["txn_id"]]
    last = records[-1]["txn_id"]
    return [row["record_type"] for row in records if row["txn_id"] == last]


def test_a_pond_that_nothing_happened_to(place: str) -> None:
    found = mp.open(place).recover()
    assert found == recover.Recovery()
    assert found.is_clean
    deed(mp.open(place))
    assert mp.open(place).recover().is_clean


def test_what_died_before_the_moment_is_marked_as_failed(place: str) -> None:
    before = seen(mp.open(place).read())
    assert run(killed_at, place, "before:oplog") == -signal.SIGKILL
    pond = mp.open(place)
    found = pond.recover()
    assert (found.published, found.completed, len(found.failed)) == (0, (), 1)
    assert kinds(place) == ["begin", "failed"]
    message = pond.control.records()[-1]["error_message"]
    assert message == "it ended before it was committed; nothing of it was kept"
    assert pond.recover().is_clean
    check_whole(place, before)


def test_what_died_after_the_moment_is_finished(place: str) -> None:
    before = seen(mp.open(place).read())
    assert run(killed_at, place, "after:oplog") == -signal.SIGKILL
    pond = mp.Pond(place)  # opening would do the cheap part of it
    found = pond.recover()
    assert (found.published, found.completed, found.failed) == (3, (2,), ())
    assert kinds(place) == ["begin", "data_committed", "completed"]
    assert pond.recover().is_clean
    check_whole(place, after_deed(before))


def test_opening_a_pond_publishes_what_is_committed(place: str) -> None:
    before = seen(mp.open(place).read())
    assert run(killed_at, place, "after:oplog") == -signal.SIGKILL
    assert mp.open(place).read().txn_seq == 2
    found = mp.open(place).recover()
    assert (found.published, found.completed) == (0, (2,))
    check_whole(place, after_deed(before))


def test_who_goes_on_without_recovery_loses_nothing(place: str) -> None:
    """Also what others left behind is published by the next transaction, before its own."""
    before = seen(mp.open(place).read())
    other = mp.open(place)
    assert run(killed_at, place, "after:oplog") == -signal.SIGKILL
    with other.write() as tx:
        tx.write_bytes("/more", b"1")
        tx.commit()
    expected = {**after_deed(before), "/more": ("data", 1, b"1")}
    assert mp.open(place).recover().completed == (2,)
    check_whole(place, expected)


def test_many_recover_at_the_same_time(place: str) -> None:
    before = seen(mp.open(place).read())
    for where in ("after:stage", "before:oplog", "after:oplog"):
        assert run(killed_at, place, where) == -signal.SIGKILL
    ponds = [mp.Pond(place) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pond: pond.recover(), ponds))
    assert {seq for each in found for seq in each.completed} == {2}
    assert len({txn for each in found for txn in each.failed}) == 2
    assert mp.open(place).recover().is_clean
    check_whole(place, after_deed(before))


# What is still at work


def wait_in_a_transaction(location: str, told: Connection) -> None:
    pond = mp.open(location)
    with pond.write("slow") as tx:
        tx.append_series("/s", measured(50))
        told.send(tx.txn_id)
        told.recv()
        tx.commit()


def test_a_transaction_of_a_living_process_is_left_alone(place: str) -> None:
    here, there = CONTEXT.Pipe()
    writer = CONTEXT.Process(target=wait_in_a_transaction, args=(place, there), daemon=True)
    writer.start()
    txn_id = here.recv()
    found = mp.open(place).recover()
    assert found.running == (txn_id,)
    assert found.is_clean
    here.send("go on")
    writer.join()
    assert writer.exitcode == 0
    assert mp.open(place)["/s"].to_arrow().num_rows == 4
    assert kinds(place) == ["begin", "data_committed", "completed"]
    assert mp.open(place).recover().running == ()


def test_a_transaction_of_this_process_is_left_alone(place: str) -> None:
    pond = mp.open(place)
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        assert mp.open(place).recover().running == (tx.txn_id,)
        tx.commit()
    assert mp.open(place).recover() == recover.Recovery()


def test_transactions_of_other_machines_are_given_time(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(killed_at, place, "before:oplog") == -signal.SIGKILL
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    patient = mp.open(place).recover(patience_s=timedelta(hours=1).total_seconds())
    assert (len(patient.running), patient.failed) == (1, ())
    assert len(mp.open(place).recover().failed) == 1


def test_which_processes_are_at_work() -> None:
    me = process.this_process()
    assert process.is_at_work("unknown", me) is False
    owner: Any = type("Owner", (), {})()
    process.OPEN["known"] = owner
    assert process.is_at_work("known", me) is True
    del owner
    assert process.is_at_work("known", me) is False
    assert process.is_at_work("x", {}) is None
    assert process.is_at_work("x", {**me, "host": "elsewhere"}) is None
    parent = {"host": me["host"], "pid": os.getppid(), "started": None}
    assert process.is_at_work("x", parent) is True
    assert process.is_at_work("x", {**parent, "started": "at another time"}) is False
    assert process.is_at_work("x", {**me, "pid": 2**22 + 1}) is False


def test_a_process_that_has_ended_and_was_not_waited_for_is_dead() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays as a zombie
    dead = {**process.this_process(), "pid": pid}
    assert process.is_at_work("x", dead) is False
    os.waitpid(pid, 0)
    assert process.is_at_work("x", dead) is False

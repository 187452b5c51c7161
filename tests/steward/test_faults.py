"""Full disks, missing rights and Ctrl-C: before the moment all goes back, after it all stands."""

from __future__ import annotations

import errno
import logging
import os
import resource
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.deeds import BLOB, after_deed, deed, measured, seen
from tests.steward.places import At, is_after_the_moment
from tests.steward.processes import run
from tests.steward.wholeness import check_whole, rubbish

import millpond as mp
from millpond.base.errors import (
    MillpondError,
    ScopeError,
    StoreAccessError,
    StoreError,
    UnknownOutcomeError,
)
from millpond.base.store.local import LocalStore
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def forbidden() -> None:
    raise StoreAccessError("no access", path="p")


def interrupted() -> None:
    raise KeyboardInterrupt


PLACES = [
    (f"{when}:{name}", {"write": 8, "stage_table": 2, "publish_table": 2}.get(name, 1))
    for name in (*steps.STEPS, *steps.INSIDE)
    for when in ("before", "after")
]


@pytest.mark.parametrize(("where", "time"), PLACES)
@pytest.mark.parametrize("fault", [full, forbidden, interrupted])
def test_a_fault_at_each_place(
    place: str,
    where: str,
    time: int,
    fault: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    pond = mp.open(place)
    before, needless = seen(pond.read()), set(rubbish(place))
    stands = is_after_the_moment(where)
    steps.observe(At(where, time, fault))
    with caplog.at_level(logging.WARNING):
        raised = attempted(pond)
    steps.observe(None)
    # An error after the moment is no reason to say that the transaction failed.
    assert raised is not None if fault is interrupted else (raised is None) is stands
    assert seen(mp.open(place).read()) == (after_deed(before) if stands else before)
    assert seen(pond.read()) == (after_deed(before) if stands else before)
    if stands:
        is_told = "what follows was left undone" in caplog.text
        assert is_told is (fault is not interrupted and where != "after:oplog")
    else:
        left = {path for path in rubbish(place) if not path.startswith("blobs/")}
        assert left <= needless, "what was put for it is gone"
    found = mp.open(place).recover()
    ended = where == "after:completed" or (where == "after:oplog" and fault is not interrupted)
    assert found.completed == ((2,) if stands and not ended else ())
    assert found.failed == (), "who failed has said so"
    assert mp.open(place).recover().is_clean


def attempted(pond: Pond) -> BaseException | None:
    """The deed; what it raised."""
    try:
        deed(pond)
    except (OSError, KeyboardInterrupt) as error:
        return error
    return None


class FaultyPuts:
    """The n-th put of any local store fails, or all from then on, as on a disk that is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, *, lasts: bool) -> None:
        self.at, self.lasts, self.seen = at, lasts, 0
        inner = LocalStore.put

        def put(store: LocalStore, path: str, *args: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.at or (self.lasts and self.seen > self.at):
                raise StoreError("No space left on device", path=path, hint="free some")
            return inner(store, path, *args, **named)

        monkeypatch.setattr(LocalStore, "put", put)


def sweep_puts(place: str, prepared: Path, numbers: range, *, lasts: bool) -> None:
    before = seen(mp.open(place).read())
    outcomes = []
    for number in numbers:
        shutil.rmtree(place)
        shutil.copytree(prepared, place)
        with pytest.MonkeyPatch.context() as patch:
            pond = mp.open(place)
            faults = FaultyPuts(patch, number, lasts=lasts)
            raised = attempted(pond)
        if faults.seen < number:
            assert True in outcomes, "what follows the moment may fail"
            assert False in outcomes
            return
        outcomes.append(raised is None)
        expected = before if raised else after_deed(before)
        assert seen(mp.open(place).read()) == expected
        left = {path for path in rubbish(place) if not path.startswith("blobs/")}
        if raised:
            assert left == set(), "what was put for it is gone"
        mp.open(place).recover()
        assert mp.open(place).recover().is_clean
        check_whole(place, expected)
    pytest.fail("there are more puts than were tried")


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from-then-on"])
def test_some_puts_that_fail(place: str, prepared: Path, lasts: bool) -> None:
    sweep_puts(place, prepared, range(2, 100, 7), lasts=lasts)


@pytest.mark.slow
@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from-then-on"])
def test_every_put_that_fails(place: str, prepared: Path, lasts: bool) -> None:
    sweep_puts(place, prepared, range(1, 100), lasts=lasts)


# Real ones, in a process of its own


def write_much(location: str, result: str) -> None:
    """No file may become larger than some bytes: the system says so in the middle of a write."""
    pond = mp.open(location)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(BLOB) // 2, len(BLOB) // 2))
    try:
        deed(pond)
    except StoreError as error:
        Path(result).write_text(error.message)


def test_a_file_that_the_system_cuts_short(place: str, tmp_path: Path) -> None:
    before = seen(mp.open(place).read())
    result = tmp_path / "result"
    assert run(write_much, place, str(result)) == 0
    assert "File too large" in result.read_text()
    assert not rubbish(place)
    check_whole(place, before)


def write_as_another(location: str, result: str) -> None:
    """As a user who may look, but not write; who is root becomes somebody else."""
    if os.getuid() == 0:
        os.setuid(65534)
    pond = mp.open(location)
    found = [str(pond.read().to_arrow("/s").num_rows)]
    try:
        deed(pond)
    except MillpondError as error:
        found += [type(error).__name__, error.message]
    Path(result).write_text("\n".join(found))


def test_a_pond_that_may_only_be_read(place: str, tmp_path: Path) -> None:
    before = seen(mp.open(place).read())
    result = tmp_path / "result"
    result.touch(mode=0o666)
    result.chmod(0o666)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    everything = [Path(place), *Path(place).rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert run(write_as_another, place, str(result)) == 0
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    rows, kind, message = result.read_text().split("\n")[:3]
    assert (rows, kind) == ("3", "StoreAccessError")
    assert "Permission denied" in message
    check_whole(place, before)


# Answers that are lost


class Down(LocalStore):
    """A store of which nobody knows what it does."""

    def put(self, path: str, *args: Any, **named: Any) -> Any:
        if path.endswith(".json"):
            raise StoreError("the connection was closed", path=path)
        return super().put(path, *args, **named)

    def get(self, path: str) -> bytes:
        if path.endswith(".json"):
            raise StoreError("the connection was closed", path=path)
        return super().get(path)


def test_what_may_have_been_committed_is_left_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither are its files removed, nor is it said that it failed."""
    pond = mp.open(place)
    before = seen(pond.read())
    with pond.write() as tx:
        tx.append_series("/s", measured(50))
        monkeypatch.setattr(pond.oplog.log, "store", Down(f"{place}/data"))
        with pytest.raises(UnknownOutcomeError, match="not known whether version 2"):
            tx.commit()
    monkeypatch.undo()
    left = rubbish(place)
    assert any(path.startswith("tables/") and path.endswith(".parquet") for path in left)
    assert any("_staged_commits" in path for path in left)
    assert mp.open(place).control.records()[-1]["record_type"] == "begin"
    check_whole(place, before)


def test_a_lost_answer_to_the_commit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The put took effect, and its answer did not come."""
    pond = mp.open(place)
    before = seen(pond.read())
    inner = LocalStore.put

    def put(store: LocalStore, path: str, *args: Any, **named: Any) -> Any:
        found = inner(store, path, *args, **named)
        if store.root.name == "data" and path.endswith(".json"):
            raise StoreError("the connection was closed", path=path)
        return found

    monkeypatch.setattr(LocalStore, "put", put)
    assert deed(pond).txn_seq == 2
    monkeypatch.undo()
    check_whole(place, after_deed(before))


def test_an_interrupt_right_behind_the_commit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes when the commit is there, before anybody has noticed."""
    pond = mp.open(place)
    before = seen(pond.read())
    inner = LocalStore.put

    def put(store: LocalStore, path: str, *args: Any, **named: Any) -> Any:
        found = inner(store, path, *args, **named)
        if store.root.name == "data" and path.endswith(".json"):
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(LocalStore, "put", put)
    tx = pond.write()
    tx.append_series("/s", measured(50))
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    monkeypatch.undo()
    assert tx.result is not None
    assert tx.result.txn_seq == 2
    assert pond.recover().completed == (2,)
    kind, version, rows = before["/s"]
    check_whole(place, {**before, "/s": (kind, version + 1, [*rows, *measured(50)])})


# Steps that are refused, and steps that fail


def test_who_goes_on_after_a_failed_step_is_stopped(place: str) -> None:
    pond = mp.open(place)
    before = seen(pond.read())
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        steps.observe(At("after:write", 1, full))
        with pytest.raises(OSError, match="No space"):
            tx.append_series("/s", measured(50))
        steps.observe(None)
        with pytest.raises(ScopeError, match=r"a step of this transaction failed.*No space"):
            tx.commit()
    check_whole(place, before)

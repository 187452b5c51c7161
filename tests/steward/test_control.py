from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest
from tests.steward.processes import run

import millpond as mp
from millpond.base.clock import ManualClock
from millpond.base.errors import (
    ConfigError,
    IntegrityError,
    PluginError,
    PondError,
    StoreError,
    WriteConflictError,
)
from millpond.base.store.local import LocalStore
from millpond.steward.control import table as control_module
from millpond.steward.control import upkeep as control_upkeep
from millpond.steward.control.table import Control, Record

if TYPE_CHECKING:
    from millpond.steward.pond import Pond

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def write(pond: Pond, path: str, content: bytes = b"x", **info: Any) -> int:
    with pond.write("a file", **info) as tx:
        tx.write_bytes(path, content)
        return tx.commit().txn_seq


def fail(pond: Pond, path: str) -> None:
    tx = pond.write("a failure")
    tx.write_bytes(path, b"x")
    tx.rollback(ZeroDivisionError("by nothing"))


def kinds(pond: Pond) -> list[str]:
    rows = pond.control.records()
    return [row["record_type"] for row in rows if row["record_category"] == "transaction"]


def test_a_damaged_file_of_records_is_found(pond: Pond) -> None:
    write(pond, "/a")
    place = Path(pond.location) / "control"
    [file, *_] = sorted(place.rglob("record_category=transaction/*.parquet"))
    content = bytearray(file.read_bytes())
    for at in range(0, len(content), 11):
        broken = content.copy()
        broken[at] ^= 2
        file.write_bytes(broken)
        with pytest.raises(IntegrityError, match=f"{file.name}.* is damaged") as caught:
            mp.open(pond.location).control.records()
        assert "pond control rebuild" in str(caught.value.hint)


# Lifecycles


def test_a_transaction_begins_commits_and_completes(pond: Pond) -> None:
    seq = write(pond, "/a")
    begin, committed, completed = pond.control.records()[-3:]
    assert kinds(pond) == ["begin", "data_committed", "completed"]
    assert (begin["txn_seq"], begin["based_on_seq"]) == (None, 0)
    assert committed["txn_seq"] == completed["txn_seq"] == seq == 1
    assert completed["data_fs_version"] == pond.read().version
    assert {row["txn_id"] for row in (begin, committed, completed)} == {begin["txn_id"]}
    assert begin["timestamp"] < committed["timestamp"] < completed["timestamp"]
    assert json.loads(begin["cli_args"]) == "a file"
    assert {row["transaction_type"] for row in (begin, committed, completed)} == {"write"}


def test_what_failed_says_why(pond: Pond) -> None:
    fail(pond, "/a")
    other = mp.open(pond.location)
    mine, theirs = pond.write(), other.write()
    mine.write_bytes("/b", b"1")
    theirs.write_bytes("/b", b"2")
    theirs.commit()
    with pytest.raises(WriteConflictError):
        mine.commit()
    newest, won, first = pond.control.recent()
    assert (newest.state, won.state, first.state) == ("failed", "completed", "failed")
    assert newest.is_failed
    assert "WriteConflictError" in str(newest.error_message)
    assert first.error_message == "ZeroDivisionError: by nothing"
    assert first.txn_seq is None


def test_an_open_transaction_is_seen_by_others_until_it_ends(pond: Pond) -> None:
    tx = pond.write("long work")
    tx.write_bytes("/a", b"x")
    other = mp.open(pond.location)
    (found,) = other.control.incomplete()
    assert (found.state, found.cli_args, found.txn_id) == ("begin", "long work", tx.txn_id)
    assert not found.is_over
    assert found.environment["process"]["pid"] == os.getpid()
    assert other.control.records()[-1]["record_type"] == "begin"
    tx.commit()
    assert other.control.incomplete() == []
    assert kinds(other) == ["begin", "data_committed", "completed"]
    assert not list(Path(pond.location, "control", "_open").iterdir())


def test_a_note_that_a_dead_process_left_is_no_second_transaction(pond: Pond) -> None:
    tx = pond.write()
    tx.write_bytes("/a", b"x")
    note = Path(pond.location, "control", "_open", f"{tx.txn_id}.json")
    text = note.read_bytes()
    tx.commit()
    note.write_bytes(text)
    other = mp.open(pond.location)
    assert other.control.incomplete() == []
    assert kinds(other) == ["begin", "data_committed", "completed"]
    assert other.control.to_plan().to_arrow(engine="arrow").num_rows == len(other.control.records())
    assert other.recover().is_clean
    assert other.sync().closed == 1
    assert not note.exists()
    assert other.sync().is_clean


def test_one_transaction_costs_the_control_table_three_puts_and_no_sync(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(pond, "/a")
    put: list[str] = []
    synced: list[int] = []
    real_put, real_sync = LocalStore.put, os.fsync

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        real_sync(descriptor)

    def count(store: LocalStore, path: str, *args: Any, **named: Any) -> Any:
        synced.clear()
        found = real_put(store, path, *args, **named)
        if store.root == Path(pond.location, "control"):
            put.append(path.partition("/")[0])
            assert not synced
        else:
            assert synced
        return found

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(LocalStore, "put", count)
    write(pond, "/b")
    assert put == ["_open", "record_category=transaction", "_delta_log"]


def test_a_control_table_that_can_not_be_written_undoes_nothing(
    pond: Pond, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: Any, **named: Any) -> None:
        raise StoreError("the disk is full", path="control")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(pond.control.log, "commit", full)
        assert write(pond, "/a") == 1
    assert "the control table could not be written: the disk is full" in caplog.text
    assert pond["/a"].read_bytes() == b"x"
    # Its note is still there, and tells those who look after it.
    other = mp.open(pond.location)
    assert [found.state for found in other.control.incomplete()] == ["begin"]


def test_records_of_one_moment_keep_their_order(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond", clock=ManualClock(NOON))
    for name in ("/a", "/b", "/c"):
        write(pond, name)
    seqs = [row["txn_seq"] for row in pond.control.records() if row["txn_seq"]]
    assert seqs == [1, 1, 2, 2, 3, 3]
    assert kinds(pond) == ["begin", "data_committed", "completed"] * 3


# Questions


def test_recent_and_detail(pond: Pond) -> None:
    for number in range(5):
        write(pond, f"/f{number}")
    assert [found.txn_seq for found in pond.control.recent(3)] == [5, 4, 3]
    assert pond.control.recent(0) == []
    found = pond.control.detail(2)
    assert (found.transaction.txn_seq, found.followers) == (2, [])
    assert [row["record_type"] for row in found.records] == ["begin", "data_committed", "completed"]
    assert pond.control.detail(found.transaction.txn_id) == found
    with pytest.raises(PondError, match="9 is no transaction"):
        pond.control.detail(9)
    with pytest.raises(PondError, match="begins 5 transactions"):
        pond.control.detail(found.transaction.txn_id[:2])


def test_it_is_a_plan_and_a_delta_table(pond: Pond) -> None:
    write(pond, "/a")
    tx = pond.write("open")
    tx.write_bytes("/b", b"x")
    plan = pond.control.to_plan()
    rows = plan.filter(mp.col("record_type") == "begin").to_pylist(engine="arrow")
    assert sorted(json.loads(row["cli_args"]) for row in rows) == ["a file", "open"]
    tx.rollback()
    mine = pond.control.table().sort_by("timestamp")
    theirs = deltalake.DeltaTable(f"{pond.location}/control").to_pyarrow_table()
    names = mine.schema.names
    assert theirs.select(names).sort_by("timestamp").to_pylist() == mine.to_pylist()


@pytest.mark.spark
def test_it_is_asked_in_sql(pond: Pond, spark: Any) -> None:
    write(pond, "/a")
    fail(pond, "/b")
    text = "select record_type, count(*) as n from control where txn_id is not null group by 1"
    rows = mp.sql(text, control=pond.control.to_plan()).to_pylist(engine="spark")
    expected = {"begin": 2, "data_committed": 1, "completed": 1, "failed": 1}
    assert {row["record_type"]: row["n"] for row in rows} == expected


# Secrets


def test_no_secret_is_remembered(pond: Pond, tmp_path: Path) -> None:
    environment = {"USER": "ann", "AWS_SECRET_ACCESS_KEY": "hush", "HOME": "/home/hush"}
    write(
        pond,
        "/a",
        args=["copy", "--password", "hush", "s3://ann:hush@host/x", "-v", "api_key=hush"],
        environment=environment,
        token="hush",
        variables={"secret": "hush", "site": "north"},
    )
    found = pond.control.recent(1)[0]
    assert found.environment["USER"] == "ann"
    assert set(found.environment) == {"USER", "process"}
    assert found.cli_args[:3] == ["copy", "--password", "***"]
    for file in Path(pond.location).rglob("*"):
        if file.is_file():
            assert b"hush" not in file.read_bytes(), file


# Settings


def test_settings_are_checked_and_seen_by_others(pond: Pond) -> None:
    assert pond.control.setting("control.record_reads") is False
    pond.control.set({"control.record_reads": "yes", "fs.inline_bytes": 10})
    assert pond.control.metadata()["control.record_reads"] == "true"
    other = mp.open(pond.location)
    assert other.control.setting("control.record_reads") is True
    assert other.control.setting("fs.inline_bytes") == 10
    write(other, "/a", b"more than ten bytes")
    assert [f for f in Path(pond.location, "blobs").rglob("*") if f.is_file()]
    other.control.set({"fs.inline_bytes": None})
    assert mp.open(pond.location).control.setting("fs.inline_bytes") == 64 * 1024
    assert mp.open(pond.location).identity() == pond.identity()


@pytest.mark.parametrize(
    ("key", "value", "error", "says"),
    [
        ("control.record_reads", "perhaps", ConfigError, "bad value 'perhaps'"),
        ("fs.inline_bytes", -1, ConfigError, "a whole number above 0"),
        ("control.record_read", "yes", ConfigError, "did you mean control.record_reads"),
        ("colour", "blue", ConfigError, "known settings: control.record_reads"),
        ("pond.id", "another", ConfigError, "can't be changed"),
        ("factory.nowhere.mode", "push", PluginError, "'nowhere' is not in millpond.factories"),
    ],
)
def test_a_setting_that_is_wrong_is_refused(
    pond: Pond, key: str, value: object, error: type[Exception], says: str
) -> None:
    before = pond.control.metadata()
    with pytest.raises(error, match=says):
        pond.control.set({"fs.inline_bytes": 5, key: value})
    assert mp.open(pond.location).control.metadata() == before


def test_two_who_set_different_things_both_win(pond: Pond) -> None:
    one, two = mp.open(pond.location), mp.open(pond.location)
    one.control.set({"fs.inline_bytes": 10})
    two.control.set({"maintain.retention_days": 3})
    found = mp.open(pond.location).control.metadata()
    assert (found["fs.inline_bytes"], found["maintain.retention_days"]) == ("10", "3")
    assert len(list(Path(pond.location, "control", "_settings").iterdir())) == 1


def test_settings_without_their_file_are_read_from_the_table(pond: Pond) -> None:
    pond.control.set({"fs.inline_bytes": 10})
    (file,) = Path(pond.location, "control", "_settings").iterdir()
    text = bytearray(file.read_bytes())
    text[20] ^= 1
    file.write_bytes(text)
    assert mp.open(pond.location).control.setting("fs.inline_bytes") == 10
    file.unlink()
    assert mp.open(pond.location).control.setting("fs.inline_bytes") == 10
    mp.open(pond.location).sync()
    assert file.exists()


def test_reads_are_recorded_only_when_that_is_set(pond: Pond) -> None:
    write(pond, "/a")
    before = len(pond.control.records())
    pond.read()
    pond["/a"].read_bytes()
    assert len(pond.control.records()) == before
    pond.control.set({"control.record_reads": True})
    other = mp.open(pond.location)
    other.caller = {"args": ["cat", "/a", "--token", "hush"], "environment": {"USER": "ann"}}
    other.read()["/a"].read_bytes()
    found = pond.control.recent(1)[0]
    assert (found.kind, found.state, found.based_on_seq) == ("read", "completed", 1)
    assert found.cli_args == ["cat", "/a", "--token", "***"]
    assert found.environment == {"USER": "ann"}
    assert pond.control.incomplete() == []


# Upkeep


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "COMPACT_EVERY", 10)


def files(pond: Pond) -> list[Path]:
    return list(Path(pond.location, "control").glob("record_category=transaction/*.parquet"))


def test_it_compacts_itself(pond: Pond, often: None) -> None:
    for number in range(25):
        write(pond, f"/f{number}")
    live = pond.control.log.open().files["transaction"]
    assert len(live) < 12
    assert [found.txn_seq for found in pond.control.recent(100)] == list(range(25, 0, -1))
    assert kinds(pond) == ["begin", "data_committed", "completed"] * 25
    theirs = deltalake.DeltaTable(f"{pond.location}/control").to_pyarrow_table()
    assert theirs.num_rows == len(pond.control.records())
    assert mp.open(pond.location).control.metadata() == pond.control.metadata()


def test_old_files_are_removed_young_ones_are_not(pond: Pond, often: None) -> None:
    for number in range(12):
        write(pond, f"/f{number}")
    live = set(pond.control.log.open().files["transaction"])
    dead = [file for file in files(pond) if f"{file.parent.name}/{file.name}" not in live]
    assert dead
    control_upkeep.remove_old(pond.control.log)
    assert all(file.exists() for file in dead)
    before = pond.control.records()
    control_upkeep.remove_old(pond.control.log, datetime.now(UTC) + timedelta(hours=2))
    assert not any(file.exists() for file in dead)
    assert pond.control.records() == before
    # Who knows only a version whose commits are gone goes on behind the others.
    log = Path(pond.location, "control", "_delta_log")
    assert not (log / f"{0:020}.json").exists()
    late = Control(pond.location)
    late._version = 2
    late.append([Record(record_type="failed", txn_id="late")])
    assert len(pond.control.records()) == len(before) + 1


def test_many_writers_and_compactions_lose_nothing(pond: Pond, often: None) -> None:
    def work(number: int) -> None:
        control = Control(pond.location)
        for count in range(20):
            name = f"{number}-{count}"
            control.append([Record(record_type="begin", txn_id=name)])
            control.append([Record(record_type="completed", txn_id=name)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = pond.control.recent(1000)
    assert {each.txn_id for each in found} == {f"{a}-{b}" for a in range(6) for b in range(20)}
    assert all(each.state == "completed" for each in found)
    assert len(kinds(pond)) == 240
    assert len(pond.control.log.open().files["transaction"]) < 100
    theirs = deltalake.DeltaTable(f"{pond.location}/control").to_pyarrow_table()
    assert theirs.num_rows == len(pond.control.records())


def test_records_that_lose_their_races_wait_for_the_next_ones(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Path(pond.location, "control", "_open")
    version = pond.control.newest_version()
    with monkeypatch.context() as patch:
        patch.setattr(pond.control.log, "commit", lambda *args, **named: None)
        for name in ("/a", "/b"):
            write(pond, name)
    assert pond.control.newest_version() == version
    assert len(list(notes.iterdir())) == 2
    # Nobody misses them.
    other = mp.open(pond.location)
    assert [found.state for found in other.control.recent()] == ["completed", "completed"]
    assert other.control.incomplete() == []
    assert other.recover().is_clean
    write(pond, "/c")
    assert pond.control.newest_version() == version + 1
    assert kinds(pond) == ["begin", "data_committed", "completed"] * 3
    assert not list(notes.iterdir())


def busy(location: str) -> None:
    pond = mp.open(location)
    pond.control.log.commit = lambda *args, **named: None  # type: ignore[method-assign]
    write(pond, "/a")


def test_records_that_waited_when_their_process_ended_are_put_by_sync(pond: Pond) -> None:
    assert run(busy, pond.location) == 0
    assert kinds(pond) == ["begin", "data_committed", "completed"]
    assert "transaction" not in pond.control.log.open().files
    found = pond.sync()
    assert (found.closed, found.added) == (1, ())
    assert pond.control.log.open().files["transaction"]
    assert kinds(pond) == ["begin", "data_committed", "completed"]
    assert pond.sync().is_clean


def test_a_pond_that_is_closed_has_nothing_waiting(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pond.control.log, "commit", lambda *args, **named: None)
        write(pond, "/a")
    pond.close()
    assert not list(Path(pond.location, "control", "_open").iterdir())
    assert kinds(mp.open(pond.location)) == ["begin", "data_committed", "completed"]


def test_maintain_without_retention_leaves_only_what_is_used(pond: Pond, often: None) -> None:
    for number in range(12):
        write(pond, f"/f{number}")
    before = pond.control.records()
    kept = pond.maintain(dry_run=False)
    assert not [item for item in kept.garbage if item.kind == "control"]
    found = pond.maintain(dry_run=False, retention=timedelta(0))
    assert [item for item in found.garbage if item.kind == "control"]
    live = pond.control.log.open().files["transaction"]
    assert len(live) == 1
    assert [f"{file.parent.name}/{file.name}" for file in files(pond)] == list(live)
    assert pond.control.records() == before


def test_a_file_that_was_live_a_moment_ago_stays(pond: Pond) -> None:
    for number in range(3):
        write(pond, f"/f{number}")
    reader = pond.control.log.open()
    past = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
    for file in files(pond):
        os.utime(file, (past, past))
    assert control_upkeep.compact(pond.control.log) == 3
    control_upkeep.remove_old(pond.control.log)
    assert pond.control.rows_in("transaction", reader).num_rows == 9


def test_a_compaction_that_is_overtaken_goes_behind(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        write(pond, f"/f{number}")
    other = mp.open(pond.location)
    real = pond.control.log.commit
    calls: list[int] = []

    def overtaken(*args: Any, **named: Any) -> Any:
        if not calls:
            write(other, "/meanwhile")
        calls.append(1)
        return real(*args, **named)

    monkeypatch.setattr(pond.control.log, "commit", overtaken)
    assert control_upkeep.compact(pond.control.log) == 5
    assert len(calls) == 2
    assert len(kinds(pond)) == 18

    def compacted(*args: Any, **named: Any) -> Any:
        if len(calls) == 2:
            calls.append(1)
            assert control_upkeep.compact(other.control.log) == 2
        return real(*args, **named)

    monkeypatch.setattr(pond.control.log, "commit", compacted)
    assert control_upkeep.compact(pond.control.log) == 0
    assert len(kinds(pond)) == 18


# Sync and rebuild


def test_sync_adds_what_was_not_recorded(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pond, "/a")
    with monkeypatch.context() as patch:
        patch.setattr(pond.control, "append", lambda records: None)
        write(pond, "/b", args=["copy", "/b"])
    write(pond, "/c")
    assert {row["txn_seq"] for row in pond.control.records()} == {None, 1, 3}
    assert pond.sync().added == (2,)
    found = pond.control.detail(2).transaction
    assert (found.state, found.kind, found.cli_args) == ("completed", "write", ["copy", "/b"])
    assert (found.data_fs_version, found.based_on_seq) == (2, 1)
    assert pond.sync().is_clean


def test_rebuild_of_a_table_that_is_gone(pond: Pond) -> None:
    for name in ("/a", "/b"):
        write(pond, name)
    identity = pond.identity()
    shutil.rmtree(Path(pond.location, "control"))
    again = mp.open(pond.location)
    assert again.rebuild_control().added == (1, 2)
    assert again.identity() == identity
    assert kinds(again) == ["begin", "data_committed", "completed"] * 2
    write(again, "/c")
    assert again.control.recent(1)[0].txn_seq == 3
    assert again.sync().is_clean


def test_a_pond_without_its_control_table_can_be_written_and_put_right(
    pond: Pond, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(Path(pond.location, "control"))
    again = mp.open(pond.location)
    with caplog.at_level(logging.WARNING):
        write(again, "/a")
    assert "make it again: pond control rebuild" in caplog.text
    assert again.read()["/a"].read_bytes() == b"x"
    assert again.sync().recovery.completed == (1,)
    assert again.control.recent(1)[0].txn_seq == 1
    assert again.sync().is_clean


@pytest.mark.parametrize("broken", ["log", "file"])
def test_rebuild_keeps_what_can_be_read(pond: Pond, broken: str) -> None:
    write(pond, "/a")
    pond.control.set({"fs.inline_bytes": 10, "control.record_reads": True})
    fail(pond, "/b")
    write(pond, "/c")
    before = pond.control.records()
    place = Path(pond.location, "control")
    if broken == "log":
        (place / "_delta_log" / f"{2:020}.json").write_bytes(b"")
    else:
        file = next(f for f in files(pond) if b"ZeroDivision" in f.read_bytes())
        file.write_bytes(file.read_bytes()[:-20])
    again = mp.open(pond.location)
    found = again.rebuild_control()
    assert found.settings == 2
    assert len(found.unreadable) == (broken == "file")
    assert found.added == ()
    states = [t.state for t in again.control.recent(100)]
    assert states.count("completed") == 2
    assert states.count("failed") == (broken == "log")
    assert again.control.setting("fs.inline_bytes") == 10
    assert again.identity() == pond.identity()
    if broken == "log":
        assert [r for r in again.control.records() if r["txn_id"]] == [
            r for r in before if r["txn_id"]
        ]
    rebuilt = again.control.records()
    again.rebuild_control()
    again_rebuilt = again.control.records()
    assert [r for r in again_rebuilt if r["txn_id"]] == [r for r in rebuilt if r["txn_id"]]
    assert len(again_rebuilt) == len(rebuilt)


def test_rebuild_of_transactions_whose_commits_have_left_the_log(pond: Pond) -> None:
    from millpond.kernel.write.checkpoint import write_checkpoint

    for number in range(4):
        write(pond, f"/f{number}")
    identity = pond.identity()
    times = [row.time for row in map(pond.read().row, (f"/f{n}" for n in range(4)))]
    write_checkpoint(pond.oplog.log.table())
    for version in range(4):
        Path(pond.location, "data", "_delta_log", f"{version:020}.json").unlink()
    shutil.rmtree(Path(pond.location, "control"))
    again = mp.open(pond.location)
    assert again.rebuild_control().added == (1, 2, 3, 4)
    assert again.identity() == identity
    found = again.control.recent(10)
    assert [each.txn_seq for each in found] == [4, 3, 2, 1]
    assert [each.begun for each in reversed(found)] == times
    assert found[0].cli_args == "a file"
    assert found[-1].cli_args is None

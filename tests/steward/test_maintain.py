from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest
from tests.steward.deeds import seen
from tests.steward.processes import CONTEXT, die, run
from tests.steward.test_fsck import BLOB, measured, prepare, with_vectors

import millpond as mp
from millpond.base.errors import ConfigError, CorruptLogError, WriteConflictError
from millpond.fs.oplog.persistence import state_of
from millpond.steward.committing import steps
from millpond.steward.keeping import compaction
from millpond.steward.keeping.compaction import compact_oplog, compact_table
from millpond.steward.keeping.root import content_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.keeping.maintain import Maintenance
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope
    from millpond.testing.s3 import S3Server

NOTHING = timedelta()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("maintain") / "pond"
    prepare(place)
    return place


@pytest.fixture
def pond(prepared: Path, tmp_path: Path) -> Pond:
    return copy(prepared, tmp_path / "pond")


def copy(prepared: Path, place: Path) -> Pond:
    shutil.copytree(prepared, place)
    return mp.open(place)


def objects(pond: Pond) -> dict[str, int]:
    return {meta.path: meta.size for meta in pond.store.list() if meta.path[:5] != "cache"}


def age(pond: Pond, days: float = 30) -> None:
    """Let everything that is there be old."""
    past = time.time() - days * 86400
    for file in Path(pond.location).rglob("*"):
        if file.is_file():
            os.utime(file, (past, past))


def past(pond: Pond) -> list[Any]:
    """All that can be read of a pond: as it was after each transaction, and every version."""
    found: list[Any] = [seen(pond.read(as_of=seq)) for seq in range(1, 15)]
    scope = pond.read(as_of=14)
    for path in ("/a/b/s", "/a/t", "/a/file", "/a/blob", "/log"):
        for row in scope.versions(path):
            handle = scope[f"{path}@v{row.version}"]
            is_rows = row.entry_type.is_table
            found.append(handle.to_arrow().to_pylist() if is_rows else handle.read_bytes())
    return found


def files_of(pond: Pond, path: str) -> int:
    return len(pond.read().delta(path).files())


def vacuum(pond: Pond) -> Maintenance:
    return pond.maintain(dry_run=False, retention=NOTHING)


# Compaction


def test_compaction_changes_no_content_and_no_version(pond: Pond) -> None:
    root, before = content_root(pond.read()), past(pond)
    versions = [stat.version for stat in pond["/a/b/s"].versions()]
    modified = pond["/a/b/s"].stat().modified
    found = pond.maintain()
    assert {(item.path, item.before, item.after) for item in found.compacted} == {
        ("/a/b/s", 11, 1),
        ("/a/t", 1, 1),
        ("oplog", 17, 2),
    }
    assert files_of(pond, "/a/b/s") == 1
    assert pond.read().delta("/a/t").files()["deletionVector"].null_count == 1
    for each in (pond, mp.open(pond.location)):
        assert content_root(each.read()) == root
        assert past(each) == before
        assert [stat.version for stat in each["/a/b/s"].versions()] == versions
        assert each["/a/b/s"].stat().modified == modified
    report = pond.fsck()
    assert (report.findings, report.root) == ((), root)


def test_others_read_the_same_rows(pond: Pond) -> None:
    pond.maintain()
    row = pond.read().row("/a/b/s")
    theirs = deltalake.DeltaTable(f"{pond.location}/tables/{row.node_id}")
    assert theirs.version() == row.delta_version
    mine = pond["/a/b/s"].to_arrow()
    assert theirs.to_pyarrow_table().select(mine.column_names).cast(mine.schema).equals(mine)
    (done,) = [each for each in theirs.history() if each["version"] == row.delta_version]
    assert done["operation"] == "OPTIMIZE"


def test_rows_of_a_series_keep_their_order(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "SMALL_BYTES", 2000)
    with pond.write() as tx:
        tx.append_series("/order", measured(*range(100, 1000)))  # large
        tx.commit()
    for number in range(9):
        with pond.write() as tx:
            tx.append_series("/order", measured(50 - number))
            tx.commit()
    with pond.write() as tx:
        tx.append_series("/order", measured(*range(2000, 3000)))  # large, too
        tx.commit()
    before = pond["/order"].to_arrow()
    assert files_of(pond, "/order") == 11
    compact_table(pond, "/order")
    assert files_of(pond, "/order") == 3
    assert pond["/order"].to_arrow().equals(before)


def test_what_was_done_is_not_done_again(pond: Pond) -> None:
    first = pond.maintain()
    # Commits that replace files are long, and are not left to be read.
    assert first.checkpoints == ("oplog", "/a/t", "/a/b/s")
    assert mp.open(pond.location).read().delta("/a/b/s").snapshot.segment.commits == ()
    version = pond.read().version
    again = pond.maintain()
    assert again.compacted == ()
    assert again.checkpoints == ()
    assert pond.read().version == version


def test_it_is_recorded_and_has_no_followers(pond: Pond) -> None:
    pond.maintain()
    found = {each.cli_args: each for each in pond.control.recent(5)}
    done = found["compact /a/b/s"]
    assert (done.kind, done.state) == ("maintenance", "completed")
    assert pond.sync().is_clean
    assert pond.recover().is_clean


def test_only_checkpoints_without_compaction(pond: Pond) -> None:
    version = pond.read().version
    found = pond.maintain(compact=False)
    assert found.compacted == ()
    assert pond.read().version == version


# Writers that began before


def begun(pond: Pond, deed: Callable[[WriteScope], Any]) -> tuple[Pond, WriteScope]:
    """A transaction of somebody else, not committed yet."""
    other = mp.open(pond.location)
    tx = other.write()
    deed(tx)
    return other, tx


DEEDS: dict[str, Callable[[WriteScope], Any]] = {
    "append": lambda tx: tx.append_series("/a/b/s", measured(500)),
    "overwrite": lambda tx: tx.write_table("/a/t", [{"id": 9, "name": "new"}]),
    "other columns": lambda tx: tx.write_table("/a/t", [{"id": 9, "more": 1.5}]),
    "rename": lambda tx: tx.move("/a/b/s", "/a/b/z"),
    "move": lambda tx: tx.move("/a/b/s", "/z"),
    "remove": lambda tx: tx.remove("/a/b/s"),
    "bounds": lambda tx: tx.change("/a/b/s", min_override=0),
    "restore": lambda tx: tx.restore("/a/t@v1"),
    "new": lambda tx: tx.write_bytes("/a/b/new", b"x"),
    "bytes": lambda tx: tx.write_bytes("/log", b"more", series=True),
}


def moved_and_appended(tx: WriteScope) -> None:
    tx.move("/a/b/s", "/z")
    tx.append_series("/z", measured(500))


DEEDS["move and append"] = moved_and_appended


OFTEN = ("append", "overwrite", "rename", "bytes", "move and append")
"""The others are tried by `make test-all`."""


@pytest.mark.parametrize(
    "what",
    [what if what in OFTEN else pytest.param(what, marks=pytest.mark.slow) for what in DEEDS],
)
def test_a_writer_that_began_before_compaction_succeeds(
    pond: Pond, prepared: Path, tmp_path: Path, what: str
) -> None:
    plain = copy(prepared, tmp_path / "plain")
    with plain.write() as tx:
        DEEDS[what](tx)
        tx.commit()
    other, tx = begun(pond, DEEDS[what])
    assert len(pond.maintain().compacted) == 3
    tx.commit()
    for each in (other, mp.open(pond.location)):
        assert content_root(each.read()) == content_root(plain.read())
    # The tables can be written on.
    series = {"rename": "/a/b/z", "move": "/z", "move and append": "/z"}.get(what, "/a/b/s")
    for each in (pond, plain):
        with each.write() as tx:
            if what == "remove":
                tx.restore("/a/b/s")
            tx.append_series(series, measured(600))
            tx.write_table("/a/t", [{"id": 1, "name": "x"}])
            tx.commit()
    assert content_root(pond.read()) == content_root(plain.read())
    assert pond.fsck().is_sound


def test_writers_of_the_same_pond_object_go_on(pond: Pond) -> None:
    scope = pond.read()
    compact_oplog(pond)
    with pond.write() as tx:
        assert tx.read_bytes("/a/file") == b"two"
        tx.write_bytes("/a/file", b"three")
        tx.commit()
    assert scope.read_bytes("/a/file") == b"two"
    assert pond.read().read_bytes("/a/file") == b"three"


# Compaction that is overtaken


def test_a_table_that_is_written_meanwhile_is_compacted_all_the_same(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = mp.open(pond.location)
    real, calls = compaction._rearranged, []

    def overtaken(pond: Pond, path: str) -> Any:
        calls.append(path)
        if len(calls) == 1:
            with pond.begin({}, kind="maintenance") as tx:
                runs = compaction.small_runs(tx.delta(path))
                tx.rearrange(path, [[file["path"] for file in run] for run in runs])
                with other.write() as theirs:
                    theirs.append_series(path, measured(700))
                    theirs.commit()
                tx.commit()
        return real(pond, path)

    monkeypatch.setattr(compaction, "_rearranged", overtaken)
    found = compact_table(pond, "/a/b/s")
    assert found is not None
    assert (len(calls), found.before, found.after) == (2, 12, 1)
    assert pond["/a/b/s"].to_arrow().num_rows == 13
    assert pond.fsck().is_sound


def test_two_who_compact_at_once(pond: Pond) -> None:
    root = content_root(pond.read())
    other = mp.open(pond.location)
    runs = [[f["path"] for f in run] for run in compaction.small_runs(pond.read().delta("/a/b/s"))]
    one, two = (each.begin({}, kind="maintenance") for each in (pond, other))
    for tx in (one, two):
        tx.rearrange("/a/b/s", runs)
    one.commit()
    two.commit()
    assert content_root(other.read()) == root
    assert files_of(other, "/a/b/s") == 1
    assert other.fsck().is_sound


def test_the_oplog_is_compacted_behind_others(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    other = mp.open(pond.location)
    real = pond.oplog.log.commit
    calls: list[int] = []

    def overtaken(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            with other.write() as tx:
                tx.append_series("/a/b/s", measured(800))
                tx.write_table("/more", [{"x": 1}])
                tx.commit()
        return real(*args, **named)

    monkeypatch.setattr(pond.oplog.log, "commit", overtaken)
    found = compact_oplog(pond)
    assert found is not None
    assert len(calls) == 2
    # What the last transaction said is said again, so that all can go on from there.
    last = state_of(mp.open(pond.location).read().tree).last
    assert last["txn_seq"] == 15
    assert {item["version"] for item in last["staged"]} == {1, 12}
    assert mp.open(pond.location).read().exists("/more")
    with other.write() as tx:
        tx.write_bytes("/then", b"x")
        assert tx.commit().txn_seq == 16
    assert mp.open(pond.location).fsck().is_sound


TURNS = 6


def append_many(location: str, number: int) -> None:
    pond = mp.open(location)
    for count in range(TURNS):
        while True:
            try:
                with pond.write() as tx:
                    tx.append_series("/a/b/s", measured(10_000 * (number + 1) + count))
                    tx.write_bytes(f"/a/f-{number}-{count}", b"x")
                    tx.write_table(f"/t{number}", [{"n": count}])
                    tx.commit()
                break
            except WriteConflictError:
                continue


def test_maintenance_beside_many_writers_loses_nothing(pond: Pond) -> None:
    processes = [
        CONTEXT.Process(target=append_many, args=(pond.location, number)) for number in range(3)
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        pond.maintain(dry_run=False)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    done = pond.maintain(dry_run=False, retention=NOTHING)
    assert done.synced.recovery.is_clean
    scope = mp.open(pond.location).read()
    hours = {row["timestamp"] for row in scope.to_arrow("/a/b/s").to_pylist()}
    assert len(hours) == 12 + 3 * TURNS == scope.to_arrow("/a/b/s").num_rows
    assert len([name for name in scope.children("/a") if name.startswith("f-")]) == 3 * TURNS
    assert all(scope.to_arrow(f"/t{n}").to_pylist() == [{"n": TURNS - 1}] for n in range(3))
    report = mp.open(pond.location).fsck()
    assert report.is_sound
    assert report.root == content_root(scope)


# Garbage


def killed(location: str, where: str) -> None:
    pond = mp.open(location)

    def observer(place: str) -> None:
        if place == where:
            die()

    steps.observe(observer)
    with pond.write() as tx:
        tx.append_series("/a/b/s", measured(100))
        tx.write_table("/new", [{"x": 1}])
        tx.write_bytes("/blob", BLOB + b"dead")
        tx.commit()


def test_what_a_crash_left_is_told_and_then_removed(pond: Pond) -> None:
    root, before = content_root(pond.read()), past(pond)
    assert run(killed, pond.location, "before:oplog") == -signal.SIGKILL
    pond.maintain()
    gc.collect()
    age(pond)
    there = objects(pond)
    told = pond.maintain()
    assert not told.is_deleted
    kinds = {"log", "data", "staged", "table", "blob", "control"}
    assert set(told.counts()) == kinds
    assert {**there, **objects(pond)} == objects(pond)
    assert told.bytes == sum(there[item.object] for item in told.garbage)
    assert told.sizes["blob"] == len(BLOB) + 4
    gone = vacuum(pond)
    assert gone.is_deleted
    assert set(told.garbage) <= set(gone.garbage)
    assert gone.counts()["rows"] > 10
    assert not {item.object for item in gone.garbage} & set(objects(pond))
    again = mp.open(pond.location)
    assert again.fsck().findings == ()
    assert content_root(again.read()) == root
    assert past(again) == before
    assert again.maintain().garbage == ()


def test_what_is_young_stays(pond: Pond) -> None:
    assert run(killed, pond.location, "before:oplog") == -signal.SIGKILL
    assert pond.maintain(dry_run=False).garbage == ()
    age(pond, days=6)
    # What the control table has replaced is kept for an hour alone.
    assert set(pond.maintain(dry_run=False).counts()) == {"control"}
    pond.control.set({"maintain.retention_days": 5})
    age(pond, days=6)
    assert pond.maintain(dry_run=False).counts()["table"] > 0


def test_a_retention_in_the_future_is_refused(pond: Pond) -> None:
    with pytest.raises(ConfigError, match="lies in the future"):
        pond.maintain(retention=timedelta(days=-1))


def test_a_scope_that_somebody_holds_can_read_on(pond: Pond) -> None:
    held = mp.open(pond.location).read()  # of another Pond of this process
    compact_oplog(pond)
    pond.refresh()
    age(pond)
    pond.maintain(dry_run=False, retention=timedelta(days=1))
    assert seen(held) == seen(pond.read())
    files = {path for paths in state_of(held.tree).files.values() for path in paths}
    assert files <= {path.removeprefix("data/") for path in objects(pond)}
    del held
    gc.collect()
    vacuum(pond)
    now = {path for paths in state_of(pond.read().tree).files.values() for path in paths}
    assert not (files - now) & {path.removeprefix("data/") for path in objects(pond)}
    assert content_root(mp.open(pond.location).read()) == content_root(pond.read())


def test_a_transaction_at_work_keeps_what_it_has_put(pond: Pond) -> None:
    age(pond)
    other, tx = begun(pond, lambda tx: tx.write_table("/new", [{"x": 1}]))
    tx.append_series("/a/b/s", measured(900))
    tx.write_bytes("/blob", BLOB + b"at work")
    assert vacuum(pond).before < datetime.now(UTC) - NOTHING
    tx.commit()
    assert other.read()["/new"].to_arrow().to_pylist() == [{"x": 1}]
    assert other.read().read_bytes("/blob") == BLOB + b"at work"
    assert pond.fsck().is_sound


def test_content_that_nothing_needed_and_somebody_puts_again_stays(pond: Pond) -> None:
    content = BLOB + b"again"
    stored = pond.blobs.keep(content)  # nothing names it
    age(pond)
    told = pond.maintain()
    assert told.counts()["blob"] == 1
    tx = mp.open(pond.location).write()
    tx.write_bytes("/again", content)
    # The blob is named by nothing yet, but it is young again.
    assert vacuum(pond).counts().get("blob", 0) == 0
    tx.commit()
    assert pond.read().read_bytes("/again") == content
    assert stored.content is None


@pytest.mark.parametrize("days", [1, 20])
def test_files_that_were_replaced_lately_stay_for_readers_elsewhere(pond: Pond, days: int) -> None:
    age(pond)
    compact_oplog(pond)
    pond.refresh()
    gc.collect()
    found = pond.maintain(dry_run=False, retention=timedelta(days=days))
    assert "rows" not in found.counts()
    assert vacuum(pond).counts()["rows"] > 10


# The log


def test_a_log_that_was_cleaned_up(pond: Pond) -> None:
    before, sleeper = past(pond), mp.open(pond.location)
    pond.maintain()
    age(pond)
    assert pond.maintain(dry_run=False).counts()["log"] > 10
    log = Path(pond.location, "data", "_delta_log")
    assert not (log / f"{3:020}.json").exists()
    again = mp.open(pond.location)
    assert past(again) == before
    assert again.read(as_of=datetime.now(UTC)).txn_seq == again.read().txn_seq
    assert again.fsck().is_sound
    # Who has slept through all this goes on behind it.
    with sleeper.write() as tx:
        tx.write_bytes("/late", b"x")
        tx.append_series("/a/b/s", measured(950))
        tx.commit()
    assert mp.open(pond.location).read().exists("/late")
    assert again.identity() == pond.identity()
    assert again.rebuild_control().added == ()


def test_a_damaged_log_stops_it(pond: Pond) -> None:
    assert run(killed, pond.location, "before:oplog") == -signal.SIGKILL
    node = pond.read().row("/a/b/s").node_id
    file = Path(pond.location, "tables", node, "_delta_log", f"{4:020}.json")
    file.write_bytes(b"{" + file.read_bytes())
    age(pond)
    there = objects(pond)
    with pytest.raises(CorruptLogError, match="is damaged"):
        mp.open(pond.location).maintain(dry_run=False, compact=False)
    assert {p: s for p, s in there.items() if "control" not in p} == {
        p: s for p, s in objects(pond).items() if "control" not in p and p in there
    }


def test_deletion_vectors_are_kept_as_long_as_a_version_needs_them(pond: Pond) -> None:
    before = past(pond)
    with pond.write() as tx:
        tx.write_table("/a/t", [{"id": n, "name": "x"} for n in range(1, 4)])
        tx.commit()
    with_vectors(pond, "/a/t")
    pond.maintain()
    age(pond)
    vacuum(pond)
    assert past(mp.open(pond.location)) == before
    assert [row["id"] for row in pond["/a/t"].to_arrow().to_pylist()] == [1, 3]
    assert mp.open(pond.location).fsck().is_sound


# In an object store


@pytest.mark.s3
def test_a_pond_in_an_object_store(s3_server: S3Server) -> None:
    place = s3_server.create_bucket("maintained") + "/pond"
    settings = s3_server.settings()
    pond = mp.create(place, settings=settings)
    for number in range(9):
        with pond.write() as tx:
            tx.append_series("/s", measured(number))
            tx.write_bytes("/file", BLOB + bytes([number]))
            tx.commit()
    pond.control.set({"fs.inline_bytes": 10})
    root = content_root(pond.read())
    found = pond.maintain(dry_run=False, retention=NOTHING)
    assert [(item.path, item.after) for item in found.compacted] == [("/s", 1), ("oplog", 1)]
    again = mp.open(place, settings=settings)
    report = again.fsck()
    assert report.is_sound
    assert report.root == content_root(again.read()) == root
    assert [each.txn_seq for each in again.control.recent(2)] == [10, 9]
    assert again.control.setting("fs.inline_bytes") == 10
    assert again["/file@v1"].read_bytes() == BLOB + b"\0"
    digest = pond.read().row("/file@v3").blake3 or ""
    pond.store.put(f"blobs/{digest[:2]}/{digest}", b"another", mode="overwrite")
    (damage,) = again.fsck().damage
    assert (damage.path, damage.version) == ("/file", 3)
    assert again.rebuild_control().added == ()
    assert again.control.incomplete() == []

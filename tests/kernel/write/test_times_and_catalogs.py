"""In-commit timestamps, and commits that a catalog ratifies before anyone sees them."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.handmade import rewrite
from tests.kernel.write.tables import (
    actions,
    append,
    data_files,
    id_list,
    ids,
    known_files,
    new_table,
    ours,
    theirs,
)

from millpond.base.errors import (
    CommitError,
    ConflictError,
    CorruptLogError,
    PlanError,
    RepeatedTransactionError,
    TypeMismatchError,
    UnsupportedFeatureError,
)
from millpond.base.store import open_store
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.segment import LogFile
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.write import clean_log, compact_log, publish_commit, write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.kernel.write import StagedCommit

STATED = {"delta.enableInCommitTimestamps": "true"}
MANAGED = {"delta.feature.catalogManaged": "supported"}


def stated(path: Path, versions: range) -> list[int]:
    found = []
    for version in versions:
        lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
        assert lines[0].startswith('{"commitInfo":{"inCommitTimestamp":'), "it has to come first"
        found.append(actions(path, version)["commitInfo"][0]["inCommitTimestamp"])
    return found


class Clock:
    """A wall clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, millis: int) -> None:
        self.millis = millis
        for module in ("create", "transaction", "pending"):
            monkeypatch.setattr(f"millpond.kernel.write.{module}.time.time", self.now)

    def now(self) -> float:
        return self.millis / 1000


def test_times_grow_though_clocks_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1_700_000_000_000)
    table = new_table(tmp_path, configuration=STATED)
    for millis in (1_700_000_005_000, 1_600_000_000_000, 1_700_000_005_000, 1_700_000_006_000):
        clock.millis = millis
        table = append(table, ids(1))
    base = 1_700_000_000_000
    assert stated(tmp_path, range(5)) == [base, base + 5000, base + 5001, base + 5002, base + 6000]
    assert [info["timestamp"] for info in table.history()] == stated(tmp_path, range(5))[::-1]
    assert delta_table(tmp_path, timestamp=base + 5001).version == 2
    assert delta_table(tmp_path, timestamp=base + 5999).version == 3


def test_enabled_on_a_table_with_a_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = append(append(new_table(tmp_path), ids(1)), ids(1, 1))
    last = tmp_path / "_delta_log" / f"{2:020}.json"
    now = int(actions(tmp_path, 2)["commitInfo"][0]["timestamp"]) + 10_000
    os.utime(last, ns=(now * 1_000_000, now * 1_000_000))  # up to here the file's time counts
    table = delta_table(tmp_path)
    clock = Clock(monkeypatch, now - 60_000)  # the clock of this machine is late
    with table.transaction() as tx:
        tx.set_metadata(configuration=STATED)
        tx.append(ids(1, 2))
    table = table.update()
    (time,) = stated(tmp_path, range(3, 4))
    assert time == now + 1
    configuration = table.metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "3"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(time)
    clock.millis = now + 5000
    table = append(table, ids(1, 3))
    assert table.metadata.configuration == configuration, "it is noted once"
    assert stated(tmp_path, range(3, 5)) == [time, now + 5000]
    assert delta_table(tmp_path, timestamp=time).version == 3
    assert id_list(theirs(tmp_path)) == [0, 1, 2, 3]


def test_another_tables_properties_bring_no_past_along(tmp_path: Path) -> None:
    table = append(new_table(tmp_path / "old"), ids(1))
    with table.transaction() as tx:
        tx.set_metadata(configuration=STATED)
    copied = table.update().metadata.configuration
    assert copied["delta.inCommitTimestampEnablementVersion"] == "2"
    table = append(new_table(tmp_path / "new", configuration=copied), ids(1))
    assert table.metadata.configuration == STATED
    for version in (0, 1):
        (time,) = stated(tmp_path / "new", range(version, version + 1))
        assert delta_table(tmp_path / "new", timestamp=time).version == version


def test_times_that_are_stated_from_a_later_version_on(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as tx:
        tx.set_metadata(configuration=STATED)
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    rewrite(log, 'EnablementVersion":"1"', 'EnablementVersion":"9"')
    (tmp_path / "_delta_log" / f"{1:020d}.crc").unlink()
    assert delta_table(tmp_path, timestamp=2**42).version == 1


def test_enabling_is_noted_with_the_version_that_was_won(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    slow = table.transaction()
    slow.set_metadata(configuration=STATED)
    append(append(table, ids(1)), ids(1, 1))
    assert slow.commit().version == 3
    (time,) = stated(tmp_path, range(3, 4))
    assert time > actions(tmp_path, 2)["commitInfo"][0]["timestamp"] - 1
    configuration = table.update().metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "3"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(time)
    # The checksum says what the commit says.
    assert delta_table(tmp_path).metadata.configuration == configuration


def test_times_grow_in_a_race(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=STATED)
    errors: list[BaseException] = []

    def write(start: int) -> None:
        try:
            for number in range(6):
                with table.update().transaction() as tx:
                    tx.append(ids(1, start + number))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=write, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    times = stated(tmp_path, range(25))
    assert times == sorted(set(times))
    assert id_list(theirs(tmp_path)) == sorted(100 * n + i for n in range(4) for i in range(6))


@pytest.mark.parametrize("checksums", [True, False])
def test_the_last_time_is_known_without_its_commit(tmp_path: Path, checksums: bool) -> None:
    table = append(new_table(tmp_path, configuration=STATED), ids(1))
    write_checkpoint(table)
    log = tmp_path / "_delta_log"
    future = 32_503_680_000_000
    for version in (0, 1):
        (log / f"{version:020d}.json").unlink()
        crc = log / f"{version:020d}.crc"
        if not checksums:
            crc.unlink()
        elif version == 1:
            time = crc.read_text().split('"inCommitTimestampOpt":')[1].split(",")[0]
            rewrite(crc, time, str(future))
    append(delta_table(tmp_path), ids(1, 1))
    (time_,) = stated(tmp_path, range(2, 3))
    assert (time_ == future + 1) is checksums
    assert id_list(ours(delta_table(tmp_path))) == [0, 1]


def staged_append(table: DeltaTable, start: int) -> StagedCommit:
    tx = table.transaction()
    tx.append(ids(1, start))
    return tx.stage()


def with_tail(path: Path, *staged: StagedCommit) -> DeltaTable:
    builder = SnapshotBuilder(path).with_log_tail([item.ratified() for item in staged])
    return DeltaTable(builder.build())


def test_staged_commits_are_seen_through_their_catalog_alone(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(1))
    first = staged_append(table, 1)
    assert delta_table(tmp_path).version == 1
    assert id_list(theirs(tmp_path)) == [0]
    seen = with_tail(tmp_path, first)
    assert (seen.version, id_list(ours(seen))) == (2, [0, 1])
    second = staged_append(seen, 2)
    assert second.version == 3
    seen = with_tail(tmp_path, second, first)  # in any order
    assert (seen.version, id_list(ours(seen))) == (3, [0, 1, 2])
    assert [info["version"] for info in seen.history()] == [3, 2, 1, 0]
    with pytest.raises(CommitError, match="managed by a catalog"):
        append(seen, ids(1, 9))
    with pytest.raises(CommitError, match="not published yet"):
        write_checkpoint(seen)
    with pytest.raises(PlanError, match="has no commit 2"):
        compact_log(seen, 1, 3)
    store = open_store(tmp_path)
    with pytest.raises(CommitError, match=r"version 2 of .* is not published yet"):
        publish_commit(store, second)
    for staged in (first, first, second, second):
        publish_commit(store, staged)
    assert id_list(theirs(tmp_path)) == id_list(ours(delta_table(tmp_path))) == [0, 1, 2]
    write_checkpoint(delta_table(tmp_path))
    seen = with_tail(tmp_path, second)
    assert (seen.version, id_list(ours(seen))) == (3, [0, 1, 2])


def test_of_two_staged_commits_one_is_published(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, other = staged_append(table, 1), staged_append(table, 2)
    store = open_store(tmp_path)
    publish_commit(store, one)
    with pytest.raises(ConflictError, match="holds another commit"):
        publish_commit(store, other)
    assert id_list(ours(table.update())) == [1]


@pytest.mark.parametrize("configuration", [None, STATED])
def test_versions_are_found_by_the_times_of_their_history(
    configuration: dict[str, str] | None, tmp_path: Path
) -> None:
    table = new_table(tmp_path, configuration=configuration or {})
    for number in range(4):
        table = append(table, ids(1, number))
    for told in table.history():
        assert delta_table(tmp_path, timestamp=told["timestamp"]).version == told["version"]


def test_what_a_catalog_refuses_is_taken_back(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(1))
    tx = table.transaction()
    tx.append(ids(1, 1))
    staged = tx.stage()
    assert (tmp_path / staged.path).exists()
    tx.rollback()
    assert not (tmp_path / staged.path).exists()
    assert data_files(tmp_path) == known_files(table)


def test_what_is_published_is_not_taken_back(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    tx = table.transaction()
    tx.append(ids(3))
    publish_commit(open_store(tmp_path), tx.stage())
    tx.rollback()  # too late
    assert id_list(ours(table.update())) == [0, 1, 2]


def test_staging_minds_app_transactions(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as tx:
        tx.app_transaction("job", 1)
    tx = table.update().transaction()
    tx.append(ids(1))
    tx.app_transaction("job", 1)
    with pytest.raises(RepeatedTransactionError):
        tx.stage()
    assert data_files(tmp_path) == set()


def test_a_catalog_may_have_published_all_commits(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=MANAGED)
    first = staged_append(table, 1)
    store = open_store(tmp_path)
    publish_commit(store, first)
    opened = DeltaTable(SnapshotBuilder(tmp_path).with_log_tail([]).build())
    assert (opened.version, id_list(ours(opened))) == (1, [1])
    assert opened.update(log_tail=[]).snapshot is opened.snapshot
    with pytest.raises(UnsupportedFeatureError, match="managed by a catalog") as failure:
        opened.update()
    assert "update(log_tail=" in (failure.value.hint or "")
    second = staged_append(opened, 2)
    place = f"{opened.location}/{second.path}"
    newer = opened.update(log_tail=[LogFile.at(place, size=second.size)])
    assert (newer.version, id_list(ours(newer))) == (2, [1, 2])
    assert newer.update(log_tail=[LogFile.at(place, size=second.size)]).version == 2
    publish_commit(store, second)
    newer = newer.update(log_tail=[])
    assert (newer.version, id_list(ours(newer))) == (2, [1, 2])
    third = staged_append(newer, 3)
    assert id_list(ours(newer.update(log_tail=[third.ratified()]))) == [1, 2, 3]
    assert id_list(ours(newer.update(log_tail=[]))) == [1, 2]
    at_first = SnapshotBuilder(tmp_path).with_log_tail([]).at_version(1).build()
    assert id_list(ours(DeltaTable(at_first))) == [1]
    moment = SnapshotBuilder(tmp_path).with_log_tail([]).at_timestamp(2**42).build()
    assert moment.version == 2
    with pytest.raises(CorruptLogError, match="no name of a file of a log"):
        LogFile.at("/t/_delta_log/3.json", size=1)
    with pytest.raises(CorruptLogError, match="is a checksum, not a commit"):
        opened.update(log_tail=[LogFile.at(f"/t/_delta_log/{3:020}.crc", size=1)])


def test_a_managed_table_needs_its_tail(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=MANAGED)
    assert table.protocol.reads("catalogManaged")
    assert table.protocol.writes("inCommitTimestamp")
    assert table.metadata.configuration == STATED
    with pytest.raises(UnsupportedFeatureError, match="managed by a catalog"):
        delta_table(tmp_path)
    tx = table.transaction()
    tx.append(ids(1))
    with pytest.raises(CommitError, match="managed by a catalog"):
        tx.commit()
    first = tx.stage()
    seen = with_tail(tmp_path, first)
    second = staged_append(seen, 1)
    seen = with_tail(tmp_path, first, second)
    assert id_list(ours(seen)) == [0, 1]
    times = [info["inCommitTimestamp"] for info in reversed(seen.history())]
    assert times == sorted(set(times))
    assert len(times) == 3
    with pytest.raises(UnsupportedFeatureError, match="by the catalog that manages"):
        clean_log(seen)


def test_checksums_of_checkpoints_have_the_time(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration=STATED), ids(1))
    told = tmp_path / "_delta_log" / f"{1:020}.crc"
    told.unlink()
    write_checkpoint(table)
    assert json.loads(told.read_text())["inCommitTimestampOpt"] == stated(tmp_path, range(1, 2))[0]


@pytest.mark.parametrize(
    "step",
    [
        lambda tx: tx.set_metadata(description="\ud800"),
        lambda tx: tx.app_transaction("\ud800", 1),
        lambda tx: tx.domain_metadata("d", "\ud800"),
        lambda tx: tx.set_metadata(configuration={"x": "\ud800"}),
        lambda tx: tx.add_files(5),
        lambda tx: tx.commit(max_retries="a"),
    ],
)
def test_arguments_that_no_log_can_hold(tmp_path: Path, step: Callable[[Any], None]) -> None:
    table = new_table(tmp_path)
    with pytest.raises(TypeMismatchError):
        step(table.transaction(engine="arrow"))
    assert table.update().version == 0


def test_a_tail_with_gaps(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = staged_append(table, 1)
    third = staged_append(with_tail(tmp_path, first), 2)
    with pytest.raises(CorruptLogError, match="gaps"):
        with_tail(tmp_path, first, *_later(third))


def _later(staged: StagedCommit) -> list[Any]:
    from dataclasses import replace

    path = staged.path.replace(f"{2:020d}", f"{3:020d}")
    return [replace(staged, version=3, path=path)]

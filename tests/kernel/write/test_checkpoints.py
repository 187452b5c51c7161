"""Checkpoints, checksums, compaction and clean-up: the log says the same, in fewer files."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any, Literal

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as RustTable
from tests.kernel.handmade import rewrite
from tests.kernel.write.faults import FaultyStore, broken_line
from tests.kernel.write.tables import (
    FEED,
    MARKS,
    actions,
    append,
    id_list,
    ids,
    new_table,
    ours,
    theirs,
)

import millpond as mp
from millpond.base.errors import PlanError, StoreError, UnsupportedFeatureError
from millpond.kernel.names import file_name
from millpond.kernel.scan import FILE_COLUMNS
from millpond.kernel.table import delta_table
from millpond.kernel.write import clean_log, compact_log, write_checkpoint, write_checksum
from millpond.kernel.write.checkpoint_rows import grouped
from millpond.plan import types as t
from millpond.plan.sources import Scan
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.kernel.table import DeltaTable

NEVER = {"delta.checkpointInterval": "1000000"}
STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
NO_JSON = {"delta.checkpoint.writeStatsAsJson": "false"}
V2 = {"delta.checkpointPolicy": "v2"}
KINDS = [
    ({}, 250_000),
    (STRUCT, 250_000),
    ({**STRUCT, **NO_JSON}, 250_000),
    (V2, 250_000),
    (V2, 3),
    ({**V2, **STRUCT}, 5),
    ({**V2, **STRUCT, **NO_JSON}, 5),
]
UTC = dt.UTC
SCHEMA = t.Struct.of(
    id=t.LONG,
    site=t.STRING,
    by=t.BYTE,
    sh=t.SHORT,
    i=t.INTEGER,
    f=t.FLOAT,
    d=t.DOUBLE,
    s=t.STRING,
    m=t.Decimal(20, 5),
    day=t.DATE,
    at=t.TIMESTAMP,
    clock=t.TIMESTAMP_NTZ,
    b=t.BOOLEAN,
    raw=t.BINARY,
    x=t.Struct.of(y=t.LONG, z=t.List(t.LONG)),
)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "site": "ab"[number % 2] if number % 5 else None,
        "by": number % 100,
        "sh": -number,
        "i": number * 1000,
        "f": number / 8,
        "d": number / 3,
        "s": f"text {number}",
        "m": D(number) / 100000,
        "day": dt.date(2024, 1, 1) + dt.timedelta(number),
        "at": dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(hours=number),
        "clock": dt.datetime(2024, 1, 1) + dt.timedelta(hours=number),  # noqa: DTZ001
        "b": number % 2 == 0,
        "raw": bytes([number % 256]),
        "x": {"y": number, "z": [number]} if number % 3 else None,
    }


PREDICATES = [
    mp.col("id") == 17,
    mp.col("site") == "a",
    mp.col("site").is_null(),
    mp.col("by") > 50,
    mp.col("sh") < -55,
    mp.col("f") >= 7.0,
    mp.col("d") < 2.0,
    mp.col("s") == "text 33",
    mp.col("m") > D("0.00055"),
    mp.col("day") == dt.date(2024, 1, 20),
    mp.col("at") >= dt.datetime(2024, 1, 3, 5, tzinfo=UTC),
    mp.col("clock") < dt.datetime(2024, 1, 1, 3),  # noqa: DTZ001
    mp.path("x.y") == 5,
    mp.col("x").is_null(),
]


def history(path: Path, configuration: dict[str, str]) -> DeltaTable:
    """Appends, deletes with vectors, a removed file, app transactions, domains, metadata."""
    settings = {**configuration, **MARKS, **NEVER}
    table = new_table(path, SCHEMA, settings, partition_by=["site"])
    for number in range(6):
        with table.transaction() as tx:
            tx.append([row(10 * number + i) for i in range(10)])
            tx.app_transaction("app", number)
            tx.app_transaction(f"app{number}", 1)
            tx.domain_metadata(f"domain{number % 4}", str(number))
        table = table.update()
        if number % 2:
            with table.transaction() as tx:
                tx.delete(mp.col("id").isin([10 * number, 10 * number + 1]))
                tx.domain_metadata("domain0", removed=True)
            table = table.update()
    with table.transaction() as tx:
        tx.delete(mp.col("id") < 10)
    return table.update()


def state(table: DeltaTable, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Everything that a log says of a version."""
    names = [name for name in FILE_COLUMNS if name not in without]
    files = table.files(columns=names).to_arrow().to_pylist(maps_as_pydicts="strict")
    return {
        "files": sorted(files, key=lambda f: str(sorted(f.items(), key=str))),
        "transactions": table.app_transactions,
        "domains": table.domain_metadata,
        "metadata": table.metadata,
        "protocol": table.protocol,
        "rows": sorted(ours(table), key=lambda r: r["id"]),
    }


@pytest.mark.parametrize(("configuration", "sidecar_files"), KINDS, ids=str)
def test_a_checkpoint_says_what_commits_say(
    tmp_path: Path, configuration: dict[str, str], sidecar_files: int
) -> None:
    is_v2 = "delta.checkpointPolicy" in configuration
    table = history(tmp_path, configuration)
    has_json = "delta.checkpoint.writeStatsAsJson" not in configuration
    without = () if has_json else ("stats",)
    before = state(table, without=without)
    kept = [len(table.files(predicate)) for predicate in PREDICATES]
    assert min(kept) < len(table.files()), "some files are ruled out"
    removed = sum(len(actions(tmp_path, v).get("remove", ())) for v in range(table.version + 1))
    for again in range(2):  # a checkpoint of commits, then one of a checkpoint and no commits
        result = write_checkpoint(table, sidecar_files=sidecar_files)
        assert result.kind == ("v2" if is_v2 else "classic")
        files = len(before["files"])
        assert (result.adds, result.removes) == (files, removed)
        sidecars = -(-(files + removed) // sidecar_files) if is_v2 else 0
        assert len(result.paths) == 1 + sidecars
        fresh = delta_table(tmp_path)
        checkpoint = fresh.snapshot.segment.checkpoint
        assert checkpoint is not None
        assert (checkpoint.version, fresh.snapshot.segment.commits) == (table.version, ())
        assert state(fresh, without=without) == before, again
        rows = theirs(tmp_path)
        assert id_list(rows) == id_list(before["rows"])
        rust = RustTable(str(tmp_path))
        assert rust.transaction_version("app") == 5
        assert len(rust.file_uris()) == files
        table = fresh
    assert [len(fresh.files(predicate)) for predicate in PREDICATES] == kept
    after = append(fresh, [row(100)])
    assert id_list(ours(after)) == sorted([*id_list(before["rows"]), 100])
    assert id_list(theirs(tmp_path)) == id_list(ours(after))


def test_statistics_as_columns_of_every_type(tmp_path: Path) -> None:
    configuration = {**STRUCT, "delta.columnMapping.mode": "name"}
    table = history(tmp_path, configuration)
    result = write_checkpoint(table)
    rows = pq.read_table(tmp_path / result.paths[0], columns=["add"]).to_pylist()
    adds = [item["add"] for item in rows if item["add"] is not None]
    columns = table.snapshot.columns
    seen = set()
    for add in adds:
        told = json.loads(add["stats"])
        parsed = add["stats_parsed"]
        assert parsed["numRecords"] == told["numRecords"]
        assert parsed["nullCount"] == told["nullCount"]
        for name, low in told["minValues"].items():
            found = parsed["minValues"][name]
            if isinstance(low, str) and isinstance(found, dt.date):
                text = found.isoformat(**({"timespec": "milliseconds"} if "T" in low else {}))
                assert text.replace("+00:00", "Z") == low
            else:
                assert float(found) == low if isinstance(found, D | float) else found == low
            seen.add(name)
        site = columns.physical_path(["site"])[0]
        assert add["partitionValues_parsed"] == {site: dict(add["partitionValues"])[site]}
    bounded = [f.name for f in SCHEMA if f.name not in ("site", "b", "raw")]
    assert seen == {columns.physical_path([name])[0] for name in bounded}


def test_the_head_of_a_checkpoint(tmp_path: Path) -> None:
    table = history(tmp_path, {})
    result = write_checkpoint(table)
    rows = pq.read_table(tmp_path / result.paths[0]).to_pylist()
    domains = {r["domainMetadata"]["domain"] for r in rows if r["domainMetadata"]}
    assert domains == {"domain1", "domain2", "domain3"}, "removed ones are left out"
    assert {r["add"]["dataChange"] for r in rows if r["add"]} == {False}
    hint = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
    assert (hint["version"], hint["size"]) == (table.version, len(rows))
    assert hint["numOfAddFiles"] == len(table.files())


def test_an_older_checkpoint_does_not_take_the_hint(tmp_path: Path) -> None:
    first = append(new_table(tmp_path), ids(1))
    second = append(first, ids(1, 1))
    write_checkpoint(second)
    write_checkpoint(first)
    hint = tmp_path / "_delta_log" / "_last_checkpoint"
    assert json.loads(hint.read_text())["version"] == 2
    hint.write_text("garbage")
    write_checkpoint(first)
    assert json.loads(hint.read_text())["version"] == 1
    assert id_list(ours(delta_table(tmp_path))) == [0, 1]


def test_tombstones_are_kept_for_their_time(tmp_path: Path) -> None:
    short = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    table = append(new_table(tmp_path, configuration=NEVER), ids(3))
    with table.transaction() as tx:
        tx.delete()
    table = table.update()
    assert write_checkpoint(table).removes == 1
    table = append(table, ids(1))
    assert write_checkpoint(table).removes == 1, "also from checkpoint to checkpoint"
    with table.transaction() as tx:
        tx.set_metadata(configuration=short)
        tx.delete()
    table = table.update()
    assert write_checkpoint(table).removes == 0
    assert ours(delta_table(tmp_path)) == theirs(tmp_path) == []


def test_a_file_that_came_back_has_no_tombstone(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration=NEVER), ids(3))
    (add,) = table.files().to_arrow().to_pylist(maps_as_pydicts="strict")
    with table.transaction() as tx:
        tx.remove_files([add["path"]])
    table = table.update()
    write_checkpoint(table)
    with table.transaction() as tx:
        tx.add_files([add])
    table = table.update()
    result = write_checkpoint(table)
    assert (result.adds, result.removes) == (1, 0)
    assert id_list(ours(delta_table(tmp_path))) == id_list(theirs(tmp_path)) == [0, 1, 2]


def test_app_transactions_expire(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=NEVER)
    with table.transaction() as tx:
        tx.app_transaction("old", 1)
    log = tmp_path / "_delta_log"
    commit = log / f"{1:020d}.json"
    (txn,) = actions(tmp_path, 1)["txn"]
    week_ago = txn["lastUpdated"] - 7 * 86_400_000
    rewrite(commit, str(txn["lastUpdated"]), str(week_ago))
    with delta_table(tmp_path).transaction() as tx:
        tx.app_transaction("new", 1)
    table = delta_table(tmp_path)
    write_checkpoint(table)
    assert set(delta_table(tmp_path).app_transactions) == {"old", "new"}
    with table.transaction() as tx:
        tx.set_metadata(configuration={"delta.setTransactionRetentionDuration": "interval 6 days"})
    result = write_checkpoint(table.update())
    rows = pq.read_table(tmp_path / result.paths[0], columns=["txn"]).to_pylist()
    assert [r["txn"]["appId"] for r in rows if r["txn"]] == ["new"]
    with delta_table(tmp_path).transaction() as tx:
        tx.app_transaction("old", 1)  # no repetition any more
    assert set(delta_table(tmp_path).app_transactions) == {"old", "new"}


def test_kinds_of_checkpoints(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(PlanError, match="classic or v2"):
        write_checkpoint(table, kind="V2")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="takes a whole number"):
        compact_log(table, "0", 1)  # type: ignore[arg-type]


def test_v2_checkpoints_need_their_feature(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(PlanError, match="does not allow V2"):
        write_checkpoint(table, kind="v2")
    with table.transaction() as tx:
        tx.set_metadata(configuration=V2)
    table = append(table.update(), ids(3))
    kinds: tuple[Literal["classic", "v2"], ...] = ("classic", "v2")
    for kind in kinds:
        assert write_checkpoint(table, kind=kind).kind == kind
        assert id_list(ours(delta_table(tmp_path))) == id_list(theirs(tmp_path)) == [0, 1, 2]


def test_features_that_nobody_knows_here(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(1))
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["magic"]}
    commit = tmp_path / "_delta_log" / f"{2:020d}.json"
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    table = table.update()
    for upkeep in (write_checkpoint, lambda t: compact_log(t, 0, 2), clean_log):
        with pytest.raises(UnsupportedFeatureError, match="magic"):
            upkeep(table)
    assert id_list(ours(table)) == [0]


def test_a_failed_checkpoint_leaves_no_sidecars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from millpond.base.store import open_store

    table = history(tmp_path, V2)

    def fail(path: str) -> None:
        if ".checkpoint." in path:
            broken_line(path)

    store = FaultyStore(open_store(tmp_path), before=fail)
    monkeypatch.setattr("millpond.kernel.write.checkpoint.open_store", lambda *_, **__: store)
    with pytest.raises(StoreError):
        write_checkpoint(table, sidecar_files=3)
    assert not list((tmp_path / "_delta_log" / "_sidecars").iterdir())
    assert not (tmp_path / "_delta_log" / "_last_checkpoint").exists()


@pytest.mark.parametrize(("interval", "expected"), [("3", [3, 6]), (None, [10]), ("100", [])])
def test_checkpoints_are_written_when_it_is_time(
    tmp_path: Path, interval: str | None, expected: list[int]
) -> None:
    settings = {} if interval is None else {"delta.checkpointInterval": interval}
    table = new_table(tmp_path, configuration=settings)
    for number in range(8 if interval else 11):
        table = append(table, ids(1, number))
    found = sorted((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert [int(path.name[:20]) for path in found] == expected
    assert id_list(ours(delta_table(tmp_path))) == id_list(theirs(tmp_path))


def checksums(path: Path) -> dict[int, dict[str, Any]]:
    found = sorted((path / "_delta_log").glob("*.crc"))
    return {int(file.name[:20]): json.loads(file.read_text()) for file in found}


def check_checksums(path: Path, latest: int) -> None:
    """Every version's checksum says what its log says."""
    found = checksums(path)
    assert sorted(found) == list(range(latest + 1))
    for version, told in found.items():
        aside = (path / "_delta_log" / f"{version:020d}.crc").rename(path / "aside")
        table = delta_table(path, version=version)
        sizes = table.files(columns=["size"])["size"].to_pylist()
        assert (told["numFiles"], told["tableSizeBytes"]) == (len(sizes), sum(sizes)), version
        assert told["metadata"] == table.metadata.to_dict()
        assert told["protocol"] == table.protocol.to_dict()
        aside.rename(path / "_delta_log" / f"{version:020d}.crc")


@pytest.mark.parametrize("configuration", [MARKS, FEED], ids=["marking", "rewriting"])
def test_every_commit_has_a_checksum(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = new_table(tmp_path, configuration=configuration, partition_by=["site"])
    for number in range(12):
        slow = table.transaction()
        slow.append(ids(2, 100 * number, "ab"[number % 2]))
        if number % 3 == 2:  # overtaken: the chain goes on
            table = append(table, ids(1, 100 * number + 50))
        slow.commit()
        table = table.update()
        if number % 4 == 3:
            with table.transaction() as tx:
                tx.delete(mp.col("id") % 7 == 0)
            table = table.update()
    with table.transaction() as tx:
        tx.set_metadata(name="n", configuration={"delta.enableInCommitTimestamps": "true"})
        tx.overwrite(ids(1))
    table = table.update()
    check_checksums(tmp_path, table.version)
    assert "inCommitTimestampOpt" in checksums(tmp_path)[table.version]


def test_a_checkpoint_takes_up_the_chain_again(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration=NEVER), ids(1))
    (tmp_path / "_delta_log" / f"{1:020d}.crc").unlink()
    table = append(table, ids(1, 1))
    assert sorted(checksums(tmp_path)) == [0]
    write_checkpoint(table)
    table = append(table, ids(1, 2))
    assert sorted(checksums(tmp_path)) == [0, 2, 3]
    (add,) = table.files(mp.col("id") == 0).to_arrow().to_pylist(maps_as_pydicts="strict")
    with table.transaction() as tx:
        tx.add_files([{**add, "stats": None}])  # the same file: one can't count on it
    table = table.update()
    assert sorted(checksums(tmp_path)) == [0, 2, 3]
    told = write_checksum(table)
    assert told["numFiles"] == len(table.files()) == 3
    assert checksums(tmp_path)[4].items() >= told.items()


def test_a_checksum_spares_the_log(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=NEVER)
    for number in range(5):
        table = append(table, ids(1, number))
    machine = _opening(tmp_path)
    assert [step.phase for step in machine.trace] == ["ReadHint", "ListLog", "ReadChecksum"]
    assert [file_name(path) for path in _scanned(machine)] == [f"{5:020d}.crc"]
    (tmp_path / "_delta_log" / f"{5:020d}.crc").unlink()
    machine = _opening(tmp_path)
    assert machine.trace[-1].phase == "ProtocolMetadata"
    # The older checksum says what was before.
    assert [file_name(p) for p in _scanned(machine)] == [f"{4:020d}.crc", f"{5:020d}.json"]
    (tmp_path / "_delta_log" / f"{4:020d}.crc").write_text("garbage")
    fresh = delta_table(tmp_path)
    assert (fresh.metadata, fresh.protocol) == (table.metadata, table.protocol)


def _scanned(machine: Any) -> list[str]:
    nodes = [node for step in machine.trace for node in topological(step.plan)]
    return [file.path for node in nodes if isinstance(node, Scan) for file in node.files]


def _opening(path: Path) -> Any:
    from millpond.kernel.open import SnapshotBuilder

    machine = SnapshotBuilder(path).machine("arrow")
    machine.run_to_terminal()
    return machine


@pytest.mark.parametrize(("start", "end"), [(0, 10), (2, 4), (3, 9), (9, 10)])
def test_a_compaction_says_what_its_commits_say(tmp_path: Path, start: int, end: int) -> None:
    table = history(tmp_path, {})
    assert table.version == 10
    before = {v: state(delta_table(tmp_path, version=v)) for v in (end, table.version)}
    path = compact_log(table, start, end)
    assert compact_log(table, start, end) == path, "doing so twice is harmless"
    log = tmp_path / "_delta_log"
    for version in range(start + 1, end + 1):  # they are not read
        (log / f"{version:020d}.crc").unlink()
        commit = log / f"{version:020d}.json"
        commit.write_text("{" + " " * (commit.stat().st_size - 1))
    for version, expected in before.items():
        assert state(delta_table(tmp_path, version=version)) == expected
    texts = (tmp_path / path).read_text()
    assert '"partitionValues":{"site":null}' in texts


def test_what_can_not_be_compacted(tmp_path: Path) -> None:
    table = append(append(new_table(tmp_path), ids(1)), ids(1))
    for start, end in ((1, 1), (2, 1), (-1, 1), (0, 3)):
        with pytest.raises(PlanError, match="can't be compacted"):
            compact_log(table, start, end)
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(PlanError, match="has no commit 1"):
        compact_log(table, 0, 2)


def aged(path: Path, until: int, days: float) -> None:
    """Files of the log up to a version look so many days old."""
    for file in (path / "_delta_log").rglob("*"):
        known = file.name[:20].isdigit() and int(file.name[:20]) <= until
        if file.is_file() and (known or file.parent.name == "_sidecars"):
            then = file.stat().st_mtime - days * 86_400
            os.utime(file, (then, then))


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "v2"])
def test_a_clean_up_takes_only_what_nobody_needs(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = new_table(tmp_path, configuration={**configuration, **NEVER})
    expected: dict[int, list[int]] = {}
    for number in range(12):
        table = append(table, ids(1, number))
        expected[table.version] = id_list(ours(table))
        if table.version in (3, 6, 9):
            write_checkpoint(table, sidecar_files=2)
    write_checkpoint(delta_table(tmp_path, version=6), sidecar_files=1)  # another of this version
    compact_log(table, 1, 4)
    compact_log(table, 5, 8)
    aged(tmp_path, 8, 31)
    nothing = clean_log(delta_table(tmp_path, version=5))  # its newest checkpoint is 3
    assert nothing.oldest_version == 3
    log = tmp_path / "_delta_log"
    shown = clean_log(table, dry_run=True)
    assert shown.oldest_version == 6
    assert all((tmp_path / path).exists() for path in shown.paths)
    removed = clean_log(table)
    assert removed == shown
    assert not any((tmp_path / path).exists() for path in removed.paths)
    left = {file.name for file in log.iterdir() if file.is_file()}
    assert f"{6:020d}.json" in left
    assert f"{5:020d}.json" not in left
    assert f"{5:020d}.{8:020d}.compacted.json" in left
    for version in range(6, 13):
        assert id_list(ours(delta_table(tmp_path, version=version))) == expected[version]
        assert id_list(theirs(tmp_path, version=version)) == expected[version]
    assert clean_log(delta_table(tmp_path)).paths == ()
    for manifest in log.glob("*.checkpoint.*-*.parquet"):
        rows = pq.read_table(manifest, columns=["sidecar"]).to_pylist()
        named = [r["sidecar"]["path"] for r in rows if r["sidecar"]]
        assert named
        assert all((log / "_sidecars" / name).exists() for name in named)


def test_nothing_goes_without_an_expired_checkpoint(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=NEVER)
    for number in range(3):
        table = append(table, ids(1, number))
    aged(tmp_path, 3, 100)
    assert clean_log(table).paths == ()
    write_checkpoint(table)
    assert clean_log(table).paths == (), "the checkpoint is too young to stand for all"
    later = dt.datetime.now(UTC) + dt.timedelta(days=31)
    removed = clean_log(table, now=later)
    assert removed.oldest_version == 3
    assert f"_delta_log/{2:020d}.json" in removed.paths
    with_property = {"delta.logRetentionDuration": "interval 2 days"}
    with table.transaction() as tx:
        tx.set_metadata(configuration=with_property)
    assert id_list(ours(delta_table(tmp_path))) == id_list(theirs(tmp_path)) == [0, 1, 2]


def test_a_catalogs_leftovers_go_when_they_have_expired(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration=NEVER)
    tx = table.transaction()
    tx.append(ids(1))
    staged = tx.stage()
    for number in range(3):
        table = append(table, ids(1, number))
    write_checkpoint(table)
    assert clean_log(table).paths == ()
    later = dt.datetime.now(UTC) + dt.timedelta(days=31)
    assert staged.path in clean_log(table, now=later).paths


def test_groups_of_rows() -> None:
    import pyarrow as pa

    tables = [pa.table({"a": list(range(n))}) for n in (3, 0, 7, 1)]
    found = [g.num_rows for g in grouped(tables, 4)]
    assert found == [4, 4, 3]
    joined = [v for g in grouped(tables, 4) for v in g["a"].to_pylist()]
    assert joined == [v for table in tables for v in table["a"].to_pylist()]
    assert list(grouped([], 4)) == []

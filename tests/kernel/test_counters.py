"""Laziness, by what was decoded and opened: leaves, row groups and files, never time."""

from __future__ import annotations

import gc
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.handmade import (
    Action,
    add,
    begin,
    checkpoint,
    commit,
    metadata,
    numbers,
    protocol,
    remove,
)

from millpond import col, delta_table
from millpond.engine.arrow import ArrowEngine
from millpond.kernel import engines, names
from millpond.kernel import table as table_module
from millpond.plan.counters import Counters, collect_stats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.kernel import DeltaTable

FILES, GROUP = 1000, 100
LIMITS = pa.struct([("n", pa.int64()), ("other", pa.int64())])
PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        *((name, LIMITS) for name in ("minValues", "maxValues", "nullCount")),
    ]
)


def adds() -> list[Action]:
    """Files 0 to 999, each with ten numbers more than the one before, statistics in both forms."""
    found = []
    for number in range(FILES):
        low = {"n": number * 10, "other": 0}
        high = {"n": number * 10 + 9, "other": 9}
        none = {"n": 0, "other": 0}
        stats = {"numRecords": 10, "minValues": low, "maxValues": high, "nullCount": none}
        line = add(f"{number:04}", stats=json.dumps(stats))
        line["add"]["stats_parsed"] = stats
        found.append(line)
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a thousand files in ten row groups, and two commits after it."""
    folder: Path = tmp_path_factory.mktemp("counters")
    head = [protocol(), metadata()]
    commit(folder, 0, *head)
    checkpoint(folder, 1, *head, *adds(), parsed=PARSED, group_rows=GROUP)
    commit(folder, 1, *adds())
    commit(folder, 2, add("1000"))
    commit(folder, 3, add("1001"))
    return folder


def counted(work: Callable[[], Any]) -> Counters:
    with collect_stats() as seen:
        work()
    return seen


def test_opening_decodes_no_add_action(table: Path) -> None:
    seen = counted(lambda: delta_table(table))
    file = pq.ParquetFile(table / "_delta_log" / names.checkpoint_name(1))
    leaves = [file.schema.column(i).path for i in range(len(file.schema))]
    needed = [leaf for leaf in leaves if leaf.startswith(("protocol.", "metaData."))]
    # Protocol and metadata are in the first row group; the others are ruled out.
    assert file.metadata.num_row_groups == 11
    assert seen.batches_pruned >= 10
    assert seen.columns_decoded == len(needed)
    assert seen.rows_decoded == GROUP


def test_opening_stops_when_protocol_and_metadata_are_found(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    checkpoint(tmp_path, 0, protocol(), metadata(), add("0"))
    commit(tmp_path, 1, add("1"))
    before = counted(lambda: delta_table(tmp_path))
    commit(tmp_path, 1, metadata(), add("1"), protocol(2, 5))
    (tmp_path / "_delta_log" / names.checkpoint_name(0)).write_bytes(b"not read")
    seen = counted(lambda: delta_table(tmp_path))
    assert before.files_opened - seen.files_opened == 1
    assert before.columns_decoded > seen.columns_decoded == 0


def test_after_a_checksum_only_later_commits_are_read(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    for version in range(1, 20):
        commit(tmp_path, version, add(str(version)))
    (tmp_path / "_delta_log" / names.commit_name(16)).write_text("[[[ not read")
    text = json.dumps({"metadata": metadata()["metaData"], **protocol()})
    (tmp_path / "_delta_log" / names.checksum_name(17)).write_text(text)
    assert counted(lambda: delta_table(tmp_path)).files_opened == 3  # it, and two commits


def test_the_versions_own_checksum_spares_the_log(tmp_path: Path) -> None:
    begin(tmp_path, add("a"))
    text = json.dumps({"metadata": metadata()["metaData"], **protocol()})
    (tmp_path / "_delta_log" / names.checksum_name(0)).write_text(text)
    (tmp_path / "_delta_log" / names.commit_name(0)).write_text("[[[ not read")
    assert counted(lambda: delta_table(tmp_path)).files_opened == 1


def listed(table: Path, *columns: str, **how: Any) -> Counters:
    opened = delta_table(table, **how)
    return counted(lambda: list(opened.files(columns=list(columns)).batches()))


def test_paths_alone_decode_one_leaf(table: Path) -> None:
    groups = 11
    assert listed(table, "path", version=1).columns_decoded == groups
    assert listed(table, "path", "size", version=1).columns_decoded == 2 * groups
    # After commits, what tells one deletion vector from another, too: it is part of a file's key.
    assert listed(table, "path").columns_decoded == 4 * groups


def test_a_predicate_decodes_what_it_needs_and_prunes_row_groups(table: Path) -> None:
    opened = delta_table(table, version=1)
    whole = counted(lambda: len(opened.files(columns=["path"])))
    assert whole.batches_decoded == 11

    def files(number: int) -> Counters:
        predicate = col("n") == number
        found: list[str] = []
        seen = counted(
            lambda: found.extend(opened.files(predicate, columns=["path"])["path"].to_pylist())
        )
        assert found == ([f"{number // 10:04}"] if number >= 0 else [])
        return seen

    one = files(5005)
    # One group to see that there are statistics, the one that may hold the file, and the first,
    # where rows that are no files have no statistics.
    assert one.batches_decoded == 3
    assert one.rows_decoded == 3 * GROUP
    # Smallest, largest and number of rows are asked for, and then the path.
    assert one.columns_decoded < 10
    assert files(-1).batches_decoded == 2


def test_update_reads_new_commits_alone(tmp_path: Path) -> None:
    head = [protocol(), metadata()]
    commit(tmp_path, 0, *head, add("0"))
    checkpoint(tmp_path, 0, *head, add("0"))
    for version in range(1, 6):
        commit(tmp_path, version, add(str(version)))
    opened = delta_table(tmp_path)
    assert counted(opened.update).files_opened == 0
    commit(tmp_path, 6, add("6"))
    commit(tmp_path, 7, add("7"))
    # With a new checkpoint, too: it is for scans to read.
    checkpoint(tmp_path, 6, *head, *(add(str(v)) for v in range(7)))
    seen = counted(opened.update)
    assert (seen.files_opened, seen.columns_decoded) == (2, 0)
    newer = opened.update()
    assert newer.version == 7
    assert sorted(newer.files()["path"].to_pylist()) == [str(v) for v in range(8)]


def test_a_scan_opens_only_files_that_may_match(tmp_path: Path) -> None:
    files = [numbers(tmp_path, f"{n}.parquet", n * 10, n * 10 + 9) for n in range(20)]
    begin(tmp_path, *files)
    opened = delta_table(tmp_path)
    for predicate, expected in (
        (None, 20),
        (col("n") == 55, 1),
        (col("n") >= 180, 2),
        (col("n") < 0, 0),
    ):
        log = counted(lambda p=predicate: list(opened.scan(predicate=p).state_machine()))  # type: ignore[misc]
        seen = counted(lambda p=predicate: opened.scan(predicate=p).to_arrow())  # type: ignore[misc]
        assert seen.files_opened - log.files_opened == expected


def test_history_reads_as_many_commits_as_are_asked_for(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    for version in range(1, 10):
        commit(tmp_path, version, {"commitInfo": {"operation": f"op {version}"}})
    opened = delta_table(tmp_path)
    assert counted(lambda: opened.history(2)).files_opened == 2
    assert [row["operation"] for row in opened.history(2)] == ["op 9", "op 8"]


def test_nothing_is_read_before_it_is_asked_for(table: Path) -> None:
    opened = delta_table(table)

    def work() -> None:
        files = opened.files(col("n") == 5)
        files.state_machine()
        scan = opened.scan(["n"], col("n") == 5)
        scan.state_machine()
        opened.changes(1, 2)

    assert counted(work) == Counters()


def paths(opened: DeltaTable) -> list[str]:
    return sorted(opened.files(columns=["path"])["path"].to_pylist())


def test_commits_that_opening_has_read_are_not_read_again(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    for version in range(1, 10):
        commit(tmp_path, version, add(str(version)))
    opened = delta_table(tmp_path)
    every = [str(version) for version in range(10)]
    # What was needed for protocol and metadata is not kept.
    assert counted(lambda: paths(opened)).files_opened == 1
    assert counted(lambda: paths(opened)) == Counters()
    assert paths(opened) == every
    assert counted(lambda: delta_table(tmp_path)).files_opened == 10

    scanned = delta_table(tmp_path)
    assert counted(lambda: list(scanned.scan().state_machine())).files_opened == 1
    by_others = delta_table(tmp_path)
    assert counted(lambda: by_others.history()).files_opened == 10
    assert counted(lambda: paths(by_others)).files_opened == 1


def test_live_files_are_kept_for_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path, add("0"), add("1"))
    commit(tmp_path, 1, remove("0"))
    opened = delta_table(tmp_path)
    assert counted(lambda: len(opened.files())).files_opened > 0
    for work in (
        lambda: opened.files().to_arrow(),
        lambda: list(opened.files(columns=("size", "path")).batches()),
        lambda: opened.files(engine="arrow")["path"],
    ):
        assert counted(work) == Counters()
    assert opened.files(columns=("size", "path")).to_arrow().column_names == ["size", "path"]
    # Fewer columns do not stand for more, nor one engine for another.
    narrow = delta_table(tmp_path)
    assert paths(narrow) == ["1"]
    assert counted(lambda: narrow.files(columns=("path", "size")).to_arrow()).files_opened == 2
    assert counted(lambda: len(narrow.files(engine=ArrowEngine()))).files_opened == 2
    # Batches pass by.
    stopped = delta_table(tmp_path)
    assert len(list(stopped.files().batches())) == 1
    assert counted(partial(list, stopped.files().batches())).files_opened == 2
    assert len(stopped.files()) == 1
    # Of a table that nobody holds any more, nothing is kept.
    listed = table_module._LISTED
    kept = len(listed._files)
    stopped.files().to_arrow()
    assert len(listed._files) == kept
    del stopped
    gc.collect()
    assert len(listed._files) == kept - 1
    # Those that take much room are listed anew.
    monkeypatch.setattr(table_module, "_KEPT_BYTES", 1)
    large = delta_table(tmp_path)
    assert paths(large) == ["1"]
    assert counted(lambda: paths(large)).files_opened == 2


def test_what_opening_has_read_is_of_that_table_alone(tmp_path: Path) -> None:
    begin(tmp_path, add("a"))
    file = commit(tmp_path, 1, add("b"))
    opened = delta_table(tmp_path)
    file.write_text(file.read_text().replace('"b"', '"c"'))
    # A commit never changes; who changes it all the same is seen when the table is opened anew.
    assert paths(opened) == ["a", "b"]
    assert paths(delta_table(tmp_path)) == ["a", "c"]
    assert paths(delta_table(tmp_path, engine="arrow")) == ["a", "c"]


def test_an_update_keeps_what_it_has_read(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    commit(tmp_path, 1, add("1"))
    opened = delta_table(tmp_path)
    for version in (2, 3):
        commit(tmp_path, version, add(str(version)))
    newer = opened.update()
    assert counted(lambda: paths(newer)).files_opened == 1
    assert paths(newer) == ["0", "1", "2", "3"]
    assert paths(opened) == ["0", "1"]


def test_another_engine_reads_for_itself(tmp_path: Path) -> None:
    begin(tmp_path, add("0"))
    commit(tmp_path, 1, add("1"))
    opened = delta_table(tmp_path, engine=ArrowEngine(keep_bytes=1 << 20))
    assert counted(lambda: paths(opened)).files_opened == 2
    found = delta_table(tmp_path)
    assert counted(lambda: len(found.files(engine=ArrowEngine()))).files_opened == 2


def test_commits_that_take_much_room_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path, add("0"))
    for version in range(1, 10):
        commit(tmp_path, version, add(str(version)))
    size = (tmp_path / "_delta_log" / names.commit_name(1)).stat().st_size
    monkeypatch.setattr(engines, "_KEPT_BYTES", 4 * size)
    opened = delta_table(tmp_path)
    assert counted(lambda: paths(opened)).files_opened == 10 - 4

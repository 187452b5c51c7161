"""The change data feed of a table written by hand, between every pair of its versions."""

from __future__ import annotations

import collections
import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.kernel.handmade import (
    add,
    begin,
    checkpoint,
    commit,
    data,
    info,
    listing,
    metadata,
    numbers,
    protocol,
    remove,
    sorted_rows,
)
from tests.kernel.write.tables import FEED, append, ids, new_table

from millpond import delta_table
from millpond.base.errors import (
    CorruptLogError,
    DataFileMissingError,
    DeltaError,
    PlanError,
    VersionNotFoundError,
)
from millpond.kernel import names
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.changes import (
    ACTIONS,
    FileChange,
    ListRange,
    ReadRange,
    changes_by_commit,
)
from millpond.kernel.dv import inline
from millpond.kernel.machine import PartialResult
from millpond.kernel.names import LogName
from millpond.kernel.segment import LogFile, LogSegment
from millpond.kernel.snapshot import Snapshot
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.types import LONG, STRING, Field, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ON: dict[str, Any] = {"enableChangeDataFeed": "true"}
WIDE = Struct.of(n=LONG, s=STRING)
DAY = 86_400_000

CHANGES: list[list[tuple[int, str | None, str]]] = [
    [(n, None, "insert") for n in (1, 2, 3, 10, 11)],
    [(3, None, "update_preimage"), (30, None, "update_postimage")],
    [(10, None, "delete")],
    [(11, None, "delete"), (10, None, "insert")],
    [*((n, None, "delete") for n in (1, 2, 30, 10)), (5, None, "insert")],
    [],
    [(6, "x", "insert")],
    [],
    [(6, "x", "delete")],
]
"""What each version did, by hand."""


def vector(*positions: int) -> dict[str, Any]:
    return inline(np.array(positions, np.int64)).to_dict()


def write(table: Path) -> None:
    """Versions 0 to 8, one day apart."""
    (table / "_change_data").mkdir(parents=True)
    a = numbers(table, "a", 1, 2, 3)
    b = numbers(table, "b", 10, 11)
    told = pa.table({"n": [3, 30], "_change_type": ["update_preimage", "update_postimage"]})
    cdc = data(table, "_change_data/c", told)["add"]
    first, second = ({**b["add"], "deletionVector": vector(row)} for row in (0, 1))
    c, again = numbers(table, "c", 5), numbers(table, "c2", 5, dataChange=False)
    d = data(table, "d", {"n": [6], "s": ["x"]})
    steps = [
        [protocol(features=["deletionVectors"]), metadata(**ON), a, b],
        [remove("a"), numbers(table, "a2", 1, 2, 30), {"cdc": {**cdc, "dataChange": False}}],
        [remove("b"), {"add": first}],
        # Without statistics: rows have to be counted.
        [remove("b", deletionVector=first["deletionVector"]), {"add": {**second, "stats": None}}],
        [remove("a2"), remove("b", deletionVector=second["deletionVector"]), c],
        [remove("c", dataChange=False), again],
        [metadata(WIDE, **ON), d],
        [remove("d"), d],
        [remove("d")],
    ]
    for version, lines in enumerate(steps):
        commit(table, version, *lines, millis=version * DAY)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("changes") / "t"
    write(folder)
    return folder


def expected(start: int, end: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for version in range(start, end + 1):
        when = dt.datetime.fromtimestamp(version * DAY / 1000, dt.UTC)
        for n, s, kind in CHANGES[version]:
            found.append((n, *((s,) if end >= 6 else ()), kind, version, when))
    return sorted(found, key=repr)


def test_changes_between_every_pair_of_versions(table: Path) -> None:
    latest = delta_table(table)
    for start in range(len(CHANGES)):
        for end in range(start, len(CHANGES)):
            found = latest.changes(start, end).to_arrow()
            assert sorted_rows(found) == expected(start, end), (start, end)


def test_changes_make_one_version_of_another(table: Path) -> None:
    rows: collections.Counter[Any] = collections.Counter()
    for version in range(len(CHANGES)):
        for row in delta_table(table).changes(version, version).to_arrow().to_pylist():
            gone = row["_change_type"] in ("delete", "update_preimage")
            rows[row["n"], row.get("s")] += -1 if gone else 1
        found = delta_table(table, version=version).scan().to_arrow().to_pylist()
        assert +rows == collections.Counter((row["n"], row.get("s")) for row in found), version


def test_versions_come_in_order(table: Path) -> None:
    found = delta_table(table).changes(0).to_arrow()["_commit_version"].to_pylist()
    assert found == sorted(found)


def test_the_end_is_the_tables_own_version(table: Path) -> None:
    older = delta_table(table, version=4)
    assert sorted_rows(older.changes(3).to_arrow()) == expected(3, 4)
    assert older.changes(3).schema.names == (
        *("n", "_change_type", "_commit_version", "_commit_timestamp"),
    )
    assert sorted_rows(older.changes(5, 8).to_arrow()) == expected(5, 8)


@pytest.mark.spark
def test_spark_gives_the_same_changes(table: Path, spark: SparkSession) -> None:
    del spark
    found = delta_table(table).changes(1, 3).to_arrow(engine="spark")
    assert sorted_rows(found) == expected(1, 3)


def test_explain_shows_the_phases(table: Path) -> None:
    text = delta_table(table).changes(1, 3).explain(phases=True)
    assert "ListRange (consume)" in text
    assert "ReadRange (partial result)" in text
    assert "DynamicScan" in text


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [(3, 2, "end is before the start"), (-1, 2, "whole numbers"), ("1", 2, "whole numbers")],
)
def test_ranges_that_can_not_be(table: Path, start: Any, end: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        delta_table(table).changes(start, end)


def test_an_end_that_is_not_there(table: Path) -> None:
    with pytest.raises(VersionNotFoundError, match="no version 99"):
        delta_table(table).changes(0, 99).to_arrow()


def test_a_feed_that_was_off(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a", 1))
    commit(tmp_path, 1, metadata(**ON), numbers(tmp_path, "b", 2))
    commit(tmp_path, 2, metadata(), numbers(tmp_path, "c", 3))
    commit(tmp_path, 3, metadata(**ON), numbers(tmp_path, "d", 4))
    latest = delta_table(tmp_path)
    for start, end, off in ((0, 1, 0), (1, 3, 2), (1, 2, 2), (2, 2, 2)):
        with pytest.raises(DeltaError, match=f"was not on at version {off}") as caught:
            latest.changes(start, end).to_arrow()
        assert "delta.enableChangeDataFeed" in str(caught.value)
    assert latest.changes(1, 1).to_arrow()["n"].to_pylist() == [2]
    assert latest.changes(3).to_arrow()["n"].to_pylist() == [4]


def test_commits_that_were_cleaned_up(tmp_path: Path) -> None:
    head = [protocol(), metadata(**ON)]
    files = [numbers(tmp_path, str(n), n) for n in range(5)]
    commit(tmp_path, 0, *head, files[0])
    for version in range(1, 5):
        commit(tmp_path, version, files[version])
    for version in (1, 3):
        checkpoint(tmp_path, version, *head, *files[: version + 1])
    (tmp_path / "_delta_log" / names.commit_name(0)).unlink()
    (tmp_path / "_delta_log" / names.commit_name(2)).unlink()
    latest = delta_table(tmp_path)
    with pytest.raises(VersionNotFoundError):
        latest.changes(0).to_arrow()
    with pytest.raises(VersionNotFoundError, match="no commit 2 any more") as caught:
        latest.changes(1).to_arrow()
    assert "from version 3 on" in str(caught.value)
    assert sorted(latest.changes(3).to_arrow()["n"].to_pylist()) == [3, 4]


def test_a_file_of_changes_that_is_gone(table: Path, tmp_path: Path) -> None:
    write(tmp_path / "t")
    (tmp_path / "t" / "_change_data" / "c").unlink()
    with pytest.raises(DataFileMissingError, match="_change_data/c"):
        delta_table(tmp_path / "t").changes(1, 1).to_arrow()


def untold(table: Path, kinds: list[str | None] | None) -> None:
    """Version 1 tells changes in a file whose column of kinds is this; None: it has none."""
    columns: dict[str, Any] = {"n": [1, 2]}
    if kinds is not None:
        columns["_change_type"] = pa.array(kinds, pa.string())
    commit(table, 0, protocol(), metadata(**ON), numbers(table, "a", 1, 2, 3))
    cdc = data(table, "_change_data/c", columns)["add"]
    commit(table, 1, remove("a"), numbers(table, "b", 3), {"cdc": cdc})


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("kinds", [None, ["delete", None], [None, None]])
def test_changes_of_which_nobody_says_what_they_are(
    tmp_path: Path, kinds: list[str | None] | None, start: int
) -> None:
    untold(tmp_path, kinds)
    with pytest.raises(CorruptLogError, match=r"column _change_type of .*_change_data/c") as caught:
        delta_table(tmp_path).changes(start).to_arrow(engine="arrow")
    assert caught.value.path == f"{tmp_path}/_change_data/c"
    assert "before it or after it" in str(caught.value)
    # Nobody asked for the kinds.
    plan = delta_table(tmp_path).changes(1).plan().select("n")
    assert plan.to_arrow(engine="arrow").to_pydict() == {"n": [1, 2]}


@pytest.mark.spark
@pytest.mark.parametrize("kinds", [None, ["delete", None]])
def test_changes_of_which_nobody_says_what_they_are_on_spark(
    tmp_path: Path, kinds: list[str | None] | None
) -> None:
    """Spark's rows do not tell of which file they are: one that lacks the column is named."""
    untold(tmp_path, kinds)
    named = "_change_data/c" if kinds is None else "some file"
    with pytest.raises(CorruptLogError, match=f"column _change_type of .*{named}"):
        delta_table(tmp_path).changes(0).to_arrow(engine="spark")


def test_a_table_with_a_column_of_that_name(tmp_path: Path) -> None:
    begin(tmp_path, schema=Struct.of(n=LONG, _commit_version=LONG), **ON)
    with pytest.raises(PlanError, match="'_commit_version' of its own"):
        delta_table(tmp_path).changes(0).to_arrow()


def test_partitions_and_times_that_commits_state(tmp_path: Path) -> None:
    schema = Struct.of(n=LONG, p=STRING)
    stated = {"enableInCommitTimestamps": "true", **ON}
    file = numbers(tmp_path, "p=a%20b/x", 1, 2, partitionValues={"p": "a b"})
    commit(
        tmp_path, 0, info(inCommitTimestamp=7), protocol(), metadata(schema, ["p"], **stated), file
    )
    # A remove without partition values, as the oldest writers wrote them, beside its add.
    less = {**file["add"], "deletionVector": vector(1)}
    commit(tmp_path, 1, info(inCommitTimestamp=9), remove(file["add"]["path"]), {"add": less})
    found = delta_table(tmp_path).changes(0).to_arrow().to_pylist()
    shown = sorted(
        (r["n"], r["p"], r["_change_type"], r["_commit_timestamp"].microsecond) for r in found
    )
    assert shown == [
        (1, "a b", "insert", 7000),
        (2, "a b", "delete", 9000),
        (2, "a b", "insert", 7000),
    ]


def test_a_mapped_table_by_ids(tmp_path: Path) -> None:
    notes = {"delta.columnMapping.physicalName": "col-n", "delta.columnMapping.id": 7}
    schema = Struct((Field("n", LONG).with_metadata(notes),))
    shape = metadata(schema, **ON)
    shape["metaData"]["configuration"]["delta.columnMapping.mode"] = "id"
    by_id = pa.field("whatever", pa.int64(), metadata={"PARQUET:field_id": "7"})
    plain = pa.table([pa.array([1, 2])], pa.schema([by_id]))
    told = pa.table(
        [pa.array([2]), pa.array(["delete"])], pa.schema([by_id, ("_change_type", pa.string())])
    )
    commit(tmp_path, 0, protocol(2, 5), shape, data(tmp_path, "a", plain))
    cdc = data(tmp_path, "_change_data/c", told)["add"]
    commit(tmp_path, 1, remove("a"), data(tmp_path, "b", plain.slice(0, 1)), {"cdc": cdc})
    found = delta_table(tmp_path).changes(0).to_arrow().to_pylist()
    shown = sorted((row["n"], row["_change_type"], row["_commit_version"]) for row in found)
    assert shown == [(1, "insert", 0), (2, "delete", 1), (2, "insert", 0)]


# ---- the phases without files


def file(version: int) -> LogFile:
    return LogFile(f"/t/_delta_log/{version}", LogName("commit", version, version), 1, version)


STATED = {"enableInCommitTimestamps": "true"}


def snapshot(version: int, **settings: str) -> Snapshot:
    segment = LogSegment("/t", version, None, tuple(file(v) for v in range(version + 1)))
    found = Metadata.from_dict(metadata(**ON, **settings)["metaData"])
    return Snapshot(segment, Protocol(1, 2), found)


def test_a_range_is_listed_from_its_start() -> None:
    segment = LogSegment("/t", 4, None, ())
    given = Snapshot(segment, Protocol(1, 2), snapshot(0).metadata)
    phase = ListRange("/t", given, 2)
    assert "from 00000000000000000002" in str(phase.plan())
    rows = listing(*((names.commit_name(v), 1) for v in (2, 3, 4, 5)))
    state = phase.next(rows)
    assert isinstance(state, PartialResult)
    assert isinstance(state.phase, ReadRange)
    assert [f.name.version for f in state.phase.commits] == [2, 3, 4]
    with pytest.raises(VersionNotFoundError, match="no commit 3 any more"):
        phase.next(listing((names.commit_name(2), 1), (names.commit_name(4), 1)))
    with pytest.raises(VersionNotFoundError, match="only the table's rows"):
        phase.next(listing((names.commit_name(2), 1)))


def actions(*rows: dict[str, Any]) -> pa.Table:
    schema = to_arrow_schema(ACTIONS).append(pa.field("version", pa.int64()))
    schema = schema.append(pa.field("millis", pa.int64()))
    return pa.Table.from_pylist([{**row, "millis": row["version"]} for row in rows], schema)


def changed(found: Snapshot, *rows: dict[str, Any]) -> list[FileChange]:
    """The changes that some actions are; they come in two batches."""
    table = actions(*rows)
    half = len(rows) // 2
    batches = [*table.slice(0, half).to_batches(), *table.slice(half).to_batches()]
    return [change for commit in changes_by_commit(found, batches) for change in commit]


@pytest.mark.parametrize(("settings", "last"), [(STATED, 70), ({}, 2)])
def test_what_a_commit_says_of_files_becomes_changes(settings: dict[str, str], last: int) -> None:
    """The time that a commit states counts where commits have to state it."""
    plain = {"path": "a", "dataChange": True}
    changes = changed(
        snapshot(2, **settings),
        {"version": 0, "add": plain},
        {"version": 0, "add": {"path": "moved", "dataChange": False}},
        {"version": 1, "remove": plain},
        {"version": 1, "cdc": {"path": "c"}},
        {"version": 2, "remove": plain},
        {"version": 2, "add": plain},
        {"version": 2, "commitInfo": {"inCommitTimestamp": 70}},
    )
    found = [(c.version, c.millis, c.kind, c.file["path"], c.other is not None) for c in changes]
    assert found == [
        (0, 0, "insert", "a", False),
        (1, 1, None, "c", False),
        (2, last, "delete", "a", True),
        (2, last, "insert", "a", True),
    ]


def test_metadata_in_the_middle_is_looked_at() -> None:
    no = [("delta.enableChangeDataFeed", "no")]
    off = {"schemaString": "{}", "partitionColumns": [], "configuration": no}
    with pytest.raises(DeltaError, match="not on at version 0"):
        changed(snapshot(0), {"version": 0, "metaData": off})
    with pytest.raises(CorruptLogError, match="schemaString is missing"):
        changed(snapshot(0), {"version": 0, "metaData": {"id": "x"}})


def test_a_time_that_is_in_no_calendar() -> None:
    with pytest.raises(CorruptLogError, match="commit 0 of /t states the time 1000000000000000 ms"):
        changed(snapshot(0, **STATED), {"version": 0, "commitInfo": {"inCommitTimestamp": 10**15}})


def test_changes_are_read_commit_by_commit(tmp_path: Path) -> None:
    """Rows of the first commits are there before the last ones of a long range are read."""
    table = new_table(tmp_path, configuration=FEED)
    for number in range(30):
        table = append(table, ids(1, number))
    every = table.changes(1).to_arrow()
    assert every["_commit_version"].to_pylist() == list(range(1, 31))
    assert every["id"].to_pylist() == list(range(30))
    assert every.equals(table.changes(1).plan().to_arrow(engine="arrow").combine_chunks())
    last = tmp_path / "_delta_log" / f"{30:020}.json"
    last.write_bytes(last.read_bytes().replace(b'"add"', b'"`dd"'))
    seen: list[int] = []
    with pytest.raises(CorruptLogError, match="does not fit its seal"):
        seen.extend(id_ for b in table.changes(1).to_batches() for id_ in b["id"].to_pylist())
    assert seen == list(range(len(seen)))
    assert 0 < len(seen) < 30
    machine = table.changes(1, 20).state_machine()
    batches = list(machine)
    assert len(batches) > 1
    assert [file.name.version for file in machine.into_terminal()] == list(range(1, 21))


@pytest.mark.parametrize("count", ["-1", "true", "1e1", "2", "100000000000000"])
def test_counts_of_rows_are_not_believed(tmp_path: Path, count: str) -> None:
    before = numbers(tmp_path, "a", *range(5))
    both = ["deletionVectors"], ["deletionVectors", "changeDataFeed"]
    commit(tmp_path, 0, protocol(features=both[0], writer_features=both[1]), metadata(**ON), before)
    vector = inline(np.array([1])).to_dict()
    after = add("a", stats=f'{{"numRecords": {count}}}', deletionVector=vector)
    commit(tmp_path, 1, remove("a"), after)
    found = delta_table(tmp_path).changes(1).to_arrow().select(["n", "_change_type"])
    assert sorted_rows(found) == [(1, "delete")]


def test_no_changes_are_an_empty_table(tmp_path: Path) -> None:
    begin(tmp_path, **ON)
    commit(tmp_path, 1, add("x", dataChange=False))
    found = delta_table(tmp_path).changes(0).to_arrow()
    assert (found.num_rows, found.schema.names[0]) == (0, "n")

"""What is known of files: partition columns by directory or by file, literals, or a join."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.engine.spark import file_columns
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.sources import STORED_NAME, DynamicScan, File, Scan, Values
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
    List,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.engine.spark.compile.conftest import RunRows

    from millpond.engine.spark import SparkEngine

pytestmark = pytest.mark.spark


def write(target: Path, data: dict[str, Any]) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(data), target)
    return str(target)


def partitioned(folder: Path, count: int, *, mixed: bool = False) -> Scan:
    """Two files a directory; with `mixed`, their constants differ."""
    files = []
    for number in range(2 * count):
        path = write(folder / f"d {number // 2}=%20é" / f"{number}.parquet", {"v": [number]})
        part = number if mixed else number // 2
        files.append(File(path, constants=(part, f"text {part}" if part else None)))
    columns = Struct.of(p=LONG, v=LONG, t=STRING)
    return Scan("parquet", tuple(files), columns, ("p", "t"))


def physical(engine: SparkEngine, plan: Any) -> str:
    df = engine.to_dataframe(plan)
    return str(df._jdf.queryExecution().executedPlan().toString())


def test_directories_stand_for_constants(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    plan = partitioned(tmp_path, 20)
    expected = [(n // 2, n, f"text {n // 2}" if n // 2 else None) for n in range(40)]
    assert sorted(run_rows(plan, ordered=False)) == expected
    assert run_rows(plan) == expected
    text = physical(engine, plan)
    assert text.count("FileScan") == 1
    assert "Join" not in text
    few = optimize(plan.filter((col("p") == 7) & (col("v") > 14)))
    assert run_rows(few, ordered=False) == [(7, 15, "text 7")]
    assert "PartitionFilters: [isnotnull" in physical(engine, few)
    assert sorted(run_rows(plan.filter(col("t").is_null()), ordered=False)) == expected[:2]


def test_files_of_one_directory_with_different_constants(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    plan = partitioned(tmp_path, 20, mixed=True)
    expected = [(n, n, f"text {n}" if n else None) for n in range(40)]
    assert sorted(run_rows(plan, ordered=False)) == expected
    text = physical(engine, plan)
    assert (text.count("FileScan"), "Join" in text) == (1, False)
    assert run_rows(plan) == expected
    few = optimize(plan.filter((col("p") == 7) & (col("v") > 5)))
    assert run_rows(few, ordered=False) == [expected[7]]
    assert "PartitionFilters: [isnotnull" in physical(engine, few)
    some = partitioned(tmp_path / "few", 3, mixed=True)
    assert sorted(run_rows(some, ordered=False)) == expected[:6]
    assert physical(engine, some).count("FileScan") == 6


def test_only_the_given_files_of_a_directory_are_read(run_rows: RunRows, tmp_path: Path) -> None:
    plan = partitioned(tmp_path, 3)
    kept = Scan("parquet", plan.files[1:5], plan.columns, plan.constants)
    assert sorted(row[1] for row in run_rows(kept, ordered=False)) == [1, 2, 3, 4]


def test_a_file_that_is_named_twice_is_read_twice(run_rows: RunRows, tmp_path: Path) -> None:
    plan = partitioned(tmp_path, 2)
    twice = Scan("parquet", (*plan.files, plan.files[1]), plan.columns, plan.constants)
    assert sorted(row[1] for row in run_rows(twice, ordered=False)) == [0, 1, 1, 2, 3]


def test_constants_of_every_type(run_rows: RunRows, tmp_path: Path) -> None:
    given: dict[str, tuple[DataType, Any, Any]] = {
        "i": (INTEGER, 7, -7),
        "s": (SHORT, 7, -7),
        "r": (DOUBLE, 1.5, float("-inf")),
        "f": (FLOAT, 0.5, -0.5),
        "p": (Decimal(10, 2), D("1.25"), D("-1.25")),
        "q": (Decimal(30, 2), D("1.25"), D("-1.25")),
        "d": (DATE, dt.date(1900, 3, 1), dt.date(9999, 1, 1)),
        "t": (
            TIMESTAMP,
            dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC),
            dt.datetime(1500, 1, 1, tzinfo=dt.UTC),
        ),
        "w": (
            TIMESTAMP_NTZ,
            dt.datetime(1899, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001
            dt.datetime(2024, 1, 1),  # noqa: DTZ001
        ),
        "b": (BOOLEAN, True, False),
        "x": (BINARY, b"\x00\xff", b""),
        "n": (STRING, "a=b/c d%20é", ""),
    }
    columns = Struct.of(v=LONG, **{name: type_ for name, (type_, _, _) in given.items()})
    files = []
    for number in range(3):
        path = write(tmp_path / str(number) / "a.parquet", {"v": [number]})
        constants = tuple((one, two, None)[number] for _, one, two in given.values())
        files.append(File(path, constants=constants))
    found = sorted(run_rows(Scan("parquet", tuple(files), columns, tuple(given)), ordered=False))
    assert found == [(number, *file.constants) for number, file in enumerate(files)]


def test_renamed_and_required_columns_beside_partitions(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    field = Field("v", LONG, nullable=False).with_metadata({STORED_NAME: "c1"})
    columns = Struct((Field("p", LONG), field))
    files = [
        File(write(tmp_path / str(n) / "a.parquet", {"c1": [n * 10]}), constants=(n,))
        for n in range(3)
    ]
    plan = Scan("parquet", tuple(files), columns, ("p",))
    assert sorted(run_rows(plan, ordered=False)) == [(0, 0), (1, 10), (2, 20)]
    some = plan.filter((col("p") > 0) & (col("v") > 10))
    assert run_rows(some, ordered=False) == [(2, 20)]
    assert "GreaterThan(c1,10)" in physical(engine, some)
    bad = File(write(tmp_path / "bad" / "a.parquet", {"v": [1]}), constants=(9,))
    with pytest.raises(SourceError, match=r"column v of .*bad/a\.parquet is missing"):
        run_rows(Scan("parquet", (*files, bad), columns, ("p",)), ordered=False)


def test_a_missing_file_is_named(run_rows: RunRows, tmp_path: Path) -> None:
    plan = partitioned(tmp_path, 3)
    gone = File(str(tmp_path / "none" / "gone.parquet"), constants=(1, "x"))
    with pytest.raises(SourceError, match=r"gone\.parquet"):
        run_rows(Scan("parquet", (*plan.files, gone), plan.columns, plan.constants), ordered=False)


def test_files_without_deleted_rows_need_no_positions(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    listed = []
    for number in range(6):
        path = write(tmp_path / str(number) / "a.parquet", {"v": [number, number + 10]})
        gone = {1: [0], 2: [], 4: [0, 1]}.get(number)
        listed.append({"path": path, "p": number, "gone": gone})
    named = values(listed, Struct.of(path=STRING, p=LONG, gone=List(LONG)))
    columns = Struct.of(v=LONG, p=LONG)
    plan = named.dynamic_scan(columns, constants=["p"], deleted="gone")
    left = [(0, 0), (10, 0), (11, 1), (2, 2), (12, 2), (3, 3), (13, 3), (5, 5), (15, 5)]
    assert sorted(run_rows(plan, ordered=False)) == sorted(left)
    assert run_rows(plan) == left
    text = physical(engine, plan)
    assert (text.count("FileScan"), text.count("row_index:bigint"), "Join" in text) == (2, 1, False)


def deleted(
    folder: Path, gone: list[list[int] | None], *, rows: int = 300, **columns: Any
) -> DynamicScan:
    """A file for each list of deleted rows; `v` is the row's number over all files."""
    listed = []
    for number, positions in enumerate(gone):
        first = number * rows
        data = {"v": list(range(first, first + rows)), **columns}
        target = folder / f"{number}.parquet"
        pq.write_table(pa.table(data), target, row_group_size=100)
        listed.append({"path": str(target), "p": number, "gone": positions})
    named = values(listed, Struct.of(path=STRING, p=LONG, gone=List(LONG)))
    stored = {name: List(LONG) for name in columns}
    schema = Struct.of(v=LONG, p=LONG, **stored)
    plan = named.dynamic_scan(schema, constants=["p"], deleted="gone")
    assert isinstance(plan, DynamicScan)
    return plan


GONE: list[list[int] | None] = [[0, 63, 64, 127, 299], None, [], [128], list(range(300)), [150]]
LEFT = [
    (number * 300 + row, number)
    for number, gone in enumerate(GONE)
    for row in range(300)
    if row not in (gone or ())
]


@pytest.mark.parametrize(
    ("limits", "scans"),
    [({}, 1), ({"_MOST_FILES": 2}, 2), ({"_MOST_WORDS": 8}, 2), ({"_MOST_WORDS": 0}, 4)],
)
def test_deleted_rows_are_bits_that_all_files_share(
    run_rows: RunRows,
    engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, int],
    scans: int,
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(file_columns, name, limit)
    plan = deleted(tmp_path, GONE)
    assert run_rows(plan) == LEFT
    assert sorted(run_rows(plan, ordered=False)) == LEFT
    text = physical(engine, plan)
    assert "Join" not in text
    assert text.count("row_index:bigint") == scans
    # The second row group of each file alone: positions are those in the file.
    some = optimize(plan.filter((col("v") >= 1020) & (col("v") < 1032)))
    assert run_rows(some) == [row for row in LEFT if 1020 <= row[0] < 1032]
    assert run_rows(optimize(plan.filter(col("p") == 5).tail(2))) == LEFT[-2:]


def test_deleted_rows_beside_lists_and_without_vectors(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    plan = deleted(tmp_path, GONE, tags=[[n] * (n % 3) for n in range(300)])
    expected = [(v, p, [v % 300] * (v % 300 % 3)) for v, p in LEFT]
    assert run_rows(plan) == expected
    engine.session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert run_rows(plan) == expected
    finally:
        engine.session.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_what_partitions_can_not_have_is_joined(
    run_rows: RunRows, engine: SparkEngine, tmp_path: Path
) -> None:
    """A file that is named twice is read twice, each time without what is deleted there."""
    once = deleted(tmp_path, GONE)
    assert isinstance(once.input, Values)
    named = once.input.data.to_pylist()
    twice = [*named, {**named[0], "p": 9, "gone": [1]}]
    plan = replace(once, input=values(twice, once.input.schema))
    more = [(row, 9) for row in range(300) if row != 1]
    assert run_rows(plan) == LEFT + more
    assert sorted(run_rows(plan, ordered=False)) == sorted(LEFT + more)
    assert "BroadcastHashJoin" in physical(engine, plan)


def test_files_that_spark_is_to_list_anew_do_not_vanish(
    engine: SparkEngine, tmp_path: Path
) -> None:
    df = engine.to_dataframe(deleted(tmp_path, GONE), ordered=False)
    df.createOrReplaceTempView("some_rows")
    try:
        with pytest.raises(Exception, match="fileStatusCache"):
            engine.session.catalog.refreshTable("some_rows")
        assert df.count() == len(LEFT)
    finally:
        engine.session.catalog.dropTempView("some_rows")


def test_scans_that_differ_in_what_is_known_of_files_are_not_the_same(
    engine: SparkEngine, tmp_path: Path
) -> None:
    """To Spark, two scans of the same files and columns are: it would give what it has cached."""
    given = partitioned(tmp_path, 20, mixed=True)
    constants = [file.constants for file in given.files]
    swapped = [constants[1], constants[0], *constants[2:]]
    others = (File(f.path, constants=c) for f, c in zip(given.files, swapped, strict=True))
    frames = [
        engine.to_dataframe(plan, ordered=False)
        for plan in (given, replace(given, files=tuple(others)))
    ]
    assert not frames[0].sameSemantics(frames[1])
    frames[0].cache()
    try:
        found = [{(row["p"], row["v"]) for row in frame.collect()} for frame in frames]
    finally:
        frames[0].unpersist()
    assert found[0] - found[1] == {(0, 0), (1, 1)}
    assert found[1] - found[0] == {(1, 0), (0, 1)}
    assert frames[0].sameSemantics(engine.to_dataframe(given, ordered=False))


def test_an_empty_file_does_not_vanish(run_rows: RunRows, tmp_path: Path) -> None:
    plan = deleted(tmp_path, GONE)
    (tmp_path / "3.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match=r"3\.parquet"):
        run_rows(plan)


def test_names_in_memory_take_no_job(engine: SparkEngine, tmp_path: Path) -> None:
    listed = [{"path": write(tmp_path / f"{n}.parquet", {"v": [n]}), "p": n} for n in range(3)]
    named = values(listed, Struct.of(path=STRING, p=LONG))
    tracker = engine.session.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    plan = named.dynamic_scan(Struct.of(v=LONG, p=LONG), constants=["p"])
    engine.to_dataframe(plan)
    engine.to_dataframe(optimize(plan.filter(col("p") > 0)))
    assert set(tracker.getJobIdsForGroup(None)) == before

"""Files whose columns are narrower than the plan's, older in form, or missing, on both engines."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.plan.expr import col, lit, path
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.sources import STORED_NAME, File, Scan
from millpond.plan.types import (
    DOUBLE,
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
    Map,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan


def rows(plan: Plan, engine: Executor) -> list[dict[str, Any]]:
    run = engine.execute(plan)
    found: list[dict[str, Any]] = pa.Table.from_batches(list(run), schema=run.schema).to_pylist()
    return found


def write(folder: Path, name: str, table: pa.Table, **options: Any) -> File:
    pq.write_table(table, folder / name, **options)
    return File(str(folder / name))


WALL = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001
MOMENT = WALL.replace(tzinfo=dt.UTC)
OLD = dt.date(1500, 2, 28)
MIDNIGHT = dt.datetime(1500, 2, 28)  # noqa: DTZ001

CASES: list[tuple[pa.DataType, Any, DataType, Any]] = [
    (pa.int8(), -7, SHORT, -7),
    (pa.int8(), -7, INTEGER, -7),
    (pa.int16(), 300, LONG, 300),
    (pa.int32(), 2**31 - 1, LONG, 2**31 - 1),
    (pa.int8(), 5, DOUBLE, 5.0),
    (pa.int16(), -5, DOUBLE, -5.0),
    (pa.int32(), 2**31 - 1, DOUBLE, 2.0**31 - 1),
    (pa.float32(), 1.5, DOUBLE, 1.5),
    (pa.int8(), 5, Decimal(10, 0), D(5)),
    (pa.int32(), -(2**31), Decimal(12, 2), D(-(2**31)).quantize(D("0.01"))),
    (pa.int32(), 7, Decimal(38, 10), D("7.0000000000")),
    (pa.int64(), -(2**63), Decimal(20, 0), D(-(2**63))),
    (pa.decimal128(5, 2), D("-1.25"), Decimal(7, 2), D("-1.25")),
    (pa.decimal128(5, 2), D("1.25"), Decimal(10, 4), D("1.2500")),
    (pa.decimal128(5, 2), D("1.25"), Decimal(38, 10), D("1.2500000000")),
    (pa.decimal128(20, 2), D("1.25"), Decimal(22, 4), D("1.2500")),
    (pa.date32(), OLD, TIMESTAMP_NTZ, MIDNIGHT),
    (pa.timestamp("ms"), WALL, TIMESTAMP_NTZ, WALL),
    (pa.timestamp("ms", "UTC"), MOMENT, TIMESTAMP, MOMENT),
    (pa.timestamp("us"), WALL, TIMESTAMP, MOMENT),
    (pa.timestamp("us", "UTC"), MOMENT, TIMESTAMP_NTZ, WALL),
]


def columns_of_all_cases() -> tuple[pa.Table, Struct, list[dict[str, Any]]]:
    """A column for each case, plain and in a list, a struct and a map; and a row of nulls."""
    arrays: dict[str, pa.Array] = {}
    types: dict[str, DataType] = {}
    full: dict[str, Any] = {}
    empty: dict[str, Any] = {}
    for number, (stored, given, wanted, expected) in enumerate(CASES):
        kinds: dict[str, tuple[pa.DataType, Any, Any, DataType, Any, Any]] = {
            "plain": (stored, given, None, wanted, expected, None),
            "list": (pa.list_(stored), [given, None], [], List(wanted), [expected, None], []),
            "struct": (
                pa.struct([("m", stored)]),
                {"m": given},
                None,
                Struct.of(m=wanted),
                {"m": expected},
                None,
            ),
            "map": (
                pa.map_(pa.string(), stored),
                [("k", given)],
                [("k", None)],
                Map(STRING, wanted),
                [("k", expected)],
                [("k", None)],
            ),
        }
        for kind, (type_, value, other, target, found, nothing) in kinds.items():
            name = f"{kind} {number}"
            arrays[name] = pa.array([value, other], type_)
            types[name], full[name], empty[name] = target, found, nothing
    return pa.table(arrays), Struct.of(**types), [full, empty]


def test_every_widening_at_any_depth(engine: Executor, tmp_path: Path) -> None:
    table, columns, expected = columns_of_all_cases()
    file = write(tmp_path, "narrow.parquet", table)
    assert rows(Scan("parquet", (file,), columns), engine) == expected


def test_moments_of_96_bits(engine: Executor, tmp_path: Path) -> None:
    old = dt.datetime(1901, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001
    table = pa.table({name: pa.array([WALL, old, None], pa.timestamp("us")) for name in "ab"})
    file = write(tmp_path, "a.parquet", table, use_deprecated_int96_timestamps=True)
    for type_, zone in ((TIMESTAMP, dt.UTC), (TIMESTAMP_NTZ, None)):
        plan = Scan("parquet", (file,), Struct.of(a=type_, b=type_))
        found = rows(plan, engine)
        assert [row["a"] for row in found] == [
            WALL.replace(tzinfo=zone),
            old.replace(tzinfo=zone),
            None,
        ]
        late = plan.filter(col("b") > lit(WALL.replace(year=2023, tzinfo=zone))).select("a")
        assert rows(optimize(late), engine) == [{"a": WALL.replace(tzinfo=zone)}]


def test_predicates_over_widened_columns(engine: Executor, tmp_path: Path) -> None:
    numbers = list(range(100))
    days = [OLD + dt.timedelta(days=n) for n in numbers]
    table = pa.table(
        {
            "i": pa.array(numbers, pa.int8()),
            "r": pa.array([n / 4 for n in numbers], pa.float32()),
            "d": pa.array([D(n) / 4 for n in numbers], pa.decimal128(5, 2)),
            "t": pa.array(days, pa.date32()),
            "s": pa.array([{"x": n} for n in numbers], pa.struct([("x", pa.int32())])),
        }
    )
    file = write(tmp_path, "a.parquet", table, row_group_size=10)
    columns = Struct.of(
        i=LONG, r=DOUBLE, d=Decimal(12, 4), t=TIMESTAMP_NTZ, s=Struct.of(x=Decimal(20, 2))
    )
    plan = Scan("parquet", (file,), columns)
    late = MIDNIGHT + dt.timedelta(days=97)
    for predicate in (
        col("i") >= 97,
        col("r") >= 24.25,
        col("d") >= lit(D("24.25")),
        col("t") >= lit(late),
        path("s.x") >= lit(D("97.00")),
    ):
        found = rows(optimize(plan.filter(predicate).select("i")), engine)
        assert found == [{"i": 97}, {"i": 98}, {"i": 99}], predicate
    whole = Scan("parquet", (file,), Struct.of(i=Decimal(10, 0), d=Decimal(5, 2)))
    assert rows(optimize(whole.filter(col("i") == lit(D(42))).select("d")), engine) == [
        {"d": D("10.50")}
    ]


def test_files_of_different_age_in_one_scan(engine: Executor, tmp_path: Path) -> None:
    listed = []
    for number in range(40):
        type_ = (pa.int8(), pa.int32(), pa.int64())[number % 3]
        table = pa.table({"v": pa.array([number], type_)})
        listed.append({"path": write(tmp_path, f"{number}.parquet", table).path, "p": number % 2})
    named = values(listed, Struct.of(path=STRING, p=LONG))
    plan = named.dynamic_scan(Struct.of(v=LONG, p=LONG), constants=["p"])
    assert rows(plan, engine) == [{"v": n, "p": n % 2} for n in range(40)]


def test_a_column_that_is_never_null_is_in_every_file(engine: Executor, tmp_path: Path) -> None:
    old = write(tmp_path, "old.parquet", pa.table({"a": [1, 2]}))
    new = write(tmp_path, "new.parquet", pa.table({"a": [3], "c1": [4]}))
    field = Field("b", LONG, nullable=False).with_metadata({STORED_NAME: "c1"})
    columns = Struct((Field("a", LONG, nullable=False), field, Field("c", LONG)))
    plan = Scan("parquet", (new,), columns)
    assert rows(plan, engine) == [{"a": 3, "b": 4, "c": None}]
    assert rows(optimize(plan.filter(col("a") == 3).select("b")), engine) == [{"b": 4}]
    listed = values([{"path": new.path}, {"path": old.path}], Struct.of(path=STRING))
    for scan in (Scan("parquet", (new, old), columns), listed.dynamic_scan(columns)):
        with pytest.raises(SourceError, match=r"column b of .*old\.parquet is missing") as raised:
            rows(scan, engine)
        assert raised.value.path == old.path
        assert raised.value.hint
    assert len(rows(optimize(Scan("parquet", (new, old), columns).select("a")), engine)) == 3


LEGACY = """
    array(1, null, 3) AS nullable, array(1, 2) AS full,
    array(named_struct('x', 1, 'y', 'a'), null) AS structs,
    array(array(1), array()) AS lists, map('k', 1, 'l', null) AS plain,
    map('k', named_struct('x', array(5))) AS deep, cast(null AS array<int>) AS nothing
"""


@pytest.mark.spark
def test_lists_and_maps_as_they_were_written_long_ago(
    spark: SparkSession, engine: Executor, tmp_path: Path
) -> None:
    folder = tmp_path / "legacy"
    legacy = "spark.sql.parquet.writeLegacyFormat"
    spark.conf.set(legacy, "true")
    try:
        spark.sql(f"SELECT {LEGACY}").coalesce(1).write.parquet(str(folder))
    finally:
        spark.conf.unset(legacy)
    (written,) = folder.glob("*.parquet")
    chunks = pq.read_metadata(written).row_group(0)
    paths = [chunks.column(number).path_in_schema for number in range(chunks.num_columns)]
    assert {"bag", "array"} <= {step for name in paths for step in name.split(".")}
    item = Struct.of(x=LONG, y=STRING)
    columns = Struct.of(
        nullable=List(LONG),
        full=List(INTEGER),
        structs=List(item),
        lists=List(List(LONG)),
        plain=Map(STRING, LONG),
        deep=Map(STRING, Struct.of(x=List(DOUBLE))),
        nothing=List(LONG),
    )
    plan = Scan("parquet", (File(str(written)),), columns)
    assert rows(plan, engine) == [
        {
            "nullable": [1, None, 3],
            "full": [1, 2],
            "structs": [{"x": 1, "y": "a"}, None],
            "lists": [[1], []],
            "plain": [("k", 1), ("l", None)],
            "deep": [("k", {"x": [5.0]})],
            "nothing": None,
        }
    ]
    some = optimize(plan.select(y=path("structs[*].y"), n=path("plain.k")))
    assert rows(some, engine) == [{"y": ["a", None], "n": 1}]

"""Logs that others wrote, against `deltalake`'s query engine, or what their files say by hand.

They are not part of the project: `TEST_GOLDEN` says where they are, beside the repository if not.
"""

from __future__ import annotations

import collections
import datetime as dt
import math
import os
from decimal import Decimal as D
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

from millpond import col, delta_table, values
from millpond.base.errors import DeltaError, TableNotFoundError
from millpond.kernel import SnapshotBuilder
from millpond.plan.types import NULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.plan.expr import Expr

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden"
LOGS = Path(os.environ.get("TEST_GOLDEN", _BESIDE)) / "logs"

pytestmark = pytest.mark.skipif(
    not LOGS.is_dir(), reason="the golden logs are not here (TEST_GOLDEN)"
)

NO_TABLE = "crc-malformed"
NOT_FOR_DELTALAKE = "type-widening"
FEEDS = ["cdf-table", "cdf-table-with-dv", "compacted-log-files-table"]
FEED_BY_HAND = "cdf-column-mapping-name-mode"


def _names() -> list[str]:
    if not LOGS.is_dir():
        return []
    return sorted(str(log.parent.relative_to(LOGS)) for log in LOGS.rglob("_delta_log"))


READABLE = [name for name in _names() if name not in (NO_TABLE, NOT_FOR_DELTALAKE)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return tuple((name, _plain(member)) for name, member in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def _bag(table: pa.Table, *, without: tuple[str, ...] = ()) -> collections.Counter[Any]:
    rows = table.drop_columns([n for n in without if n in table.column_names]).to_pylist()
    return collections.Counter(tuple(sorted((k, _plain(v)) for k, v in r.items())) for r in rows)


def _theirs(name: str, version: int | None = None) -> pa.Table:
    table = deltalake.DeltaTable(str(LOGS / name), version=version)
    query = deltalake.QueryBuilder().register("t", table).execute("select * from t")
    return pa.table(query.read_all())


def test_every_log_is_looked_at() -> None:
    assert {NO_TABLE, NOT_FOR_DELTALAKE, FEED_BY_HAND, *FEEDS} <= set(_names())
    assert len(_names()) == 18


@pytest.mark.parametrize("name", READABLE)
def test_rows_are_those_of_deltalake(name: str) -> None:
    # It leaves out columns that are null by their type.
    table = delta_table(LOGS / name)
    void = tuple(field.name for field in table.schema if field.type == NULL)
    assert _bag(table.scan().to_arrow(), without=void) == _bag(_theirs(name), without=void)


@pytest.mark.parametrize("name", READABLE)
def test_live_files_are_those_of_deltalake(name: str) -> None:
    ours = delta_table(LOGS / name).files(columns=["path"])["path"].to_pylist()
    theirs = deltalake.DeltaTable(str(LOGS / name)).file_uris()
    assert sorted(unquote(p).rpartition("/")[2] for p in ours) == sorted(
        _decoded(p).rpartition("/")[2] for p in theirs
    )


def _decoded(uri: str) -> str:
    """A path of deltalake, which gives some of them decoded and others not."""
    return uri if (LOGS / uri).exists() else unquote(uri)


@pytest.mark.parametrize("name", READABLE)
def test_every_version_is_that_of_deltalake(name: str) -> None:
    last = delta_table(LOGS / name).version
    for version in range(last if last < 7 else last - 3, last + 1):
        ours = delta_table(LOGS / name, version=version)
        void = tuple(field.name for field in ours.schema if field.type == NULL)
        found = _bag(ours.scan().to_arrow(), without=void)
        assert found == _bag(_theirs(name, version), without=void), version


def test_a_checksum_alone_is_no_table() -> None:
    with pytest.raises(TableNotFoundError):
        delta_table(LOGS / NO_TABLE)


WIDENED = {
    "byte_long": (1, 2**63 - 1),
    "int_long": (2, 2**63 - 1),
    "float_double": (3.4000000953674316, 1.234567890123),
    "byte_double": (5.0, 1.234567890123),
    "short_double": (6.0, 1.234567890123),
    "int_double": (7.0, 1.234567890123),
    "decimal_decimal_same_scale": (D("123.45"), D("12345678901234.56")),
    "decimal_decimal_greater_scale": (D("67.89000"), D("12345678901.23456")),
    "byte_decimal": (D("1.0"), D("123.4")),
    "short_decimal": (D("2.0"), D("12345.6")),
    "int_decimal": (D("3.0"), D("1234567890.1")),
    "long_decimal": (D("4.0"), D("123456789012345678.9")),
    "date_timestamp_ntz": (
        dt.datetime(2024, 9, 9),  # noqa: DTZ001
        dt.datetime(2024, 9, 9, 12, 34, 56, 123456),  # noqa: DTZ001
    ),
}


@pytest.mark.parametrize("engine", ["arrow", pytest.param("spark", marks=pytest.mark.spark)])
def test_widened_types(engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    scan = delta_table(LOGS / NOT_FOR_DELTALAKE).scan()
    rows = scan.to_arrow(engine=engine).sort_by("byte_long")
    found = {
        name: tuple(column.to_pylist())
        for name, column in zip(rows.column_names, rows, strict=True)
    }
    assert found == WIDENED
    small = delta_table(LOGS / NOT_FOR_DELTALAKE).scan(["byte_long"], col("byte_decimal") < 2)
    assert small.to_arrow(engine=engine).to_pydict() == {"byte_long": [1]}


def test_void_columns_are_null() -> None:
    rows = delta_table(LOGS / "void-column").scan().to_arrow()
    assert rows.column("void_col").null_count == rows.num_rows == 3


def test_variants_are_whole() -> None:
    rows = delta_table(LOGS / "unshredded-variant").scan(["id", "v"], col("id") == 7).to_arrow()
    # An object with one key, and the number 7 as one byte.
    expected = {"metadata": b"\x01\x01\x00\x03key", "value": b"\x02\x01\x00\x00\x02\x0c\x07"}
    assert rows.to_pylist() == [{"id": 7, "v": expected}]


@pytest.mark.parametrize("mode", ["id", "name", "none"])
def test_partitions_by_mapped_columns(mode: str) -> None:
    table = delta_table(LOGS / "partition_cm" / mode)
    assert table.partition_columns == ("category",)
    assert table.snapshot.mapping_mode == mode
    assert table.scan(predicate=col("category") == "x").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        (col("id") > 400, 2),
        (col("id") == 250, 1),
        (col("name") == "name_99", 1),
        (col("salary") < 50_100, 0),
        ((col("id") <= 100) | (col("salary") >= 110_000), 2),
        (col("age").is_null(), 0),
        (col("age") + 0 == 30, 6),
    ],
)
def test_parsed_statistics_leave_out_files(predicate: Expr, files: int) -> None:
    table = delta_table(LOGS / "parsed-stats")
    assert len(table.files(predicate)) == files
    whole = table.scan().to_arrow()
    expected = values(whole).filter(predicate).to_arrow()
    assert _bag(table.scan(predicate=predicate).to_arrow()) == _bag(expected)


def test_statistics_that_are_columns_alone() -> None:
    table = delta_table(LOGS / "v1-multi-part-struct-stats-only")
    assert table.files(columns=["stats"])["stats"].null_count == 5
    assert len(table.files(col("id") == 3)) == 1
    assert table.scan(predicate=col("id") == 3).to_arrow().to_pydict()["value"] == ["value_3"]


def test_app_transactions_behind_a_checkpoint() -> None:
    found = delta_table(LOGS / "app-txn-checkpoint").app_transactions
    assert {name: txn.version for name, txn in found.items()} == {"my-app": 3, "my-app2": 2}


def test_a_checksum_that_says_all() -> None:
    table = delta_table(LOGS / "crc-full")
    machine = SnapshotBuilder(table.location).machine("arrow")
    machine.run_to_terminal()
    assert [step.phase for step in machine.trace] == ["ReadHint", "ListLog", "ReadChecksum"]
    assert table.protocol.reader_features == ("deletionVectors",)


def test_compactions_are_read() -> None:
    segment = delta_table(LOGS / "compacted-log-files-table").snapshot.segment
    assert [(c.name.version, c.name.end) for c in segment.cover()[-2:]] == [(6, 15), (0, 5)]


@pytest.mark.parametrize("name", FEEDS)
def test_changes_are_those_of_deltalake(name: str) -> None:
    table, theirs = delta_table(LOGS / name), deltalake.DeltaTable(str(LOGS / name))
    last = table.version
    ranges = [(0, last), (0, 0), (last, last), (1, last - 1), (last // 2, last)]
    for start, end in ranges:
        ours = table.changes(start, end).to_arrow()
        feed = theirs.load_cdf(starting_version=start, ending_version=end)
        # It states another time, that of commitInfo.
        expected = _bag(pa.table(feed), without=("_commit_timestamp",))
        assert _bag(ours, without=("_commit_timestamp",)) == expected, (start, end)


def test_changes_of_mapped_columns() -> None:
    table = delta_table(LOGS / FEED_BY_HAND)
    found = table.changes(1).to_arrow().drop_columns(["_commit_timestamp"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, "Alice", 100.0, "delete", 4),
        (2, "Bob", 200.0, "update_preimage", 2),
        (2, "Bob", 250.0, "update_postimage", 2),
        (4, "David", 400.0, "insert", 3),
    ]
    with pytest.raises(DeltaError, match="was not on at version 0"):
        table.changes(0).to_arrow()


SPARK = ["partition_cm/name", "unshredded-variant", "v2-checkpoints-parquet-with-sidecars"]


@pytest.mark.spark
@pytest.mark.parametrize("name", SPARK)
def test_spark_gives_the_same(name: str, spark: SparkSession) -> None:
    del spark
    table = delta_table(LOGS / name, engine="spark")
    assert _bag(table.scan().to_arrow(engine="spark")) == _bag(_theirs(name))

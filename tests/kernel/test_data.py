"""Rows of tables written by hand: paths, partition values, evolution, vectors; on both engines."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.handmade import (
    NUMBERS,
    add,
    begin,
    checkpoint,
    commit,
    data,
    metadata,
    numbers,
    protocol,
    sorted_rows,
)

from millpond import col, delta_table, values
from millpond.base.errors import (
    CorruptLogError,
    DataFileMissingError,
    DeletionVectorError,
    DeltaError,
    MillpondError,
    PlanError,
    SchemaError,
    SourceError,
    StaleChecksumError,
)
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.data import (
    ReadVectors,
    data_plan,
    data_scan,
    missing_file,
    positions_array,
)
from millpond.kernel.dv import DeletionVector, inline
from millpond.kernel.machine import Terminus
from millpond.kernel.segment import LogSegment
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.widening import as_declared, scanned, scanned_type
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    NULL,
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

    from pyspark.sql import SparkSession

    from millpond.plan.expr import Expr

ENGINES = ["arrow", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


NAMES = [
    *("plain", "a b", "a%b", "a%20b", "a#b", "a?b", "a:b", "ü é 🦆", "a+b&c=d", "[x]*{y}"),
    *("quote'\"", "semi;comma,", "p=1/q=%2F/x", "back\\slash"),
]


def test_odd_names_of_data_files(tmp_path: Path, engine: str) -> None:
    files = [numbers(tmp_path, f"{name}.parquet", n) for n, name in enumerate(NAMES)]
    begin(tmp_path, *files)
    found = delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert sorted(found["n"].to_pylist()) == list(range(len(NAMES)))


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
def test_files_elsewhere(tmp_path: Path, spelling: str) -> None:
    table, other = tmp_path / "t", tmp_path / "other %"
    numbers(other, "x y.parquet", 7)
    begin(table, add(spelling.format(quote(str(other / "x y.parquet")))))
    assert delta_table(table).scan().to_arrow()["n"].to_pylist() == [7]


NTZ = dt.datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001
PARTITIONS: list[tuple[DataType, list[tuple[str | None, Any]]]] = [
    (STRING, [("a b", "a b"), ("50%#?/:", "50%#?/:"), ("ü", "ü"), (None, None)]),
    (BYTE, [("-128", -128), ("", None), (None, None)]),
    (SHORT, [("32767", 32767), (None, None)]),
    (INTEGER, [("-2147483648", -(2**31)), (None, None)]),
    (LONG, [("9223372036854775807", 2**63 - 1), (None, None)]),
    (FLOAT, [("1.5", 1.5), ("-Infinity", float("-inf")), (None, None)]),
    (DOUBLE, [("1.0E-5", 1e-5), ("Infinity", float("inf")), (None, None)]),
    (BOOLEAN, [("true", True), ("False", False), (None, None)]),
    (DATE, [("1969-12-31", dt.date(1969, 12, 31)), (None, None)]),
    (Decimal(10, 2), [("-12.50", D("-12.50")), (None, None)]),
    (
        TIMESTAMP,
        [
            ("2024-02-29 01:02:03.000004", NTZ.replace(tzinfo=dt.UTC)),
            ("2024-02-29T03:02:03.000004+02:00", NTZ.replace(tzinfo=dt.UTC)),
            (None, None),
        ],
    ),
    (TIMESTAMP_NTZ, [("2024-02-29 01:02:03.000004", NTZ), (None, None)]),
    (BINARY, [("\x01\x02", b"\x01\x02"), (None, None)]),
]


def partitioned(table: Path) -> list[tuple[Any, ...]]:
    """A table partitioned by a column of every type; its rows."""
    names = [f"p{number}" for number in range(len(PARTITIONS))]
    types = dict(zip(names, (type_ for type_, _ in PARTITIONS), strict=True))
    files, rows = [], []
    for number in range(max(len(pairs) for _, pairs in PARTITIONS)):
        chosen = [pairs[min(number, len(pairs) - 1)] for _, pairs in PARTITIONS]
        texts = dict(zip(names, (text for text, _ in chosen), strict=True))
        if number == 1:
            texts = {name: text for name, text in texts.items() if text is not None}
        files.append(numbers(table, f"{number}.parquet", number, partitionValues=texts))
        rows.append((number, *(value for _, value in chosen)))
    schema = Struct((Field("n", LONG), *(Field(n, t) for n, t in types.items())))
    commit(table, 0, protocol(features=["timestampNtz"]), metadata(schema, names), *files)
    return rows


def test_partition_values_of_every_type(tmp_path: Path, engine: str) -> None:
    rows = partitioned(tmp_path)
    table = delta_table(tmp_path)
    assert sorted_rows(table.scan().to_arrow(engine=engine)) == sorted(rows, key=repr)


def test_partition_values_choose_files(tmp_path: Path) -> None:
    partitioned(tmp_path)
    table = delta_table(tmp_path)
    assert table.files(col("p0") == "50%#?/:")["path"].to_pylist() == ["1.parquet"]
    assert table.files(col("p1").is_null())["path"].to_pylist() == [
        "1.parquet",
        "2.parquet",
        "3.parquet",
    ]
    found = table.scan(["n"], (col("p3") < 0) & (col("p12").is_not_null())).to_arrow()
    assert found.to_pydict() == {"n": [0]}


def test_a_partition_value_that_is_none_of_its_type(tmp_path: Path) -> None:
    schema = Struct.of(n=LONG, p=INTEGER)
    file = numbers(tmp_path, "x.parquet", 1, partitionValues={"p": "twelve"})
    commit(tmp_path, 0, protocol(), metadata(schema, ["p"]), file)
    with pytest.raises(DeltaError, match="twelve") as caught:
        delta_table(tmp_path).scan().to_arrow()
    assert "p" in str(caught.value)


def test_partition_values_that_are_missing_altogether(tmp_path: Path) -> None:
    schema = Struct.of(n=LONG, p=INTEGER)
    file = numbers(tmp_path, "x.parquet", 1, partitionValues=None)
    commit(tmp_path, 0, protocol(), metadata(schema, ["p"]), file)
    with pytest.raises(CorruptLogError, match="no partition values"):
        delta_table(tmp_path).scan().to_arrow()


def test_a_partition_value_that_is_null_and_never_should_be(tmp_path: Path, engine: str) -> None:
    schema = Struct((Field("n", LONG), Field("p", STRING, False)))
    file = numbers(tmp_path, "x.parquet", 1, partitionValues={"p": None})
    commit(tmp_path, 0, protocol(), metadata(schema, ["p"]), file)
    with pytest.raises(CorruptLogError, match="has no value of 'p', which is never null"):
        delta_table(tmp_path).scan().to_arrow(engine=engine)


def test_schemas_grow_and_files_have_more(tmp_path: Path, engine: str) -> None:
    begin(tmp_path, numbers(tmp_path, "old.parquet", 1))
    member = Struct.of(a=LONG, b=STRING)
    schema = Struct.of(n=LONG, s=STRING, m=member, l=List(LONG), v=NULL)
    more = pa.table(
        {
            "_change_type": ["x"],
            "s": ["s"],
            "m": pa.array([{"zz": 1, "a": 3}], pa.struct([("zz", pa.int64()), ("a", pa.int64())])),
            "l": [[1, None]],
            "n": pa.array([2], pa.int32()),
        }
    )
    commit(tmp_path, 1, metadata(schema), data(tmp_path, "new.parquet", more))
    found = delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert found.schema.names == ["n", "s", "m", "l", "v"]
    assert sorted_rows(found) == [
        (1, None, None, None, None),
        (2, "s", {"a": 3, "b": None}, [1, None], None),
    ]
    assert delta_table(tmp_path, version=0).scan().to_arrow().to_pydict() == {"n": [1]}
    few = delta_table(tmp_path).scan(["s", "v"], col("n") == 2).to_arrow(engine=engine)
    assert few.to_pydict() == {"s": ["s"], "v": [None]}


NAN = float("nan")
FLOATS = [1.0, NAN, -0.0]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("x") > 5, [NAN]),
        (col("x") != 1, [NAN, -0.0]),
        (~(col("x") <= 1), [NAN]),
        (~col("x").isin([1.0, 2.0]), [NAN, -0.0]),
        (col("x") == NAN, [NAN]),
        (col("x") == 0, [-0.0]),
        (col("x").isin([0.0, 3.0]), [-0.0]),
        (col("x") >= 1, [1.0, NAN]),
        (col("x") < 1, [-0.0]),
    ],
    ids=str,
)
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_limits_of_row_groups_do_not_tell_of_nan(
    tmp_path: Path, engine: str, type_: pa.DataType, predicate: Expr, expected: list[float]
) -> None:
    files = [
        data(tmp_path, f"{n}.parquet", {"x": pa.array([1.0, x], type_)})
        for n, x in enumerate(FLOATS)
    ]
    schema = Struct.of(x=FLOAT if type_ == pa.float32() else DOUBLE)
    begin(tmp_path, *files, schema=schema)
    found = delta_table(tmp_path).scan(predicate=predicate).to_arrow(engine=engine)
    assert {*map(repr, found["x"].to_pylist())} == {*map(repr, expected)}


def test_a_missing_column_that_is_never_null(tmp_path: Path, engine: str) -> None:
    schema = Struct((Field("n", LONG), Field("k", LONG, False)))
    begin(tmp_path, numbers(tmp_path, "x.parquet", 1), schema=schema)
    with pytest.raises(SourceError, match=r"column k of .*x\.parquet is missing"):
        delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert delta_table(tmp_path).scan(["n"]).to_arrow(engine=engine).num_rows == 1


def test_a_data_file_that_is_gone(tmp_path: Path, engine: str) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1), add("gone%20%25.parquet"))
    with pytest.raises(DataFileMissingError, match="live file") as caught:
        delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert caught.value.path.endswith("/gone %.parquet")
    assert caught.value.hint


def test_a_data_file_that_is_broken(tmp_path: Path) -> None:
    begin(tmp_path, add("broken.parquet"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(SourceError, match=r"broken\.parquet") as caught:
        delta_table(tmp_path).scan().to_arrow()
    assert not isinstance(caught.value, DataFileMissingError)


def test_what_counts_as_gone() -> None:
    gone = SourceError("there is no /x", engine="spark", path="/x", missing=True)
    assert isinstance(missing_file("/t", gone), DataFileMissingError)
    other = SourceError("/x: magic bytes not found", engine="arrow", path="/x")
    assert missing_file("/t", other) is other


DELETED = [3, 4, 7, 11, 18, 29]
INLINE = inline(np.array(DELETED, np.int64)).to_dict()


def with_vectors(table: Path) -> list[int]:
    """Two files, one with an inline vector; the rows that are left."""
    first = numbers(table, "a.parquet", *range(30), deletionVector=INLINE)
    second = numbers(table, "b.parquet", *range(100, 103))
    commit(table, 0, protocol(features=["deletionVectors"]), metadata(), first, second)
    return sorted({*range(30), 100, 101, 102} - set(DELETED))


def test_deleted_rows_are_left_out(tmp_path: Path, engine: str) -> None:
    left = with_vectors(tmp_path)
    scan = delta_table(tmp_path).scan()
    assert sorted(scan.to_arrow(engine=engine)["n"].to_pylist()) == left
    some = delta_table(tmp_path).scan(predicate=col("n") > 10).to_arrow(engine=engine)
    assert sorted(some["n"].to_pylist()) == [n for n in left if n > 10]


def test_a_vector_that_deletes_rows_far_behind_the_last(tmp_path: Path, engine: str) -> None:
    vector = inline(np.array([1, 5, 1 << 40, 1 << 62])).to_dict()
    files = [
        numbers(tmp_path, "a.parquet", *range(3), deletionVector=vector),
        numbers(tmp_path, "b.parquet", *range(10), deletionVector=INLINE),
    ]
    commit(tmp_path, 0, protocol(features=["deletionVectors"]), metadata(), *files)
    found = delta_table(tmp_path).scan().to_arrow(engine=engine)
    left = [0, 2, *(n for n in range(10) if n not in DELETED)]
    assert sorted(found["n"].to_pylist()) == sorted(left)


def test_positions_count_rows_that_statistics_rule_out(tmp_path: Path) -> None:
    file = numbers(tmp_path, "a.parquet", *range(30), deletionVector=INLINE)
    pq.write_table(
        pa.table({"n": pa.array(range(30), pa.int64())}),
        tmp_path / "a.parquet",
        row_group_size=5,
    )
    commit(tmp_path, 0, protocol(features=["deletionVectors"]), metadata(), file)
    found = delta_table(tmp_path).scan(predicate=col("n") >= 17).to_arrow()
    assert sorted(found["n"].to_pylist()) == [n for n in range(17, 30) if n not in DELETED]


def test_a_vectors_file_that_is_gone(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1}
    vector |= {"sizeInBytes": 40, "cardinality": 6}
    file = numbers(tmp_path, "a.parquet", 1, deletionVector=vector)
    commit(tmp_path, 0, protocol(features=["deletionVectors"]), metadata(), file)
    with pytest.raises(DeletionVectorError, match=r"deletion_vector_.*\.bin") as caught:
        delta_table(tmp_path).scan().to_arrow()
    assert "which rows are deleted" in str(caught.value)


def test_vectors_without_files() -> None:
    vector = DeletionVector.from_dict(INLINE, table="/t")
    phase = ReadVectors("/t", (vector,))
    assert "[0 rows]" in str(phase.plan())
    found = phase.next(pa.table({"content": pa.array([], pa.binary())}))
    assert isinstance(found, Terminus)
    assert [positions.tolist() for positions in found.value] == [DELETED]
    other = MillpondError("not a matter of files")
    assert phase.failed(other) is other


def test_positions_of_many_files_are_one_column() -> None:
    parts = [None, np.array([1, 2]), np.array([], np.int64), None, np.array([7])]
    assert positions_array(parts).to_pylist() == [None, [1, 2], [], None, [7]]


def test_hidden_columns_do_not_hide_the_tables_own(tmp_path: Path, engine: str) -> None:
    schema = Struct.of(path=STRING, deleted=LONG, path_=LONG)
    columns = {"path": ["a"], "deleted": [1], "path_": [2]}
    begin(tmp_path, data(tmp_path, "x.parquet", columns), schema=schema)
    assert delta_table(tmp_path).scan().to_arrow(engine=engine).to_pylist() == [
        {"path": "a", "deleted": 1, "path_": 2}
    ]


def test_the_plan_of_some_files_is_one_scan() -> None:
    given = Metadata.from_dict(metadata()["metaData"])
    snapshot = Snapshot(LogSegment("/t", 0, None, ()), Protocol(1, 2), given)
    files = pa.table(
        {
            "path": ["a%20b", "c"],
            "partitionValues": pa.array([[], []], pa.map_(pa.string(), pa.string())),
            "size": [1, 2],
            "deletionVector": pa.nulls(2, pa.struct([("storageType", pa.string())])),
        }
    )
    plan = data_scan(snapshot, files)
    assert data_plan(snapshot, files) == plan
    assert plan.deleted is None
    assert plan.expected_bytes == 3
    assert plan.schema == NUMBERS


@pytest.mark.parametrize(
    ("before", "type_", "scanned_as"),
    [
        ("byte", Decimal(4, 1), Decimal(11, 1)),
        ("short", Decimal(12, 2), Decimal(12, 2)),
        ("long", Decimal(20, 1), Decimal(21, 1)),
        ("long", Decimal(38, 19), Decimal(38, 19)),
        ("decimal(2,1)", Decimal(4, 1), Decimal(4, 1)),
        ("integer", LONG, LONG),
    ],
)
def test_whole_numbers_are_scanned_as_decimals_that_hold_them(
    before: str, type_: DataType, scanned_as: DataType
) -> None:
    notes = {"delta.typeChanges": [{"fromType": before, "toType": str(type_)}]}
    schema = Struct((Field("a", type_).with_metadata(notes), Field("b", type_)))
    found = scanned(schema, schema)
    assert [field.type for field in found] == [scanned_as, type_]
    declared = as_declared(values([], Struct.of(a=scanned_as, b=type_)), schema)
    assert [field.type for field in declared.schema] == [type_, type_]
    broken = Field("a", type_).with_metadata({"delta.typeChanges": "by and by"})
    assert scanned_type(broken) == type_


def test_columns_are_names_in_a_list(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1, 2))
    table = delta_table(tmp_path)
    with pytest.raises(PlanError, match="list of names"):
        table.scan("n")
    with pytest.raises(SchemaError, match="zz"):
        table.scan(["zz"])
    with pytest.raises(SchemaError, match="zz"):
        table.scan(predicate=col("zz") == 1)
    assert table.scan([]).to_arrow().num_rows == 2


def test_an_empty_table(tmp_path: Path, engine: str) -> None:
    begin(tmp_path)
    found = delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert (found.num_rows, found.schema.names) == (0, ["n"])


def test_a_scan_is_an_arrow_stream(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1, 2))
    assert pa.table(delta_table(tmp_path).scan())["n"].to_pylist() == [1, 2]
    assert sum(batch.num_rows for batch in delta_table(tmp_path).scan().to_batches()) == 2


def test_explain_shows_how_files_are_found(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1), numbers(tmp_path, "b.parquet", 9))
    checkpoint(tmp_path, 0, protocol(), metadata(), add("a.parquet"))
    commit(tmp_path, 1, numbers(tmp_path, "c.parquet", 5))
    scan = delta_table(tmp_path).scan(predicate=col("n") > 3)
    text = scan.explain(phases=True)
    for line in (
        "CommitReplay (partial result)",
        "CheckpointManifest (consume)",
        "CheckpointProbe (consume)",
        "CheckpointReplay (partial result, parallelizable)",
        "add_remove_dedup",
        "DynamicScan",
    ):
        assert line in text
    assert "CommitReplay" not in scan.explain()


PYTHON_IN_SPARK = ("ArrowEvalPython", "MapInArrow", "PythonUDF", "BatchEvalPython", "MapInPandas")


def mapped(table: Path) -> None:
    """A table whose columns files hold under other names."""
    fields = []
    for number, (name, type_) in enumerate({"n": LONG, "p": STRING}.items(), start=1):
        notes = {
            "delta.columnMapping.physicalName": f"col-{name}",
            "delta.columnMapping.id": number,
        }
        fields.append(Field(name, type_).with_metadata(notes))
    rows = {"col-n": pa.array([1, 2], pa.int64())}
    file = data(table, "x.parquet", rows, partitionValues={"col-p": "here"})
    shape = metadata(Struct(tuple(fields)), ["p"])
    shape["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    commit(table, 0, protocol(2, 5), shape, file)


@pytest.mark.spark
def test_spark_reads_without_python(tmp_path: Path, spark: SparkSession) -> None:
    tables = {name: tmp_path / name for name in ("partitioned", "vectors", "mapped")}
    partitioned(tables["partitioned"])
    left = with_vectors(tables["vectors"])
    mapped(tables["mapped"])
    for table in tables.values():
        frame = delta_table(table).scan(predicate=col("n") >= 0).to_spark(spark)
        text = frame._jdf.queryExecution().toString()
        assert "FileScan parquet" in text
        assert not [name for name in PYTHON_IN_SPARK if name in text]
    found = delta_table(tables["vectors"]).scan().to_spark(spark)
    assert sorted(row.n for row in found.collect()) == left
    found = delta_table(tables["mapped"]).scan().to_spark(spark)
    assert sorted(tuple(row) for row in found.collect()) == [(1, "here"), (2, "here")]


@pytest.mark.spark
def test_a_data_file_that_is_gone_is_the_same_error_for_a_dataframe(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1), add("gone.parquet"))
    table = delta_table(tmp_path)
    for make in (table.scan().to_spark, table.scan(["n"]).to_spark):
        with pytest.raises(DataFileMissingError, match=r"gone\.parquet is a live file of"):
            make()


@pytest.mark.spark
def test_a_stale_checksum_of_hadoop_is_no_damage(tmp_path: Path, spark: Any) -> None:
    """Another writer than Hadoop's client leaves a hidden file with the checksum of old bytes."""
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1, 2))
    files = [tmp_path / "a.parquet", *(tmp_path / "_delta_log").iterdir()]
    for file in files:
        stale = b"crc\x00\x00\x00\x02\x00" + b"\x01\x02\x03\x04" * 20
        file.with_name(f".{file.name}.crc").write_bytes(stale)
    table = delta_table(tmp_path, engine="spark")
    assert table.files(engine="spark").to_arrow().num_rows == 1
    assert table.scan().to_arrow(engine="spark")["n"].to_pylist() == [1, 2]
    # In a session that somebody else has started, it is said what does not fit what.
    jvm = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    local = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), conf)
    local.setVerifyChecksum(True)
    try:
        with pytest.raises(CorruptLogError, match="does not fit Hadoop's checksum of it") as found:
            table.files(engine="spark").to_arrow()
        assert "remove .00000000000000000000.json.crc" in (found.value.hint or "")
        with pytest.raises(StaleChecksumError, match=r"/a\.parquet does not fit"):
            table.scan().plan().to_arrow(engine="spark")
    finally:
        local.setVerifyChecksum(False)

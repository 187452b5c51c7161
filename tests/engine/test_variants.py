"""Variants in pieces, as Spark and others write them: both engines give the same whole ones."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import VariantVal
from tests.engine.arrow.variant.shredding import Shape, shredded

from millpond.base.errors import SourceError
from millpond.engine.spark import SparkEngine
from millpond.plan.expr import col
from millpond.plan.run import engine_named
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, VARIANT, DataType, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

pytestmark = pytest.mark.spark
SHREDDING = "spark.sql.variant.writeShredding.enabled"
INFERRED = "spark.sql.variant.inferShreddingSchema"
FORCED = "spark.sql.variant.forceShreddingSchemaForTest"
OBJECTS = [
    '{"a": 1, "b": "x", "c": [1, "z", null, {"b": 2}]}',
    '{"d": {"e": true}, "a": "no number", "Z": 1.25, "c": []}',
    '{"a": null, "d": {"e": 3, "f": [[]]}, "\U0001f600": 1, "\uffff": 2}',
    "{}",
    "[1, 2]",
    "null",
    '"text"',
    "12345678901234567890",
    "1e300",
]


@contextmanager
def shredding(spark: SparkSession, **conf: str) -> Iterator[None]:
    """Spark writes like this, for a while."""
    names = {"forced": FORCED, "inferred": INFERRED}
    wanted = {SHREDDING: "true", **{names[name]: value for name, value in conf.items()}}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            spark.conf.unset(name)


def written(spark: SparkSession, query: str, folder: Path, **conf: str) -> str:
    """The file that Spark makes of a query's rows."""
    with shredding(spark, **conf):
        spark.sql(query).coalesce(1).write.parquet(str(folder))
    [file] = folder.glob("*.parquet")
    return str(file)


def scan(file: str, type_: DataType = VARIANT) -> Scan:
    return Scan("parquet", (File(file),), Struct.of(n=LONG, v=type_))


def rows(plan: Plan, engine: Any) -> list[Any]:
    run = engine.execute(plan)
    table = pa.Table.from_batches(list(run), schema=run.schema)
    found: list[Any] = table.sort_by("n").column("v").to_pylist()
    return found


def both(plan: Plan, spark: SparkSession) -> tuple[list[Any], list[Any]]:
    """The variants of a plan, as Arrow and as Spark give them."""
    return rows(plan, engine_named("arrow")), rows(plan, SparkEngine(spark))


def decoded(found: Any) -> Any:
    """Variants as JSON, by Spark's decoder; the types of numbers are told apart."""
    if isinstance(found, dict) and found.keys() == {"value", "metadata"}:
        python = VariantVal(found["value"], found["metadata"]).toPython()
        return json.dumps(python, sort_keys=True, default=repr)
    if isinstance(found, dict):
        return {name: decoded(member) for name, member in found.items()}
    return list(map(decoded, found)) if isinstance(found, list | tuple) else found


def typed_value(file: str) -> pa.DataType | None:
    """What Spark has made columns of."""
    type_ = pq.read_schema(file).field("v").type
    return type_.field("typed_value").type if type_.get_field_index("typed_value") >= 0 else None


def values_of(texts: list[str | None]) -> str:
    """A query for these JSON texts as variants, numbered."""
    shown = ", ".join(
        f"({i}, {'null' if one is None else repr(one)})" for i, one in enumerate(texts)
    )
    return f"select cast(n as bigint) n, parse_json(j) v from values {shown} t(n, j)"


@pytest.mark.parametrize(
    "shape",
    [
        "a bigint, b string, c array<bigint>",
        "a string, c array<struct<b: int>>, d struct<e: boolean, f: array<array<string>>>",
        "Z decimal(9, 2), d struct<g: date>",
        "array<bigint>",
        "string",
        "decimal(38, 0)",
        "double",
    ],
)
def test_what_spark_has_taken_to_pieces(shape: str, spark: SparkSession, tmp_path: Path) -> None:
    file = written(spark, values_of([*OBJECTS, None]), tmp_path / "v", forced=shape)
    assert typed_value(file) is not None
    arrow, theirs = both(scan(file), spark)
    assert list(map(decoded, arrow)) == list(map(decoded, theirs))
    given = [row.v for row in spark.sql(values_of([*OBJECTS, None])).sort("n").collect()]
    whole = [one and {"value": bytes(one.value), "metadata": bytes(one.metadata)} for one in given]
    assert list(map(decoded, arrow)) == list(map(decoded, whole))


SCALARS = {
    "boolean": "true",
    "tinyint": "-5Y",
    "smallint": "500S",
    "int": "70000",
    "bigint": "5000000000L",
    "float": "cast(1.5 as float)",
    "double": "-0.1D",
    "decimal(9,2)": "1.20BD",
    "decimal(18,9)": "123456789.123456789BD",
    "decimal(38,10)": "-1234567890123456789012345678.0000000001BD",
    "date": "date'1500-02-28'",
    "timestamp": "timestamp'2024-01-01 00:00:00.123456'",
    "timestamp_ntz": "timestamp_ntz'1066-10-14 09:00:00'",
    "binary": "X'00FF'",
    "string": "'hé'",
}


@pytest.mark.parametrize("type_", SCALARS)
def test_plain_values_have_the_same_bytes(type_: str, spark: SparkSession, tmp_path: Path) -> None:
    query = f"select cast(id as bigint) n, cast({SCALARS[type_]} as variant) v from range(2)"
    file = written(spark, query, tmp_path / "v", forced=type_)
    assert typed_value(file) is not None
    with pq.ParquetFile(file) as parquet:
        pieces = parquet.read().column("v").to_pylist()
    assert all(one["value"] is None and one["typed_value"] is not None for one in pieces)
    arrow, theirs = both(scan(file), spark)
    assert arrow == theirs


def test_columns_that_spark_finds_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    """Its default, by which variants are in pieces unless somebody asks for other ones."""
    text = """'{"a": ' || id || ', "b": {"c": "x' || id || '"}, "k' || id % 3 || '": [1]}'"""
    query = f"select id n, parse_json({text}) v from range(200)"
    file = written(spark, query, tmp_path / "v", inferred="true")
    assert typed_value(file) is not None
    arrow, theirs = both(scan(file), spark)
    expected = [{"a": i, "b": {"c": f"x{i}"}, f"k{i % 3}": [1]} for i in range(200)]
    assert [json.loads(decoded(one)) for one in arrow] == expected
    assert list(map(decoded, arrow)) == list(map(decoded, theirs))


def test_spark_takes_members_of_structs_to_pieces(spark: SparkSession, tmp_path: Path) -> None:
    query = f"select n, named_struct('s', 'x', 'm', v) v from ({values_of([*OBJECTS, None])})"
    file = written(spark, query, tmp_path / "v", forced="a bigint, c array<bigint>")
    assert pq.read_schema(file).field("v").type.field("m").type.get_field_index("typed_value") >= 0
    arrow, theirs = both(scan(file, Struct.of(m=VARIANT)), spark)
    assert list(map(decoded, arrow)) == list(map(decoded, theirs))
    assert '"b": "x"' in decoded(arrow[0])["m"]


@pytest.mark.parametrize(
    ("around", "type_", "wanted"),
    [
        (lambda row: [row, None, row], pa.list_, List(VARIANT)),
        (
            lambda row: [("k", row), ("l", None)],
            lambda inner: pa.map_(pa.string(), inner),
            Map(STRING, VARIANT),
        ),
        (
            lambda row: [{"m": row}, {"m": None}, None],
            lambda inner: pa.list_(pa.struct([("m", inner)])),
            List(Struct.of(m=VARIANT)),
        ),
    ],
    ids=["lists", "maps", "structs in lists"],
)
def test_variants_within_other_values(
    around: Any, type_: Any, wanted: DataType, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads such files, and writes them whole."""
    shape = Shape(members={"a": Shape(pa.int64()), "c": Shape(elements=Shape(pa.int64()))})
    values = [{"a": 1, "c": [2, "x"], "d": {"a": None}}, {"d": []}, [3], None]
    made = [*(around(shredded(one, shape)) for one in values), None]
    file = str(tmp_path / "a.parquet")
    column = pa.array(made, type_(shape.variant))
    pq.write_table(pa.table({"n": range(len(made)), "v": column}), file)
    arrow, theirs = both(scan(file, wanted), spark)
    assert list(map(decoded, arrow)) == list(map(decoded, theirs))
    texts = [json.dumps(one, sort_keys=True) for one in values]
    expected = [*(decoded(around(one)) for one in texts), None]
    assert list(map(decoded, arrow)) == expected


def test_files_of_other_writers(spark: SparkSession, tmp_path: Path) -> None:
    """Their values are wider, and members stand in another order; no column is annotated."""
    members = {"a": Shape(pa.int64()), "c": Shape(elements=Shape(pa.int64())), "d": Shape()}
    shape = Shape(members=members)
    values = [json.loads(one) for one in OBJECTS if len(one) != len("12345678901234567890")]
    made = [*(shredded(one, shape) for one in values), None]
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": range(len(made)), "v": pa.array(made, shape.variant)}), file)
    arrow, theirs = both(scan(file), spark)
    assert list(map(decoded, arrow)) == list(map(decoded, theirs))
    assert [json.loads(decoded(one)) for one in arrow[:-1]] == values
    some, same = both(scan(file).filter((col("n") < 2) | col("v").is_null()), spark)
    assert list(map(decoded, some)) == list(map(decoded, same))
    assert len(some) == 3


@pytest.mark.parametrize("engine", ["arrow", "spark"])
def test_a_member_in_a_column_and_in_the_rest_is_an_error(
    engine: str, spark: SparkSession, tmp_path: Path
) -> None:
    shape = Shape(members={"a": Shape(pa.int64())})
    row = shredded({"a": 1}, shape)
    row["value"] = shredded({"a": 1}, Shape())["value"]
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0], "v": pa.array([row], shape.variant)}), file)
    executor = engine_named("arrow") if engine == "arrow" else SparkEngine(spark)
    with pytest.raises(SourceError, match=r"a\.parquet") as caught:
        rows(scan(file), executor)
    assert caught.value.hint


def _uuids() -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (pa.array([1], pa.time64("us")), b"\x44" + b"\x01" + bytes(7)),
        (pa.array([1], pa.timestamp("ns")), b"\x4c" + b"\x01" + bytes(7)),
        (_uuids(), b"\x50" + bytes(16)),
        (pa.nulls(1, pa.int64()), b"\x00"),
    ],
    ids=["time", "nanoseconds", "uuid", "neither value"],
)
def test_what_spark_refuses(
    typed: pa.Array, value: bytes, spark: SparkSession, tmp_path: Path
) -> None:
    """Should a newer Spark read these, then `docs/delta.md` has to say so."""
    metadata, rest = pa.array([b"\x01\x00\x00"]), pa.nulls(1, pa.binary())
    names = ["metadata", "value", "typed_value"]
    variants = pa.StructArray.from_arrays([metadata, rest, typed], names)
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0], "v": variants}), file)
    [found] = rows(scan(file), engine_named("arrow"))
    assert found == {"value": value, "metadata": b"\x01\x00\x00"}
    with pytest.raises(SourceError, match=r"a\.parquet"):
        rows(scan(file), SparkEngine(spark))

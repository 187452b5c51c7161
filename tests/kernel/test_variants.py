"""Delta tables whose variants are in pieces: read by both engines, looked after, not written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import VariantVal
from tests.engine.arrow.variant.shredding import Shape, shredded
from tests.kernel.handmade import add, commit, data, metadata, protocol
from tests.kernel.write.tables import theirs

from millpond import col, delta_table
from millpond.base.errors import CorruptLogError, UnsupportedFeatureError
from millpond.kernel.write import write_checkpoint
from millpond.plan.types import LONG, VARIANT, Field, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ENGINES = ["arrow", pytest.param("spark", marks=pytest.mark.spark)]
FEATURES = [
    ("variantType", "variantShredding"),
    ("variantType-preview", "variantShredding-preview"),
]
SCHEMA = Struct.of(n=LONG, v=VARIANT)
SHAPE = Shape(members={"a": Shape(pa.int64()), "t": Shape(elements=Shape(pa.string()))})
VALUES: list[Any] = [{"a": 1, "t": ["x", 2]}, {"a": "b", "more": {"c": None}}, "text", None]


def pieces(values: list[Any], names: tuple[str, str] = ("n", "v")) -> pa.Table:
    """A file's rows: a number and a variant each, and at last a row without one."""
    made = [*(shredded(one, SHAPE) for one in values), None]
    columns = [pa.array(range(len(made))), pa.array(made, SHAPE.variant)]
    return pa.table(dict(zip(names, columns, strict=True)))


def values_of(rows: pa.Table) -> list[Any]:
    found = rows.sort_by("n").column("v").to_pylist()
    return ["no variant" if v is None else VariantVal(**v).toPython() for v in found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("features", FEATURES)
def test_a_table_of_variants_in_pieces(
    features: tuple[str, str], engine: str, tmp_path: Path
) -> None:
    file = data(tmp_path, "a.parquet", pieces(VALUES))
    commit(tmp_path, 0, protocol(features=features), metadata(SCHEMA), file)
    table = delta_table(tmp_path)
    assert values_of(table.scan().to_arrow(engine=engine)) == [*VALUES, "no variant"]
    some = table.scan(["n", "v"], (col("n") > 0) & col("v").is_not_null())
    assert values_of(some.to_arrow(engine=engine)) == VALUES[1:]


@pytest.mark.parametrize("engine", ENGINES)
def test_files_with_pieces_beside_files_without(engine: str, tmp_path: Path) -> None:
    whole = pa.array([shredded([1], Shape()), None], Shape().variant)
    files = [
        data(tmp_path, "a.parquet", pieces(VALUES)),
        data(tmp_path, "b.parquet", pa.table({"n": [10, 11], "v": whole})),
    ]
    commit(tmp_path, 0, protocol(features=FEATURES[0]), metadata(SCHEMA), *files)
    rows = delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert values_of(rows) == [*VALUES, "no variant", [1], "no variant"]


@pytest.mark.parametrize("engine", ENGINES)
def test_mapped_columns(engine: str, tmp_path: Path) -> None:
    notes = [
        {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        for number in (1, 2)
    ]
    schema = Struct(
        (
            Field("n", LONG).with_metadata(notes[0]),
            Field("v", VARIANT).with_metadata(notes[1]),
        )
    )
    shape = metadata(schema, **{"columnMapping.mode": "name", "columnMapping.maxColumnId": "2"})
    file = data(tmp_path, "a.parquet", pieces(VALUES, ("col-1", "col-2")))
    commit(tmp_path, 0, protocol(features=[*FEATURES[0], "columnMapping"]), shape, file)
    rows = delta_table(tmp_path).scan().to_arrow(engine=engine)
    assert values_of(rows) == [*VALUES, "no variant"]


@pytest.mark.spark
def test_a_file_that_spark_has_written(spark: SparkSession, tmp_path: Path) -> None:
    """It makes columns of what it finds in the variants, without being asked."""
    text = """'{"a": ' || id || ', "t": ["x"], "k' || id % 2 || '": null}'"""
    rows = spark.sql(f"select id n, parse_json({text}) v from range(50)")
    rows.coalesce(1).write.mode("append").parquet(str(tmp_path))
    [file] = tmp_path.glob("*.parquet")
    assert pq.read_schema(file).field("v").type.get_field_index("typed_value") >= 0
    commit(tmp_path, 0, protocol(features=FEATURES[0]), metadata(SCHEMA), add(file.name))
    table = delta_table(tmp_path)
    expected = [{"a": i, "t": ["x"], f"k{i % 2}": None} for i in range(50)]
    for engine in ("arrow", "spark"):
        assert values_of(table.scan().to_arrow(engine=engine)) == expected


def test_the_type_needs_its_own_feature(tmp_path: Path) -> None:
    commit(tmp_path, 0, protocol(features=["variantShredding"]), metadata(SCHEMA))
    with pytest.raises(CorruptLogError, match="lacks the feature variantType"):
        delta_table(tmp_path)


@pytest.mark.parametrize("features", FEATURES)
def test_its_log_is_looked_after_and_its_rows_are_not_written(
    features: tuple[str, str], tmp_path: Path
) -> None:
    file = data(tmp_path, "a.parquet", pieces(VALUES))
    commit(tmp_path, 0, protocol(features=features), metadata(SCHEMA), file)
    table = delta_table(tmp_path)
    write_checkpoint(table)
    assert (tmp_path / "_delta_log" / "_last_checkpoint").exists()
    assert values_of(delta_table(tmp_path).scan().to_arrow()) == [*VALUES, "no variant"]
    with (
        pytest.raises(UnsupportedFeatureError, match="has variants, which can't be written") as at,
        table.transaction() as tx,
    ):
        tx.append(pa.table({"n": [1]}))
    assert at.value.features == ("variants",)


@pytest.mark.parametrize("features", FEATURES)
def test_a_table_without_variants_is_written_whatever_its_protocol_says(
    features: tuple[str, str], tmp_path: Path
) -> None:
    commit(tmp_path, 0, protocol(features=features), metadata(Struct.of(n=LONG)))
    table = delta_table(tmp_path)
    with table.transaction() as tx:
        tx.append(pa.table({"n": [1, 2]}))
    assert table.update().scan().to_arrow().column("n").to_pylist() == [1, 2]


def test_deletion_vectors_of_deltalake_bring_that_feature(tmp_path: Path) -> None:
    path, wanted = str(tmp_path), {"delta.enableDeletionVectors": "true"}
    deltalake.write_deltalake(path, pa.table({"n": [1, 2, 3]}), configuration=wanted)
    table = delta_table(tmp_path)
    assert "variantType" in (table.protocol.writer_features or ())
    with table.transaction() as tx:
        tx.append(pa.table({"n": [4]}))
    deltalake.write_deltalake(path, pa.table({"n": [5]}), mode="append")
    with table.update().transaction() as tx:
        tx.delete(col("n") == 2)
    rows = table.update().scan().to_arrow().to_pylist()
    for found in (rows, theirs(path)):
        assert sorted(row["n"] for row in found) == [1, 3, 4, 5]

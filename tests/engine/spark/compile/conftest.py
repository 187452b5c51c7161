"""An engine over the shared session, and plans run to plain Python rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.engine.spark import SparkEngine
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

RunTable: TypeAlias = "Callable[..., pa.Table]"
RunRows: TypeAlias = "Callable[..., list[tuple[Any, ...]]]"
ScanOf: TypeAlias = "Callable[..., Scan]"


@pytest.fixture(scope="session")
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


@pytest.fixture(scope="session")
def run_table(engine: SparkEngine) -> RunTable:
    """All batches of a run, after checking what every batch promises."""

    def run(plan: Plan, *, ordered: bool = True) -> pa.Table:
        made = engine.execute(plan) if ordered else engine.execute_parallel(plan)
        batches = list(made)
        assert all(batch.num_rows for batch in batches)
        assert all(batch.schema.equals(made.schema, check_metadata=True) for batch in batches)
        return pa.Table.from_batches(batches, schema=made.schema)

    return run


@pytest.fixture(scope="session")
def run_rows(run_table: RunTable) -> RunRows:
    """The rows as tuples."""

    def run(plan: Plan, *, ordered: bool = True) -> list[tuple[Any, ...]]:
        table = run_table(plan, ordered=ordered)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    return run


@pytest.fixture
def scan_of(tmp_path: Path) -> ScanOf:
    """A scan of tables that are written as Parquet files, one each."""

    def write(*tables: pa.Table, **options: Any) -> Scan:
        files = []
        for number, table in enumerate(tables):
            path = tmp_path / f"part {number}.parquet"
            pq.write_table(table, path, **options)
            files.append(File(str(path)))
        return Scan("parquet", tuple(files), from_arrow_schema(tables[0].schema))

    return write

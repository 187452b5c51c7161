"""What the tests of the Arrow engine share: running a plan, small batches, files to read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine, context
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.node import Plan

Run = Callable[..., tuple[list[dict[str, Any]], Any]]


@pytest.fixture
def engine() -> ArrowEngine:
    return ArrowEngine(settings=Settings())


@pytest.fixture
def tiny() -> ArrowEngine:
    """An engine that spills, and gives batches of 7 rows."""
    return ArrowEngine(settings=Settings.load(env={}, arrow_batch_rows=7, arrow_max_buffer_rows=20))


@pytest.fixture
def run(engine: ArrowEngine) -> Run:
    """The rows of a plan and the counters of its run; the output contract is checked."""

    def run(plan: Plan, on: ArrowEngine = engine) -> tuple[list[dict[str, Any]], Any]:
        rows: list[dict[str, Any]] = []
        with on.execute(plan) as execution:
            for batch in execution:
                assert batch.schema.equals(execution.schema)
                assert 0 < batch.num_rows <= on.settings.arrow.batch_rows
                batch.validate(full=True)
                rows += batch.to_pylist()
        return rows, execution.counters

    return run


@pytest.fixture(params=["compiled", "pyarrow"])
def each_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are decoded by compiled functions, if there are some, and then by pyarrow alone."""
    if request.param == "pyarrow":
        monkeypatch.setattr(context, "library", lambda: None)


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Scan]:
    """A scan of one file per table, in row groups of some rows."""

    def write(*tables: pa.Table, rows: int = 10, **options: Any) -> Scan:
        files = []
        for number, table in enumerate(tables):
            path = str(tmp_path / f"part-{number}.parquet")
            pq.write_table(table, path, row_group_size=rows, **options)
            files.append(File(path))
        return Scan("parquet", tuple(files), from_arrow_schema(tables[0].schema))

    return write


@pytest.fixture
def same() -> Callable[[Any, Any], bool]:
    """Equality in which NaN equals NaN, and 0.0 differs from -0.0."""

    def same(left: Any, right: Any) -> bool:
        return bool(_shape(left) == _shape(right))

    return same


def _shape(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else repr(value))
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return value

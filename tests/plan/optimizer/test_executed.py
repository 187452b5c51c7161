"""Both forms of every case give the same rows in the same order, on every engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.plan.optimizer.cases import CASES, Case
from tests.plan.optimizer.rules import BY_NAME
from tests.plan.optimizer.sources import Sources

from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan


def cases(engine: str) -> pytest.MarkDecorator:
    """The cases that this engine runs."""
    given = [case for case in CASES if engine in case.engines]
    return pytest.mark.parametrize("case", given, ids=lambda case: case.name)


def rows(plan: Plan, engine: Executor) -> list[Any]:
    run = engine.execute(plan)
    table = pa.Table.from_batches(list(run), schema=run.schema)
    return [plain(row) for row in table.to_pylist()]


def plain(value: Any) -> Any:
    """A value that equals itself, NaN included, and tells 0.0 from -0.0."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else str(value)
    return value


def check(case: Case, folder: Path, engine: Executor) -> None:
    plan = case.plan(Sources(folder))
    expected = rows(plan, engine)
    assert rows(BY_NAME[case.rule](plan), engine) == expected
    assert rows(optimize(plan), engine) == expected


@cases("arrow")
def test_on_arrow(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path, engine_named("arrow"))


@pytest.mark.spark
@cases("spark")
def test_on_spark(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    from millpond.engine.spark import SparkEngine

    check(case, tmp_path, SparkEngine(spark))

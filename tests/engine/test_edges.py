"""Numbers, frames and texts at the edges of what Arrow and Spark do by themselves."""

from __future__ import annotations

from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import EvaluationError, PlanError
from millpond.plan.types import STRING, List

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millpond.plan.executor import Executor


def cast(numbers: Sequence[str | None], type_: pa.DataType, to: str, engine: Executor) -> list[Any]:
    column = pa.array([None if n is None else D(n) for n in numbers], type_)
    plan = mp.values(pa.table({"x": column})).select(y=mp.col("x").cast(to))
    return [row["y"] for row in plan.to_pylist(engine=engine)]


def test_large_decimals_are_rounded_and_cut_right(engine: Executor) -> None:
    wide = pa.decimal128(38, 14)
    numbers = ["-92233720368547750293.52430873207284", None, "0.5"]
    found = cast(numbers, wide, "decimal(38,0)", engine)
    assert found == [D("-92233720368547750294"), None, D(1)]
    third = ["922337203.685477580342765081228517494"]
    found = cast(third, pa.decimal128(38, 27), "decimal(24,13)", engine)
    assert found == [D("922337203.6854775803428")]
    edge = ["9223372036854775807.9", "-9223372036854775808.9", "1.9"]
    found = cast(edge, pa.decimal128(38, 18), "long", engine)
    assert found == [2**63 - 1, -(2**63), 1]
    with pytest.raises(EvaluationError):
        cast(["9223372036854775808.0"], pa.decimal128(38, 18), "long", engine)


@pytest.mark.parametrize(("to", "largest"), [("byte", 127), ("short", 2**15 - 1)])
def test_decimals_are_cut_and_not_rounded(engine: Executor, to: str, largest: int) -> None:
    numbers = ["2.99999999999999999999", f"{largest}.99999999999999999999", None]
    assert cast(numbers, pa.decimal128(38, 20), to, engine) == [2, largest, None]
    with pytest.raises(EvaluationError):
        cast([f"{largest + 1}.0"], pa.decimal128(38, 20), to, engine)


def test_decimals_without_much_before_the_point(engine: Executor) -> None:
    small = ["0.5", "0", None]
    assert cast(small, pa.decimal128(10, 8), "boolean", engine) == [True, False, None]
    tiny = ["0.5", "0.49999999999999999999999999999999999999"]
    assert cast(tiny, pa.decimal128(38, 38), "decimal(38,0)", engine) == [D(1), D(0)]


@pytest.mark.spark
def test_frames_of_more_rows_than_there_can_be(spark: Any) -> None:
    plan = mp.values([{"x": 1}, {"x": 2}, {"x": 4}])
    for start in (-(2**31), -(2**31) - 1, -(2**40)):
        found = plan.window("o", "sum", "x", rows=(start, 0)).to_pylist(engine="spark")
        assert [row["o"] for row in found] == [1, 3, 7]
    found = plan.window("o", "sum", "x", rows=(0, 2**40)).to_pylist(engine="spark")
    assert [row["o"] for row in found] == [7, 6, 4]
    found = plan.window("o", "lag", "x", offset=2**31).to_pylist(engine="spark")
    assert [row["o"] for row in found] == [None] * 3


def test_delimiters_of_csv(engine: Executor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\\b\n1\\2\n")
    schema = {"a": "long", "b": "long"}
    plan = mp.scan(tmp_path / "a.csv", csv={"delimiter": "\\"}, schema=schema)
    assert plan.to_pylist(engine=engine) == [{"a": 1, "b": 2}]
    for bad in ("§", "\n", ";;", ""):
        with pytest.raises(PlanError):
            mp.scan(tmp_path / "a.csv", csv={"delimiter": bad}, schema=schema)


def test_lists_of_numbers_with_nulls_in_later_row_groups(engine: Executor, tmp_path: Path) -> None:
    """Where a null stands, the number of a word may stand that its dictionary does not have."""
    lists = [[5, 6], None, [1], [1], [], [1, None]]
    column = pa.array(lists, pa.list_(pa.int64()))
    pq.write_table(pa.table({"l": column}), tmp_path / "l.parquet", row_group_size=3)
    rows = mp.scan(tmp_path / "l.parquet")
    large, ones = mp.element() > 4, mp.element() == 1
    assert rows.filter(mp.col("l").any(large)).to_pylist(engine=engine) == [{"l": [5, 6]}]
    found = rows.filter(mp.col("l").all(ones)).to_pylist(engine=engine)
    assert [row["l"] for row in found] == [[1], [1], []]
    texts = rows.select(t=mp.col("l").cast(List(STRING))).to_pylist(engine=engine)
    assert texts[-1] == {"t": ["1", None]}


def test_a_zero_is_a_zero_whatever_its_exponent(engine: Executor) -> None:
    texts = ["0e5", "0E+10", "0.0e20", "-0e7", "1e2"]
    plan = mp.values([{"t": text} for text in texts]).select(d=mp.col("t").cast("decimal(5,2)"))
    assert [row["d"] for row in plan.to_pylist(engine=engine)] == [D(0)] * 4 + [D(100)]


def test_unions_of_rows_without_columns_are_counted(engine: Executor) -> None:
    rows = mp.values([{"a": 1}])
    for both, count in (
        (mp.values([{}, {}]).union(mp.values([{}])), 3),
        (rows.select().union(rows.select()), 2),
    ):
        assert both.count(engine=engine) == count
        assert both.to_pylist(engine=engine) == [{}] * count


@pytest.mark.parametrize("flag", ["less", "equal", "listed"])
def test_rows_with_nan_that_a_flag_is_not_true_for(
    engine: Executor, tmp_path: Path, flag: str
) -> None:
    """A writer leaves NaN out of statistics, which say that the flag is always true."""
    pq.write_table(pa.table({"x": [5.0, float("nan")]}), tmp_path / "t.parquet")
    rows = mp.scan(tmp_path / "t.parquet").with_columns(
        less=mp.col("x") < 6.0, equal=mp.col("x") == 5.0, listed=mp.col("x").isin([5.0, 6.0])
    )
    for plan in (
        rows.filter(~mp.col(flag)),
        rows.filter(mp.col(flag) == False),  # noqa: E712
        rows.filter(mp.col(flag)).union(rows.filter(~mp.col(flag))).tail(1),
        rows.aggregate([flag], n=mp.agg.count()).filter(~mp.col(flag)),
    ):
        found = plan.to_pylist(engine=engine)
        assert len(found) == 1
        assert found[0][flag] is False

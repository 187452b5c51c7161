"""Operators that work batch by batch: row filters, unions, JSON columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError
from millpond.plan import types as t
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.rows import FilterOrdered

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = pa.table(
    {"k": [i % 7 for i in range(50)], "n": list(range(50)), "s": [{"x": i} for i in range(50)]}
)


@dataclass
class FirstOfKeyRun:
    log: list[Any]
    seen: set[int] = field(default_factory=set)

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        self.log.append(batch.schema.names)
        keep = []
        for key in batch.column(0).to_pylist():
            keep.append(key not in self.seen)
            self.seen.add(key)
        return pa.array(keep)

    def finish(self) -> None:
        self.log.append("finished")


@dataclass(frozen=True)
class FirstOfKey:
    log: list[Any] = field(default_factory=list)
    name: str = "first_of_key"
    columns: tuple[str, ...] = ("k",)

    @property
    def config(self) -> Mapping[str, Any]:
        return {}

    def open(self) -> FirstOfKeyRun:
        return FirstOfKeyRun(self.log)


def test_a_row_filter_sees_all_rows_in_order(run: Any, tiny: Any, parquet: Any) -> None:
    row_filter = FirstOfKey()
    for plan in (values(DATA), parquet(DATA)):
        rows, _ = run(FilterOrdered(plan, row_filter), tiny)
        assert [row["n"] for row in rows] == list(range(7))
        assert row_filter.log[-1] == "finished"
        assert row_filter.log[0] == ["k"]


def test_a_row_filter_is_not_told_of_an_end_that_it_has_not_seen(run: Any, tiny: Any) -> None:
    row_filter = FirstOfKey()
    run(FilterOrdered(values(DATA), row_filter).head(2), tiny)
    assert "finished" not in row_filter.log


def test_a_row_filter_that_answers_wrongly_is_named(run: Any) -> None:
    class Wrong(FirstOfKeyRun):
        def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
            return pa.array([True])

    class Broken(FirstOfKey):
        def open(self) -> FirstOfKeyRun:
            return Wrong([])

    with pytest.raises(EvaluationError, match="first_of_key gave 1 answers"):
        run(FilterOrdered(values(DATA), Broken()))


def test_a_union_takes_input_after_input(run: Any, parquet: Any) -> None:
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    plan = values(pa.table({"n": [1]}, schema=strict)).union(parquet(DATA).select("n").head(2))
    assert [row["n"] for row in run(plan)[0]] == [1, 0, 1]
    turned = parquet(DATA).select("n").head(1).union(values(pa.table({"n": [9]}, schema=strict)))
    assert [row["n"] for row in run(turned)[0]] == [0, 9]


def test_json_text_becomes_a_struct(run: Any) -> None:
    texts = ['{"a": 1, "b": "x"}', None, "oops", '{"a": "no"}']
    plan = values(pa.table({"t": texts})).parse_json(
        "t", t.Struct.of(a=t.LONG, b=t.STRING), output="j"
    )
    assert [row["j"] for row in run(plan)[0]] == [
        {"a": 1, "b": "x"},
        None,
        {"a": None, "b": None},
        {"a": None, "b": None},
    ]


def test_filters_above_projections(run: Any, parquet: Any) -> None:
    plan = parquet(DATA).select(m=col("n") * 2).filter(col("m") > 90).select(d=col("m") + 1)
    assert [row["d"] for row in run(plan)[0]] == [93, 95, 97, 99]


def test_empty_inputs_give_no_batches(run: Any) -> None:
    none = values(DATA.slice(0, 0))
    for plan in (none, none.sort("n"), none.tail(3), none.shuffle(seed=1), none.sample(3, seed=1)):
        assert run(plan)[0] == []
    assert run(none.take([]))[0] == []
    assert run(values(DATA).head(0))[0] == []


def test_rows_without_columns_keep_their_number(engine: Any, parquet: Any) -> None:
    bare = parquet(DATA).select()
    for plan in (bare, bare.tail(50), bare.union(bare).head(50)):
        assert sum(batch.num_rows for batch in engine.execute(plan)) == 50
    assert sum(b.num_rows for b in engine.execute(bare.take([3, 3]))) == 2

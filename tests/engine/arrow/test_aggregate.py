"""Aggregation against a naive one; exact sums, order of groups, budgets."""

from __future__ import annotations

import decimal
import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import BudgetExceededError, EvaluationError
from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine, aggregate, scan
from millpond.plan import aggregates as agg
from millpond.plan.expr import col
from millpond.plan.make import values

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema(
    {
        "t": pa.string(),
        "f": pa.float64(),
        "g": pa.float32(),
        "i": pa.int32(),
        "m": pa.decimal128(30, 2),
        "s": pa.struct({"x": pa.list_(pa.int64())}),
        "n": pa.int64(),
    }
)


def table(seed: int, rows: int) -> pa.Table:
    rnd = random.Random(seed)
    made = [
        {
            "t": rnd.choice([None, "a", "b", "é", ""]),
            "f": rnd.choice([None, 0.0, -0.0, math.nan, 1.5, -math.inf]),
            "g": rnd.choice([None, 0.5, -0.0, math.nan]),
            "i": rnd.choice([None, -5, 3, 2**31 - 1]),
            "m": rnd.choice(
                [None, decimal.Decimal("1.25"), decimal.Decimal("-" + "9" * 28 + ".99")]
            ),
            "s": rnd.choice([None, {"x": [n]}, {"x": None}]),
            "n": n,
        }
        for n in range(rows)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def rank(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


def key(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    return tuple((row[n] is None, rank(row[n]) if row[n] is not None else 0) for n in names)


def shown(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def exact_sum(numbers: list[decimal.Decimal]) -> decimal.Decimal | None:
    with decimal.localcontext(prec=80):
        return sum(numbers, start=decimal.Decimal(0)) if numbers else None


def naive(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(key(row, names), []).append(row)
    found = []
    for _, group in sorted(groups.items()):

        def known(name: str, group: list[dict[str, Any]] = group) -> list[Any]:
            return [row[name] for row in group if row[name] is not None]

        late = [row for row in group if row["n"] > 20]
        found.append(
            {
                **{name: shown(group[0][name]) for name in names},
                "rows": len(group),
                "known": len(known("f")),
                "late": len(late),
                "total": sum(known("i")) if known("i") else None,
                "exact": exact_sum(known("m")),
                "low": shown(min(known("f"), key=rank, default=None)),
                "high": shown(max(known("g"), key=rank, default=None)),
                "text": max(known("t"), default=None),
                "first": group[0]["s"],
                "last": late[-1]["s"] if late else None,
                "kinds": len({rank(value) for value in known("f")}),
            }
        )
    return found


MEASURES = {
    "rows": agg.count(),
    "known": agg.count("f"),
    "late": agg.count(where=col("n") > 20),
    "total": agg.sum("i"),
    "exact": agg.sum("m"),
    "low": agg.min("f"),
    "high": agg.max("g"),
    "text": agg.max("t"),
    "first": agg.first("s"),
    "last": agg.last("s", where=col("n") > 20),
    "kinds": agg.count_distinct("f"),
}


@pytest.mark.parametrize("names", [[], ["t"], ["f"], ["g", "t"], ["i", "f", "t"]])
@pytest.mark.parametrize("merge_often", [False, True])
def test_against_a_naive_one(
    names: Any, merge_often: Any, run: Any, tiny: Any, parquet: Any, same: Any, monkeypatch: Any
) -> None:
    if merge_often:
        monkeypatch.setattr(aggregate, "_GATHER_ROWS", 5)
        monkeypatch.setattr(aggregate, "_MERGE_ROWS", 10)
    data = table(len(names), 120)
    expected = naive(data.to_pylist(), names)
    assert same(run(values(data).aggregate(names, **MEASURES))[0], expected)
    assert same(run(values(data).aggregate(names, **MEASURES), tiny)[0], expected)
    assert same(run(parquet(data, rows=17).aggregate(names, **MEASURES), tiny)[0], expected)


def test_means(run: Any) -> None:
    data = pa.table({"k": [1, 1, 2, 3], "x": pa.array([1, 2, None, 4], pa.int32())})
    rows, _ = run(values(data).aggregate("k", m=agg.mean("x"), d=agg.sum(col("x") / 2)))
    assert [(row["m"], row["d"]) for row in rows] == [(1.5, 1.5), (None, None), (4.0, 2.0)]


def test_means_of_rows_that_count(run: Any, tiny: Any) -> None:
    data = pa.table({"k": [n % 2 for n in range(50)], "x": [None, *map(float, range(1, 50))]})
    plan = values(data).aggregate("k", m=agg.mean("x"), late=agg.mean("x", where=col("x") > 40))
    for engine in ([], [tiny]):
        rows, _ = run(plan, *engine)
        assert [(row["m"], row["late"]) for row in rows] == [(25.0, 45.0), (25.0, 45.0)]
    (row,), _ = run(
        values(data).aggregate(m=agg.mean("x"), late=agg.mean("x", where=col("x") > 99))
    )
    assert row == {"m": 25.0, "late": None}


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_rows_alone_are_counted(keys: Any, run: Any, tiny: Any, parquet: Any) -> None:
    data = pa.table({"k": [1] * 40, "x": [None] * 40})
    for plan in (values(data), parquet(data, rows=9)):
        rows, _ = run(plan.aggregate(keys, n=agg.count(), again=agg.count()), tiny)
        assert rows == [{**dict.fromkeys(keys, 1), "n": 40, "again": 40}]
    assert run(values(data.slice(0, 0)).aggregate(n=agg.count()))[0] == [{"n": 0}]


@pytest.mark.parametrize("keys", [[], ["k"]])
@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_sums_of_narrow_numbers_are_longs(type_: Any, keys: Any, run: Any, tiny: Any) -> None:
    low, high = -(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1
    numbers = [low, high, None, high - 1, low + 5] * 20
    data = pa.table({"k": [7] * 100, "x": pa.array(numbers, type_)})
    rows, _ = run(values(data).aggregate(keys, s=agg.sum("x")), tiny)
    assert rows == [{**dict.fromkeys(keys, 7), "s": sum(n for n in numbers if n is not None)}]


def test_sums_of_floats_are_doubles(run: Any) -> None:
    data = pa.table({"x": pa.array([16777216.0, 1.0, None, 3e38, 3e38], pa.float32())})
    few, all_ = values(data.slice(0, 3)), values(data)
    assert run(few.aggregate(s=agg.sum("x")))[0] == [{"s": 16777217.0}]
    assert run(all_.aggregate(s=agg.sum("x")))[0][0]["s"] > 5e38


def test_over_no_rows(run: Any) -> None:
    none = values(table(1, 0))
    assert run(none.aggregate("t", **MEASURES))[0] == []
    (row,), _ = run(none.aggregate((), **MEASURES))
    counts = ("rows", "known", "late", "kinds")
    assert row == {name: 0 if name in counts else None for name in MEASURES}


def test_keys_alone_are_the_different_ones(run: Any) -> None:
    rows, _ = run(values(table(3, 60)).aggregate(["t"]))
    assert [row["t"] for row in rows] == ["", "a", "b", "é", None]


MOST = 2**63 - 1


def test_sums_of_longs_are_exact_or_an_error(run: Any, tiny: Any) -> None:
    def total(numbers: list[int], on: Any = None) -> Any:
        plan = values(pa.table({"k": [0] * len(numbers), "x": numbers})).aggregate(
            "k", s=agg.sum("x")
        )
        return run(plan, *([on] if on else []))[0][0]["s"]

    assert total([MOST, 1, -1]) == MOST
    assert total([MOST] * 20 + [-MOST] * 19, tiny) == MOST
    assert total([-MOST, -1]) == -MOST - 1
    for numbers in ([MOST, 1], [-MOST, -2], [2**62] * 2):
        with pytest.raises(EvaluationError, match="does not fit long"):
            total(numbers)


def test_sums_of_long_decimals_are_exact_or_an_error(run: Any) -> None:
    most = decimal.Decimal("9" * 38)
    type_ = pa.decimal128(38, 0)
    data = values(pa.table({"x": pa.array([most, decimal.Decimal(1), decimal.Decimal(-1)], type_)}))
    assert run(data.aggregate(s=agg.sum("x")))[0] == [{"s": most}]
    with pytest.raises(EvaluationError, match="decimal"):
        run(data.head(2).aggregate(s=agg.sum("x")))


def test_more_groups_than_allowed_are_refused(run: Any) -> None:
    engine = ArrowEngine(settings=Settings.load(env={}, arrow_batch_rows=16), max_group_keys=20)
    few = values(pa.table({"k": [i % 20 for i in range(500)]}))
    assert len(run(few.aggregate("k", n=agg.count()), engine)[0]) == 20
    many = values(pa.table({"k": [i % 21 for i in range(500)]}))
    with pytest.raises(BudgetExceededError, match="max_group_keys"):
        run(many.aggregate("k", n=agg.count()), engine)


@pytest.mark.parametrize("kinds", [3, 40_000])
def test_repeating_texts_of_a_file_are_grouped_like_any_others(
    run: Any, tmp_path: Path, kinds: int
) -> None:
    """Row groups number their texts differently, some hold too many to be numbered, some nulls."""
    count = 60_000
    texts = [
        None if n % 11 == 0 else f"t{(n * 7) % (kinds if n > 30_000 else 5)}" for n in range(count)
    ]
    table = pa.table({"k": pa.array(texts), "v": pa.array(range(count))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20_000)
    plan = scan(tmp_path / "a.parquet").filter(col("v") % 3 != 1)
    measures = {
        "n": agg.count(),
        "s": agg.sum("v"),
        "d": agg.count_distinct("k"),
        "top": agg.max("k"),
    }
    rows, _ = run(plan.aggregate("k", **measures))
    expected: dict[str | None, list[int]] = {}
    for value, text in enumerate(texts):
        if value % 3 != 1:
            expected.setdefault(text, []).append(value)
    order = sorted(expected, key=lambda k: (k is None, k or ""))
    assert [row["k"] for row in rows] == order
    assert [(r["n"], r["s"]) for r in rows] == [
        (len(v), sum(v)) for v in map(expected.get, order) if v
    ]
    assert all((r["d"], r["top"]) == ((0, None) if r["k"] is None else (1, r["k"])) for r in rows)


def test_a_text_that_a_file_numbers_twice_is_one_group() -> None:
    numbered = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, None], pa.int32()), ["a", "b", "a"]
    )
    partials = aggregate.Partials(1, ("sum",))
    partials.add([numbered, pa.array([1, 10, 100, 1000])])
    found = partials.merged()
    assert found is not None
    keys, sums = (column.to_pylist() for column in found)
    assert dict(zip(keys, sums, strict=True)) == {"a": 101, "b": 10, None: 1000}

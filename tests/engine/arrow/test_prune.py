"""Pruning never loses a row: random predicates over files with and without statistics."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from millpond.engine.arrow.source.bounds import ALL_NULL, Bounds
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.expr import Expr, col, element, lit, path
from millpond.plan.make import values

SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "y": pa.binary(),
        "d": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "n": pa.timestamp("us"),
        "m": pa.decimal128(9, 2),
        "b": pa.bool_(),
        "o": pa.struct({"i": pa.int64(), "f": pa.float32()}),
        "l": pa.list_(pa.struct({"i": pa.int64(), "s": pa.string()})),
        "k": pa.map_(pa.string(), pa.int64()),
    }
)


def scalar(rnd: random.Random, kind: str, low: int) -> Any:
    number = low + rnd.randint(0, 6)
    made: dict[str, Any] = {
        "i": number,
        "f": rnd.choice([float(number), math.nan, -0.0, 0.0, math.inf]),
        "s": rnd.choice([str(number), "é" * 3, "", "\U0001f600" + str(number)]),
        "y": bytes([number % 256, 255]),
        "d": dt.date(1970, 1, 1) + dt.timedelta(days=number),
        "at": dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number),
        "n": dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=number),  # noqa: DTZ001
        "m": decimal.Decimal(number) / 4,
        "b": number % 2 == 0,
    }
    return made[kind]


def table(rnd: random.Random, rows: int, group: int) -> pa.Table:
    def one(kind: str, row: int) -> Any:
        low = (row // group) * 5 - 10
        if rnd.random() < (0.9 if row // group == 1 else 0.1):
            return None
        if kind == "o":
            return {"i": one("i", row), "f": one("f", row)}
        if kind == "l":
            return [
                rnd.choice([None, {"i": one("i", row), "s": one("s", row)}])
                for _ in range(rnd.randint(0, 2))
            ]
        if kind == "k":
            return [(key, one("i", row)) for key in "ab" if rnd.random() < 0.5]
        return scalar(rnd, kind, low)

    return pa.table(
        {
            name: pa.array([one(name, r) for r in range(rows)], SCHEMA.field(name).type)
            for name in SCHEMA.names
        },
        schema=SCHEMA,
    )


def comparison(rnd: random.Random, left: Expr, value: Any) -> Expr:
    kind = rnd.randint(0, 8)
    if kind == 6:
        return left.isin([value, None])
    if kind == 7:
        return left.same_as(rnd.choice([value, None]))
    if kind == 8:
        return lit(value) < left
    made: Expr = [
        left == value,
        left != value,
        left < value,
        left <= value,
        left > value,
        left >= value,
    ][kind]
    return made


def predicate(rnd: random.Random, depth: int = 0) -> Expr:
    shape = rnd.random()
    if depth < 3 and shape < 0.4:
        a, b = predicate(rnd, depth + 1), predicate(rnd, depth + 1)
        known = a.coalesce(rnd.choice([True, False, b]))
        return rnd.choice([a & b, a | b, ~a, known])
    kind = rnd.choice([*"ifsydnmb", "at", "o.i", "o.f", "l", "k", "l0"])
    low = rnd.randint(-15, 25)
    if kind in ("o.i", "o.f"):
        left, value = path(kind), scalar(rnd, kind[2:], low)
    elif kind == "k":
        left, value = path("k.a"), low
    elif kind == "l0":
        left, value = path("l[0].i"), low
    elif kind == "l":
        name = rnd.choice("is")
        inner = comparison(rnd, path(name), scalar(rnd, name, low))
        inner = rnd.choice([inner, path(name).is_null(), element().is_null(), ~inner])
        made: Expr = path("l").any(inner) if rnd.random() < 0.7 else path("l").all(inner)
        return made
    else:
        left, value = col(kind), scalar(rnd, kind, low)
    if rnd.random() < 0.2:
        return rnd.choice([left.is_null(), left.is_not_null()])
    if kind == "s" and rnd.random() < 0.3:
        return left.starts_with(value[:1])
    if kind == "b" and rnd.random() < 0.5:
        return left
    if kind == "i" and rnd.random() < 0.3:
        return comparison(rnd, left, float(value) + rnd.choice([0.0, 0.5]))
    return comparison(rnd, left, value)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("statistics", [True, False])
def test_a_scan_gives_the_rows_that_memory_gives(
    seed: Any, statistics: Any, run: Any, parquet: Any, same: Any
) -> None:
    rnd = random.Random(seed)
    data = table(rnd, rows=40, group=8)
    scan = parquet(data, rows=8, write_statistics=statistics)
    for _ in range(12):
        condition = predicate(rnd)
        found, counters = run(scan.filter(condition))
        expected, _ = run(values(data).filter(condition))
        assert same(found, expected), str(condition)
        if not statistics:
            # Only what needs no data at all can be ruled out without statistics.
            assert counters.batches_pruned in (0, 5)


def judge(expr: Expr, bounds: Bounds, type_: t.DataType = t.LONG) -> bool:
    bound = bind(expr, t.Struct.of(x=type_))
    return may_hold(bound, lambda steps, _: bounds if steps == ("x",) else None)


def test_verdicts() -> None:
    x, some = col("x"), Bounds(3, 7, may_be_null=False)
    assert [judge(x == v, some) for v in (2, 3, 7, 8)] == [False, True, True, False]
    assert [judge(x < v, some) for v in (3, 4)] == [False, True]
    assert [judge(~(x < v), some) for v in (7, 8)] == [True, False]
    assert [judge(x != v, Bounds(3, 3)) for v in (3, 4)] == [False, True]
    assert not judge(x.is_null(), some)
    assert judge(x.is_null(), ALL_NULL)
    assert not judge(~(x == 1), ALL_NULL)
    assert not judge(x.isin([1, None, 9]), some)
    assert not judge((x == 1) | (x == 9), some)
    assert judge((x + 1) == 99, some), "what is not understood may hold"


def test_what_may_be_null_counts_as_what_stands_in_for_it() -> None:
    x, some, nulls = col("x"), Bounds(3, 7, may_be_null=False), Bounds(3, 7)
    unknown = (x + 1) == 2
    assert [judge((x == 9).coalesce(True), b) for b in (some, nulls, ALL_NULL)] == [
        False,
        True,
        True,
    ]
    assert not judge((x == 9).coalesce(False), nulls)
    assert not judge(((x == 9) & unknown).coalesce(True), some), "false and anything is false"
    assert judge(((x == 9) | unknown).coalesce(True), some)
    assert judge(((x == 9) & unknown).coalesce(True), nulls)
    assert not judge(~((x == 5) | (x > 0)).coalesce(True), some)
    assert not judge(x.is_null().coalesce(True), some)
    assert not judge(x.same_as(9).coalesce(True), nulls)


def test_nan_lies_above_every_limit() -> None:
    x, some = col("x"), Bounds(1.0, 2.0, may_be_nan=True)
    assert judge(x > 5.0, some, t.DOUBLE)
    assert not judge(x < 1.0, some, t.DOUBLE)
    assert not judge(x == 5.0, some, t.DOUBLE)
    assert judge(x == math.nan, some, t.DOUBLE)
    assert judge(x != 1.0, Bounds(1.0, 1.0, may_be_nan=True), t.DOUBLE)


def test_cut_texts_are_limits_all_the_same() -> None:
    x, cut = col("x"), Bounds(b"abc", b"abd")
    assert judge(x == "abcdefg", cut, t.STRING)
    assert not judge(x == "abe", cut, t.STRING)
    assert judge(x.starts_with("abcz"), cut, t.STRING)
    assert not judge(x.starts_with("b"), cut, t.STRING)
    assert not judge(x.starts_with("aa"), cut, t.STRING)


def test_a_comparison_with_null_is_null() -> None:
    schema = t.Struct.of(a=t.LONG)
    predicate = (col("a") == lit(None, t.LONG)).coalesce(True)
    assert may_hold(bind(predicate, schema), lambda *_: Bounds(1, 3, may_be_null=False))


def test_casts_in_casts_are_no_recursion() -> None:
    deep: Expr = col("a")
    for _ in range(5_000):
        deep = deep.cast(t.LONG).cast(t.INTEGER).cast(t.LONG)
    schema = t.Struct.of(a=t.LONG)
    assert may_hold(bind(deep > 5, schema), lambda *_: Bounds(1, 3, may_be_null=False))
    wider = bind(col("a").cast(t.LONG).cast(t.DOUBLE) > 5.0, t.Struct.of(a=t.INTEGER))
    assert not may_hold(wider, lambda *_: Bounds(1, 3, may_be_null=False))

"""Filter, Project, ParseJson, Union, Join and Aggregate on small tables."""

# ruff: noqa: DTZ001 - timestamps without a zone are what is tested

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest

from millpond.base.errors import EvaluationError
from millpond.plan import aggregates as agg
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    List,
    Map,
    Struct,
)

pytestmark = pytest.mark.spark

NAN = float("nan")
LEFT = values([{"a": a, "x": x} for a, x in [(1, 10), (2, 20), (None, 30), (1, 40), (9, 5)]])
RIGHT = values([{"b": b, "y": y} for b, y in [(1, "p"), (None, "q"), (1, "r"), (7, "s")]])
ODD = ("a.b", "a b", "a`b", 'a"b', "ü", "", "a\nb", "*", "_metadata", "a\\b", "it's", "A", "a")


def test_odd_column_names_pass_through_everything(run_table: Any) -> None:
    plan = values([dict.fromkeys(ODD, 1), dict.fromkeys(ODD, 2)])
    for name in ODD:
        plan = plan.filter(col(name) > 0)
    plan = plan.select(*(col(name) for name in ODD)).sort(*(col(name).desc() for name in ODD))
    other = plan.select(*((col(name) * 10).alias(f"right {name}") for name in ODD))
    joined = plan.join(other, on=[(col(n) * 10, col(f"right {n}")) for n in ODD])
    table = run_table(joined)
    assert table.column_names == [*ODD, *(f"right {name}" for name in ODD)]
    assert table.to_pylist()[0] == {**dict.fromkeys(ODD, 2), **{f"right {n}": 20 for n in ODD}}


def test_a_filter_keeps_rows_for_which_it_is_true(run_rows: Any) -> None:
    assert run_rows(LEFT.filter(col("a") == 1).filter(col("x") > 10)) == [(1, 40)]
    assert run_rows(LEFT.filter(~(col("a") == 1))) == [(2, 20), (9, 5)]


def test_projections_replace_and_swap_columns(run_rows: Any) -> None:
    plan = LEFT.head(1).select(col("x").alias("a"), col("a").alias("x"), (col("a") + 1).alias("b"))
    assert run_rows(plan) == [(10, 1, 2)]


def test_no_columns_and_no_rows(run_table: Any) -> None:
    assert run_table(LEFT.filter(col("x") < 0)).num_rows == 0
    assert run_table(values([], Struct.of(a=LONG, b=List(DATE)))).num_rows == 0


def test_unions_keep_the_order_of_their_inputs(run_rows: Any) -> None:
    first = values([{"k": k, "v": 0} for k in (3, 1, 2)])
    sorted_one = values([{"k": k, "v": 1} for k in (6, 5, 4)]).sort("k")
    grouped = values([{"k": k, "v": 2} for k in (9, 8, 8)]).aggregate("k", v=agg.sum("v"))
    rows = run_rows(first.union(sorted_one, grouped, sorted_one))
    assert [row[0] for row in rows] == [3, 1, 2, 4, 5, 6, 8, 9, 4, 5, 6]


def test_a_union_of_sorted_inputs_does_not_deal_them_out_in_turns(run_rows: Any) -> None:
    rows = values([{"k": k} for k in range(200)])
    plan = rows.sort(col("k").desc()).union(rows.sort(col("k").desc()))
    assert [row[0] for row in run_rows(plan)] == [*range(199, -1, -1), *range(199, -1, -1)]


PAIRS = [(1, 10, 1, "p"), (1, 10, 1, "r"), (1, 40, 1, "p"), (1, 40, 1, "r")]
ALONE = [(2, 20, None, None), (None, 30, None, None), (9, 5, None, None)]


@pytest.mark.parametrize(
    ("how", "nulls_equal", "expected"),
    [
        ("inner", False, PAIRS),
        ("inner", True, [*PAIRS[:2], (None, 30, None, "q"), *PAIRS[2:]]),
        ("left", False, [*PAIRS[:2], *ALONE[:2], *PAIRS[2:], ALONE[2]]),
        (
            "full",
            False,
            [
                *PAIRS[:2],
                *ALONE[:2],
                *PAIRS[2:],
                ALONE[2],
                (None, None, None, "q"),
                (None, None, 7, "s"),
            ],
        ),
        (
            "full",
            True,
            [
                *PAIRS[:2],
                ALONE[0],
                (None, 30, None, "q"),
                *PAIRS[2:],
                ALONE[2],
                (None, None, 7, "s"),
            ],
        ),
        ("semi", False, [(1, 10), (1, 40)]),
        ("semi", True, [(1, 10), (None, 30), (1, 40)]),
        ("anti", False, [(2, 20), (None, 30), (9, 5)]),
        ("anti", True, [(2, 20), (9, 5)]),
    ],
)
def test_joins(run_rows: Any, how: Any, nulls_equal: bool, expected: list[Any]) -> None:
    plan = LEFT.join(RIGHT, on=[("a", "b")], how=how, nulls_equal=nulls_equal)
    assert run_rows(plan) == expected
    assert sorted(run_rows(plan, ordered=False), key=repr) == sorted(expected, key=repr)


def test_a_plan_joined_with_itself(run_rows: Any) -> None:
    ordered = LEFT.sort(col("x").desc()).head(3)
    assert run_rows(ordered.join(ordered, on="x", how="semi")) == [(1, 40), (None, 30), (2, 20)]
    renamed = ordered.rename(a="a2", x="x2")
    assert run_rows(ordered.join(renamed, on=[("x", "x2")]).select("x", "x2")) == [
        (40, 40),
        (30, 30),
        (20, 20),
    ]


def test_keys_that_are_nan_or_zero_find_each_other(run_rows: Any) -> None:
    schema = Struct.of(k=DOUBLE, n=LONG)
    left = values([{"k": k, "n": n} for n, k in enumerate([NAN, -0.0, None])], schema)
    right = values([{"j": 0.0, "m": 0}, {"j": NAN, "m": 1}])
    assert [(n, m) for _, n, _, m in run_rows(left.join(right, on=[("k", "j")]))] == [
        (0, 1),
        (1, 0),
    ]


def test_aggregates(run_rows: Any) -> None:
    plan = LEFT.aggregate(
        "a",
        n=agg.count(),
        s=agg.sum("x"),
        m=agg.mean("x"),
        lo=agg.min("x"),
        hi=agg.max("x"),
        first=agg.first("x"),
        last=agg.last("x"),
        few=agg.sum("x", where=col("x") > 15),
        none=agg.count(where=col("x") > 15),
    )
    assert run_rows(plan) == [
        (1, 2, 50, 25.0, 10, 40, 10, 40, 40, 1),
        (2, 1, 20, 20.0, 20, 20, 20, 20, 20, 1),
        (9, 1, 5, 5.0, 5, 5, 5, 5, None, 0),
        (None, 1, 30, 30.0, 30, 30, 30, 30, 30, 1),
    ]


def test_aggregates_over_nothing(run_rows: Any) -> None:
    nothing = LEFT.filter(col("x") < 0)
    plan = nothing.aggregate(
        n=agg.count(), c=agg.count("x"), s=agg.sum("x"), f=agg.first("x"), d=agg.count_distinct("x")
    )
    assert run_rows(plan) == [(0, 0, None, None, 0)]
    assert run_rows(nothing.aggregate("a", n=agg.count())) == []


def test_groups_without_measures_are_the_keys(run_rows: Any) -> None:
    assert run_rows(LEFT.aggregate("a")) == [(1,), (2,), (9,), (None,)]


def test_first_and_last_take_nulls_as_they_are(run_rows: Any) -> None:
    rows = [{"k": 1, "v": None}, {"k": 1, "v": 2}, {"k": 1, "v": None}, {"k": 2, "v": 5}]
    plan = values(rows, Struct.of(k=LONG, v=LONG))
    by = plan.aggregate(
        "k",
        f=agg.first("v"),
        l=agg.last("v"),
        g=agg.first("v", where=col("v").is_not_null()),
    )
    assert run_rows(by) == [(1, None, None, 2), (2, 5, 5, 5)]
    joined = LEFT.join(RIGHT, on=[("a", "b")], how="full")
    assert run_rows(joined.aggregate(f=agg.first("y"), l=agg.last("y"), r=agg.last("x"))) == [
        ("p", "s", None)
    ]


def test_groups_of_floats(run_rows: Any) -> None:
    rows = [{"k": k, "v": v} for k, v in [(NAN, 1.0), (-0.0, NAN), (0.0, 2.0), (NAN, -0.0)]]
    plan = values(rows).aggregate("k", n=agg.count(), d=agg.count_distinct("v"), hi=agg.max("v"))
    found = run_rows(plan)
    assert [str(value) for value in found[0]] == ["0.0", "2", "2", "nan"]
    assert [str(value) for value in found[1]] == ["nan", "2", "2", "1.0"]


def test_sums_are_exact_or_an_error(run_rows: Any) -> None:
    most = values([{"x": (1 << 63) - 1, "d": decimal.Decimal("9.99"), "f": 0.5}] * 2)
    assert run_rows(most.aggregate(d=agg.sum("d"), f=agg.sum(col("f")))) == [
        (decimal.Decimal("19.98"), 1.0)
    ]
    with pytest.raises(EvaluationError):
        run_rows(most.aggregate(s=agg.sum("x")))


def test_parse_json(run_rows: Any) -> None:
    parsed = Struct.of(
        i=INTEGER,
        x=DOUBLE,
        s=STRING,
        d=DATE,
        t=TIMESTAMP,
        n=TIMESTAMP_NTZ,
        l=List(LONG),
        m=Map(STRING, LONG),
        c=Decimal(5, 2),
        o=Struct.of(a=LONG, b=LONG),
        q=List(DATE),
    )
    nulls = dict.fromkeys(parsed.names)
    at = dt.datetime(2024, 5, 31, 10)
    cases: list[tuple[str | None, Any]] = [
        (None, None),
        ("", nulls),
        ("x", nulls),
        ("null", nulls),
        ("[1]", nulls),
        ('{"i":1} x', nulls),
        ('{"i":1}{"i":2}', nulls),
        ("{'i':1}", nulls),
        ('{"i":1', nulls),
        ('{"i":1,"i":2}', {**nulls, "i": 2}),
        ('{"i":1.5,"x":2}', {**nulls, "x": 2.0}),
        ('{"i":"1","x":"2"}', nulls),
        ('{"i":3000000000,"I":1}', nulls),
        ('{"s":{"a": [1, "b"]},"x":1e3}', {**nulls, "s": '{"a":[1,"b"]}', "x": 1000.0}),
        ('{"d":"2024-05-31","t":5}', {**nulls, "d": at.date()}),
        ('{"t":"2024-05-31T12:00:00+02:00"}', {**nulls, "t": at.replace(tzinfo=dt.UTC)}),
        ('{"n":"2024-05-31 10:00:00"}', {**nulls, "n": at}),
        ('{"n":"2024-05-31T10:00:00Z","i":4}', {**nulls, "i": 4}),
        ('{"l":[1,2],"m":{"a":1,"a":2}}', {**nulls, "l": [1, 2], "m": [("a", 2)]}),
        ('{"l":[1,"x"],"i":1}', {**nulls, "i": 1}),
        ('{"c":1.005}', {**nulls, "c": decimal.Decimal("1.01")}),
        ('{"o":{"a":"x","b":2}}', {**nulls, "o": {"a": None, "b": 2}}),
        ('{"q":["2024-05-31",null]}', {**nulls, "q": [at.date(), None]}),
        ('{"q":["2024-05-31","x"]}', nulls),
    ]
    plan = values([{"text": text} for text, _ in cases], Struct.of(text=STRING))
    found = run_rows(plan.parse_json("text", parsed, output="json"))
    for (text, expected), (_, value) in zip(cases, found, strict=True):
        assert value == expected, text


def test_json_as_an_expression(run_rows: Any) -> None:
    plan = values([{"text": "[1,2]"}, {"text": '{"a":1}'}, {"text": "x"}])
    assert run_rows(plan.select(l=col("text").parse_json(List(LONG)))) == [
        ([1, 2],),
        (None,),
        (None,),
    ]
    deep = plan.select(a=col("text").parse_json(Struct.of(a=LONG))).select(path("a.a"))
    assert run_rows(deep) == [(None,), (1,), (None,)]

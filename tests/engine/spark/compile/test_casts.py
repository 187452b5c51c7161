"""Casts: grammar, rounding, ranges. A cast that fails gives null or an error, as asked."""

# ruff: noqa: DTZ001 - timestamps without a zone are what is tested

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError
from millpond.plan.expr import Expr, col
from millpond.plan.make import values
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Struct,
)

pytestmark = pytest.mark.spark

D = decimal.Decimal
NAN, INF = float("nan"), float("inf")
DAY = dt.datetime(2024, 5, 31)
NOON = DAY.replace(hour=12)
UTC = dt.UTC

CASES: list[tuple[DataType, DataType, list[tuple[Any, Any]]]] = [
    (LONG, BYTE, [(127, 127), (128, None), (-128, -128), (-129, None)]),
    (DOUBLE, INTEGER, [(1.9, 1), (-1.9, -1), (NAN, None), (INF, None), (2147483648.0, None)]),
    (DOUBLE, LONG, [(-9.223372036854775808e18, -(1 << 63)), (9.223372036854775808e18, None)]),
    (FLOAT, LONG, [(2.0**63, None), (0.0, 0)]),
    (DOUBLE, FLOAT, [(1e300, INF), (0.1, 0.10000000149011612)]),
    (DOUBLE, Decimal(6, 2), [(1.005, D("1.01")), (-1.005, D("-1.01")), (NAN, None), (INF, None)]),
    (DOUBLE, Decimal(4, 2), [(99.994, D("99.99")), (99.995, None)]),
    (LONG, Decimal(3, 1), [(12, D("12.0")), (123, None)]),
    (Decimal(5, 2), Decimal(3, 1), [(D("1.25"), D("1.3")), (D("99.95"), None)]),
    (Decimal(10, 2), BYTE, [(D("127.99"), 127), (D("128.00"), None)]),
    (BOOLEAN, DOUBLE, [(True, 1.0), (False, 0.0)]),
    (DOUBLE, BOOLEAN, [(-0.0, False), (NAN, True)]),
    (
        STRING,
        INTEGER,
        [(" 7 ", 7), ("+7", 7), ("-7", -7), ("7.0", None), ("7d", None), ("", None), ("0x7", None)],
    ),
    (STRING, LONG, [("9223372036854775808", None), ("-9223372036854775808", -(1 << 63))]),
    (
        STRING,
        DOUBLE,
        [("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), ("NaN", NAN), ("-Infinity", -INF)]
        + [(bad, None) for bad in ("1d", "1f", "0x1p3", "1_0", "", "e", "+", ".")],
    ),
    (STRING, Decimal(5, 2), [("1.005", D("1.01")), ("1e2", D("100.00")), ("1e5", None)]),
    (STRING, BOOLEAN, [("TRUE", True), ("n", False), ("1", True), ("on", None), ("", None)]),
    (
        STRING,
        DATE,
        [("2024-05-31", DAY.date()), ("2024-02-30", None), ("2024-5-1", None), ("epoch", None)],
    ),
    (
        STRING,
        TIMESTAMP_NTZ,
        [("2024-05-31 12:00:00.000001", NOON.replace(microsecond=1)), ("2024-05-31", DAY)],
    ),
    (
        STRING,
        TIMESTAMP,
        [
            ("2024-05-31T12:00:00Z", NOON.replace(tzinfo=UTC)),
            ("2024-05-31 14:00:00+02:00", NOON.replace(tzinfo=UTC)),
            ("2024-05-31 24:00:00", None),
            ("now", None),
            ("12:00:00", None),
            ("2024-05-31 12:00:00 Europe/Berlin", None),
        ],
    ),
    (DATE, TIMESTAMP, [(DAY.date(), DAY.replace(tzinfo=UTC))]),
    (TIMESTAMP, DATE, [(NOON.replace(tzinfo=UTC), DAY.date())]),
    (TIMESTAMP, TIMESTAMP_NTZ, [(NOON.replace(tzinfo=UTC), NOON)]),
    (TIMESTAMP_NTZ, TIMESTAMP, [(NOON, NOON.replace(tzinfo=UTC))]),
    (DOUBLE, STRING, [(1.0, "1.0"), (1e10, "1.0E10"), (NAN, "NaN"), (-INF, "-Infinity")]),
    (SHORT, STRING, [(-5, "-5")]),
    (Decimal(10, 3), STRING, [(D("0.001"), "0.001"), (D("-10"), "-10.000")]),
    (TIMESTAMP, STRING, [(NOON.replace(microsecond=500000, tzinfo=UTC), "2024-05-31 12:00:00.5")]),
    (DATE, STRING, [(dt.date(1, 2, 3), "0001-02-03")]),
    (BOOLEAN, STRING, [(True, "true")]),
    (BINARY, STRING, [(b"a\xff", "a\ufffd")]),
    (STRING, BINARY, [("ü", b"\xc3\xbc")]),
    (List(STRING), List(LONG), [(["1", None, "x"], [1, None, None])]),
]


@pytest.mark.parametrize(("source", "target", "cases"), CASES, ids=lambda x: str(x)[:20])
def test_casts(
    run_rows: Any, source: DataType, target: DataType, cases: list[tuple[Any, Any]]
) -> None:
    rows = [{"x": value} for value, _ in cases] + [{"x": None}]
    plan = values(rows, Struct.of(x=source)).select(y=col("x").cast(target, on_error="null"))
    found = [row[0] for row in run_rows(plan)]
    for (value, expected), made in zip([*cases, (None, None)], found, strict=True):
        both_nan = isinstance(made, float) and math.isnan(made) and math.isnan(expected)
        assert both_nan or (type(made) is type(expected) and made == expected), (value, made)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("1d", STRING, DOUBLE),
        ("x", STRING, LONG),
        ("2024", STRING, DATE),
        (300, LONG, BYTE),
        (NAN, DOUBLE, Decimal(5, 2)),
        (9.3e18, DOUBLE, LONG),
        (D("999"), Decimal(3, 0), Decimal(2, 0)),
        (["x"], List(STRING), List(LONG)),
    ],
)
def test_what_does_not_fit_is_an_error(
    run_rows: Any, value: Any, source: DataType, target: DataType
) -> None:
    plan = values([{"x": value}], Struct.of(x=source)).select(y=col("x").cast(target))
    with pytest.raises(EvaluationError):
        run_rows(plan)


@pytest.mark.parametrize(
    ("start", "between", "target"),
    [("1", STRING, LONG), (1.0, DOUBLE, LONG), ("1.5", STRING, Decimal(3, 1))],
    ids=str,
)
@pytest.mark.parametrize("on_error", ["error", "null"])
def test_casts_in_casts_do_not_grow_by_powers(
    engine: Any,
    scan_of: Any,
    run_rows: Any,
    start: Any,
    between: DataType,
    target: DataType,
    on_error: Any,
) -> None:
    made: Expr = col("x")
    for _ in range(8):
        made = made.cast(target, on_error=on_error).cast(between)
    plan = scan_of(pa.table({"x": [start, None]})).select(y=made)
    text = engine.to_dataframe(plan)._jdf.queryExecution().executedPlan().toString()
    assert 1 <= len(re.findall(r"\bx#", text)) <= 50, text
    assert run_rows(plan) == [(start,), (None,)]


def test_a_deep_cast_that_fails_says_what_it_was_given(run_rows: Any) -> None:
    made: Expr = col("x")
    for _ in range(5):
        made = made.cast(LONG).cast(STRING)
    plan = values([{"x": "8"}], Struct.of(x=STRING))
    with pytest.raises(EvaluationError, match="'8!' is not a long"):
        run_rows(plan.select(y=made.concat("!").cast(LONG)))

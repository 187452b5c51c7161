"""Constant folding: what is computed, what is left to the engine, what an error keeps in place."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest

from millpond.plan.bind import bind
from millpond.plan.bound import BoundLiteral
from millpond.plan.expr import Expr, call, col, if_else, lit
from millpond.plan.optimizer.simplify import simplify
from millpond.plan.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    Struct,
)

SCHEMA = Struct.of(a=LONG, b=LONG, p=BOOLEAN, q=BOOLEAN, s=STRING)
NAN = lit(float("nan"))
NOON = dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (lit(2) + 3, 5),
        (lit(-7).div(2), -3),
        (lit(-7) % 2, -1),
        (lit(7) / 2, 3.5),
        (lit(decimal.Decimal("1.50")) * decimal.Decimal("2.0"), decimal.Decimal("3.000")),
        (NAN == NAN, True),
        (lit(float("inf")) < NAN, True),
        (NAN < 1.0, False),
        (lit(0.0) == lit(-0.0), True),
        (lit(None) + 1, None),
        (lit(1) / lit(None), None),
        (lit(1).isin([2, None]), None),
        (lit(1).isin([1, None]), True),
        (lit(1).isin([2, 3]), False),
        (lit(None).same_as(None), True),
        (lit(1).same_as(None), False),
        (lit(None).is_null(), True),
        (NAN.is_nan(), True),
        (lit("Ab").lower(), "ab"),
        (lit("  a ").trim(), "a"),
        (lit("abcd").substr(1, 2), "bc"),
        (lit("äb").len(), 2),
        (lit("a").concat("b", None), None),
        (lit("ab").contains(""), True),
        (lit(NOON).date_part("hour"), 12),
        (lit(NOON).epoch_micros(), 1_717_156_800_000_000),
        (lit(" +42 ").cast(LONG), 42),
        (lit("2024-05-31").cast(DATE), dt.date(2024, 5, 31)),
        (lit(dt.date(2024, 5, 31)).cast(TIMESTAMP), dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),
        (lit(7).cast(STRING), "7"),
        (lit(True).cast(STRING), "true"),
        (lit(7).cast(Decimal(5, 2)), decimal.Decimal("7.00")),
        (lit(True) & lit(None), None),
        (lit(False) & lit(None), False),
        (lit(True) | lit(None), True),
        (~lit(None).cast(BOOLEAN), None),
        (lit(None).coalesce(3, col("a")), 3),
        (col("a") + lit(None), None),
        (col("a") == lit(None), None),
        (col("p") & lit(False), False),
        (col("p") | lit(True), True),
    ],
    ids=lambda given: str(given) if isinstance(given, Expr) else None,
)
def test_is_computed(expr: Expr, value: Any) -> None:
    bound = bind(expr, SCHEMA)
    found = simplify(bound)
    assert isinstance(found, BoundLiteral)
    assert found.value == value
    assert type(found.value) is type(value)
    assert found.type == bound.type


@pytest.mark.parametrize(
    "expr",
    [
        lit(2**63 - 1) + 1,
        lit(1) / 0,
        lit(1) % 0,
        -lit(-(2**63)),
        lit(300).cast(BYTE),
        lit("x").cast(LONG),
        lit("20240531").cast(DATE, on_error="error"),
        lit("Ä").lower(),
        lit(1.5, FLOAT) + lit(2.5, FLOAT),
        lit("ab").like("a%"),
        lit(1.5).cast(INTEGER),
        lit(1.5).cast(STRING),
        col("a") + 0,
        (1 / col("a") > 2) & lit(False),
        (1 / col("a") > 2) | lit(True),
        (col("a") + 1) == lit(None),
    ],
    ids=str,
)
def test_is_left_to_the_engine(expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    assert simplify(bound) is bound


@pytest.mark.parametrize(
    ("expr", "simpler"),
    [
        (col("p") & lit(True), col("p")),
        (lit(False) | col("p"), col("p")),
        (~~col("p"), col("p")),
        (call("and", lit(True), call("and", col("p"), col("q"))), col("p") & col("q")),
        (call("or", col("p"), call("or", col("q"), lit(False))), col("p") | col("q")),
        (if_else(lit(1) > 2, col("a") + 1, col("b")), col("b")),
        (if_else(lit(None), col("a"), col("b")), col("b")),
        (col("a").coalesce(lit(None), 3, col("b") + 1), col("a").coalesce(3)),
        (col("a") > lit(2) * 3, col("a") > 6),
    ],
    ids=lambda expr: str(expr),
)
def test_is_shortened(expr: Expr, simpler: Expr) -> None:
    assert simplify(bind(expr, SCHEMA)) == bind(simpler, SCHEMA)


def test_null_and_anything_keeps_its_three_values() -> None:
    bound = bind(col("p") & lit(None), SCHEMA)
    assert simplify(bound) is bound


def test_a_double_and_its_cast_agree() -> None:
    found = simplify(bind(lit(2**53 + 1).cast(DOUBLE), SCHEMA))
    assert isinstance(found, BoundLiteral)
    assert found.value == float(2**53)

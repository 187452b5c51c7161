"""`can_raise`: wrong answers make a query fail that did not fail before."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest

from millpond.plan.bind import bind
from millpond.plan.expr import Expr, col, element, lit
from millpond.plan.raising import can_raise
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
    DataType,
    Decimal,
    List,
    Struct,
)

SCHEMA = Struct.of(
    a=LONG,
    i=INTEGER,
    f=DOUBLE,
    m=Decimal(10, 2),
    s=STRING,
    t=TIMESTAMP,
    d=DATE,
    flag=BOOLEAN,
    v=List(LONG),
    bytes=BINARY,
)


@pytest.mark.parametrize(
    "expr",
    [
        col("a") > 3,
        col("f") * 2 + 1,
        col("m") * decimal.Decimal("1.5"),
        -col("m"),
        col("a") / 2,
        col("a") % 3,
        col("a").div(3),
        col("i").cast(LONG),
        col("i").cast(DOUBLE),
        col("i").cast(Decimal(12, 2)),
        col("m").cast(Decimal(12, 3)),
        col("a").cast(STRING),
        col("flag").cast(LONG),
        col("a").cast(BOOLEAN),
        col("f").cast(FLOAT),
        col("t").cast(DATE),
        col("bytes").cast(STRING),
        col("v").cast(List(DOUBLE)),
        col("s").cast(LONG, on_error="null"),
        col("s").like("a%\\%"),
        col("s").parse_json(Struct.of(k=LONG)),
        col("v").any(element() > 3),
        col("v").len() > 3,
        col("t").date_part("year") == 2024,
    ],
    ids=str,
)
def test_never_raises(expr: Expr) -> None:
    assert not can_raise(bind(expr, SCHEMA))


@pytest.mark.parametrize(
    "expr",
    [
        col("a") + 1,
        -col("a"),
        abs(col("i")),
        1 / col("f"),
        col("a") / 0,
        col("a") % col("i"),
        col("a").div(-1),
        col("a").cast(INTEGER),
        col("i").cast(SHORT),
        col("f").cast(LONG),
        col("f").cast(Decimal(10, 2)),
        col("m").cast(Decimal(10, 3)),
        col("m").cast(LONG),
        col("a").cast(Decimal(20, 2)),
        col("s").cast(LONG),
        col("s").cast(BOOLEAN),
        col("s").cast(TIMESTAMP),
        col("d") > dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        col("v").cast(List(BYTE)),
        col("s").like("a\\b"),
        col("t").date_trunc("week") == lit("2024-05-27T00:00:00Z"),
        (col("a") > 3) & (col("v").any(element() + 1 > 3)),
    ],
    ids=str,
)
def test_may_raise(expr: Expr) -> None:
    assert can_raise(bind(expr, SCHEMA))


@pytest.mark.parametrize("type_", [BYTE, SHORT, INTEGER, LONG])
def test_widening_never_raises(type_: DataType) -> None:
    assert not can_raise(bind(col("x").cast(LONG), Struct.of(x=type_)))

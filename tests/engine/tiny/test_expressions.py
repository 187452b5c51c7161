"""The tiny engine's expressions against docs/expressions.md, value by value."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest
from tests.engine.tiny.engine import TinyEngine

from millpond.base.errors import EvaluationError
from millpond.plan import types as t
from millpond.plan.expr import Expr, col, element, from_epoch_micros, if_else, lit, path
from millpond.plan.make import values

D = decimal.Decimal
NAN, INF = math.nan, math.inf
UTC = dt.UTC
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)


def value(expr: Expr) -> Any:
    table = (
        values([{"n": None}], t.Struct.of(n=t.LONG))
        .select(x=expr)
        .to_arrow(engine=TinyEngine(), optimize=False)
    )
    return table.column("x").to_pylist()[0]


def null(type_: t.DataType) -> Expr:
    return lit(None, type_)


BYTE, NULL = lit(-128, t.BYTE), null(t.LONG)
BOOL = null(t.BOOLEAN)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # Nulls
        (NULL + 1, None),
        (NULL == NULL, None),
        (NULL.same_as(None), True),
        (lit(1).same_as(NULL), False),
        (BOOL & False, False),
        (BOOL & True, None),
        (BOOL | True, True),
        (BOOL | False, None),
        (~BOOL, None),
        (NULL.is_null(), True),
        (null(t.DOUBLE).is_nan(), False),
        (lit(1).isin([1, None]), True),
        (lit(2).isin([1, None]), None),
        (lit(2).isin([1]), False),
        (NULL.isin([1]), None),
        (NULL.isin([]), False),
        (if_else(BOOL, 1, 2), 2),
        (NULL.coalesce(NULL, 3), 3),
        # Numbers
        (lit(-7).div(2), -3),
        (lit(-7) % 2, -1),
        (lit(7) % -2, 1),
        (lit(1) / 4, 0.25),
        (NULL / 0, None),
        (lit(D("1.50")) + D("0.25"), D("1.75")),
        (lit(D("1.5")) * D("-0.25"), D("-0.375")),
        (-lit(D("1.5")), D("-1.5")),
        (lit(NAN) == NAN, True),
        (lit(NAN) > INF, True),
        (lit(-0.0) == 0.0, True),
        (lit(-0.0) < 0.0, False),
        (lit(INF) - INF, NAN),
        (lit(1e308) * 10, INF),
        (lit(3e38, t.FLOAT) * lit(10, t.FLOAT), INF),
        # Casts
        (lit(1.9).cast(t.INTEGER), 1),
        (lit(-1.9).cast(t.INTEGER), -1),
        (lit(1e300).cast(t.FLOAT), INF),
        (lit(0.1).cast(t.FLOAT).cast(t.Decimal(5, 3)), D("0.100")),
        (lit(2.5).cast(t.Decimal(1, 0)), D(3)),
        (lit(D("-2.5")).cast(t.Decimal(3, 0)), D(-3)),
        (lit(D("-2.9")).cast(t.LONG), -2),
        (lit(True).cast(t.LONG), 1),
        (lit(0.5).cast(t.BOOLEAN), True),
        (lit(NAN).cast(t.BOOLEAN), True),
        (lit(" +12 ").cast(t.INTEGER), 12),
        (lit("1.5").cast(t.INTEGER, on_error="null"), None),
        (lit("1e2").cast(t.DOUBLE), 100.0),
        (lit("-Infinity").cast(t.DOUBLE), -INF),
        (lit("1.005").cast(t.Decimal(5, 2)), D("1.01")),
        (lit(" YES").cast(t.BOOLEAN), True),
        (lit("maybe").cast(t.BOOLEAN, on_error="null"), None),
        (lit("2024-02-29").cast(t.DATE), dt.date(2024, 2, 29)),
        (lit("2023-02-29").cast(t.DATE, on_error="null"), None),
        (
            lit("2024-05-31T12:00:00.5+02:00").cast(t.TIMESTAMP),
            dt.datetime(2024, 5, 31, 10, 0, 0, 500000, UTC),
        ),
        (lit(BEFORE).cast(t.DATE), dt.date(1969, 12, 31)),
        (lit(dt.date(2024, 1, 1)).cast(t.STRING), "2024-01-01"),
        (lit(BEFORE).cast(t.STRING), "1969-12-31 23:59:59.5"),
        (lit(1.0).cast(t.STRING), "1.0"),
        (lit(1e10).cast(t.STRING), "1.0E10"),
        (lit(0.001).cast(t.STRING), "0.001"),
        (lit(1.5e-7).cast(t.STRING), "1.5E-7"),
        (lit(1234567.0).cast(t.STRING), "1234567.0"),
        (lit(12345678.0).cast(t.STRING), "1.2345678E7"),
        (lit(-0.0).cast(t.STRING), "-0.0"),
        (lit(0.1, t.FLOAT).cast(t.STRING), "0.1"),
        (lit(D("0.00000010")).cast(t.STRING), "0.00000010"),
        (lit(b"a\xff").cast(t.STRING), "a\ufffd"),
        (lit("é").cast(t.BINARY), "é".encode()),
        # Strings
        (lit("ß İ").upper(), "SS İ"),
        (lit(" a\t").trim(), "a\t"),
        (lit("日本🎏").len(), 3),
        (lit("abcdef").substr(2, 3), "cde"),
        (lit("ab").substr(5, 1), ""),
        (lit("a%b").like(r"a\%_"), True),
        (lit("a\nb").like("a_b"), True),
        (lit("ab").like("_"), False),
        (lit("ab").contains(""), True),
        (lit("x").concat(null(t.STRING)), None),
        (lit("aXbX").replace_text("X", ""), "ab"),
        (lit("\U0001f600") > "\uffff", True),
        # Dates
        (lit(BEFORE).date_part("second"), 59),
        (lit(dt.date(2024, 2, 29)).date_part("day"), 29),
        (lit(BEFORE).date_trunc("week"), dt.datetime(1969, 12, 29, tzinfo=UTC)),
        (lit(BEFORE).date_trunc("quarter"), dt.datetime(1969, 10, 1, tzinfo=UTC)),
        (
            lit(BEFORE).time_bucket(dt.timedelta(seconds=7)),
            dt.datetime(1969, 12, 31, 23, 59, 53, tzinfo=UTC),
        ),
        (from_epoch_micros(-1).epoch_micros(), -1),
    ],
    ids=str,
)
def test_values(expr: Expr, expected: Any) -> None:
    found = value(expr)
    assert type(found) is type(expected)
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert found == expected
        assert str(found) == str(expected)


@pytest.mark.parametrize(
    "expr",
    [
        lit(2**63 - 1) + 1,
        BYTE - lit(1, t.BYTE),
        -BYTE,
        abs(BYTE),
        lit(-(2**63)).div(-1),
        lit(1) / 0,
        lit(0.0) / 0.0,
        lit(1) % 0,
        lit(1).div(0),
        lit(300).cast(t.BYTE),
        lit(NAN).cast(t.LONG),
        lit(1e30).cast(t.LONG),
        lit(INF).cast(t.Decimal(10, 2)),
        lit(123.0).cast(t.Decimal(2, 0)),
        lit("abc").cast(t.DOUBLE),
        lit("2024-13-01").cast(t.DATE),
        lit("12:00").cast(t.TIMESTAMP),
        lit("9" * 50).cast(t.Decimal(38, 0)),
    ],
    ids=str,
)
def test_errors(expr: Expr) -> None:
    with pytest.raises(EvaluationError):
        value(expr)


ROWS = values(
    [
        {
            "tags": ["a", None],
            "items": [{"k": "x", "v": 1}, None, {"k": None, "v": 3}],
            "m": [("a", 1), ("b", None)],
            "s": {"deep": None},
        },
        {"tags": [], "items": None, "m": None, "s": None},
    ],
    t.Struct.of(
        tags=t.List(t.STRING),
        items=t.List(t.Struct.of(k=t.STRING, v=t.LONG)),
        m=t.Map(t.STRING, t.LONG),
        s=t.Struct.of(deep=t.Struct.of(z=t.STRING)),
    ),
)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (col("tags").any(element() == "a"), [True, False]),
        (col("tags").any(element() == "z"), [None, False]),
        (col("tags").all(element() == "a"), [None, True]),
        (col("tags").all(element() == "z"), [False, True]),
        (col("tags").contains("a"), [True, False]),
        (col("tags").len(), [2, 0]),
        (col("items").any(path("v") > 2), [True, None]),
        (path("items[*].v"), [[1, None, 3], None]),
        (path("items[-1].v"), [3, None]),
        (path("items[7].v"), [None, None]),
        (path("m.a"), [1, None]),
        (path("m.zz"), [None, None]),
        (path("s.deep.z"), [None, None]),
        (col("tags").cast(t.List(t.LONG), on_error="null"), [[None, None], []]),
    ],
    ids=str,
)
def test_lists_and_paths(expr: Expr, expected: list[Any]) -> None:
    table = ROWS.select(x=expr).to_arrow(engine=TinyEngine(), optimize=False)
    assert table.column("x").to_pylist() == expected

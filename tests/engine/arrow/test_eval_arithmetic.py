"""Arithmetic: overflow at every width, division rules, decimals, IEEE 754."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.plan.expr import col, lit
from millpond.plan.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    DataType,
    Decimal,
)

D = decimal.Decimal
WIDTHS: list[tuple[DataType, int]] = [(BYTE, 8), (SHORT, 16), (INTEGER, 32), (LONG, 64)]
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(("type_", "bits"), WIDTHS, ids=str)
def test_whole_numbers_reach_their_ends_and_no_further(type_: DataType, bits: int) -> None:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    one = lit(1, type_)
    assert value_of(col("a") + one, a=(type_, [most - 1, least, None])) == [most, least + 1, None]
    assert value_of(col("a") - one, a=(type_, [least + 1, most])) == [least, most - 1]
    assert value_of(-col("a"), a=(type_, [most, least + 1, 0])) == [-most, most, 0]
    assert value_of(abs(col("a")), a=(type_, [least + 1, -3, None])) == [most, 3, None]
    for expr, value in [
        (col("a") + one, most),
        (col("a") - one, least),
        (col("a") * lit(2, type_), most),
        (-col("a"), least),
        (abs(col("a")), least),
    ]:
        with pytest.raises(EvaluationError, match=f"{value}.* overflow.* {type_}") as caught:
            value_of(expr, a=(type_, [0, value]))
        assert str(caught.value.hint).startswith("cast to a wider type")


def test_what_stands_beside_a_null_does_not_overflow() -> None:
    most = (1 << 63) - 1
    columns: dict[str, Any] = {"a": (LONG, [most, None]), "b": (LONG, [None, most])}
    assert value_of(col("a") + col("b"), **columns) == [None, None]
    assert value_of(col("a") * col("b"), **columns) == [None, None]


@pytest.mark.parametrize(
    ("left", "right", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (0, 5, 0, 0), (1, 5, 0, 1)],
)
def test_whole_division_truncates(left: int, right: int, quotient: int, rest: int) -> None:
    columns: dict[str, Any] = {"a": (LONG, [left]), "b": (LONG, [right])}
    assert value_of(col("a").div(col("b")), **columns) == [quotient]
    assert value_of(col("a") % col("b"), **columns) == [rest]
    assert value_of(col("a") % right, **columns) == [rest]
    assert value_of(lit(left) % col("b"), **columns) == [rest]


@pytest.mark.parametrize(("type_", "bits"), WIDTHS, ids=str)
def test_the_smallest_number_divided_by_minus_one(type_: DataType, bits: int) -> None:
    least = -(1 << (bits - 1))
    columns: dict[str, Any] = {"a": (type_, [least]), "b": (type_, [-1])}
    assert value_of(col("a") % col("b"), **columns) == [0]
    if type_ == LONG:
        with pytest.raises(EvaluationError, match="overflow"):
            value_of(col("a").div(col("b")), **columns)
    else:
        assert value_of(col("a").div(col("b")), **columns) == [-least]


@pytest.mark.parametrize("type_", [LONG, DOUBLE, Decimal(10, 2)], ids=str)
def test_a_zero_divisor_is_an_error_where_there_is_something_to_divide(type_: DataType) -> None:
    whole = type_ == LONG
    zero = 0 if whole else D(0) if isinstance(type_, Decimal) else -0.0
    one = type(zero)(1)
    expressions = [col("a") / col("b"), col("a") / lit(zero, type_), lit(one, type_) / col("b")]
    if whole:
        expressions += [col("a").div(col("b")), col("a").div(0), col("a") % col("b"), col("a") % 0]
    for expr in expressions:
        with pytest.raises(EvaluationError, match="division by zero"):
            value_of(expr, a=(type_, [one, one]), b=(type_, [one, zero]))
    for expr in (expr for expr in expressions if "1" not in str(expr)):
        assert value_of(expr, a=(type_, [None]), b=(type_, [zero])) == [None]


def test_division_is_floating_point() -> None:
    assert value_of(col("a") / 2, a=(INTEGER, [1, -3, None])) == [0.5, -1.5, None]
    found = value_of(col("a") / col("b"), a=(DOUBLE, [INF, NAN, 1.0]), b=(DOUBLE, [INF, 1.0, INF]))
    assert math.isnan(found[0])
    assert math.isnan(found[1])
    assert found[2] == 0.0


def test_floating_point_never_overflows() -> None:
    found = value_of(col("a") * 10.0, a=(DOUBLE, [1e308, -1e308, NAN, 0.0]))
    assert found[:2] == [INF, -INF]
    assert math.isnan(found[2])
    found = value_of(col("a") - col("a"), a=(DOUBLE, [INF, 1.0]))
    assert math.isnan(found[0])
    assert repr(value_of(-col("a"), a=(FLOAT, [0.0, 1.5, None]))) == "[-0.0, -1.5, None]"


def test_floats_stay_floats() -> None:
    found = value_of(col("a") + col("a"), a=(FLOAT, [0.1]))
    assert found == [0.20000000298023224]


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (col("a") + col("b"), "100000000000000000000.0095"),
        (col("a") - col("b"), "99999999999999999999.9905"),
        (-col("a"), "-100000000000000000000.0000"),
        (abs(col("b") - 1), "0.9905"),
    ],
    ids=str,
)
def test_decimals_are_exact(expr: Any, wanted: str) -> None:
    columns: dict[str, Any] = {
        "a": (Decimal(25, 4), [D("1e20"), None]),
        "b": (Decimal(5, 4), [D("0.0095"), D(1)]),
    }
    found = value_of(expr, **columns)
    assert found[0] == D(wanted)


def test_a_decimal_product_fills_38_digits() -> None:
    nines = D("9" * 18) / 10**9
    (found,) = value_of(
        col("a") * col("b"), a=(Decimal(18, 9), [nines]), b=(Decimal(19, 9), [nines])
    )
    with decimal.localcontext(prec=60):
        assert found == nines * nines

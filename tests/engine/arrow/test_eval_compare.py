"""Comparison, membership and null tests: one total order, three-valued answers."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.arrow.columns import value_of

from millpond.plan.expr import call, col, lit
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    NULL,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NAN, INF = float("nan"), float("inf")
MOST = decimal.Decimal("9" * 38)

# Ascending values of each type; neighbours differ.
LADDERS: list[tuple[DataType, Sequence[Any]]] = [
    (BOOLEAN, [False, True]),
    (BYTE, [-128, -1, 0, 127]),
    (SHORT, [-(1 << 15), 0, (1 << 15) - 1]),
    (INTEGER, [-(1 << 31), 0, (1 << 31) - 1]),
    (LONG, [-(1 << 63), -1, 0, (1 << 63) - 1]),
    (FLOAT, [-INF, -1.5, 0.0, 1e-45, INF, NAN]),
    (DOUBLE, [-INF, -1e308, 0.0, 5e-324, 1e308, INF, NAN]),
    (Decimal(38, 0), [MOST.copy_negate(), decimal.Decimal(0), MOST]),
    (STRING, ["", "A", "a", "aa", "ß", "\uffff", "😀"]),
    (BINARY, [b"", b"\x00", b"\x7f", b"\xff"]),
    (DATE, [-(1 << 31), -1, 0, (1 << 31) - 1]),
    (TIMESTAMP, [-(1 << 63), -1, 0, (1 << 63) - 1]),
    (TIMESTAMP_NTZ, [-(1 << 63), -1, 0, (1 << 63) - 1]),
]
NAMES = ("eq", "ne", "lt", "le", "gt", "ge")


def by_rank(name: str, left: int, right: int) -> bool:
    return {
        "eq": left == right,
        "ne": left != right,
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
    }[name]


@pytest.mark.parametrize(("type_", "ladder"), LADDERS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("name", NAMES)
def test_columns_compare_by_the_order_of_their_type(
    name: str, type_: DataType, ladder: Sequence[Any]
) -> None:
    pairs = [(i, j) for i in range(len(ladder)) for j in range(len(ladder))]
    left = [ladder[i] for i, _ in pairs] + [None, ladder[0], None]
    right = [ladder[j] for _, j in pairs] + [ladder[0], None, None]
    found = value_of(call(name, col("a"), col("b")), a=(type_, left), b=(type_, right))
    assert found == [by_rank(name, i, j) for i, j in pairs] + [None, None, None]


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE], ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", range(6))
def test_columns_compare_with_floating_point_literals(name: str, type_: DataType, at: int) -> None:
    ladder = [-INF, -1.5, 0.0, 2.0, INF, NAN]
    values = [*ladder, None]
    literal = lit(ladder[at], type_)
    assert value_of(call(name, col("a"), literal), a=(type_, values)) == [
        *(by_rank(name, i, at) for i in range(6)),
        None,
    ]
    assert value_of(call(name, literal, col("a")), a=(type_, values)) == [
        *(by_rank(name, at, i) for i in range(6)),
        None,
    ]


def test_zeros_of_both_signs_are_equal() -> None:
    values = [0.0, -0.0, 1.0]
    assert value_of(col("a") == -0.0, a=(DOUBLE, values)) == [True, True, False]
    assert value_of(col("a") < 0.0, a=(DOUBLE, values)) == [False, False, False]
    assert (
        value_of(col("a") == col("b"), a=(DOUBLE, values), b=(DOUBLE, [-0.0, 0.0, 1.0]))
        == [True] * 3
    )
    assert value_of(col("a").isin([0.0, 7.0]), a=(DOUBLE, values)) == [True, True, False]
    assert value_of(col("a").isin([-0.0, 7.0]), a=(DOUBLE, values)) == [True, True, False]


def test_same_as_never_gives_null() -> None:
    left, right = [1.0, NAN, None, None, 2.0, NAN], [1.0, NAN, None, 1.0, None, 1.0]
    found = value_of(col("a").same_as(col("b")), a=(DOUBLE, left), b=(DOUBLE, right))
    assert found == [True, True, True, False, False, False]
    assert value_of(col("a").same_as(lit(None, DOUBLE)), a=(DOUBLE, left)) == [
        value is None for value in left
    ]


@pytest.mark.parametrize(
    ("choices", "wanted"),
    [
        ([1], [True, False, None]),
        ([1, None], [True, None, None]),
        ([None], [None, None, None]),
        ([2, 3, 4, 5], [False, True, None]),
        ([], [False, False, False]),
    ],
)
def test_membership(choices: list[Any], wanted: list[Any]) -> None:
    assert value_of(col("a").isin(choices), a=(INTEGER, [1, 2, None])) == wanted


def test_membership_of_nan_strings_and_decimals() -> None:
    assert value_of(col("a").isin([NAN, 1.0]), a=(DOUBLE, [NAN, 1.0, 2.0])) == [True, True, False]
    assert value_of(col("s").isin(["a", "ß"]), s=(STRING, ["ß", "A", None])) == [True, False, None]
    price = decimal.Decimal("1.50")
    choices = [decimal.Decimal("1.5"), 2]
    assert value_of(col("m").isin(choices), m=(Decimal(10, 2), [price, None])) == [True, None]


def test_null_tests_see_every_type() -> None:
    struct = Struct.of(x=LONG)
    cases: list[tuple[DataType, Any]] = [
        *((LONG, 1), (STRING, "a"), (List(LONG), []), (struct, {"x": None})),
    ]
    for type_, value in cases:
        assert value_of(col("a").is_null(), a=(type_, [value, None])) == [False, True]
        assert value_of(col("a").is_not_null(), a=(type_, [value, None])) == [True, False]
    assert value_of(col("a").is_nan(), a=(DOUBLE, [NAN, 1.0, None])) == [True, False, False]
    assert value_of(col("a").is_null(), a=(NULL, [None])) == [True]


def test_nulls_without_a_type_compare_to_null() -> None:
    assert value_of(col("n") == lit(None), n=(NULL, [None, None])) == [None, None]
    assert value_of(col("a") < lit(None), a=(LONG, [1, None])) == [None, None]

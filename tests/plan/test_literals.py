"""Python values as literals: natural types, given types, one form for each value."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from millpond.base.errors import TypeMismatchError
from millpond.plan import types as t
from millpond.plan.bound import BoundLiteral
from millpond.plan.literals import adapt, fits, fold, literal

D = decimal.Decimal
ROME = dt.timezone(dt.timedelta(hours=2))


class Level(enum.IntEnum):
    LOW = 3


class Word(enum.StrEnum):
    HI = "hi"


@pytest.mark.parametrize(
    ("value", "expected", "type_"),
    [
        (None, None, t.NULL),
        (True, True, t.BOOLEAN),
        (3, 3, t.LONG),
        (Level.LOW, 3, t.LONG),
        (2**63, D(2**63), t.Decimal(19, 0)),
        (1.5, 1.5, t.DOUBLE),
        (np.float64(1.5), 1.5, t.DOUBLE),
        (D("1.50"), D("1.50"), t.Decimal(3, 2)),
        (D("0.05"), D("0.05"), t.Decimal(2, 2)),
        (D("1E+2"), D("100"), t.Decimal(3, 0)),
        (D("-0"), D("0"), t.Decimal(1, 0)),
        ("x", "x", t.STRING),
        (Word.HI, "hi", t.STRING),
        (bytearray(b"x"), b"x", t.BINARY),
        (dt.date(2024, 1, 2), dt.date(2024, 1, 2), t.DATE),
        (
            dt.datetime(2024, 1, 2, 3, tzinfo=ROME),
            dt.datetime(2024, 1, 2, 1, tzinfo=dt.UTC),
            t.TIMESTAMP,
        ),
        (dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2), t.TIMESTAMP_NTZ),  # noqa: DTZ001
        (pd.Timestamp("2024-01-02 03:00"), dt.datetime(2024, 1, 2, 3), t.TIMESTAMP_NTZ),  # noqa: DTZ001
        (
            pd.Timestamp("2024-01-02", tz="UTC"),
            dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
            t.TIMESTAMP,
        ),
    ],
    ids=repr,
)
def test_values_have_a_type_by_nature(value: Any, expected: Any, type_: t.DataType) -> None:
    made = literal(value)
    assert made.type == type_
    assert made.value == expected
    assert type(made.value) is type(expected)
    if isinstance(expected, decimal.Decimal):
        assert str(made.value) == str(expected)


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (5, t.BYTE, 5),
        (5, t.DOUBLE, 5.0),
        (5, t.FLOAT, 5.0),
        (0.1, t.FLOAT, float(np.float32(0.1))),
        (float("inf"), t.FLOAT, float("inf")),
        (5, t.Decimal(5, 2), D("5.00")),
        (D("5.1"), t.Decimal(5, 2), D("5.10")),
        (D("1.5"), t.DOUBLE, 1.5),
        (10**30, t.Decimal(38, 2), D(10**30).quantize(D("0.00"), context=decimal.Context(80))),
        ("2024-05-31", t.DATE, dt.date(2024, 5, 31)),
        ("2024-05-31", t.TIMESTAMP, dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),
        ("2024-05-31T12:00:00+02:00", t.TIMESTAMP, dt.datetime(2024, 5, 31, 10, tzinfo=dt.UTC)),
        ("2024-05-31 12:00:00.5Z", t.TIMESTAMP, dt.datetime(2024, 5, 31, 12, 0, 0, 500000, dt.UTC)),
        ("2024-05-31 12:00", t.TIMESTAMP_NTZ, dt.datetime(2024, 5, 31, 12)),  # noqa: DTZ001
        (dt.datetime(2024, 5, 31), t.TIMESTAMP, dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),  # noqa: DTZ001
        (dt.date(2024, 5, 31), t.TIMESTAMP, dt.datetime(2024, 5, 31, tzinfo=dt.UTC)),
        (None, t.List(t.LONG), None),
        (None, t.LONG, None),
    ],
    ids=repr,
)
def test_a_given_type_is_met(value: Any, type_: t.DataType, expected: Any) -> None:
    made = literal(value, type_)
    assert made == BoundLiteral(expected, type_)
    assert str(made.value) == str(expected)


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        (300, t.BYTE, "300 is not a byte"),
        (5, t.STRING, "5 is not a string"),
        ("5", t.LONG, "'5' is not a long"),
        (5.0, t.LONG, "5.0 is not a long"),
        (True, t.LONG, "True is not a long"),
        (True, t.Decimal(3, 0), "True is not a decimal"),
        (True, t.DOUBLE, "True is not a double"),
        (1e300, t.FLOAT, "1e.300 is not a float"),
        (D("1.555"), t.Decimal(5, 2), "is not a decimal"),
        (D("12345.0"), t.Decimal(5, 2), "is not a decimal"),
        (10**40, t.Decimal(38, 0), "more than 38 digits"),
        (D("1E+1000"), None, "more than 38 digits"),
        (D("Infinity"), None, "is not a decimal number"),
        ("2024-13-01", t.DATE, "'2024-13-01' is not a date"),
        ("20240101", t.DATE, "is not a date"),
        ("2024-W01-1", t.DATE, "is not a date"),
        ("2024-01-01 10:00", t.DATE, "is not a date"),
        ("2024-01-01T10:00:00.1234567", t.TIMESTAMP, "is not a timestamp"),
        ("2024-01-01T10:00Z", t.TIMESTAMP_NTZ, "has a zone"),
        ("0001-01-01T00:00+02:00", t.TIMESTAMP, "outside of the years"),
        (dt.datetime(1, 1, 1, tzinfo=ROME), None, "outside of the years"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), t.TIMESTAMP_NTZ, "is not a timestamp_ntz"),
        (dt.datetime(2024, 1, 1), t.DATE, "is not a date"),  # noqa: DTZ001
        ([1], None, "list can't be a literal"),
        (dt.timedelta(1), None, "timedelta can't be a literal"),
        (pd.Timestamp("2024-01-01 00:00:00.000000001"), None, "can't be a literal"),
        (pd.NaT, None, "can't be a literal"),
        ("half \ud800", None, "not valid Unicode"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused(value: Any, type_: t.DataType | None, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        literal(value, type_)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (1, t.DOUBLE),
        (True, t.LONG),
        (128, t.BYTE),
        (0.1, t.FLOAT),
        (D("1.5"), t.Decimal(5, 2)),
        (dt.datetime(2024, 1, 1, tzinfo=ROME), t.TIMESTAMP),
        (dt.datetime(2024, 1, 1), t.DATE),  # noqa: DTZ001
        ("x", t.NULL),
        ([1], t.List(t.LONG)),
        ("x\udfff", t.STRING),
    ],
    ids=repr,
)
def test_a_bound_literal_in_another_form_can_not_exist(value: Any, type_: t.DataType) -> None:
    with pytest.raises(TypeMismatchError):
        BoundLiteral(value, type_)


@pytest.mark.parametrize(
    ("value", "column", "type_"),
    [
        (3, t.BYTE, t.BYTE),
        (300, t.BYTE, t.LONG),
        (3, t.FLOAT, t.FLOAT),
        (2**24, t.FLOAT, t.FLOAT),
        (2**24 + 1, t.FLOAT, t.DOUBLE),
        (3, t.DOUBLE, t.DOUBLE),
        (3, t.Decimal(10, 2), t.Decimal(1, 0)),
        (0.5, t.FLOAT, t.DOUBLE),
        ("2024-01-01", t.DATE, t.DATE),
        ("x", t.STRING, t.STRING),
        (3, t.STRING, t.LONG),
        (None, t.BINARY, t.BINARY),
        (True, t.LONG, t.BOOLEAN),
    ],
    ids=str,
)
def test_literals_adapt_to_the_column_they_meet(
    value: Any, column: t.DataType, type_: t.DataType
) -> None:
    adapted = adapt(literal(value), column)
    assert adapted.type == type_
    assert adapted.value == (literal(value, type_).value)


def test_casts_of_literals_are_done_at_once_where_nothing_can_go_wrong() -> None:
    assert fold(literal(3), t.DOUBLE) == literal(3.0)
    assert fold(literal(2**53 + 1), t.DOUBLE) == literal(2.0**53)
    assert fold(literal(D("1.5")), t.Decimal(10, 2)) == literal(D("1.5"), t.Decimal(10, 2))
    assert fold(literal(D("1.55")), t.Decimal(10, 1)) is None
    assert fold(literal(300), t.BYTE) is None
    assert fold(literal(0.5), t.FLOAT) == literal(0.5, t.FLOAT)
    assert fold(literal(0.1), t.FLOAT) is None
    assert fold(literal("5"), t.LONG) is None
    assert fold(literal("2024-01-01"), t.DATE) is None
    assert fold(literal(True), t.LONG) is None
    midnight = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert fold(literal(dt.date(2024, 1, 1)), t.TIMESTAMP) == literal(midnight)


def test_ranges_of_whole_numbers() -> None:
    assert [fits(127, t.BYTE), fits(128, t.BYTE), fits(-128, t.BYTE)] == [True, False, True]
    assert fits(-(2**63), t.LONG)
    assert not fits(2**63, t.LONG)

"""Parts, truncation and buckets of dates and timestamps, on both sides of 1970 and at the ends."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.plan.expr import call, col, from_epoch_micros
from millpond.plan.types import DATE, LONG, TIMESTAMP, TIMESTAMP_NTZ, DataType

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIRST, LAST = -(1 << 63), (1 << 63) - 1
TIMES = [
    "2024-02-29T23:59:59.999999",
    "1969-12-31T23:59:59.999999",
    "1970-01-01T00:00:00",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
    "1900-03-01T00:00:01",
    "1582-10-10T06:07:08.000009",
]


def micros(text: str) -> int:
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMP_NTZ], ids=str)
@pytest.mark.parametrize("part", ["year", "month", "day", "hour", "minute", "second"])
def test_parts_of_timestamps(part: str, type_: DataType) -> None:
    wanted = [getattr(dt.datetime.fromisoformat(text), part) for text in TIMES]
    given: dict[str, Any] = {"t": (type_, [*map(micros, TIMES), None])}
    assert value_of(call(part, col("t")), **given) == [*wanted, None]


@pytest.mark.parametrize("part", ["year", "month", "day"])
def test_parts_of_dates(part: str) -> None:
    wanted = [getattr(dt.date.fromisoformat(text[:10]), part) for text in TIMES]
    days = [micros(text) // 86_400_000_000 for text in TIMES]
    assert value_of(call(part, col("d")), d=(DATE, [*days, None])) == [*wanted, None]


def test_parts_at_the_ends_of_time() -> None:
    given: dict[str, Any] = {"t": (TIMESTAMP, [FIRST, LAST, None])}
    parts = {
        part: value_of(call(part, col("t")), **given)[:2]
        for part in ("year", "month", "day", "hour", "minute", "second")
    }
    assert parts == {
        "year": [-290308, 294247],
        "month": [12, 1],
        "day": [21, 10],
        "hour": [19, 4],
        "minute": [59, 0],
        "second": [5, 54],
    }
    far = value_of(call("year", col("d")), d=(DATE, [-(1 << 31), (1 << 31) - 1]))
    assert far == [-5877641, 5881580]


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("year", "1969-01-01T00:00:00"),
        ("quarter", "1969-07-01T00:00:00"),
        ("month", "1969-08-01T00:00:00"),
        ("week", "1969-08-11T00:00:00"),
        ("day", "1969-08-17T00:00:00"),
        ("hour", "1969-08-17T05:00:00"),
        ("minute", "1969-08-17T05:06:00"),
        ("second", "1969-08-17T05:06:07"),
    ],
)
@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMP_NTZ], ids=str)
def test_truncation(unit: str, wanted: str, type_: DataType) -> None:
    expr = call("date_trunc", col("t"), unit)
    given = [micros("1969-08-17T05:06:07.000008"), None, micros(wanted)]
    found = value_of(expr, t=(type_, given))
    assert found == [micros(wanted), None, micros(wanted)]


def test_weeks_start_on_monday() -> None:
    days = [micros(f"2024-01-{day:02}T01:00:00") for day in range(1, 15)]
    found = value_of(col("t").date_trunc("week"), t=(TIMESTAMP, days))
    assert found == [micros("2024-01-01T00:00:00")] * 7 + [micros("2024-01-08T00:00:00")] * 7


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "hour", "second"])
def test_the_first_moment_has_no_start_of_its_unit(unit: str) -> None:
    expr = call("date_trunc", col("t"), unit)
    with pytest.raises(EvaluationError, match="before the first timestamp"):
        value_of(expr, t=(TIMESTAMP, [FIRST]))
    assert value_of(expr, t=(TIMESTAMP, [LAST, None]))[0] <= LAST


def test_buckets_are_counted_from_1970() -> None:
    width = dt.timedelta(minutes=15)
    given = [0, 1, -1, 899_999_999, 900_000_000, -900_000_000, -900_000_001, None]
    found = value_of(col("t").time_bucket(width), t=(TIMESTAMP, given))
    quarter = 900_000_000
    assert found == [0, 0, -quarter, 0, quarter, -quarter, -2 * quarter, None]


def test_a_bucket_may_be_wider_than_time() -> None:
    expr = call("time_bucket", col("t"), LAST)
    assert value_of(expr, t=(TIMESTAMP, [LAST - 1, LAST, -1])) == [0, LAST, -LAST]
    with pytest.raises(EvaluationError):
        value_of(expr, t=(TIMESTAMP, [FIRST]))


def test_epoch_micros_both_ways() -> None:
    given = [FIRST, -1, 0, LAST, None]
    for type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        assert value_of(col("t").epoch_micros(), t=(type_, given)) == given
    assert value_of(from_epoch_micros(col("n")), n=(LONG, given)) == given

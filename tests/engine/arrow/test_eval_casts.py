"""Casts: every pair of types, their edges, and both ways to treat what does not fit."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.plan.expr import col
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
)

D = decimal.Decimal
NAN, INF = float("nan"), float("inf")
BAD = object()
"""What does not fit: an error, or null where that is asked for."""


def micros(text: str) -> int:
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def days(text: str) -> int:
    return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days


MAY = micros("2024-05-31T12:00:00")
CASES: list[tuple[DataType, DataType, list[tuple[Any, Any]]]] = [
    (LONG, BYTE, [(127, 127), (-128, -128), (128, BAD), (-129, BAD)]),
    (LONG, SHORT, [(32767, 32767), (32768, BAD)]),
    (LONG, INTEGER, [(-(1 << 31), -(1 << 31)), (1 << 31, BAD)]),
    (BYTE, LONG, [(-128, -128)]),
    (LONG, DOUBLE, [((1 << 53) + 1, float(1 << 53)), ((1 << 63) - 1, float(1 << 63))]),
    (LONG, FLOAT, [((1 << 24) + 1, float(1 << 24))]),
    (DOUBLE, BYTE, [(127.9, 127), (-128.9, -128), (128.0, BAD), (NAN, BAD), (INF, BAD)]),
    (
        DOUBLE,
        INTEGER,
        [(2147483647.9, 2147483647), (2147483648.0, BAD), (-2147483648.9, -(1 << 31))],
    ),
    (DOUBLE, LONG, [(-(2.0**63), -(1 << 63)), (2.0**63, BAD), (-0.9, 0), (-INF, BAD)]),
    (FLOAT, INTEGER, [(2.0**31, BAD), (1.5, 1)]),
    (DOUBLE, FLOAT, [(0.1, 0.10000000149011612), (1e300, INF), (-1e300, -INF)]),
    (FLOAT, DOUBLE, [(0.10000000149011612, 0.10000000149011612)]),
    (LONG, Decimal(5, 2), [(999, D("999.00")), (1000, BAD), (-999, D("-999.00"))]),
    (LONG, Decimal(38, 30), [(99999999, D(99999999)), (100000000, BAD), (-(1 << 63), BAD)]),
    (LONG, Decimal(38, 0), [(-(1 << 63), D(-(1 << 63)))]),
    (BYTE, Decimal(1, 0), [(9, D(9)), (10, BAD)]),
    (Decimal(5, 3), Decimal(4, 2), [(D("1.005"), D("1.01")), (D("-1.005"), D("-1.01"))]),
    (Decimal(5, 3), Decimal(3, 2), [(D("9.994"), D("9.99")), (D("9.995"), BAD)]),
    (Decimal(38, 0), Decimal(38, 10), [(D("9" * 28), D("9" * 28)), (D("9" * 29), BAD)]),
    (Decimal(38, 38), Decimal(1, 0), [(D("0.5"), D(1)), (D("0.4"), D(0))]),
    (
        DOUBLE,
        Decimal(10, 3),
        [(0.0005, D("0.001")), (-2.0005, D("-2.001")), (NAN, BAD), (INF, BAD)],
    ),
    (DOUBLE, Decimal(38, 2), [(1e30, D("1e30")), (1e36, BAD), (5e-324, D(0)), (1.7e308, BAD)]),
    (FLOAT, Decimal(20, 18), [(0.10000000149011612, D("0.10000000149011612"))]),
    (Decimal(5, 1), BYTE, [(D("127.9"), 127), (D("-128.9"), -128), (D("128.0"), BAD)]),
    (
        Decimal(38, 0),
        LONG,
        [(D((1 << 63) - 1), (1 << 63) - 1), (D(1 << 63), BAD), (D("9" * 38), BAD)],
    ),
    (Decimal(10, 2), DOUBLE, [(D("0.10"), 0.1), (D("-12345678.91"), -12345678.91)]),
    (Decimal(38, 20), DOUBLE, [(D("0.1"), 0.1), (D("123456789012345678.1"), 123456789012345678.1)]),
    (
        Decimal(38, 10),
        FLOAT,
        [(D("16777217.0000000001"), 16777218.0), (D("0.1"), 0.10000000149011612)],
    ),
    (BOOLEAN, BYTE, [(True, 1), (False, 0)]),
    (BOOLEAN, DOUBLE, [(True, 1.0)]),
    (BOOLEAN, Decimal(3, 2), [(True, D("1.00"))]),
    (BOOLEAN, Decimal(1, 1), [(True, BAD), (False, D("0.0"))]),
    (BOOLEAN, STRING, [(True, "true"), (False, "false")]),
    (LONG, BOOLEAN, [(0, False), (-1, True)]),
    (DOUBLE, BOOLEAN, [(NAN, True), (-0.0, False), (0.5, True)]),
    (Decimal(5, 2), BOOLEAN, [(D("0.00"), False), (D("0.01"), True)]),
    (LONG, STRING, [(-(1 << 63), "-9223372036854775808"), (0, "0")]),
    (Decimal(38, 10), STRING, [(D(0), "0.0000000000"), (D("-1e-10"), "-0.0000000001")]),
    (Decimal(5, 2), STRING, [(D("1.5"), "1.50"), (D("-0.05"), "-0.05")]),
    (Decimal(38, 0), STRING, [(D("9" * 38), "9" * 38)]),
    (STRING, LONG, [("12", 12), (" +7\t", 7), ("-007", -7), ("9223372036854775808", BAD)]),
    (
        STRING,
        BYTE,
        [("127", 127), ("128", BAD), ("-128", -128), ("0" * 40 + "5", 5), ("9" * 5000, BAD)],
    ),
    (
        STRING,
        INTEGER,
        [(text, BAD) for text in ("", " ", "1.5", "1e3", "0x1", "1_0", "٣", "--1", "+")],
    ),
    (
        STRING,
        DOUBLE,
        [("1.5", 1.5), (" -1e3 ", -1000.0), ("+.5", 0.5), ("1.", 1.0), ("1e400", INF)],
    ),
    (STRING, DOUBLE, [("NaN", NAN), ("Infinity", INF), ("-inf", -INF), ("+infinity", INF)]),
    (
        STRING,
        DOUBLE,
        [(text, BAD) for text in ("", "x", "1d", "0x10", "1e", ".", "- 1", "1,5", "-nan")],
    ),
    (
        STRING,
        FLOAT,
        [("0.1", 0.10000000149011612), ("1e39", INF), ("16777217.0000000001", 16777218.0)],
    ),
    (STRING, Decimal(5, 2), [("1.005", D("1.01")), (" 1e2 ", D("100.00")), (".5", D("0.50"))]),
    (
        STRING,
        Decimal(5, 2),
        [("999.994", D("999.99")), ("999.995", BAD), ("NaN", BAD), ("1d", BAD)],
    ),
    (
        STRING,
        Decimal(5, 2),
        [("1e-999999", D(0)), ("1e999999", BAD), ("1e9999999999999999999", BAD)],
    ),
    (STRING, BOOLEAN, [(text, True) for text in ("true", "T", "yes", "Y", " 1 ", "TRUE")]),
    (STRING, BOOLEAN, [(text, False) for text in ("false", "F", "no", "N", "0")]),
    (STRING, BOOLEAN, [(text, BAD) for text in ("on", "", "2", "tru", "да")]),
    (
        STRING,
        DATE,
        [("2024-05-31", days("2024-05-31")), ("0001-01-01", -719162), ("1969-12-31", -1)],
    ),
    (STRING, DATE, [("2024-05-31T23:00:00-05:00", days("2024-05-31")), ("0000-01-01", -719528)]),
    (
        STRING,
        DATE,
        [(text, BAD) for text in ("", "2024-02-30", "2024-13-01", "2024-5-3", "2024", "x")],
    ),
    (STRING, DATE, [("2023-02-29", BAD), ("2024-02-29", days("2024-02-29")), ("1900-02-29", BAD)]),
    (
        STRING,
        TIMESTAMP,
        [
            (text, MAY)
            for text in (
                "2024-05-31 12:00:00",
                "2024-05-31T12:00:00",
                "2024-05-31T12:00:00Z",
                "2024-05-31T12:00",
                "2024-05-31T14:00:00+02:00",
                "2024-05-30 18:00:00-18:00",
                " 2024-05-31 12:00:00.000\n",
            )
        ],
    ),
    (
        STRING,
        TIMESTAMP,
        [("2024-05-31", MAY - 43_200_000_000), ("1969-12-31T23:59:59.999999Z", -1)],
    ),
    (
        STRING,
        TIMESTAMP,
        [("2024-05-31 12:00:00.5", MAY + 500_000), ("2024-05-31 12:00:00.1234567", MAY + 123_456)],
    ),
    (
        STRING,
        TIMESTAMP,
        [
            (text, BAD)
            for text in (
                "2024-05-31 24:00:00",
                "2024-05-31 12:60:00",
                "2024-05-31 12:00:60",
                "2024-05-31Z",
                "12:00",
                "2024-05-31t12:00:00",
                "2024-05-31T12:00:00+19:00",
                "2024-05-31T12:00:00+02:60",
                "now",
            )
        ],
    ),
    (STRING, TIMESTAMP_NTZ, [("2024-05-31T12:00:00+02:00", MAY), ("2024-05-31 12:00:00", MAY)]),
    (STRING, BINARY, [("ß", b"\xc3\x9f"), ("", b"")]),
    (BINARY, STRING, [(b"\xc3\x9f", "ß"), (b"\xffA", "\ufffdA"), (b"", "")]),
    (DATE, TIMESTAMP, [(0, 0), (-1, -86_400_000_000), ((1 << 31) - 1, BAD), (-(1 << 31), BAD)]),
    (
        DATE,
        TIMESTAMP_NTZ,
        [(1, 86_400_000_000), (106751991, 106751991 * 86_400_000_000), (106751992, BAD)],
    ),
    (TIMESTAMP, DATE, [(-1, -1), (0, 0), (86_400_000_000, 1), (-(1 << 63), -106751992)]),
    (TIMESTAMP, TIMESTAMP_NTZ, [(MAY, MAY), (-1, -1)]),
    (TIMESTAMP_NTZ, TIMESTAMP, [(MAY, MAY)]),
    (
        DATE,
        STRING,
        [
            (0, "1970-01-01"),
            (-719162, "0001-01-01"),
            (-719529, "-0001-12-31"),
            (2932897, "+10000-01-01"),
        ],
    ),
    (TIMESTAMP, STRING, [(MAY, "2024-05-31 12:00:00"), (MAY + 500_000, "2024-05-31 12:00:00.5")]),
    (
        TIMESTAMP,
        STRING,
        [(-1, "1969-12-31 23:59:59.999999"), ((1 << 63) - 1, "+294247-01-10 04:00:54.775807")],
    ),
    (
        TIMESTAMP_NTZ,
        STRING,
        [(1_000_000, "1970-01-01 00:00:01"), (10, "1970-01-01 00:00:00.00001")],
    ),
]
JAVA = {
    1.0: "1.0",
    -0.0: "-0.0",
    0.001: "0.001",
    0.00099: "9.9E-4",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    12345678.9: "1.23456789E7",
    1e10: "1.0E10",
    -1.5e-7: "-1.5E-7",
    5e-324: "4.9E-324",
    1.7976931348623157e308: "1.7976931348623157E308",
    123456.789: "123456.789",
    INF: "Infinity",
    -INF: "-Infinity",
}


@pytest.mark.parametrize(
    ("source", "target", "source_value", "wanted"),
    [(s, t, value, wanted) for s, t, pairs in CASES for value, wanted in pairs],
    ids=lambda value: "bad" if value is BAD else repr(value)[:40],
)
def test_cast(source: DataType, target: DataType, source_value: Any, wanted: Any) -> None:
    given: dict[str, Any] = {"a": (source, [None, source_value])}
    shown = repr([None, None if wanted is BAD else wanted])
    found = value_of(col("a").cast(target, on_error="null"), **given)
    assert [x if x is None else normal(x) for x in found] == [None, normal(eval_null(wanted))], (
        shown
    )
    if wanted is BAD:
        with pytest.raises(EvaluationError, match=r"is not a .* in cast\(a as ") as caught:
            value_of(col("a").cast(target), **given)
        assert 'on_error="null"' in str(caught.value)
    else:
        assert [repr(x) for x in value_of(col("a").cast(target), **given)] == [
            repr(x) for x in found
        ]


def eval_null(wanted: Any) -> Any:
    return None if wanted is BAD else wanted


def normal(value: Any) -> Any:
    """NaN that equals itself, numbers that show their sign."""
    return repr(value) if isinstance(value, float) else value


def test_doubles_are_written_as_java_does() -> None:
    assert value_of(col("a").cast(STRING), a=(DOUBLE, list(JAVA))) == list(JAVA.values())
    assert value_of(col("a").cast(STRING), a=(DOUBLE, [NAN, 1.5, None])) == ["NaN", "1.5", None]


def test_floats_are_written_with_their_own_digits() -> None:
    found = value_of(col("a").cast(STRING), a=(FLOAT, [0.1, 3.3333333, 1e10, 16777216.0, NAN]))
    assert found == ["0.1", "3.3333333", "1.0E10", "1.6777216E7", "NaN"]


def test_lists_are_cast_element_by_element() -> None:
    given: dict[str, Any] = {"a": (List(STRING), [["1", None], None, [], ["x", "2"]])}
    tried = value_of(col("a").cast(List(LONG), on_error="null"), **given)
    assert tried == [[1, None], None, [], [None, 2]]
    with pytest.raises(EvaluationError, match="'x' is not a long"):
        value_of(col("a").cast(List(LONG)), **given)
    nested: dict[str, Any] = {"a": (List(List(LONG)), [[[1], None, []], None])}
    assert value_of(col("a").cast(List(List(STRING))), **nested) == [[["1"], None, []], None]

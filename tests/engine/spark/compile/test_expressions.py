"""What each function gives, one query for many cases; docs/expressions.md has the meaning."""

# ruff: noqa: DTZ001 - timestamps without a zone are what is tested

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest

from millpond.base.errors import EvaluationError
from millpond.plan.expr import Expr, call, col, element, from_epoch_micros, if_else, lit, path
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
    Map,
    Struct,
)

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
EARLY = dt.datetime(1582, 10, 10, 1, 2, 3, 4)
AT = dt.datetime(2024, 5, 31, 13, 14, 15, 678901)


def one_row(run_rows: Any, row: dict[str, Any], schema: Struct, cases: dict[str, Any]) -> None:
    """Check every expression of `cases` against its value, all in one query."""
    plan = values([row], schema)
    names = {f"c{i}": expr for i, (_, (expr, _)) in enumerate(cases.items())}
    found = run_rows(plan.select(**names))[0]
    for (title, (_, expected)), value in zip(cases.items(), found, strict=True):
        assert same(value, expected), f"{title}: {value!r}, expected {expected!r}"


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


LITERALS: list[tuple[Any, DataType]] = [
    (True, BOOLEAN),
    (-128, BYTE),
    (-32768, SHORT),
    (-(1 << 31), INTEGER),
    (-(1 << 63), LONG),
    ((1 << 63) - 1, LONG),
    (NAN, DOUBLE),
    (-INF, DOUBLE),
    (-0.0, DOUBLE),
    (5e-324, DOUBLE),
    (0.5, FLOAT),
    (decimal.Decimal("9" * 38), Decimal(38, 0)),
    (decimal.Decimal("-0." + "1" * 38), Decimal(38, 38)),
    ('it\'s `a` "b" \\ ü \x00 😀\n', STRING),
    ("", STRING),
    (b"\x00\xff'", BINARY),
    (b"", BINARY),
    (dt.date(1, 1, 1), DATE),
    (dt.date(1582, 10, 10), DATE),
    (dt.date(9999, 12, 31), DATE),
    (EARLY.replace(tzinfo=UTC), TIMESTAMP),
    (dt.datetime(1, 1, 1, tzinfo=UTC), TIMESTAMP),
    (dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), TIMESTAMP),
    (EARLY, TIMESTAMP_NTZ),
    (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), TIMESTAMP_NTZ),
    (None, Struct.of(a=LONG)),
    (None, List(Map(STRING, LONG))),
    (None, DATE),
]


def test_literals_of_every_type(run_table: Any) -> None:
    named = {f"c{i}": lit(value, type_) for i, (value, type_) in enumerate(LITERALS)}
    table = run_table(values([{"x": 1}]).select(**named))
    for column, (value, type_) in zip(table.columns, LITERALS, strict=True):
        found = column[0].as_py()
        if isinstance(found, dt.datetime) and found.tzinfo is not None:
            found = found.astimezone(UTC)
        assert same(found, value), f"{type_}: {found!r}, expected {value!r}"


def test_literals_do_not_depend_on_the_time_zone_of_the_process(
    run_rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "America/Caracas")
    time.tzset()
    try:
        plan = values([{"at": AT.replace(tzinfo=UTC), "ntz": AT, "day": AT.date()}])
        hit = (
            (col("at") == lit(AT.replace(tzinfo=UTC)))
            & (col("ntz") == lit(AT))
            & (col("day") == lit(AT.date()))
        )
        assert run_rows(plan.filter(hit)) == [(AT.replace(tzinfo=UTC), AT, AT.date())]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_comparison_and_logic(run_rows: Any) -> None:
    row = {"n": None, "x": 1.5, "nan": NAN, "z": -0.0, "i": 3, "t": True, "s": "b"}
    schema = Struct.of(n=LONG, x=DOUBLE, nan=DOUBLE, z=DOUBLE, i=INTEGER, t=BOOLEAN, s=STRING)
    n, nan, z, i, t = (col(name) for name in ("n", "nan", "z", "i", "t"))
    null = lit(None, BOOLEAN)
    cases: dict[str, tuple[Expr, Any]] = {
        "null = null": (n == n, None),
        "null <=> null": (n.same_as(n), True),
        "3 <=> null": (i.same_as(n), False),
        "nan = nan": (nan == nan, True),
        "nan > inf": (nan > INF, True),
        "-0.0 = 0.0": (z == 0.0, True),
        "-0.0 < 0.0": (z < 0.0, False),
        "is_nan(null)": (lit(None, DOUBLE).is_nan(), False),
        "is_nan(nan)": (nan.is_nan(), True),
        "in": (i.isin([1, 3]), True),
        "not in": (i.isin([1, 2]), False),
        "in with null": (i.isin([1, None]), None),
        "match beside null": (i.isin([3, None]), True),
        "null in": (n.isin([1]), None),
        "nan in": (nan.isin([1.0, NAN]), True),
        "-0.0 in a long list": (z.isin([float(k) for k in range(40)]), True),
        "true and null": (t & null, None),
        "false and null": (~t & null, False),
        "true or null": (t | null, True),
        "not null": (~null, None),
        "if null": (if_else(null, lit("a"), lit("b")), "b"),
        "coalesce": (n.coalesce(7), 7),
        "text order": (col("s") > "B", True),
        "is null": (n.is_null(), True),
    }
    one_row(run_rows, row, schema, cases)


def test_arithmetic(run_rows: Any) -> None:
    row = {"b": 100, "i": -7, "x": INF, "d": decimal.Decimal("1.50"), "f": 0.5, "l": -(1 << 63)}
    schema = Struct.of(b=BYTE, i=INTEGER, x=DOUBLE, d=Decimal(5, 2), f=FLOAT, l=LONG)
    b, i, x, d = (col(name) for name in ("b", "i", "x", "d"))
    cases: dict[str, tuple[Expr, Any]] = {
        "byte + byte": (b - lit(1, BYTE), 99),
        "div": (i.div(2), -3),
        "%": (i % 2, -1),
        "/": (i / 2, -3.5),
        "inf - inf": (x - x, NAN),
        "-0.0": (-lit(0.0), -0.0),
        "decimal *": (d * d, decimal.Decimal("2.2500")),
        "decimal + int": (d + i, decimal.Decimal("-5.50")),
        "abs": (abs(i), 7),
        "float + float": (col("f") + col("f"), 1.0),
        "smallest % -1": (col("l") % -1, 0),
    }
    one_row(run_rows, row, schema, cases)


@pytest.mark.parametrize(
    ("value", "type_", "expr"),
    [
        (127, BYTE, col("x") + lit(1, BYTE)),
        ((1 << 63) - 1, LONG, col("x") + 1),
        (-(1 << 31), INTEGER, -col("x")),
        (-128, BYTE, abs(col("x"))),
        (1, LONG, col("x") / 0),
        (1.0, DOUBLE, col("x") / 0.0),
        (1, LONG, col("x") % 0),
        (-(1 << 63), LONG, col("x").div(-1)),
    ],
)
def test_what_overflows_or_divides_by_zero_is_an_error(
    run_rows: Any, value: Any, type_: DataType, expr: Expr
) -> None:
    plan = values([{"x": value}], Struct.of(x=type_))
    with pytest.raises(EvaluationError):
        run_rows(plan.select(y=expr))


def test_strings(run_rows: Any) -> None:
    row = {"s": "añ😀b%c", "e": "", "n": None, "p": "  a b\t", "g": "ΑΣ ẞ ß İ"}
    schema = Struct.of(s=STRING, e=STRING, n=STRING, p=STRING, g=STRING)
    s, e, n, p, g = (col(name) for name in "senpg")
    cases: dict[str, tuple[Expr, Any]] = {
        "len": (s.len(), 6),
        "len ''": (e.len(), 0),
        "len null": (n.len(), None),
        "substr": (s.substr(1, 2), "ñ😀"),
        "substr past the end": (s.substr(10, 2), ""),
        "substr far": (s.substr(1 << 40, 2), ""),
        "substr 0": (s.substr(0, 0), ""),
        "substr long": (s.substr(4, 1 << 40), "%c"),
        "trim": (p.trim(), "a b\t"),
        "upper": (g.upper(), "ΑΣ ẞ SS İ"),
        "lower": (g.lower(), "ας ß ß i̇"),
        "contains ''": (s.contains(e), True),
        "starts_with": (s.starts_with("añ"), True),
        "ends_with": (s.ends_with("%c"), True),
        "like": (s.like("a_😀%"), True),
        "like escaped": (s.like(r"%b\%c"), True),
        "like escaped, no match": (s.like(r"%ñ\%c"), False),
        "like newline": (lit("a\nb").like("a_b"), True),
        "replace": (s.replace_text("b%", "$0"), "añ😀$0c"),
        "concat": (s.concat(e, "x"), "añ😀b%cx"),
        "concat null": (s.concat(n), None),
    }
    one_row(run_rows, row, schema, cases)


def test_a_pattern_that_cannot_be_read_is_an_error(run_rows: Any) -> None:
    with pytest.raises(EvaluationError, match="pattern"):
        run_rows(values([{"s": "a"}]).select(x=col("s").like("a\\b")))


def test_dates(run_rows: Any) -> None:
    row = {"t": AT.replace(tzinfo=UTC), "n": EARLY, "d": dt.date(2024, 2, 29), "m": -1}
    schema = Struct.of(t=TIMESTAMP, n=TIMESTAMP_NTZ, d=DATE, m=LONG)
    t, n, d = (col(name) for name in "tnd")
    day = dt.timedelta(days=1)
    micros = (EARLY.replace(tzinfo=UTC) - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(
        microseconds=1
    )
    cases: dict[str, tuple[Expr, Any]] = {
        "year": (call("year", n), 1582),
        "month of a date": (call("month", d), 2),
        "hour": (call("hour", t), 13),
        "minute ntz": (call("minute", n), 2),
        "second": (call("second", t), 15),
        "week": (t.date_trunc("week"), dt.datetime(2024, 5, 27, tzinfo=UTC)),
        "quarter": (t.date_trunc("quarter"), dt.datetime(2024, 4, 1, tzinfo=UTC)),
        "hour ntz": (n.date_trunc("hour"), dt.datetime(1582, 10, 10, 1)),
        "bucket": (
            t.time_bucket(dt.timedelta(minutes=15)),
            dt.datetime(2024, 5, 31, 13, tzinfo=UTC),
        ),
        "bucket before 1970": (n.time_bucket(day), dt.datetime(1582, 10, 10)),
        "epoch": (n.epoch_micros(), micros),
        "from epoch": (
            from_epoch_micros(col("m")),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ),
    }
    one_row(run_rows, row, schema, cases)


def test_paths_and_lists(run_rows: Any) -> None:
    item = Struct.of(v=LONG, w=List(Struct.of(z=STRING)))
    schema = Struct.of(
        s=Struct((*Struct.of(a=LONG).fields, *Struct.of(**{"b.c": STRING, "": LONG}).fields)),
        l=List(item),
        m=Map(STRING, LONG),
        e=List(LONG),
        n=List(LONG),
        k=List(LONG),
    )
    items = [{"v": 1, "w": [{"z": "p"}, None]}, None, {"v": None, "w": None}]
    row = {
        "s": {"a": 1, "b.c": "x", "": 9},
        "l": items,
        "m": [("k", 5)],
        "e": [],
        "n": None,
        "k": [1, None, 3],
    }
    cases: dict[str, tuple[Expr, Any]] = {
        "member": (path("s.a"), 1),
        "odd member": (path('s."b.c"'), "x"),
        "empty member": (path('s.""'), 9),
        "index": (path("l[0].v"), 1),
        "last": (path("k[-1]"), 3),
        "past the end": (path("k[9]"), None),
        "before the start": (path("k[-9]"), None),
        "key": (path("m.k"), 5),
        "missing key": (path("m.j"), None),
        "each": (path("l[*].v"), [1, None, None]),
        "each of each": (path("l[*].w[*].z"), [["p", None], None, None]),
        "each itself": (path("k[*]"), [1, None, 3]),
        "len": (col("k").len(), 3),
        "len null": (col("n").len(), None),
        "any true": (col("k").any(element() == 3), True),
        "any null": (col("k").any(element() == 2), None),
        "any empty": (col("e").any(element() == 2), False),
        "any of null": (col("n").any(element() == 2), None),
        "all false": (col("k").all(element() > 1), False),
        "all null": (col("k").all(element() > 0), None),
        "all empty": (col("e").all(element() > 0), True),
        "contains": (col("k").contains(3), True),
        "nested any": (col("l").any(path("w").any(path("z") == "p")), True),
        "nested all": (col("l").all(path("w").all(path("z") == "q")), False),
    }
    one_row(run_rows, row, schema, cases)


def test_a_conjunction_of_many_parts(run_rows: Any) -> None:
    predicate = call("and", *(col("x") != number * 2 + 1 for number in range(300)))
    assert run_rows(values([{"x": 4}, {"x": 5}]).filter(predicate)) == [(4,)]

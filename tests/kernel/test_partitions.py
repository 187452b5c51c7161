"""Partition values: every type from text and back, by one and by column; errors that name them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millpond.base.errors import CorruptLogError, TypeMismatchError
from millpond.kernel.partitions import (
    DEFAULT_PARTITION,
    directory,
    read_column,
    read_value,
    write_value,
)
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow
from millpond.plan.expr import col
from millpond.plan.make import values

if TYPE_CHECKING:
    from pathlib import Path

UTC = dt.UTC
SCALARS: tuple[t.DataType, ...] = (
    *(t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY),
    *(t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.Decimal(5, 2), t.Decimal(38, 10), t.Decimal(38, 38)),
)


def naive(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def aware(*parts: int) -> dt.datetime:
    return naive(*parts).replace(tzinfo=UTC)


def read(text: str | None, type_: t.DataType) -> Any:
    return read_value(text, type_, column="p", table="t")


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_missing_is_null(type_: t.DataType) -> None:
    assert read(None, type_) is None
    assert write_value(None, type_) is None
    empty: dict[t.DataType, Any] = {t.STRING: "", t.BINARY: b""}
    assert read("", type_) == empty.get(type_)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (t.BYTE, "-128", -128),
        (t.LONG, "+9223372036854775807", 2**63 - 1),
        (t.INTEGER, " 007 ", 7),
        (t.DOUBLE, "NaN", math.nan),
        (t.DOUBLE, "nan", math.nan),
        (t.DOUBLE, "Infinity", math.inf),
        (t.FLOAT, "-inf", -math.inf),
        (t.FLOAT, "0.1", 0.10000000149011612),
        (t.FLOAT, "+7.038531e-26", 7.038530691851209e-26),
        (t.DOUBLE, ".5e1", 5.0),
        (t.DOUBLE, "-0.0", -0.0),
        (t.Decimal(38, 10), "1E-10", D("0.0000000001")),
        (t.Decimal(5, 2), "-1.5", D("-1.50")),
        (t.Decimal(5, 0), "1.2E+4", D("12000")),
        (t.BOOLEAN, "TRUE", True),
        (t.BOOLEAN, "False", False),
        (t.DATE, "0001-01-01", dt.date(1, 1, 1)),
        (t.DATE, "2024-2-9", dt.date(2024, 2, 9)),
        (t.TIMESTAMP, "1970-01-01 00:00:00", dt.datetime(1970, 1, 1, tzinfo=UTC)),
        (
            t.TIMESTAMP,
            "2021-11-18 02:30:00.123456",
            aware(2021, 11, 18, 2, 30, 0, 123456),
        ),
        (t.TIMESTAMP, "2021-11-18 02:30:00.1", dt.datetime(2021, 11, 18, 2, 30, 0, 100000, UTC)),
        (
            t.TIMESTAMP,
            "2021-11-18T02:30:00.1234569Z",
            aware(2021, 11, 18, 2, 30, 0, 123456),
        ),
        (t.TIMESTAMP, "2021-11-18T02:30:00+07:00", dt.datetime(2021, 11, 17, 19, 30, tzinfo=UTC)),
        (t.TIMESTAMP, "2021-11-18 02:30:00-0130", dt.datetime(2021, 11, 18, 4, tzinfo=UTC)),
        (t.TIMESTAMP, "2021-11-18", dt.datetime(2021, 11, 18, tzinfo=UTC)),
        (t.TIMESTAMP_NTZ, "2021-11-18 02:30:00.5", naive(2021, 11, 18, 2, 30, 0, 500000)),
        (t.TIMESTAMP_NTZ, "2021-11-18", naive(2021, 11, 18)),
        (t.STRING, DEFAULT_PARTITION, DEFAULT_PARTITION),
        (t.STRING, " a%2Fb ", " a%2Fb "),
        (t.BINARY, "\u0001ü", b"\x01\xc3\xbc"),
    ],
)
def test_text_as_value(type_: t.DataType, text: str, value: Any) -> None:
    found = read(text, type_)
    assert repr(found) == repr(value)
    array = read_column(_maps([text, None]), "p", type_, column="p", table="t")
    assert array.type == to_arrow(type_)
    assert repr(array.to_pylist()) == repr(pa.array([value, None], array.type).to_pylist())


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (t.BYTE, "128"),
        (t.LONG, "9" * 5000),
        (t.LONG, "1.0"),
        (t.INTEGER, "٣"),
        (t.INTEGER, DEFAULT_PARTITION),
        (t.DOUBLE, "1d"),
        (t.DOUBLE, "-NaN"),
        (t.DOUBLE, "0x1p3"),
        (t.FLOAT, "1_0"),
        (t.Decimal(5, 2), "1.555"),
        (t.Decimal(5, 2), "1234"),
        (t.Decimal(5, 2), "NaN"),
        (t.Decimal(5, 2), "1E99999999999999999999"),
        (t.BOOLEAN, "maybe"),
        (t.DATE, "2024-02-30"),
        (t.DATE, "2024-02-03 00:00:00"),
        (t.DATE, "+10000-01-01"),
        (t.TIMESTAMP, "2024-02-03 24:00:00"),
        (t.TIMESTAMP, "2024-02-03 00:00:00 Europe/Berlin"),
        (t.TIMESTAMP, "2024-02-03 00:00:00+19:00"),
        (t.TIMESTAMP, "0001-01-01 00:00:00+01:00"),
        (t.TIMESTAMP_NTZ, "2024-02-03 00:00:00Z"),
        (t.INTEGER, " "),
        (t.Struct.of(a=t.LONG), "{}"),
    ],
)
def test_what_can_not_be_read_is_an_error(type_: t.DataType, text: str) -> None:
    expected = f"{re.escape(repr(text))} of the column 'c c' of the/table is not a "
    expected += re.escape(str(type_))
    with pytest.raises(CorruptLogError, match=expected):
        read_value(text, type_, column="c c", table="the/table")
    with pytest.raises(CorruptLogError, match=expected):
        read_column(_maps([text]), "p", type_, column="c c", table="the/table")


def _maps(texts: list[str | None], key: str = "p") -> pa.Array:
    rows = [[("other", "x"), (key, text)] for text in texts]
    return pa.array(rows, pa.map_(pa.string(), pa.string()))


def test_columns_of_maps() -> None:
    maps = pa.array(
        [[("p", "1")], None, [], [("p", None)], [("q", "7")], [("p", "")], [("p", "1")]],
        pa.map_(pa.string(), pa.string()),
    )
    expected = [1, None, None, None, None, None, 1]
    found = read_column(maps, "p", t.SHORT, column="p", table="t")
    assert found.type == pa.int16()
    assert found.to_pylist() == expected
    sliced = read_column(maps.slice(5), "p", t.SHORT, column="p", table="t")
    assert sliced.to_pylist() == [None, 1]
    chunked = read_column(pa.chunked_array([maps, maps]), "p", t.LONG, column="p", table="t")
    assert chunked.to_pylist() == expected * 2
    text = read_column(maps, "p", t.STRING, column="p", table="t")
    assert text.to_pylist() == ["1", None, None, None, None, "", "1"]
    none = read_column(maps.slice(0, 0), "p", t.DATE, column="p", table="t")
    assert (none.type, len(none)) == (pa.date32(), 0)


def test_each_different_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from millpond.kernel import partitions

    seen: list[str | None] = []
    original = partitions.read_value

    def counting(text: str | None, type_: t.DataType, **rest: str) -> Any:
        seen.append(text)
        return original(text, type_, **rest)

    monkeypatch.setattr(partitions, "read_value", counting)
    read_column(_maps(["1", "2", None] * 1000), "p", t.LONG, column="p", table="t")
    assert sorted(map(str, seen)) == ["1", "2"]


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (t.TIMESTAMP, dt.datetime(99, 1, 2, 3, 4, 5, tzinfo=UTC), "0099-01-02T03:04:05.000000Z"),
        (t.TIMESTAMP, dt.datetime(2024, 1, 2, 3, 4, 5, 60, UTC), "2024-01-02T03:04:05.000060Z"),
        (t.TIMESTAMP_NTZ, naive(2024, 1, 2), "2024-01-02 00:00:00"),
        (t.DATE, dt.date(5, 1, 2), "0005-01-02"),
        (t.DOUBLE, 1e7, "1.0E7"),
        (t.DOUBLE, 9999999.0, "9999999.0"),
        (t.DOUBLE, 0.001, "0.001"),
        (t.DOUBLE, 0.000123, "1.23E-4"),
        (t.DOUBLE, -0.0, "-0.0"),
        (t.DOUBLE, -100.0, "-100.0"),
        (t.FLOAT, 0.10000000149011612, "0.1"),
        (t.FLOAT, -math.inf, "-Infinity"),
        (t.DOUBLE, math.nan, "NaN"),
        (t.Decimal(38, 10), D("1E-10").quantize(D("1E-10")), "0.0000000001"),
        (t.BOOLEAN, False, "false"),
        (t.BYTE, -5, "-5"),
        (t.STRING, "", ""),
        (t.BINARY, b"\x01a", "\x01a"),
    ],
)
def test_value_as_text(type_: t.DataType, value: Any, text: str) -> None:
    assert write_value(value, type_) == text
    assert repr(read(text, type_)) == repr(value)


def test_what_can_not_be_written_is_an_error() -> None:
    with pytest.raises(TypeMismatchError, match="UTF-8"):
        write_value(b"\xff", t.BINARY)
    with pytest.raises(TypeMismatchError, match="not a byte"):
        write_value(300, t.BYTE)


def _values(type_: t.DataType) -> st.SearchStrategy[Any]:
    bits = {t.BYTE: 8, t.SHORT: 16, t.INTEGER: 32, t.LONG: 64}
    if isinstance(type_, t.Primitive) and type_ in bits:
        half = 1 << (bits[type_] - 1)
        return st.integers(-half, half - 1)
    if isinstance(type_, t.Decimal):
        top = 10**type_.precision - 1
        return st.integers(-top, top).map(lambda n: D(n).scaleb(-type_.scale, _WIDE))
    others: dict[t.DataType, st.SearchStrategy[Any]] = {
        t.BOOLEAN: st.booleans(),
        t.FLOAT: st.floats(width=32),
        t.DOUBLE: st.floats(),
        t.STRING: st.text(),
        t.BINARY: st.text().map(str.encode),
        t.DATE: st.dates(),
        t.TIMESTAMP: st.datetimes().map(lambda x: x.replace(tzinfo=UTC, fold=0)),
        t.TIMESTAMP_NTZ: st.datetimes().map(lambda x: x.replace(fold=0)),
    }
    return others[type_]


_WIDE = decimal.Context(prec=80)


@st.composite
def _typed(draw: st.DrawFn) -> tuple[t.DataType, Any]:
    type_ = draw(st.sampled_from(SCALARS))
    return type_, draw(_values(type_))


@given(_typed())
def test_what_is_written_reads_back(typed: tuple[t.DataType, Any]) -> None:
    type_, value = typed
    if isinstance(type_, t.Decimal) and value.is_zero():
        value = abs(value)
    assert repr(read(write_value(value, type_), type_)) == repr(value)


_TEXTS = st.one_of(
    _typed().map(lambda typed: str(write_value(abs_zero(typed[1]), typed[0]))),
    st.text(alphabet="0123456789+-.:eETZ nNaA", max_size=24),
    st.sampled_from(("NaN", "inf", "t", "yes", "2024-1-5", "2024-01-05T01:02Z", " 3 ", "1.5")),
    st.datetimes().map(lambda x: x.isoformat() + "+02:30"),
)


def abs_zero(value: Any) -> Any:
    return abs(value) if isinstance(value, D) and value.is_zero() else value


@given(st.sampled_from(SCALARS), st.lists(_TEXTS, min_size=1, max_size=8))
@example(t.FLOAT, ["7.038531e-26", "1e39", "16777217.0000001"])
def test_casts_of_the_text_agree(type_: t.DataType, texts: list[str]) -> None:
    """Data skipping casts texts in a plan: where both give a value, it is the same."""
    plan = values(pa.table({"text": texts})).select(value=col("text").cast(type_, on_error="null"))
    for text, cast in zip(texts, _python(plan.to_arrow(engine="arrow")["value"]), strict=True):
        if cast is None or (text == "" and type_ not in (t.STRING, t.BINARY)):
            continue
        try:
            found = read(text, type_)
        except CorruptLogError:
            continue
        assert repr(found) == repr(cast)


def _python(column: pa.ChunkedArray) -> list[Any]:
    """Python values, None where the year is not one of Python's."""
    found = []
    for item in column:
        try:
            found.append(item.as_py())
        except (ValueError, OverflowError):
            found.append(None)
    return [x.replace(tzinfo=UTC) if isinstance(x, dt.datetime) and x.tzinfo else x for x in found]


def test_directories() -> None:
    assert directory([("p", "a/b"), ("q r", "x=y:z%")]) == "p=a%2Fb/q r=x%3Dy%3Az%25"
    assert directory([("p", None)]) == "p=__HIVE_DEFAULT_PARTITION__"
    assert directory([("p", "")]) == "p=__HIVE_DEFAULT_PARTITION__"
    assert directory([("a=b", "ü {[x]}^\n")]) == "a%3Db=ü %7B%5Bx%5D}%5E%0A"
    assert directory([]) == ""


@given(st.text(min_size=1), st.text(min_size=1))
def test_directories_keep_names_and_texts(name: str, text: str) -> None:
    found = directory([(name, text)])
    assert found.count("/") == 0
    left, _, right = found.partition("=")
    assert (unquote(left), unquote(right)) == (name, text)


@pytest.mark.parametrize("text", ["2021-11-18 02:30:00.123456", "1969-01-01 00:00:00"])
def test_a_file_can_be_written_there(tmp_path: Path, text: str) -> None:
    place = tmp_path / directory([("p", text)])
    place.mkdir(parents=True)
    assert [p.name for p in tmp_path.iterdir()] == [place.name]

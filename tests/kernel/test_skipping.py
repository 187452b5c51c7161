"""Skipping never loses a row, and skips what it should: random files, statistics, predicates."""

# ruff: noqa: DTZ001 - timestamps without a zone are tested, too

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import random
from dataclasses import dataclass
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernel.mapping import FIELD_ID, PHYSICAL_NAME, TableColumns
from millpond.kernel.partitions import write_value
from millpond.kernel.skipping import Skipping, skipping_for, split
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow
from millpond.plan.bind import bind_predicate
from millpond.plan.expr import Expr, call, col, element, lit, path
from millpond.plan.make import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

UTC = dt.UTC
PARTITIONS: dict[str, t.DataType] = {
    "p": t.INTEGER,
    "q": t.STRING,
    "e": t.DATE,
    "h": t.DOUBLE,
    "u": t.TIMESTAMP,
    "v": t.Decimal(9, 2),
}
PLAIN = t.Struct.of(
    i=t.INTEGER,
    f=t.DOUBLE,
    r=t.FLOAT,
    s=t.STRING,
    y=t.BINARY,
    d=t.DATE,
    at=t.TIMESTAMP,
    n=t.TIMESTAMP_NTZ,
    m=t.Decimal(9, 2),
    w=t.Decimal(30, 10),
    b=t.BOOLEAN,
    o=t.Struct.of(i=t.LONG, s=t.STRING),
    l=t.List(t.LONG),
    **PARTITIONS,
)
DATA = tuple(name for name in PLAIN.names if name not in PARTITIONS)


def mapped(schema: t.Struct, start: int = 1) -> t.Struct:
    """The schema as a table with column mapping has it: each field stored under another name."""
    fields = []
    for number, field in enumerate(schema, start):
        inner = mapped(field.type, 100 * number) if isinstance(field.type, t.Struct) else field.type
        fields.append(
            t.Field(field.name, inner).with_metadata(
                {PHYSICAL_NAME: stored(field.name), FIELD_ID: number}
            )
        )
    return t.Struct(tuple(fields))


def stored(name: str) -> str:
    return f"col {name}.x"


COLUMNS = TableColumns.of(mapped(PLAIN), "name", table="t")


def scalar(rnd: random.Random, type_: t.DataType, low: int) -> Any:
    """A value of the neighbourhood that a file's values come from."""
    number = low + rnd.randint(0, 5)
    moment = dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=number * 400)
    if t.is_fractional(type_):
        return rnd.choice((number / 4, -0.0, 0.0, math.nan, math.inf, float(number)))
    if isinstance(type_, t.Decimal):
        big = D(10**18 + 7) if type_.precision > 15 and rnd.random() < 0.5 else D(0)
        tiny = D(number).scaleb(-type_.scale)
        return (big + tiny).quantize(D(1).scaleb(-type_.scale), context=decimal.Context(prec=60))
    made: dict[t.DataType, Any] = {
        t.BOOLEAN: number % 2 == 0,
        t.STRING: "ab" * (number % 3) + rnd.choice(("", "a", "é", "\U0010ffff", str(number))),
        t.BINARY: bytes([number % 256]),
        t.DATE: dt.date(2024, 1, 1) + dt.timedelta(days=number),
        t.TIMESTAMP: moment,
        t.TIMESTAMP_NTZ: moment.replace(tzinfo=None),
    }
    return made.get(type_, number)


def cell(rnd: random.Random, type_: t.DataType, low: int, nulls: float) -> Any:
    if rnd.random() < nulls:
        return None
    if isinstance(type_, t.Struct):
        return {f.name: cell(rnd, f.type, low, nulls) for f in type_}
    if isinstance(type_, t.List):
        return [low]
    return scalar(rnd, type_, low)


@dataclass
class DataFile:
    """Rows, the texts of their partition values, and statistics as JSON."""

    rows: list[dict[str, Any]]
    texts: dict[str, str | None]
    stats: str | None


def data_file(rnd: random.Random) -> DataFile:
    low = rnd.choice((-6, -2, 0, 1, 7, 20))
    nulls = rnd.choice((0.0, 0.0, 0.3, 1.0))
    same = {n: cell(rnd, ty, low, nulls / 2) for n, ty in PARTITIONS.items()}
    rows = [
        {n: cell(rnd, PLAIN.field(n).type, low, nulls) for n in DATA} | same
        for _ in range(rnd.randint(0, 5))
    ]
    # Statistics that were taken before some rows were deleted: of these rows and of more.
    gone = [
        {n: cell(rnd, PLAIN.field(n).type, low, nulls) for n in DATA}
        for _ in range(rnd.choice((0, 0, 2)))
    ]
    texts = {stored(n): write_value(same[n], ty) for n, ty in PARTITIONS.items()}
    if rnd.random() < 0.3 and same["p"] is not None:
        texts[stored("p")] = rnd.choice((f" {same['p']} ", f"{same['p']:+}"))
    if rnd.random() < 0.3 and same["e"] is not None:
        texts[stored("e")] = f"{same['e'].year}-{same['e'].month}-{same['e'].day}"
    if rnd.random() < 0.2 and same["h"] is None:
        texts[stored("h")] = ""
    if rnd.random() < 0.1 and same["q"] is None:
        del texts[stored("q")]
    stats = None if rnd.random() < 0.1 else json.dumps(statistics(rnd, [*rows, *gone]))
    return DataFile(rows, texts, stats)


def statistics(rnd: random.Random, rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    if rnd.random() < 0.95:
        found["numRecords"] = len(rows)
    if rnd.random() < 0.3:
        found["tightBounds"] = False
    for name in DATA:
        leaf(rnd, found, (name,), PLAIN.field(name).type, [row[name] for row in rows])
    return found


def leaf(
    rnd: random.Random, found: dict[str, Any], at: tuple[str, ...], type_: t.DataType, all_: Any
) -> None:
    if isinstance(type_, t.Struct):
        for field in type_:
            inner = [None if value is None else value[field.name] for value in all_]
            leaf(rnd, found, (*at, field.name), field.type, inner)
        return
    some = [value for value in all_ if value is not None]
    if rnd.random() < 0.9:
        put(found["nullCount"], at, len(all_) - len(some))
    numbers = [v for v in some if not (isinstance(v, float) and math.isnan(v))]
    if isinstance(type_, t.List) or type_ == t.BINARY or not some or rnd.random() < 0.1:
        return
    if len(numbers) < len(some) and rnd.random() < 0.2:
        put(found["minValues"], at, "NaN")
        put(found["maxValues"], at, "NaN")
    elif numbers:
        put(found["minValues"], at, limit(rnd, min(numbers), type_))
        put(found["maxValues"], at, limit(rnd, max(numbers), type_))


def limit(rnd: random.Random, value: Any, type_: t.DataType) -> Any:
    """A limit as writers write it: cut, floored, or by way of floating point."""
    if isinstance(value, str):
        return value[: rnd.randint(0, len(value))] if rnd.random() < 0.5 else value
    if isinstance(value, dt.datetime):
        zone = "Z" if value.tzinfo else ""
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dt.date):
        return value.isoformat()
    return float(value) if isinstance(value, D) else value


def put(tree: dict[str, Any], at: tuple[str, ...], value: Any) -> None:
    for name in at[:-1]:
        tree = tree.setdefault(stored(name), {})
    tree[stored(at[-1])] = value


_PATHS = (*PLAIN.names, "o.i", "o.s")


def predicate(rnd: random.Random, names: tuple[str, ...], depth: int = 3) -> Expr:
    if depth and rnd.random() < 0.55:
        parts = [predicate(rnd, names, depth - 1) for _ in range(rnd.randint(1, 3))]
        kind = rnd.choice(("and", "or", "not"))
        return ~parts[0] if kind == "not" else call(kind, *parts)
    name = rnd.choice(names)
    type_ = _type_of(name)
    place = path(name)
    low = rnd.choice((-8, -2, 0, 2, 7, 21))
    if isinstance(type_, t.Struct | t.List) or rnd.random() < 0.1:
        return rnd.choice((place.is_null(), place.is_not_null()))
    literals = [lit(cell(rnd, type_, low, 0.05), type_) for _ in range(rnd.choice((1, 3, 20)))]
    if type_ == t.BOOLEAN and rnd.random() < 0.5:
        return place
    if type_ == t.STRING and rnd.random() < 0.4:
        prefix = scalar(rnd, type_, low)[: rnd.randint(0, 3)]
        return rnd.choice(
            (place.starts_with(prefix), place.like(prefix + "%"), place.like(f"{prefix}_b%"))
        )
    if rnd.random() < 0.15:
        return place.isin(literals)
    if rnd.random() < 0.1:
        return place.between(literals[0], literals[-1])
    operator = rnd.choice(("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"))
    left, right = casted(rnd, place, type_, literals[0])
    return call(operator, *rnd.choice(((left, right), (right, left))))


def casted(rnd: random.Random, place: Expr, type_: t.DataType, literal: Expr) -> tuple[Expr, Expr]:
    """A comparison in a wider type, or in days."""
    if rnd.random() < 0.6:
        return place, literal
    if t.is_integral(type_) or t.is_fractional(type_) or isinstance(type_, t.Decimal):
        to = rnd.choice(
            (t.DOUBLE, t.Decimal(38, 10)) if not t.is_fractional(type_) else (t.DOUBLE,)
        )
        return place.cast(to), literal.cast(to)
    if type_ in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE):
        to = rnd.choice((t.DATE, t.TIMESTAMP))
        return place.cast(to), lit(dt.date(2024, 1, rnd.randint(1, 9)), t.DATE).cast(to)
    return place, literal


def _type_of(name: str) -> t.DataType:
    found: t.DataType = PLAIN
    for part in name.split("."):
        assert isinstance(found, t.Struct)
        found = found.field(part).type
    return found


def adds(files: list[DataFile], found: Skipping) -> Plan:
    table = pa.table(
        {
            "partitionValues": pa.array(
                [list(file.texts.items()) for file in files], pa.map_(pa.string(), pa.string())
            ),
            "json": pa.array([file.stats for file in files], pa.string()),
        }
    )
    plan = values(table)
    return plan.parse_json("json", found.stats, output="stats") if found.stats.fields else plan


def verdicts(
    predicate: Expr, files: list[DataFile], engine: str = "arrow", columns: TableColumns = COLUMNS
) -> list[bool | None]:
    bound = bind_predicate(predicate, PLAIN)
    found = skipping_for(bound, columns, PARTITIONS)
    if found is None:
        return [None] * len(files)
    rows = adds(files, found).select(keep=found.keep).to_pylist(engine=engine)
    return [row["keep"] for row in rows]


def matches(predicate: Expr, files: list[DataFile]) -> set[int]:
    """The files that hold a row for which the predicate is true."""
    rows = [{**row, "file": number} for number, file in enumerate(files) for row in file.rows]
    schema = pa.schema([*((f.name, to_arrow(f.type)) for f in PLAIN), ("file", pa.int64())])
    plan = values(pa.Table.from_pylist(rows, schema)).filter(predicate).select("file")
    return {row["file"] for row in plan.to_pylist(engine="arrow")}


@given(st.integers(0, 2**32))
def test_no_row_is_lost(seed: int) -> None:
    rnd = random.Random(seed)
    files = [data_file(rnd) for _ in range(8)]
    for _ in range(4):
        asked = predicate(rnd, _PATHS)
        found = verdicts(asked, files)
        lost = [n for n in matches(asked, files) if found[n] is False]
        assert not lost, f"{asked}\n{[files[n] for n in lost]}"


@given(st.integers(0, 2**32))
def test_partition_values_decide_exactly(seed: int) -> None:
    rnd = random.Random(seed)
    files = [file for file in (data_file(rnd) for _ in range(8)) if file.rows]
    names = tuple(name for name in PARTITIONS if name != "e")  # days are also written as 2024-1-2
    asked = predicate(rnd, names)
    found = verdicts(asked, files)
    assert [f is not False for f in found] == [
        n in matches(asked, files) for n in range(len(files))
    ]


@pytest.mark.spark
def test_engines_agree(spark: SparkSession) -> None:
    rnd = random.Random(7)
    files = [data_file(rnd) for _ in range(40)]
    asked = [bind_predicate(predicate(rnd, _PATHS, 2), PLAIN) for _ in range(20)]
    asked += [bind_predicate(path(name).is_not_null(), PLAIN) for name in _PATHS]
    found = [skipping_for(one, COLUMNS, PARTITIONS) for one in asked]
    keep = {f"k{n}": one.keep for n, one in enumerate(found) if one is not None}
    everything = Skipping(lit(True), FULL)
    plan = adds(files, everything).select(**keep)
    assert plan.to_pylist(engine="spark") == plan.to_pylist(engine="arrow")


def members(schema: t.Struct, *, counts: bool) -> t.Struct:
    """The members of `minValues` or of `nullCount` for these columns."""
    fields = []
    for field in schema:
        type_: t.DataType = t.LONG if counts else field.type
        if isinstance(field.type, t.Struct):
            type_ = members(field.type, counts=counts)
        fields.append(t.Field(stored(field.name), type_))
    return t.Struct(tuple(fields))


FULL = t.Struct.of(
    numRecords=t.LONG,
    minValues=members(PLAIN.select(DATA), counts=False),
    maxValues=members(PLAIN.select(DATA), counts=False),
    nullCount=members(PLAIN.select(DATA), counts=True),
)


# ---- what has to be skipped, and what must not be, one by one

SIMPLE = t.Struct.of(
    i=t.LONG,
    f=t.DOUBLE,
    s=t.STRING,
    d=t.DATE,
    at=t.TIMESTAMP,
    n=t.TIMESTAMP_NTZ,
    m=t.Decimal(9, 2),
    w=t.Decimal(30, 10),
    b=t.BOOLEAN,
    y=t.BINARY,
    l=t.List(t.LONG),
    o=t.Struct.of(i=t.LONG, z=t.Struct.of(i=t.INTEGER)),
    k=t.Map(t.STRING, t.LONG),
    p=t.INTEGER,
    q=t.STRING,
    e=t.DATE,
)
LOW = {
    "i": 10,
    "f": 1.5,
    "s": "bear",
    "d": "2024-01-10",
    "at": "2024-01-10T00:00:00.000Z",
    "n": "2024-01-10T00:00:00.000",
    "m": 1.5,
    "w": 1.5,
    "b": True,
    "o": {"z": {"i": 10}},
}
HIGH = {
    "i": 20,
    "f": 2.5,
    "s": "cat",
    "d": "2024-01-20",
    "at": "2024-01-20T00:00:00.000Z",
    "n": "2024-01-20T00:00:00.000",
    "m": 2.5,
    "w": 2.5,
    "b": True,
    "o": {"z": {"i": 20}},
}
NULLS = {
    **dict.fromkeys("ifsdnmwby", 0),
    "at": 0,
    "l": 5,
    "k": 0,
    "o": {"i": 5, "z": {"i": 1}},
}
STATS = {"numRecords": 5, "minValues": LOW, "maxValues": HIGH, "nullCount": NULLS}
moment = dt.datetime(2024, 1, 20, tzinfo=UTC)
micro = dt.timedelta(microseconds=1)


def verdict(
    predicate: Expr, stats: Any = STATS, texts: dict[str, str | None] | None = None
) -> bool | None:
    bound = bind_predicate(predicate, SIMPLE)
    columns = TableColumns.of(SIMPLE, "none", table="t")
    found = skipping_for(bound, columns, ["p", "q", "e"])
    if found is None:
        return None
    chosen: dict[str, str | None] = {"p": "3", "q": "x", "e": "2024-05-31"}
    chosen = chosen if texts is None else texts
    file = DataFile([], chosen, stats if isinstance(stats, str | None) else json.dumps(stats))
    (row,) = adds([file], found).select(keep=found.keep).to_pylist(engine="arrow")
    answer: bool | None = row["keep"]
    return answer


SKIPPED = [
    col("i") < 10,
    col("i") <= 9,
    col("i") > 20,
    col("i") >= 21,
    col("i") == 9,
    col("i") == 9,
    col("i") == 21,
    lit(9) == col("i"),
    lit(10) > col("i"),
    lit(21) <= col("i"),
    col("i") < 10,
    ~(col("i") >= 10),
    ~((col("i") >= 10) | (col("p") == 3)),
    col("i").isin([9, 21, None]),
    col("i").isin([*range(-50, 10)]),
    col("i").between(21, 30),
    col("i").same_as(9),
    col("i").same_as(None),
    col("i").is_null(),
    ~col("i").is_not_null(),
    col("i") == lit(None, t.LONG),
    ~(col("i") == lit(None, t.LONG)),
    ~col("i").isin([15, None]),
    col("i").cast(t.DOUBLE) > 20.5,
    col("i").cast(t.Decimal(30, 3)) < D("9.999"),
    (col("i") > 20) & (col("s") > col("q")),
    (col("i") > 20) | (col("d") > dt.date(2024, 1, 20)),
    col("f") < 1.5,
    col("f") == 2.6,
    col("f").isin([1.4, 2.6]),
    col("s") < "bear",
    col("s") > "d",
    col("s") == "d",
    col("s").starts_with("d"),
    col("s").starts_with("bea0"),
    col("s").like("d%"),
    col("s").like("bea\\_%"),
    col("d") > dt.date(2024, 1, 20),
    col("d").cast(t.TIMESTAMP) > moment,
    col("at") > moment + 999 * micro,
    col("at") < dt.datetime(2024, 1, 10, tzinfo=UTC),
    col("at").cast(t.DATE) > dt.date(2024, 1, 20),
    col("at").cast(t.DATE) < dt.date(2024, 1, 10),
    col("n") > dt.datetime(2024, 1, 20, 1),
    col("m") > D("2.50"),
    col("m") == D("1.49"),
    col("w") > D("2.50001"),
    col("w") < D("1.49999"),
    col("w").cast(t.DOUBLE) > 2.6,
    ~col("b"),
    col("b") == False,  # noqa: E712
    col("l").is_not_null(),
    col("k").is_null(),
    path("o.i").is_not_null(),
    path("o.z.i") > 20,
    path("o.z.i").cast(t.LONG).cast(t.DOUBLE) > 20.5,
    col("p") == 4,
    col("p") + 0.5 > 4,
    ~(col("p") == 3),
    col("p").is_null(),
    col("p").isin([1, 2]),
    col("q").len() > 1,
    col("q") == col("p").cast(t.STRING),
    col("e") > dt.datetime(2024, 5, 31, tzinfo=UTC),
    (col("p") == 3) & (col("i") > 20),
    lit(False),
    lit(None, t.BOOLEAN),
]


@pytest.mark.parametrize("asked", SKIPPED, ids=str)
def test_skipped(asked: Expr) -> None:
    assert verdict(asked) is False


KEPT = [
    col("i") < 11,
    col("i") <= 10,
    col("i") > 19,
    col("i") >= 20,
    col("i") == 15,
    col("i") != 15,
    ~(col("i") < 10),
    col("i").isin([9, 15]),
    ~col("i").isin([10, 20]),
    ~col("i").same_as(9),
    col("i").is_not_null(),
    col("i") > col("p"),
    (col("i") > 20) | (col("s") > col("q")),
    col("f") > 100.0,
    col("f") >= 2.6,
    col("f") != 1.5,
    col("f") == math.nan,
    col("f") < math.nan,
    col("f").isin([100.0, math.nan]),
    ~(col("f") < 100.0),
    col("f").is_nan(),
    col("s") > "cat",
    col("s") > "catapult",
    col("s") == "catapult",
    col("s").starts_with("catap"),
    col("s").starts_with("b"),
    ~col("s").starts_with("b"),
    col("s").like("%d%"),
    ~col("s").like("d%"),
    col("s").upper() == "X",
    col("at") > moment,
    col("at") >= moment + 999 * micro,
    col("at") == moment + 999 * micro,
    col("at").same_as(moment + 5 * micro),
    col("n") > dt.datetime(2024, 1, 20),
    col("w") > D("2.50"),
    col("w") == D("2.5000000000"),
    col("b"),
    col("y") > b"z",
    col("l").is_null(),
    col("l").any(element() > 5),
    path("l[0]") > 5,
    path("k.a") > 5,
    col("o").is_null(),
    col("o").is_not_null(),
    path("o.i") > 5,  # only nulls, so there is no limit that would rule it out
    path("o.i").is_null(),
    path("o.z.i") >= 20,
    path("o.z.i").is_null(),
    path("o.z.i").is_not_null(),
    col("p") == 3,
    col("p").div(col("p")) == 7,  # might fail, so it is not tried
    col("q").cast(t.INTEGER) == 7,
    lit(True),
]


@pytest.mark.parametrize("asked", KEPT, ids=str)
def test_kept(asked: Expr) -> None:
    assert verdict(asked) is not False


def test_one_value_throughout() -> None:
    low = {"i": 7, "s": "x", "m": 7.5, "d": "2024-01-07", "f": 1.0, "w": 7.5}
    low["at"] = "2024-01-20T00:00:00.000Z"
    same = {"numRecords": 2, "minValues": low, "maxValues": low, "nullCount": dict.fromkeys(low, 0)}
    for asked in (
        *(col("i") != 7, ~(col("i") == 7), ~col("i").isin([1, 7]), ~col("i").same_as(7)),
        *(col("m") != D("7.50"), col("d") != dt.date(2024, 1, 7), ~col("s").starts_with("x")),
    ):
        assert verdict(asked, same) is False
    assert verdict(col("at").cast(t.DATE) != dt.date(2024, 1, 20), same) is False
    for asked in (
        *(col("s") != "x", col("f") != 1.0, col("w") != D("7.5"), col("i") == 7),
        *(col("at") != moment, ~col("at").isin([moment]), ~col("at").same_as(moment)),
    ):
        assert verdict(asked, same) is not False
    some_nulls = {**same, "nullCount": {"i": 1}}
    assert verdict(col("i") != 7, some_nulls) is False
    assert verdict(~col("i").same_as(7), some_nulls) is not False


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "{}",
        "not JSON",
        "[]",
        {},
        {"numRecords": 5},
        {"minValues": LOW},
        {"numRecords": 5, "minValues": {"i": None}, "nullCount": {"i": None}},
        {"numRecords": 5, "minValues": {"i": "x"}, "maxValues": {"i": [1]}, "nullCount": {"i": {}}},
        {"numRecords": 5, "minValues": {"i": 12.5}, "maxValues": {"i": 1e30}},
        {"minValues": [], "maxValues": 7, "nullCount": "x", "numRecords": "many"},
    ],
    ids=str,
)
def test_missing_and_odd_statistics_keep_a_file(stats: Any) -> None:
    for asked in (col("i") > 20, col("i") == 21, col("i").is_null(), col("i").is_not_null()):
        assert verdict(asked, stats) is None


def test_limits_that_are_not_numbers_say_nothing() -> None:
    poisoned = {"minValues": {"f": "NaN"}, "maxValues": {"f": "NaN"}}
    assert verdict(col("f") < 5.0, poisoned) is None
    assert verdict(col("f") == 5.0, poisoned) is not False


def test_patterns_with_escapes() -> None:
    one = {"minValues": {"s": "a_b"}, "maxValues": {"s": "a_b"}, "nullCount": {"s": 0}}
    assert verdict(col("s").like("a\\_b%"), one) is not False
    assert verdict(col("s").like("a\\%b%"), one) is False


def test_only_nulls() -> None:
    nulls = {"numRecords": 5, "minValues": {}, "maxValues": {}, "nullCount": {"i": 5, "f": 5}}
    assert verdict(col("i").is_not_null(), nulls) is False
    for asked in (col("i") > 0, col("i") != 7, col("f") > 1.0):
        assert verdict(asked, nulls) is None, "without limits, a comparison rules nothing out"
        assert verdict(~asked, nulls) is None
    assert verdict(col("i").is_null(), nulls) is True
    assert verdict(col("i").same_as(None), nulls) is True


@pytest.mark.parametrize(
    ("text", "asked", "kept"),
    [
        (None, col("p") == 3, False),
        (None, col("p").is_null(), True),
        ("", col("p").is_null(), True),
        ("", col("p") == 3, False),
        ("three", col("p") == 4, None),
        ("three", col("p").is_null(), None),
        (" 3", col("p") == 3, True),
        (" 3", col("p") == 4, False),
    ],
)
def test_texts_of_partition_values(text: str | None, asked: Expr, kept: bool | None) -> None:
    assert verdict(asked, texts={"p": text}) is kept


def test_a_missing_partition_value_is_null() -> None:
    assert verdict(col("p").is_null(), texts={}) is True
    assert verdict(col("q") == "x", texts={}) is False
    assert verdict(col("q") == "", texts={"q": ""}) is True


def test_only_what_is_needed_is_read() -> None:
    columns = TableColumns.of(SIMPLE, "none", table="t")

    def needs(asked: Expr) -> str | None:
        found = skipping_for(bind_predicate(asked, SIMPLE), columns, ["p", "q", "e"])
        return None if found is None else str(found.stats)

    assert needs(col("p") == 3) == "struct<>"
    assert needs(path("o.z.i").is_null()) == (
        "struct<nullCount: struct<o: struct<z: struct<i: long>>>>"
    )
    assert needs(col("i") > 3) == "struct<maxValues: struct<i: long>>"
    assert needs(col("s").upper() == "X") is None
    assert needs((col("s").upper() == "X") & (col("p") == 3)) == "struct<>"
    assert needs((col("s").upper() == "X") | (col("p") == 3)) is None


def test_a_double_that_was_a_float_has_no_limits() -> None:
    changes = [{"fromType": "float", "toType": "double", "tableVersion": 1}]
    field = t.Field("f", t.DOUBLE).with_metadata({"delta.typeChanges": changes})
    columns = TableColumns.of(t.Struct((field,)), "none", table="t")
    asked = bind_predicate(col("f") == 0.10000000149011612, t.Struct.of(f=t.DOUBLE))
    found = skipping_for(asked, columns, [])
    assert found is not None
    assert "Values" not in str(found.stats)


def test_long_decimals_that_went_through_floating_point() -> None:
    """Floats have whole even numbers there, and the limit is not where the value is."""
    stats = {
        "numRecords": 1,
        "minValues": {"w": float("12345678901234569.0000000001")},
        "maxValues": {"w": float("12345678901234569.0000000001")},
        "nullCount": {"w": 0},
    }
    exact = D("12345678901234569.0000000001")
    for asked in (col("w") == exact, col("w") >= exact, col("w") <= exact, col("w") != exact - 1):
        assert verdict(asked, stats) is not False
    lower = {"w": float("12345678901234567.0000000001")}
    exact = D("12345678901234567.0000000001")
    assert D(lower["w"]) > exact
    assert verdict(col("w") <= exact, {**stats, "minValues": lower}) is not False
    assert verdict(col("w") > D("12345678901235567"), stats) is False
    assert verdict(col("w") < D("12345678901233567"), stats) is False


def test_ends_of_time_and_of_digits() -> None:
    assert verdict(col("at") >= dt.datetime.min.replace(tzinfo=UTC)) is not False
    assert verdict(col("at") <= dt.datetime.max.replace(tzinfo=UTC)) is not False
    assert verdict(col("w") < D("9" * 20 + "." + "9" * 10)) is not False
    assert verdict(col("w") > D("-" + "9" * 20)) is not False
    assert verdict(col("w").cast(t.DOUBLE) < math.inf) is not False


def test_split() -> None:
    asked = (
        (col("p") == 3)
        & (col("i") > 3)
        & ((col("q") == "x") | (col("p") == 4))
        & (col("i") > col("p"))
    )
    exact, others = split(bind_predicate(asked, SIMPLE), ["p", "q"])
    assert [str(part) for part in exact] == ["(p = 3)", "((q = 'x') or (p = 4))"]
    assert [str(part) for part in others] == ["(i > 3)", "(i > cast(p as long))"]


def test_a_long_predicate_is_no_deep_recursion() -> None:
    asked = col("i") > 20
    for _ in range(3000):
        asked = ~asked
    assert verdict(asked) is False
    wide = call("or", *(col("i") == n for n in range(30, 2030)))
    assert verdict(wide) is False

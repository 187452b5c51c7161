"""One plan of every kind, one expression of every class, literals of every type.

The tests of the wire form and of the visitors go over them; `test_samples.py` fails when a kind
has no sample.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.plan import aggregates as agg
from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.bound import BoundExpr, BoundLiteral
from millpond.plan.expr import col, element, lit, path
from millpond.plan.make import list_files, sql, stored, values
from millpond.plan.sources import STORED_ID, STORED_NAME, ColumnStats, CsvOptions, File, Scan
from millpond.testing.engine.parts import FirstOfKey, RunningSum, register

if TYPE_CHECKING:
    from millpond.plan.node import Plan

register()

SCHEMA = t.Struct.of(
    a=t.LONG,
    b=t.STRING,
    x=t.DOUBLE,
    n=t.INTEGER,
    day=t.DATE,
    at=t.TIMESTAMP,
    wall=t.TIMESTAMP_NTZ,
    price=t.Decimal(10, 2),
    raw=t.BINARY,
    flag=t.BOOLEAN,
    place=t.Struct.of(lat=t.DOUBLE, name=t.STRING),
    tags=t.List(t.STRING),
    items=t.List(t.Struct.of(k=t.STRING, v=t.LONG)),
    attrs=t.Map(t.STRING, t.LONG),
    text=t.STRING,
)


def rows() -> Plan:
    """An empty table in memory with a column of most types."""
    return values([], SCHEMA)


def _scan() -> Plan:
    files = (
        File("data/one.csv", 10, None, (1, dt.date(2024, 1, 1))),
        File("data/ü 2.csv", None, 7, (None, None)),
    )
    columns = t.Struct.of(a=t.STRING, p=t.LONG, d=t.DATE)
    stats = (ColumnStats("a", "x", "z", 0.25, 12), ColumnStats("p", 1, None))
    return Scan("csv", files, columns, ("p", "d"), CsvOptions(";", "'", False), stats)


_INNER = t.Field("x", t.LONG).with_metadata({STORED_ID: 7, "note": "kept"})
_STORED = t.Field("v", t.List(t.Struct((_INNER,)))).with_metadata({STORED_NAME: "col-é"})

NODES: dict[str, Plan] = {
    "ListFiles": list_files("/log", start_from="/log/7"),
    "Scan": _scan(),
    "DynamicScan": values([], t.Struct.of(path=t.STRING, p=t.LONG, dv=t.List(t.LONG))).dynamic_scan(
        t.Struct((_STORED, t.Field("p", t.LONG))), constants=["p"], deleted="dv"
    ),
    "Values": values(pa.table({"a": [1, None, 3], "s": ["x", "é", None]})),
    "Stored": stored("/sensors/north", t.Struct.of(at=t.TIMESTAMP, level=t.DOUBLE)),
    "Filter": rows().filter((col("a") > 3) & path("items").any(path("v") == 1)),
    "FilterOrdered": rows().filter_ordered(FirstOfKey("b")),
    "Project": rows().select("a", y=col("x") * 2, c=col("n").cast(t.STRING)),
    "ParseJson": rows().parse_json("text", t.Struct.of(k=t.LONG), output="parsed"),
    "Union": rows().union(rows().filter(col("flag"))),
    "Join": rows().select("a").join(rows().select("a", "b"), on=[("a", "a")], how="semi"),
    "Aggregate": rows().aggregate(
        "b", n=agg.count(), s=agg.sum("a", where=col("flag")), m=agg.mean("price")
    ),
    "Sort": rows().sort(col("x").desc(nulls="first"), "a"),
    "TopK": rows().top_k(3, "at"),
    "Head": rows().head(3),
    "Tail": rows().tail(4),
    "Take": rows().take([3, 0, 3]),
    "Sample": rows().sample(fraction=0.5, seed=-7),
    "Shuffle": rows().shuffle(seed=2**62),
    "StatefulFunction": rows().stateful(
        "total", RunningSum(5), "a", where=col("flag"), partition_by=["b"]
    ),
    "Window": rows().window(
        "w", "sum", "a", partition_by=["b"], order_by=[col("at").desc()], rows=(-2, None)
    ),
    "Sql": sql("SELECT a FROM t", schema=t.Struct.of(a=t.LONG), t=rows()),
}

EXPRESSIONS: dict[str, BoundExpr] = {
    "BoundPath": bind(path("items[*].v"), SCHEMA),
    "BoundLiteral": bind(lit(3), SCHEMA),
    "BoundCall": bind(col("a") + 1, SCHEMA),
    "BoundCast": bind(col("b").cast(t.DATE, on_error="null"), SCHEMA),
    "BoundParseJson": bind(col("text").parse_json(t.List(t.LONG)), SCHEMA),
    "BoundQuantifier": bind(col("tags").all(element() != "x"), SCHEMA),
}

_UTC = dt.datetime(2024, 5, 31, 12, 0, 0, 123456, dt.UTC)
VALUES: list[tuple[Any, t.DataType]] = [
    (None, t.NULL),
    (None, t.List(t.LONG)),
    (True, t.BOOLEAN),
    (-128, t.BYTE),
    (2**15 - 1, t.SHORT),
    (-(2**31), t.INTEGER),
    (2**63 - 1, t.LONG),
    (-(2**63), t.LONG),
    (0.5, t.FLOAT),
    (float("nan"), t.DOUBLE),
    (float("-inf"), t.DOUBLE),
    (-0.0, t.DOUBLE),
    (5e-324, t.DOUBLE),
    (decimal.Decimal("12345678901234567890123456789012345678"), t.Decimal(38, 0)),
    (decimal.Decimal("-0.05"), t.Decimal(5, 2)),
    ("", t.STRING),
    ("a'b\n日本\U0001f38f\x00", t.STRING),
    (b"", t.BINARY),
    (b"\x00\xff", t.BINARY),
    (dt.date(1, 1, 1), t.DATE),
    (dt.date(9999, 12, 31), t.DATE),
    (_UTC, t.TIMESTAMP),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), t.TIMESTAMP),
    (_UTC.replace(tzinfo=None), t.TIMESTAMP_NTZ),
]
LITERALS = [BoundLiteral(value, type_) for value, type_ in VALUES]

"""Edge tables: one schema with a column of every type, and the data that engines trip over."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

from millpond.plan.arrow import to_arrow_schema
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
    Decimal,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = Struct.of(
    id=LONG,
    flag=BOOLEAN,
    tiny=BYTE,
    small=SHORT,
    num=INTEGER,
    big=LONG,
    single=FLOAT,
    real=DOUBLE,
    price=Decimal(20, 4),
    name=STRING,
    blob=BINARY,
    day=DATE,
    at=TIMESTAMP,
    wall=TIMESTAMP_NTZ,
    place=Struct.of(x=LONG, deep=Struct.of(z=STRING, w=List(LONG))),
    tags=List(STRING),
    nums=List(DOUBLE),
    items=List(Struct.of(k=STRING, v=LONG, sub=List(Struct.of(q=DOUBLE)))),
    attrs=Map(STRING, LONG),
)

NAN = float("nan")
INF = float("inf")
UTC = dt.UTC


def _row(number: int, **given: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    return {**base, "id": number, **given}


def _full(n: int) -> dict[str, Any]:
    """An ordinary row whose values repeat with different periods, so that keys tie."""
    return _row(
        n,
        flag=n % 3 == 0,
        tiny=n % 100 - 50,
        small=(n * 7) % 1000 - 500,
        num=(n * 37) % 101,
        big=(n * 7919) % 1009 - 500,
        single=float((n * 13) % 17) / 4,
        real=float((n * 31) % 97) / 8 - 3,
        price=D((n * 53) % 1000) / 100,
        name=f"name-{(n * 11) % 23:02d}",
        blob=bytes([n % 256, 1]),
        day=dt.date(2024, 1, 1) + dt.timedelta(days=n % 40),
        at=dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(minutes=7 * (n % 90)),
        wall=dt.datetime(2024, 1, 1) + dt.timedelta(seconds=90 * (n % 50)),  # noqa: DTZ001
        place={"x": n % 5, "deep": {"z": "abc"[n % 3], "w": list(range(n % 4))}},
        tags=["p0", "p1", "p2"][: n % 4],
        nums=[float(n), float(n % 7)][: n % 3],
        items=[{"k": f"k{n % 4}", "v": n, "sub": [{"q": n / 2}] * (n % 3)}] * (n % 3),
        attrs=[("a", n), ("b", n % 2)][: n % 3],
    )


def _nulls(n: int) -> dict[str, Any]:
    """An ordinary row with nulls at every level, in a pattern that differs for each column."""
    row = _full(n)
    for position, key in enumerate(SCHEMA.names[1:], start=2):
        if n % position == 0:
            row[key] = None
    if row["place"] is not None and n % 5 == 1:
        row["place"] = {"x": None, "deep": None}
    if row["tags"] and n % 4 == 3:
        row["tags"] = [None, "p0", None]
    if n % 7 == 5:
        row["items"] = [None, {"k": None, "v": None, "sub": None}, {"k": "k1", "v": 2, "sub": []}]
    if n % 6 == 5:
        row["attrs"] = [("a", None)]
    return row


EXTREMES: list[dict[str, Any]] = [
    _row(0, real=NAN, single=NAN, big=2**63 - 1, num=2**31 - 1, small=2**15 - 1, tiny=127),
    _row(1, real=-0.0, single=-0.0, big=-(2**63), num=-(2**31), small=-(2**15), tiny=-128),
    _row(2, real=0.0, single=0.0, big=0, num=0, small=0, tiny=0, flag=True),
    _row(3, real=INF, single=INF, price=D("9999999999999999.9999"), big=2**53 + 1),
    _row(4, real=-INF, single=-INF, price=D("-9999999999999999.9999"), big=2**53),
    _row(5, real=5e-324, single=1e-45, price=D("0.0001"), name="", tags=[], items=[], attrs=[]),
    _row(6, real=1.7976931348623157e308, name="ß İ \u0131 ǅ", blob=b"", nums=[NAN, -0.0, 0.0, INF]),
    _row(7, real=NAN, name="日本語🎏", blob=b"\x00\xff\xfe", nums=[NAN], flag=False),
    _row(8, real=0.1, single=0.10000000149011612, name="a'b\"c\\d`e\nf\tg", tags=["", "'"]),
    _row(9, day=dt.date(1, 1, 1), at=dt.datetime(1900, 1, 1, tzinfo=UTC), name="%_\\"),
    _row(10, day=dt.date(9999, 12, 31), at=dt.datetime(2262, 4, 12, tzinfo=UTC), name=" a "),
    _row(11, day=dt.date(1969, 12, 31), at=dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    _row(12, wall=dt.datetime(1582, 10, 4, 1, 2, 3), place={"x": 1, "deep": None}),  # noqa: DTZ001
    _row(
        13,
        wall=dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        place={"x": None, "deep": {"z": None, "w": []}},
    ),
    _row(14, items=[{"k": "", "v": 2**63 - 1, "sub": [{"q": NAN}, None, {"q": None}]}, None]),
    _row(15, attrs=[("", 1), ("日", None), ("a", -5)], tags=[None]),
]

_ROWS: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "one": [_full(4)],
    "all_null": [_row(n) for n in range(3)],
    "ordinary": [_full(n) for n in range(60)],
    "nulls": [_nulls(n) for n in range(60)],
    "extremes": EXTREMES,
}

EDGES = tuple(_ROWS)
"""The names of the edge tables."""


def edge_table(name: str) -> pa.Table:
    """An edge table by name."""
    import pyarrow as pa

    return pa.Table.from_pylist(_ROWS[name], schema=to_arrow_schema(SCHEMA))

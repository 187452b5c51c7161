"""Awkward JSON, on both engines, in a column and as lines of a file."""

from __future__ import annotations

from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.plan.expr import path
from millpond.plan.make import values
from millpond.plan.sources import File, Scan
from millpond.plan.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

INF = float("inf")
# the type of the member v, then texts and what v is read as
CASES: list[tuple[DataType, dict[str, Any]]] = [
    (LONG, {'{"v":12.0}': None, '{"v":-0}': 0, '{"v":1e3}': None, '{"v":"1"}': None}),
    (LONG, {'{"v":9223372036854775807}': 2**63 - 1, '{"v":9223372036854775808}': None}),
    (
        LONG,
        {'{"v":1,"v":2}': 2, '{"v":1,"v":"x"}': 1, '{"v":"x","v":1}': 1, '{"v":1,"v":null}': None},
    ),
    (LONG, {'{"z":"\\ud800","v":1}': 1, '{"z":NaN,"v":1}': 1, '{"z":1e99999,"v":1}': 1}),
    (LONG, {'{"\\u0076":1}': 1, '{"V":1}': None, '{ "v" :\t1 } ': 1, '{"z":{"v":2},"v":1}': 1}),
    (LONG, {f'{{"z":{"[" * 500}{"]" * 500},"v":1}}': 1}),
    (DOUBLE, {'{"v":-0}': 0.0, '{"v":-0.0}': -0.0, '{"v":1e400}': INF, '{"v":"-Infinity"}': -INF}),
    (DOUBLE, {'{"v":9007199254740993}': 2.0**53, '{"v":18446744073709551617}': 2.0**64}),
    (FLOAT, {'{"v":1.00000005960464477539062500001}': 1.0 + 2.0**-23, '{"v":-0}': 0.0}),
    (STRING, {'{"v":1.50}': "1.5", '{"v":"\\ud800x"}': "?x", '{"v":"\\ud83d\\ude00"}': "😀"}),
    (STRING, {'{"v":{"x":1, "x":2}}': '{"x":1,"x":2}', '{"v":null}': None, '{"v":""}': ""}),
    (Map(STRING, STRING), {'{"v":{"x":"1","x":"2"}}': [("x", "2")], '{"v":{}}': []}),
    (Map(STRING, STRING), {'{"v":{"x":1.50,"y":null}}': [("x", "1.5"), ("y", None)]}),
    (Map(STRING, STRING), {'{"v":{"\\ud800":"x"}}': [("?", "x")], '{"v":[]}': None}),
    (
        Map(STRING, LONG),
        {'{"v":{"x":"1","x":1}}': None, '{"v":{"x":1,"y":2}}': [("x", 1), ("y", 2)]},
    ),
    (
        Map(STRING, DATE),
        {'{"v":{"x":"no day","x":null}}': [("x", None)], '{"v":{"x":null,"x":"no day"}}': None},
    ),
    (
        Map(STRING, Decimal(5, 2)),
        {'{"v":{"x":99999,"x":1}}': None, '{"v":{"x":1,"x":2}}': [("x", D("2.00"))]},
    ),
    (BYTE, {'{"v":127}': 127, '{"v":128}': None, '{"v":255}': None, '{"v":-129}': None}),
    (List(BYTE), {'{"v":[1,200]}': None, '{"v":[1,null]}': [1, None]}),
    (Map(STRING, BYTE), {'{"v":{"x":200}}': None, '{"v":{"x":-128}}': [("x", -128)]}),
    (DATE, {'{"v":"2024-05-31","v":"no day"}': None, '{"v":"2024-05-31","v":5}': None}),
    (Map(STRING, List(DATE)), {'{"v":{"x":["no day"],"x":[]}}': [("x", [])]}),
    (
        List(INTEGER),
        {'{"v":[1,null]}': [1, None], '{"v":[1,12345678901]}': None, '{"v":[1.0]}': None},
    ),
    (Struct.of(x=LONG), {'{"v":{}}': {"x": None}, '{"v":null}': None, "{}": None, '{"v":1}': None}),
    (Struct.of(x=LONG), {'{"v":{"x":1},"v":{}}': {"x": None}, '{"v":{"x":1},"v":7}': {"x": 1}}),
]
BOTH = [(type_, list(texts), list(texts.values())) for type_, texts in CASES]


def column(plan: Plan, engine: Executor) -> list[Any]:
    run = engine.execute(plan)
    return [row["v"] for batch in run for row in batch.to_pylist()]


@pytest.mark.parametrize(("type_", "texts", "wanted"), BOTH, ids=lambda value: str(value)[:40])
def test_a_column(engine: Executor, type_: DataType, texts: list[str], wanted: list[Any]) -> None:
    plan = values(pa.table({"id": range(len(texts)), "t": texts}))
    parsed = plan.parse_json("t", Struct.of(v=type_), output="p").sort("id").select(v=path("p.v"))
    assert repr(column(parsed, engine)) == repr(wanted)


@pytest.mark.parametrize(("type_", "texts", "wanted"), BOTH, ids=lambda value: str(value)[:40])
def test_lines(
    engine: Executor, type_: DataType, texts: list[str], wanted: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "x.json"
    file.write_text("\n".join(texts))
    plan = Scan("json", (File(str(file)),), Struct.of(v=type_), on_error="null")
    assert repr(column(plan, engine)) == repr(wanted)

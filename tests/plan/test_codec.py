"""The wire form: everything there and back, digests that are the same everywhere."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.plan import samples
from tests.plan.strategies import SCHEMA, predicates

from millpond.base.errors import PlanError, PluginError
from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.codec import VERSION, dumps, expressions_of, loads
from millpond.plan.expr import Expr, col, lit, path
from millpond.plan.make import values
from millpond.plan.node import NODES, Plan, Unary
from millpond.plan.order import Head
from millpond.plan.rows import Filter
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from millpond.plan.bound import BoundLiteral


@pytest.mark.parametrize("kind", sorted(samples.NODES))
def test_every_node_goes_there_and_back(kind: str) -> None:
    plan = samples.NODES[kind]
    back = loads(dumps(plan))
    assert back == plan
    assert back.schema == plan.schema
    assert str(back) == str(plan)
    assert dumps(back) == dumps(plan)
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize("kind", sorted(samples.EXPRESSIONS))
def test_every_expression_goes_there_and_back(kind: str) -> None:
    expr = samples.EXPRESSIONS[kind]
    back = loads(dumps(expr))
    assert back == expr
    assert back.type == expr.type
    assert type(back) is type(expr)


@pytest.mark.parametrize("literal", samples.LITERALS, ids=repr)
def test_every_literal_goes_there_and_back(literal: BoundLiteral) -> None:
    back = loads(dumps(literal))
    assert back == literal
    assert back.type == literal.type
    assert type(back.value) is type(literal.value)
    assert repr(back.value) == repr(literal.value)


@given(predicates())
def test_random_expressions_go_there_and_back(expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    back = loads(dumps(bound))
    assert back == bound
    assert str(back) == str(bound)


def test_literals_that_look_alike_differ() -> None:
    alike = [
        *(lit(1), lit(1, t.INTEGER), lit(1.0), lit("1"), lit(True), lit(b"1")),
        *(lit(0.0), lit(-0.0), lit(float("nan")), lit(None), lit(None, t.LONG)),
        *(lit("2024-01-01"), lit("2024-01-01", t.DATE), lit("2024-01-01", t.TIMESTAMP)),
    ]
    bound = [bind(item, SCHEMA) for item in alike]
    assert len({item.digest for item in bound}) == len(bound)
    assert bind(lit(float("nan")), SCHEMA) == bind(lit(float("nan")), SCHEMA)


def test_different_plans_differ() -> None:
    digests = {plan.digest for plan in samples.NODES.values()}
    assert len(digests) == len(samples.NODES)
    base = samples.rows()
    changed = [base, base.head(3), base.head(4), base.tail(3), base.head(3).head(3)]
    assert len({plan.digest for plan in changed}) == len(changed)
    assert len({*changed, *changed}) == len(changed)


def test_rows_without_columns_count() -> None:
    one, two = values([{}]), values([{}, {}])
    assert one != two
    back = loads(dumps(two))
    assert back == two
    assert back.to_pylist(engine="arrow") == [{}, {}]


def test_a_part_of_a_node_counts() -> None:
    scan = samples.NODES["Scan"]
    assert isinstance(scan, Scan)
    others = [
        replace(scan, files=scan.files[:1]),
        replace(scan, files=(replace(scan.files[0], size=11), scan.files[1])),
        replace(scan, stats=()),
        replace(scan, csv=None),
    ]
    assert len({scan.digest, *(other.digest for other in others)}) == 5


PINNED = "71903d78f8e3cf21996f900ea8d7d53d"


def _pinned_plan() -> Plan:
    columns = t.Struct.of(id=t.LONG, name=t.STRING, at=t.TIMESTAMP)
    scan = Scan("parquet", (File("part-0.parquet", 100, 7),), columns)
    return scan.filter((col("id") > 3) & (col("name") != "é")).select("id", y=col("id") / 2).head(5)


def test_the_digest_is_pinned() -> None:
    """It names plans in stores and logs: a change here is a new version of the wire form."""
    assert _pinned_plan().fingerprint == PINNED


_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.plan import samples
from tests.plan.test_codec import _pinned_plan
print(_pinned_plan().fingerprint)
for kind in sorted(samples.NODES):
    print(kind, samples.NODES[kind].fingerprint)
"""


@pytest.mark.parametrize("seed", ["0", "1234"])
def test_digests_are_the_same_in_every_process(seed: str) -> None:
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(root=root)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    expected = [PINNED, *(f"{k} {samples.NODES[k].fingerprint}" for k in sorted(samples.NODES))]
    assert ran.stdout.splitlines() == expected


def test_sharing_survives_the_wire() -> None:
    base = samples.rows().filter(col("a") > 1)
    plan = base.union(base, base)
    back = loads(dumps(plan))
    assert back.children[0] is back.children[1] is back.children[2]
    assert (
        len(json.loads(dumps(plan))["nodes"]) == 6
    )  # values, column, literal, call, filter, union


def test_file_names_of_any_bytes_are_kept() -> None:
    scan = Scan("parquet", (File("bad \udcff name"),), t.Struct.of(a=t.LONG))
    assert loads(dumps(scan)) == scan


def test_values_travel_with_the_plan() -> None:
    table = pa.table({"a": pa.chunked_array([[1], [None, 3]]), "s": ["x", "é", None]})
    back = loads(dumps(values(table)))
    assert back.data.equals(table.combine_chunks())
    empty = loads(dumps(samples.rows()))
    assert empty.data.num_rows == 0
    assert empty.schema == samples.SCHEMA


def test_unbound_expressions_travel_too() -> None:
    expr = (col("a").cast(t.LONG) > 1) & path("t").any(col("k") == "x")
    assert str(loads(dumps(expr))) == str(expr)
    assert str(loads(dumps(col("s").parse_json(t.List(t.LONG))))) == "parse_json(s as list<long>)"


def _document(**changes: Any) -> str:
    good = json.loads(dumps(samples.rows().head(3)))
    return json.dumps({**good, **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "{}",
        '{"millpond": 1}',
        _document(root=99),
        _document(root=-1),
        _document(root="0"),
        _document(root=True),
        _document(nodes=5),
        _document(nodes=[]),
        _document(nodes=[5], root=0),
        _document(nodes=[{"$": "Name", "name": "a"}], root=0),
        _document(nodes=[{"$": "Nope"}], root=0),
        _document(nodes=[{"$": ["Head"]}], root=0),
        _document(nodes=[{"$": "Head", "input": {"#": 0}, "n": 3}], root=0),
        _document(nodes=[{"$": "Head", "input": None, "n": 3}], root=0),
        _document(nodes=[{"$": "Head", "rows": 3}], root=0),
        _document(nodes=[{"$": "Stored", "path": "/a", "columns": {"$type": "lonk"}}], root=0),
        _document(nodes=[{"$": "Stored", "path": 5, "columns": {"$type": "long"}}], root=0),
        _document(nodes=[{"$": "Values", "data": {"$arrow": "!!"}}], root=0),
        _document(nodes=[{"$": "Values", "data": {"$arrow": "AAAA"}}], root=0),
        _document(nodes=[{"$": "Values", "data": {"$what": 1}}], root=0),
        _document(nodes=[{"$": "Values", "data": {}}], root=0),
        _document(
            nodes=[{"$": "BoundLiteral", "value": {"$float": "x"}, "type": {"$type": "double"}}]
        ),
        _document(nodes=[{"$": "BoundLiteral", "value": "x", "type": {"$type": "double"}}], root=0),
        _document(
            nodes=[
                {"$": "BoundLiteral", "value": {"$decimal": "x"}, "type": {"$type": "decimal(2,1)"}}
            ],
        ),
        '{"millpond": 1, "root": 0, "nodes": [' + "[" * 100_000,
        '{"millpond": 1, "root": 0, "nodes": ' + "[" * 900 + "]" * 900 + "}",
    ],
    ids=lambda text: text[:60],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        loads(text)


def test_another_version_is_refused() -> None:
    with pytest.raises(PlanError, match=f"version 99 can't be read, only of version {VERSION}"):
        loads(_document(millpond=99))


def test_nodes_are_checked_again_when_they_are_read() -> None:
    text = dumps(samples.rows().filter(col("a") > 3))
    with pytest.raises(PlanError):
        loads(text.replace('"BoundCall"', '"BoundCast"'))
    with pytest.raises(PlanError, match="unknown function 'gtt'"):
        loads(text.replace('"gt"', '"gtt"'))
    with pytest.raises(PlanError, match="no column 'zz'"):
        loads(text.replace('"name":"a"}', '"name":"zz"}', 2).replace('"zz","nullable"', '"a","n"'))


def test_unknown_plugins_are_named() -> None:
    text = dumps(samples.NODES["FilterOrdered"]).replace("testing.first_of_key", "acme.dedup")
    with pytest.raises(PluginError, match=r"'acme\.dedup' is not in millpond.row_filters"):
        loads(text)


def test_what_can_not_be_part_of_a_plan_is_refused() -> None:
    scan = Scan("parquet", (File("a", constants=(object(),)),), t.Struct.of(a=t.LONG), ("a",))
    with pytest.raises(PlanError, match="a object can't be part of a plan"):
        dumps(scan)
    with pytest.raises(PlanError, match="a object can't be part of a plan"):
        scan.digest  # noqa: B018


def test_a_plugins_node_needs_nothing_here() -> None:
    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Skip(Unary, Plan):
        """All rows but the first ones."""

        input: Plan
        n: int

        def __post_init__(self) -> None:
            self._set_schema(self.input.schema)

    try:
        plan = Skip(samples.rows(), 3).head(2)
        back = loads(dumps(plan))
        assert back == plan
        assert isinstance(back.children[0], Skip)
        text = dumps(plan)
    finally:
        del NODES["Skip"]
    with pytest.raises(PlanError, match="unknown part of a plan: 'Skip'"):
        loads(text)


def test_functions_of_a_node() -> None:
    plan = samples.rows().filter((col("a") + 1 > 3) & col("items").any(path("v").is_null()))
    assert isinstance(plan, Filter)
    assert sorted(expressions_of(plan)) == ["add", "and", "gt", "is_null"]
    assert not list(expressions_of(Head(plan, 3)))

"""Schemas as Delta's JSON: every type there and back, every malformed text refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.plan.strategies import data_types, schemas

from millpond.base.errors import PlanError, SchemaError
from millpond.plan import types as t
from millpond.plan.typejson import (
    MAX_DEPTH,
    schema_from_json,
    schema_to_json,
    type_from_dict,
    type_to_dict,
)


@given(schemas())
def test_schemas_round_trip(schema: t.Struct) -> None:
    assert schema_from_json(schema_to_json(schema)) == schema


@given(data_types())
def test_types_round_trip_as_plain_data(type_: t.DataType) -> None:
    assert type_from_dict(json.loads(json.dumps(type_to_dict(type_)))) == type_


def test_the_form_is_deltas() -> None:
    schema = t.Struct((t.Field("a", t.List(t.Decimal(5, 2), False), False),))
    assert json.loads(schema_to_json(schema)) == {
        "type": "struct",
        "fields": [
            {
                "name": "a",
                "type": {"type": "array", "elementType": "decimal(5,2)", "containsNull": False},
                "nullable": False,
                "metadata": {},
            }
        ],
    }


def test_what_writers_leave_out_has_a_default() -> None:
    text = '{"type":"struct","fields":[{"name":"m","type":{"type":"map","keyType":"string",'
    text += '"valueType":"decimal"}},{"name":"d","type":"decimal( 4 , 1 )","metadata":null}]}'
    expected = t.Struct.of(m=t.Map(t.STRING, t.Decimal(10, 0)), d=t.Decimal(4, 1))
    assert schema_from_json(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ('"long"', "a schema is a struct, not long"),
        ("3", "not a type: 3"),
        ("null", "not a type: null"),
        ('{"type":"struct"}', "lacks its 'fields'"),
        ('{"type":"struct","fields":null}', "not a struct type"),
        ('{"type":"struct","fields":[1]}', "not a struct type"),
        ('{"type":"struct","fields":[{"name":"a"}]}', "lacks its 'type'"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "lacks its 'name'"),
        ('{"type":"struct","fields":[{"name":1,"type":"long"}]}', "a text, not 1"),
        ('{"type":"struct","fields":[{"name":"a","type":"int"}]}', "unknown type 'int'"),
        ('{"type":"struct","fields":[{"name":"a","type":"decimal(50,2)"}]}', "can't exist"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":[1]}]}', "not an object"),
        ('{"type":"array"}', "lacks its 'elementType'"),
        ('{"type":"map","keyType":"string"}', "lacks its 'valueType'"),
        ('{"type":"enum"}', "not a type"),
    ],
)
def test_malformed_schemas_are_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        schema_from_json(text)


def test_two_fields_of_one_name_are_refused() -> None:
    field = '{"name":"a","type":"long"}'
    with pytest.raises(SchemaError, match="stands twice"):
        schema_from_json(f'{{"type":"struct","fields":[{field},{field}]}}')


def _nested(levels: int) -> str:
    start = '{"type":"struct","fields":[{"name":"a","type":' * levels
    return start + '"long"' + "}]}" * levels


def test_deep_schemas_are_read_up_to_a_limit() -> None:
    found = schema_from_json(_nested(MAX_DEPTH))
    assert schema_from_json(schema_to_json(found)) == found
    for levels in (MAX_DEPTH + 1, 400, 100_000):
        with pytest.raises(SchemaError, match="nested deeper"):
            schema_from_json(_nested(levels))

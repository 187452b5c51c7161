"""The oracles notice each way in which a value can be changed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.fuzz.oracles import json_objects, json_says, parse_json, says

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

RIGHT: list[tuple[str, Any]] = [
    ("", None),
    ("", ""),
    ("1", 1),
    ("1", "1"),
    ("1", 1.0),
    ("-0.0", -0.0),
    ("0.1", 0.1),
    ("9007199254740993", 9007199254740993),
    ("18446744073709551616", Decimal(2**64)),
    ("true", True),
    ("2026-03-01T12:00:00Z", NOON),
    ("2026-03-01T14:00:00+02:00", NOON),
    ("2026-03-01T12:00:00", NOON.replace(tzinfo=None)),
    ("2026-03-01", date(2026, 3, 1)),
]
WRONG: list[tuple[str, Any]] = [
    ("x", None),
    ("007", 7),
    ("9007199254740993", 9007199254740992.0),
    ("9223372036854775808", 9.3e18),
    ("1e400", float("inf")),
    ("nan", float("nan")),
    ("1.5", 1),
    ("1", True),
    (" a ", "a"),
    ("2026-03-01T12:00:00Z", NOON.replace(tzinfo=None)),
    ("2026-03-01T12:00:00", NOON),
    ("2026-03-01T13:00:00Z", NOON),
]


@pytest.mark.parametrize(("text", "value"), RIGHT)
def test_what_a_field_says(text: str, value: Any) -> None:
    assert says(text, value)


@pytest.mark.parametrize(("text", "value"), WRONG)
def test_what_a_field_does_not_say(text: str, value: Any) -> None:
    assert not says(text, value)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"a": 1, "b": null}', {"a": 1, "b": None}),
        ('{"a": 1}', {"a": 1, "b": None}),
        ('{"a": {"x": [1, 2.5]}}', {"a": {"x": [1.0, 2.5]}}),
        ('{"a": [1, "x"]}', {"a": '[1, "x"]'}),
        ('{"a": "2026-03-01T12:00:00Z"}', {"a": NOON}),
        ('{"a": 1}', {"a": "1"}),
    ],
)
def test_what_json_says(text: str, row: Any) -> None:
    assert json_says(parse_json(text), row)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"a": 1}', {"a": None}),
        ('{"a": 1}', {}),
        ('{"a": 9007199254740993}', {"a": 9007199254740992.0}),
        ('{"a": 1}', {"a": True}),
        ('{"a": [1]}', {"a": [1, 2]}),
        ('{"a": "2026-03-01T12:00:00Z"}', {"a": NOON.replace(tzinfo=None)}),
        ('{"a": 1e400}', {"a": float("inf")}),
        ('{"a": "1"}', {"a": 1}),
        ('{"a": 1}', {"a": "2"}),
        ('{"a": {"x": 1}}', {"a": {"x": None}}),
    ],
)
def test_what_json_does_not_say(text: str, row: Any) -> None:
    assert not json_says(parse_json(text), row)


def test_json_without_a_clear_meaning_has_no_oracle() -> None:
    assert json_objects(b'{"a": 1, "a": 2}') is None
    assert json_objects(b'{"a": NaN}') is None
    assert json_objects(b"[1]") is None
    assert json_objects(b'{"a": 1}\n\n{"b": 2}\n') is not None

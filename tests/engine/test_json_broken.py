"""Texts that break off, or go wrong inside, on both engines: nothing of them is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import SourceError
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, DataType, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor

WHOLE = (
    '{"a": 1, "b": [1, 2, {"x": [3]}], "c": {"d": "t,}]", "e": null}, "f": "x\\"y", "m": {"k": 1}}'
)
TYPE = Struct.of(
    a=LONG,
    b=List(LONG),
    c=Struct.of(d=STRING, e=LONG),
    m=Map(STRING, LONG),
)
# What is read of the whole text: of the list one element is no number.
FOUND: dict[str, Any] = {"a": 1, "b": None, "c": {"d": "t,}]", "e": None}, "m": [("k", 1)]}
NOTHING: dict[str, Any] = dict.fromkeys(FOUND)


def parsed(texts: list[str], type_: DataType, engine: Executor) -> list[Any]:
    plan = values(pa.table({"id": range(len(texts)), "t": texts}))
    run = engine.execute(plan.select("id", p=col("t").parse_json(type_)).sort("id"))
    return [row["p"] for batch in run for row in batch.to_pylist()]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("end", ["", "}", "]}", "}}"])
def test_a_text_that_breaks_off_anywhere(engine: Executor, end: str) -> None:
    texts = [WHOLE[:size] + end for size in range(1, len(WHOLE))]
    broken = [text for text in texts if not is_json(text)]
    assert len(broken) > len(texts) - 10
    assert parsed([*broken, WHOLE], TYPE, engine) == [NOTHING] * len(broken) + [FOUND]


@pytest.mark.parametrize("more", ["", *'{}[],:"x.0'])
def test_a_text_with_a_character_less_or_more(engine: Executor, more: str) -> None:
    texts = [WHOLE[:at] + more + WHOLE[at + (not more) :] for at in range(1, len(WHOLE) - 1)]
    broken = [text for text in texts if not is_json(text)]
    assert parsed([*broken, WHOLE], TYPE, engine) == [NOTHING] * len(broken) + [FOUND]


BROKEN = ['{"a": 1, "b": [1,', '{"a": 1, "b": [1 2], "c": 3}', '{"a": 1, "c": {"d"}', '{"a": 1.}']


@pytest.mark.parametrize("type_", [Map(STRING, LONG), Map(STRING, STRING), List(LONG)], ids=str)
def test_a_map_or_list_is_null(engine: Executor, type_: DataType) -> None:
    texts = [text.replace("{", "[") for text in BROKEN] if isinstance(type_, List) else BROKEN
    assert parsed(texts, type_, engine) == [None] * len(texts)


def test_a_member_alone(engine: Executor) -> None:
    """Who asks for one member gets nothing either, wherever the text is broken."""
    plan = values(pa.table({"t": BROKEN})).parse_json("t", TYPE, output="p")
    run = engine.execute(plan.select(a=path("p.a")))
    assert [row["a"] for batch in run for row in batch.to_pylist()] == [None] * len(BROKEN)


@pytest.mark.parametrize("line", BROKEN)
def test_a_line_of_a_file_is_an_error(engine: Executor, tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(f'{{"a": 1}}\n{line}\n')
    with pytest.raises(SourceError, match="is not a JSON object"):
        list(engine.execute(Scan("json", (File(str(file)),), TYPE)))


def test_what_does_not_fit_is_null_alone(engine: Executor) -> None:
    """A misfit is no broken text, also beside a name that stands twice."""
    texts: dict[str, dict[str, Any]] = {
        '{"a": "1", "c": {"d": "x", "e": "2"}}': {"c": {"d": "x", "e": None}},
        '{"a": 1, "a": "x", "b": ["y"]}': {"a": 1},
        '{"z": NaN, "a": 1, "b": {}}': {"a": 1},
        '{"m": {"k": "1"}, "a": 7}': {"a": 7},
    }
    wanted = [{**NOTHING, **found} for found in texts.values()]
    assert parsed(list(texts), TYPE, engine) == wanted

"""JSON that is nested deeply, on both engines: how deep it may be, and what is deeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import SourceError
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, List, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor

MOST = 999
"""Levels of a whole text."""
KINDS = {"lists": ("[", "", "]"), "objects": ('{"x":', "1", "}")}


def deep(levels: int, kind: str) -> str:
    """A value of so many levels."""
    begin, inside, end = KINDS[kind]
    return begin * levels + inside + end * levels


def parsed(texts: list[str], type_: Struct | List, engine: Executor) -> list[Any]:
    plan = values(pa.table({"id": range(len(texts)), "t": texts}))
    run = engine.execute(plan.select("id", p=col("t").parse_json(type_)).sort("id"))
    return [row["p"] for batch in run for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_how_deep_a_text_may_be(engine: Executor, kind: str) -> None:
    levels = [100, 330, 500, 900, 980, MOST - 2, MOST - 1, MOST, MOST + 1, 2 * MOST, 20_000]
    inside = [deep(n, kind) for n in levels]
    texts = [f'{{"z": {text}, "v": 1}}' for text in inside]
    good = [n < MOST for n in levels]
    skipped = parsed(texts, Struct.of(v=LONG), engine)
    assert [row["v"] for row in skipped] == [1 if fits else None for fits in good]
    written = parsed(texts, Struct.of(v=LONG, z=STRING), engine)
    assert [row["z"] for row in written] == [
        text if fits else None for text, fits in zip(inside, good, strict=True)
    ]


def test_a_deep_text_that_is_no_json(engine: Executor) -> None:
    whole = f'{{"z": {deep(900, "lists")}, "v": 1}}'
    broken = [whole.replace("[]", text) for text in ("[", "]", "[,]", "[1 2]", '["]', "[}")]
    assert parsed([whole, *broken], Struct.of(v=LONG), engine) == [{"v": 1}] + [{"v": None}] * 6


def test_lists_of_texts(engine: Executor) -> None:
    texts = [f"[{deep(n, 'objects')}]" for n in (500, MOST - 1, MOST)]
    found = parsed(texts, List(STRING), engine)
    assert found == [[texts[0][1:-1]], [texts[1][1:-1]], None]


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_a_file(engine: Executor, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "x.json"
    plan = Scan("json", (File(str(file)),), Struct.of(v=LONG, z=STRING))
    inside = deep(MOST - 1, kind)
    file.write_text(f'{{"v": 1}}\n{{"z": {inside}, "v": 2}}\n')
    found = [row for batch in engine.execute(plan) for row in batch.to_pylist()]
    assert found == [{"v": 1, "z": None}, {"v": 2, "z": inside}]
    file.write_text(f'{{"v": 1}}\n{{"z": {deep(MOST, kind)}, "v": 2}}\n')
    with pytest.raises(SourceError, match=r"is not a JSON object|is nested deeper than 999 levels"):
        list(engine.execute(plan))

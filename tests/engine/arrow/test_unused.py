"""Contents that were read and not needed: given once, to whoever reads the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine
from millpond.engine.arrow.source.unused import Unused
from millpond.plan.expr import col
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from pathlib import Path


def test_a_content_is_given_once() -> None:
    unused = Unused(10)
    unused.keep("a", b"12345")
    assert unused.take("b", 5) is None
    assert unused.take("a", 5) == b"12345"
    assert unused.take("a", 5) is None


@pytest.mark.parametrize(("size", "found"), [(None, b"12345"), (5, b"12345"), (4, None), (0, None)])
def test_a_file_of_another_size_is_another_one(size: int | None, found: bytes | None) -> None:
    unused = Unused(10)
    unused.keep("a", b"12345")
    assert unused.take("a", size) == found
    assert unused.take("a", None) is None


def test_there_is_so_much_room() -> None:
    unused = Unused(10)
    for path, content in (("a", b"12345"), ("b", b"123456"), ("c", b"12345"), ("d", b"1")):
        unused.keep(path, content)
    assert [unused.take(path, None) for path in "abcd"] == [b"12345", None, b"12345", None]
    unused.keep("e", b"1" * 10)
    assert unused.take("e", None) == b"1" * 10


def test_what_is_kept_already_takes_no_more_room() -> None:
    unused = Unused(10)
    unused.keep("a", b"12345")
    unused.keep("a", b"12345")
    unused.keep("b", b"12345")
    assert unused.take("b", None) == b"12345"


def test_by_default_nothing_is_kept() -> None:
    unused = Unused()
    unused.keep("a", b"1")
    assert unused.take("a", None) is None


@pytest.mark.parametrize(("keep_bytes", "opened"), [(0, 3), (1 << 10, 1)])
def test_a_second_run(run: Any, tmp_path: Path, keep_bytes: int, opened: int) -> None:
    files = []
    for number, text in enumerate(['{"a":1}\n', '{"b":2}\n', '{"a":3}']):
        file = tmp_path / f"{number}.json"
        file.write_text(text)
        files.append(File(str(file), len(text)))
    plan = Scan("json", tuple(files), Struct.of(a=LONG, b=LONG))
    engine = ArrowEngine(Settings(), keep_bytes=keep_bytes)
    rows, counters = run(plan.filter(col("b").is_not_null()), engine)
    assert [row["b"] for row in rows] == [2]
    assert counters.files_opened == 3
    rows, counters = run(plan, engine)
    assert [(row["a"], row["b"]) for row in rows] == [(1, None), (None, 2), (3, None)]
    assert counters.files_opened == opened
    assert run(plan, engine)[1].files_opened == 3

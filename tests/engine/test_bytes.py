"""Files as bytes, on both engines: whole, in parts, empty, many, missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import SchemaError, SourceError
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named
from millpond.plan.sources import File, Scan
from millpond.plan.types import BINARY, LONG, STRING, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

CONTENT = Struct.of(content=BINARY)
PART = Struct.of(content=BINARY, offset=LONG, length=LONG)
PATHS = Struct.of(path=STRING, offset=LONG, length=LONG, name=STRING)


def rows(plan: Plan, engine: Executor) -> list[dict[str, Any]]:
    run = engine.execute(plan)
    found: list[dict[str, Any]] = pa.Table.from_batches(list(run), schema=run.schema).to_pylist()
    return found


def write(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def test_each_file_is_a_row_in_order(engine: Executor, tmp_path: Path) -> None:
    contents = [b"one", b"", bytes(range(256)) * 1000, b"\x00", b"four"]
    names = ["b.bin", "empty", "_hidden.crc", "a b%20é.bin", ".dot"]
    files = [write(tmp_path, n, c) for n, c in zip(names, contents, strict=True)]
    plan = Scan("bytes", tuple(map(File, files)), CONTENT)
    assert [row["content"] for row in rows(plan, engine)] == contents
    assert [row["content"] for row in rows(plan.tail(2), engine)] == contents[-2:]


def test_a_part_of_a_file_is_as_long_as_the_file_lets_it_be(
    engine: Executor, tmp_path: Path
) -> None:
    path = write(tmp_path, "abc", b"0123456789")
    parts = [(0, 3), (4, 6), (8, 100), (10, 5), (2**40, 1), (None, 2), (7, None), (3, 0)]
    files = tuple(File(path, constants=part) for part in parts)
    plan = Scan("bytes", files, PART, ("offset", "length"))
    expected = [b"012", b"456789", b"89", b"", b"", b"01", b"789", b""]
    assert [row["content"] for row in rows(plan, engine)] == expected
    # The range is needed although nobody asks for its columns.
    narrow = optimize(plan.select("content"))
    assert [row["content"] for row in rows(narrow, engine)] == expected
    assert [row["length"] for row in rows(optimize(plan.select("length")), engine)][:2] == [3, 6]


def test_rows_that_name_parts_of_files(engine: Executor, tmp_path: Path) -> None:
    one, two = (write(tmp_path, n, n.encode() * 3) for n in ("first", "second"))
    named = [
        {"path": two, "offset": 1, "length": 4, "name": "x"},
        {"path": one, "offset": 0, "length": 5, "name": None},
        {"path": two, "offset": 6, "length": 6, "name": "y"},
    ]
    columns = Struct.of(name=STRING, content=BINARY, offset=LONG, length=LONG)
    plan = values(named, PATHS).dynamic_scan(
        columns, format="bytes", constants=["name", "offset", "length"]
    )
    found = rows(optimize(plan.select("name", "content")), engine)
    assert [(row["name"], row["content"]) for row in found] == [
        ("x", b"econ"),
        (None, b"first"),
        ("y", b"second"),
    ]
    kept = rows(optimize(plan.filter(col("name") == "y").select("content")), engine)
    assert kept == [{"content": b"second"}]


def test_what_can_not_be_read_is_named(engine: Executor, tmp_path: Path) -> None:
    there = write(tmp_path, "there", b"x")
    gone = str(tmp_path / "gone")
    with pytest.raises(SourceError, match="gone"):
        rows(Scan("bytes", (File(there), File(gone)), CONTENT), engine)
    for part in ((-1, 2), (0, -2)):
        negative = Scan("bytes", (File(there, constants=part),), PART, ("offset", "length"))
        with pytest.raises(SourceError, match="there can't be read: a range"):
            rows(negative, engine)


def test_bytes_have_one_column() -> None:
    for columns in (Struct.of(content=STRING), Struct.of(data=BINARY)):
        with pytest.raises(SchemaError, match="has no column"):
            Scan("bytes", (), columns)
    with pytest.raises(SchemaError, match="the offset of a file's content is a long"):
        Scan("bytes", (), Struct.of(offset=STRING), ("offset",))


def test_few_rows_read_few_files(tmp_path: Path) -> None:
    files = [write(tmp_path, f"{n:03d}", b"%d" % n) for n in range(300)]
    plan = Scan("bytes", tuple(map(File, files)), CONTENT)
    run = engine_named("arrow").execute(plan.head(2))
    assert [row for batch in run for row in batch.column(0).to_pylist()] == [b"0", b"1"]
    assert run.counters.files_opened <= 4
    assert run.counters.early_exit_batches_skipped >= 296
    whole = engine_named("arrow").execute(plan)
    found = [row for batch in whole for row in batch.column(0).to_pylist()]
    assert found == [b"%d" % n for n in range(300)]


def test_parts_of_objects() -> None:
    from millpond.base.store import open_store

    store = open_store("memory://bytes")
    store.put("a/b", b"0123456789", mode="overwrite")
    files = tuple(File("memory://bytes/a/b", constants=p) for p in ((2, 3), (9, 9), (None, None)))
    plan = Scan("bytes", files, PART, ("offset", "length"))
    arrow = engine_named("arrow")
    assert [row["content"] for row in rows(plan, arrow)] == [b"234", b"9", b"0123456789"]
    with pytest.raises(SourceError, match="memory://bytes/none"):
        rows(Scan("bytes", (File("memory://bytes/none"),), CONTENT), arrow)

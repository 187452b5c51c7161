"""A file that is live with two deletion vectors, or with one and without: its rows come not at all.

By the protocol no commit makes such a log; writers have, by a removal that lacked the vector.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.handmade import Action, checkpoint, commit, metadata, numbers, protocol, remove

from millpond import col, delta_table
from millpond.base.errors import CorruptLogError
from millpond.kernel import data, once
from millpond.kernel.dv import inline
from millpond.kernel.once import Repeats, check_once

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HEAD = [protocol(features=["deletionVectors"]), metadata(enableDeletionVectors="true")]
TWICE = r"^/.*/a is live more than once in .*its rows would come"


def marked(file: Action, *positions: int) -> Action:
    """The same file without the rows at these positions."""
    vector = inline(np.array(positions, np.int64)).to_dict()
    return {"add": {**file["add"], "deletionVector": vector}}


def write(table: Path, layout: str, first: Action, second: Action) -> None:
    """A table of two adds, which are of one file, and of another file."""
    other = numbers(table, "b", 7)
    if layout == "one commit":
        commit(table, 0, *HEAD, first, second, other)
        return
    commit(table, 0, *HEAD, first, other)
    commit(table, 1, second)
    if layout == "a checkpoint and a commit":
        checkpoint(table, 0, *HEAD, first, other)
    elif layout == "one checkpoint":
        checkpoint(table, 1, *HEAD, first, second, other)


LAYOUTS = ["one commit", "two commits", "a checkpoint and a commit", "one checkpoint"]
PAIRS = list(itertools.permutations(range(3), 2))


def versions(table: Path) -> list[Action]:
    """One file: as it was written, and without some rows."""
    plain = numbers(table, "a", 1, 2, 3)
    return [plain, marked(plain, 0), marked(plain, 1)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("chunk", [1, 50_000])
def test_rows_of_a_file_that_is_live_twice(
    tmp_path: Path,
    layout: str,
    pair: tuple[int, int],
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data, "_CHUNK_FILES", chunk)
    files = versions(tmp_path)
    write(tmp_path, layout, *(files[number] for number in pair))
    scan = delta_table(tmp_path).scan()
    with pytest.raises(CorruptLogError, match=TWICE) as caught:
        scan.to_arrow(engine="arrow")
    assert "older version" in str(caught.value)
    with pytest.raises(CorruptLogError, match=TWICE):
        scan.plan()


@pytest.mark.spark
@pytest.mark.parametrize("layout", ["two commits", "one checkpoint"])
def test_rows_of_a_file_that_is_live_twice_on_spark(
    tmp_path: Path, layout: str, spark: SparkSession
) -> None:
    files = versions(tmp_path)
    write(tmp_path, layout, files[0], files[1])
    with pytest.raises(CorruptLogError, match=TWICE):
        delta_table(tmp_path).scan().to_arrow(engine="spark")
    with pytest.raises(CorruptLogError, match=TWICE):
        delta_table(tmp_path).scan().to_spark(spark)


def test_two_spellings_are_one_file(tmp_path: Path) -> None:
    plain = numbers(tmp_path, "a", 1, 2, 3)
    again = marked({"add": {**plain["add"], "path": f"file://{tmp_path}/a"}}, 0)
    write(tmp_path, "two commits", plain, again)
    with pytest.raises(CorruptLogError, match=TWICE):
        delta_table(tmp_path).scan().to_arrow(engine="arrow")


def test_it_can_not_be_deleted_from(tmp_path: Path) -> None:
    files = versions(tmp_path)
    write(tmp_path, "two commits", files[0], files[1])
    with (
        pytest.raises(CorruptLogError, match=TWICE),
        delta_table(tmp_path).transaction() as tx,
    ):
        tx.delete(col("n") == 2)
    assert delta_table(tmp_path).version == 1


@pytest.mark.parametrize("layout", LAYOUTS[1:3])
def test_the_older_version_and_one_that_mends_it_can_be_read(tmp_path: Path, layout: str) -> None:
    files = versions(tmp_path)
    write(tmp_path, layout, files[0], files[1])
    before = delta_table(tmp_path, version=0).scan().to_arrow(engine="arrow")
    assert sorted(before["n"].to_pylist()) == [1, 2, 3, 7]
    commit(tmp_path, 2, remove("a"))
    after = delta_table(tmp_path).scan().to_arrow(engine="arrow")
    assert sorted(after["n"].to_pylist()) == [2, 3, 7]


@pytest.mark.parametrize("chunk", [1, 50_000])
def test_files_whose_vectors_are_exchanged_are_live_once(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "_CHUNK_FILES", chunk)
    files = versions(tmp_path)
    write(tmp_path, "one commit", files[0], numbers(tmp_path, "c", 8))
    gone = [None, *(file["add"]["deletionVector"] for file in files[1:])]
    commit(tmp_path, 1, remove("a", deletionVector=gone[0]), files[1])
    checkpoint(tmp_path, 1, *HEAD, files[1], numbers(tmp_path, "b", 7), numbers(tmp_path, "c", 8))
    commit(tmp_path, 2, remove("a", deletionVector=gone[1]), files[2])
    found = delta_table(tmp_path).scan().to_arrow(engine="arrow")
    assert sorted(found["n"].to_pylist()) == [1, 3, 7, 8]


def listed(rows: list[tuple[str, bool]]) -> pa.Table:
    """Live files: their paths, and whether they have a vector."""
    vectors = [{"storageType": "i"} if has else None for _, has in rows]
    type_ = pa.struct([("storageType", pa.string())])
    paths = pa.array([path for path, _ in rows], pa.string())
    return pa.table({"path": paths, "deletionVector": pa.array(vectors, type_)})


ROWS = st.lists(st.tuples(st.sampled_from([*"abcdef", "x" * 5000]), st.booleans()), max_size=6)


@given(st.lists(ROWS, max_size=4))
@settings(deadline=None)
def test_whatever_comes_again_is_noticed(chunks: list[list[tuple[str, bool]]]) -> None:
    every = [row for chunk in chunks for row in chunk]
    paths = [path for path, _ in every]
    twice = any(has and paths.count(path) > 1 for path, has in every)
    whole = listed(every)
    with pytest.raises(CorruptLogError) if twice else contextlib.nullcontext():
        check_once("t", whole)
    within = any(
        has and [p for p, _ in chunk].count(path) > 1 for chunk in chunks for path, has in chunk
    )
    repeats = Repeats()
    found = [repeats.may_be_in(listed(chunk)) for chunk in chunks]
    assert any(found) or within or not twice


def test_one_chunk_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers_of(_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(once, "numbers_of", numbers_of)
    assert not Repeats().may_be_in(listed([("a", True), ("b", False)]))

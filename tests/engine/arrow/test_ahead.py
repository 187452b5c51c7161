"""Files that are read ahead: the same rows in the same order, and nothing that was not wanted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base.errors import SourceError
from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine
from millpond.engine.arrow.source import ahead, groups
from millpond.engine.arrow.source.ahead import read_ahead
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.plan import make
from millpond.plan.expr import col
from millpond.plan.sources import DynamicScan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES, ROWS = 6, 1_000


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number], pa.int64())})


def values(batches: Iterator[pa.RecordBatch], count: int | None = None) -> list[int]:
    """The numbers of the next so many batches, or of all."""
    return [batch["n"][0].as_py() for batch in islice(batches, count)]


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "millpond-read-ahead"]


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(1, 4))
def test_batches_come_in_order(counts: list[int], threads: int) -> None:
    def read(name: int) -> Iterator[pa.RecordBatch]:
        return (batch(10 * name + number) for number in range(counts[name]))

    found = read_ahead(iter(range(len(counts))), read, threads)
    assert values(found) == [10 * n + i for n, count in enumerate(counts) for i in range(count)]
    assert not helpers()


def test_nothing_is_begun_before_the_first_item_is_used_up() -> None:
    begun = []

    def read(name: int) -> Iterator[pa.RecordBatch]:
        begun.append(name)
        yield from (batch(name), batch(name))

    found: Any = read_ahead(iter(range(9)), read, threads=3)
    assert values(found, 2) == [0, 0]
    assert begun == [0]
    assert not helpers()
    found.close()


def test_so_many_items_at_a_time_and_a_few_batches_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_HELD_BYTES", 2 * batch(0).nbytes)
    read_of: dict[int, int] = {}
    waiting = threading.Barrier(4)  # three readers, and who looks

    def read(name: int) -> Iterator[pa.RecordBatch]:
        for number in range(9):
            read_of[name] = number
            if name and number == 2:
                waiting.wait(timeout=30)  # two batches are held, and a third is being read
            yield batch(name)

    found: Any = read_ahead(iter(range(9)), read, threads=3)
    assert values(found, 10) == [0] * 9 + [1]
    waiting.wait(timeout=30)
    assert sorted(read_of) == [0, 1, 2, 3]
    assert read_of[2] == read_of[3] == 2
    found.close()
    assert sorted(read_of) == [0, 1, 2, 3]
    assert not helpers()


def test_small_items_are_not_all_read_while_nobody_takes_them() -> None:
    used: list[int] = []
    ahead_of: list[int] = []

    def read(name: int) -> Iterator[pa.RecordBatch]:
        ahead_of.append(name - len(used))
        yield batch(name)

    for made in read_ahead(iter(range(300)), read, threads=3):
        time.sleep(0.001)  # whoever takes them is slower than whoever reads them
        used.append(made["n"][0].as_py())
    assert used == list(range(300))
    assert max(ahead_of) <= 1 + 3  # one is being used, and one waits for each thread
    assert not helpers()


def test_one_batch_is_held_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_HELD_BYTES", 1)
    found = read_ahead(iter(range(3)), lambda name: iter([batch(name)] * 3), threads=2)
    assert values(found) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_what_goes_wrong_is_raised_in_its_turn() -> None:
    def read(name: int) -> Iterator[pa.RecordBatch]:
        yield batch(name)
        if name == 2:
            raise SourceError("no more", engine="arrow", path="two")

    found = read_ahead(iter(range(9)), read, threads=3)
    assert values(found, 3) == [0, 1, 2]
    with pytest.raises(SourceError, match="no more"):
        next(found)
    assert not helpers()


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_items_that_can_not_be_named(at: int) -> None:
    def names() -> Iterator[int]:
        yield from range(at)
        raise SourceError("no name", engine="arrow", path="list")

    found = read_ahead(names(), lambda name: iter([batch(name)]), threads=2)
    assert values(found, at) == list(range(at))
    with pytest.raises(SourceError, match="no name"):
        next(found)
    assert not helpers()


def test_what_was_opened_is_closed_where_it_was_read() -> None:
    closed: dict[int, bool] = {}

    def read(name: int) -> Iterator[pa.RecordBatch]:
        opened_by = threading.current_thread()
        try:
            while name:
                yield batch(name)
            yield batch(0)
        finally:
            closed[name] = opened_by is threading.current_thread()

    found: Any = read_ahead(iter([1, 2]), read, threads=2)
    assert values(found, 5) == [1] * 5
    found.close()
    assert closed == {1: True}

    found = read_ahead(iter([0, 1, 2]), read, threads=2)
    assert values(found, 2) == [0, 1]
    found.close()
    assert closed[0]
    assert closed[1]
    assert closed.get(2, True)  # if it was begun
    assert not helpers()


@pytest.fixture
def scan(parquet: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Several files, of which each counts as a large one."""
    monkeypatch.setattr(groups, "_SHARE_BYTES", 1)
    starts = range(0, FILES * ROWS, ROWS)
    tables = (
        pa.table({"id": range(start, start + ROWS), "word": [f"w{i % 7}" for i in range(ROWS)]})
        for start in starts
    )
    return parquet(*tables, rows=300)


@pytest.fixture
def large(scan: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same files, of which each is read in parts, two row groups a part."""
    group = pq.ParquetFile(scan.files[0].path).metadata.row_group(0)
    monkeypatch.setattr(groups, "_LARGE_BYTES", 1)
    monkeypatch.setattr(groups, "_RUN_BYTES", group.total_byte_size + 1)
    return scan


def engine(threads: int) -> ArrowEngine:
    return ArrowEngine(settings=Settings.load(env={}, arrow_threads=threads))


@pytest.mark.parametrize(
    "query",
    [
        lambda scan: scan,
        lambda scan: scan.filter((col("word") == "w3") & (col("id") > 250)).select("id"),
        lambda scan: scan.sort(col("id").desc()),
        lambda scan: scan.union(scan.filter(col("id") < 10)),
    ],
    ids=["all", "filter", "sort", "twice"],
)
@pytest.mark.parametrize("files", ["scan", "large"])
def test_rows_and_counters_are_those_of_one_thread(
    query: Any, files: str, run: Any, request: pytest.FixtureRequest
) -> None:
    plan = query(request.getfixturevalue(files))
    rows, counters = run(plan, engine(1))
    again, counted = run(plan, engine(4))
    assert again == rows
    assert counted == counters
    assert not helpers()


def test_a_large_file_is_read_by_several_threads(
    run: Any, large: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by: dict[int, str] = {}
    plain = ParquetSource.twin

    def twin(source: ParquetSource) -> ParquetSource:
        found = plain(source)
        read_by[id(found)] = threading.current_thread().name
        return found

    monkeypatch.setattr(ParquetSource, "twin", twin)
    one = replace(large, files=large.files[:1])
    rows, counters = run(one, engine(2))
    assert [row["id"] for row in rows] == list(range(ROWS))
    assert sorted(read_by.values()) == ["MainThread", "millpond-read-ahead"]
    assert (counters.files_opened, counters.batches_decoded) == (1, 4)


def test_row_groups_that_nobody_asks_for_are_counted(large: Any) -> None:
    with engine(2).execute(large) as execution:
        next(execution)
    counters = execution.counters
    left = counters.early_exit_batches_skipped
    assert (counters.files_opened, counters.batches_decoded) == (1, 1)
    assert left == 3 + FILES - 1
    assert not helpers()


def test_deleted_rows_are_left_out_of_parts(run: Any, large: Any) -> None:
    gone = [0, 299, 300, 301, 650, 999]
    names = make.values([{"path": file.path, "gone": gone} for file in large.files])
    plan = DynamicScan(names, "parquet", large.columns, deleted="gone")
    rows, _ = run(plan, engine(3))
    left = [row for row in range(FILES * ROWS) if row % ROWS not in gone]
    assert [row["id"] for row in rows] == left


def test_a_plan_that_may_have_enough_reads_nothing_ahead(run: Any, scan: Any) -> None:
    rows, counters = run(scan.head(ROWS + 1), engine(4))
    assert len(rows) == ROWS + 1
    assert (counters.files_opened, counters.early_exit_batches_skipped) == (2, 3 + FILES - 2)


def test_a_damaged_file_is_named_after_the_rows_before_it(scan: Any, tmp_path: Path) -> None:
    (tmp_path / scan.files[3].path).write_bytes(b"PAR1")
    with engine(4).execute(scan) as execution:
        seen = sum(next(execution).num_rows for _ in range(3 * 4))  # row groups of 300 and 100
        with pytest.raises(SourceError) as caught:
            next(execution)
    assert seen == 3 * ROWS
    assert caught.value.path == scan.files[3].path
    assert not helpers()


def test_an_interpreter_that_ends_in_the_middle_ends_well(tmp_path: Path) -> None:
    for number in range(4):
        rows = pa.table({"id": range(400_000), "text": [f"text {i}" for i in range(400_000)]})
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=400_000)
    code = f"""
import millpond as mp
from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine
engine = ArrowEngine(settings=Settings.load(env={{}}, arrow_threads=3))
batches = iter(engine.execute(mp.scan({str(tmp_path)!r})))
seen = 0
while seen <= 400_000:
    seen += next(batches).num_rows
print(seen > 400_000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_fork_has_nothing_to_stop() -> None:
    code = """
import os
import pyarrow as pa
from millpond.engine.arrow.source.ahead import read_ahead
batch = pa.record_batch({"n": [1]})
batches = read_ahead(iter(range(5)), lambda _: iter([batch] * 3), threads=2)
assert [next(batches)["n"][0].as_py() for _ in range(4)] == [1] * 4
child = os.fork()
if child == 0:
    raise SystemExit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")

"""Counters: exact for one run, for the runs begun in a block, and in total."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from millpond.plan.counters import Counters, collect_stats, reset_stats, stats


def test_a_run_counts_for_itself() -> None:
    one, two = Counters.begin(), Counters.begin()
    one.add("files_opened")
    one.add("rows_decoded", 10)
    assert one.to_dict()["rows_decoded"] == 10
    assert one.files_opened == 1
    assert two.to_dict() == Counters().to_dict()
    with pytest.raises(AttributeError):
        one.add("nonsense")


def test_collectors_see_what_begins_inside_them() -> None:
    before = Counters.begin()
    with collect_stats() as outer:
        first = Counters.begin()
        with collect_stats() as inner:
            second = Counters.begin()
            second.add("batches_decoded", 2)
        before.add("batches_decoded", 100)
        first.add("batches_decoded", 1)
        second.add("batches_decoded", 4)  # a run that outlives the block still belongs to it
    first.add("batches_decoded", 8)
    assert inner.batches_decoded == 6
    assert outer.batches_decoded == 15
    with collect_stats() as empty:
        pass
    assert empty == Counters()


def test_a_failing_block_closes_its_collector() -> None:
    def block() -> None:
        with collect_stats():
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        block()
    with collect_stats() as seen:
        Counters.begin().add("files_opened")
    assert seen.files_opened == 1


def test_peaks_are_the_largest() -> None:
    with collect_stats() as seen:
        run = Counters.begin()
        for rows in (3, 9, 5):
            run.peak(rows)
    assert run.peak_buffer_rows == seen.peak_buffer_rows == 9


def test_totals_are_kept_and_reset() -> None:
    reset_stats()
    Counters.begin().add("bytes_read", 7)
    Counters.begin().add("bytes_read", 5)
    assert stats()["bytes_read"] == 12
    reset_stats()
    assert set(stats().values()) == {0}


def test_no_count_is_lost_among_threads() -> None:
    with collect_stats() as seen:
        run = Counters.begin()
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(2000):
            run.add("rows_emitted")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert run.rows_emitted == seen.rows_emitted == 8000


def test_a_threads_block_is_its_own() -> None:
    found: list[int] = []
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collect_stats() as mine:
            inside.set()
            leave.wait(10)
        found.append(mine.files_opened)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    Counters.begin().add("files_opened")
    leave.set()
    thread.join()
    assert found == [0]


def test_a_thread_counts_in_the_block_whose_context_it_runs_in() -> None:
    def work() -> None:
        Counters.begin().add("files_opened")

    with collect_stats() as seen:
        inherits = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        own = threading.Thread(target=work)
        for thread in (inherits, own):
            thread.start()
            thread.join()
    assert seen.files_opened == 1


def test_the_text_shows_the_numbers_alone() -> None:
    run = Counters.begin()
    assert "_listeners" not in repr(run)
    assert "_listeners" not in run.to_dict()

"""Bounds of series, and where versions and series overlap, checked against a naive search."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millpond as mp
from millpond.base import errors as e
from millpond.steward.temporal import overlaps as module
from millpond.steward.temporal.bounds import set_bounds
from millpond.steward.temporal.overlaps import detect_overlaps

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond
    from millpond.steward.temporal.overlaps import Overlap, Run


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def hour(number: int) -> datetime:
    return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=number)


def append(pond: Pond, path: str, *hours: int) -> None:
    with pond.write() as tx:
        tx.append_series(path, [{"time": hour(n), "n": n} for n in hours])
        tx.commit()


def bound(pond: Pond, *paths: str, **ends: Any) -> None:
    with pond.write() as tx:
        set_bounds(tx, paths, **ends)
        tx.commit()


def runs(found: tuple[Run, ...]) -> list[Any]:
    return [("+".join(run.sources), run.first, run.last, run.rows) for run in found]


def shared(found: tuple[Overlap, ...]) -> list[Any]:
    return [
        (each.one, each.other, each.first, each.last, each.rows_of_one, each.rows_of_other,
         each.same_times)
        for each in found
    ]  # fmt: skip


def numbers(pond: Pond, path: str) -> list[int]:
    return sorted(pond.read().to_arrow(path).column("n").to_pylist())


class TestBounds:
    def test_both_ends_belong_to_them_and_hold_for_later_appends(self, pond: Pond) -> None:
        append(pond, "/s", *range(10))
        bound(pond, "/s", first=hour(2), last=hour(5))
        assert numbers(pond, "/s") == [2, 3, 4, 5]
        append(pond, "/s", 1, 5, 6)
        assert numbers(pond, "/s") == [2, 3, 4, 5, 5]
        assert numbers(pond, "/s@v2") == [5]

    def test_an_end_stays_as_it_is_unless_it_is_given(self, pond: Pond) -> None:
        append(pond, "/s", *range(10))
        bound(pond, "/s", first=hour(2))
        bound(pond, "/s", last=hour(5))
        assert numbers(pond, "/s") == [2, 3, 4, 5]
        bound(pond, "/s", first=None)
        assert numbers(pond, "/s") == [0, 1, 2, 3, 4, 5]
        bound(pond, "/s", first=None, last=None)
        assert numbers(pond, "/s") == list(range(10))

    def test_times_without_a_zone_are_utc(self, pond: Pond) -> None:
        append(pond, "/s", *range(4))
        bound(pond, "/s", first=datetime(2024, 5, 1, 2))  # noqa: DTZ001
        assert numbers(pond, "/s") == [2, 3]

    def test_patterns_bound_all_series_and_nothing_else(self, pond: Pond) -> None:
        append(pond, "/a", 1, 2)
        append(pond, "/b", 1, 2)
        with pond.write() as tx:
            tx.write_table("/t", [{"n": 1}])
            tx.commit()
        bound(pond, "/*", last=hour(1))
        assert numbers(pond, "/a") == numbers(pond, "/b") == numbers(pond, "/t") == [1]

    def test_what_is_so_already_is_no_transaction(self, pond: Pond) -> None:
        append(pond, "/s", 1)
        bound(pond, "/s", first=hour(0))
        before = pond.read().txn_seq
        bound(pond, "/s", first=hour(0))
        assert pond.read().txn_seq == before

    def test_what_can_not_be(self, pond: Pond) -> None:
        append(pond, "/s", 1)
        with pond.write() as tx:
            tx.write_table("/t", [{"n": 1}])
            tx.write_table("/t2", [{"n": 1}])
            tx.commit()
        bound(pond, "/s", last=hour(5))
        for paths, ends in (
            (["/s"], {"first": hour(6)}),
            (["/t"], {"first": hour(1)}),
            (["/t*"], {"first": hour(1)}),
        ):
            with pytest.raises(e.PathTypeError) as caught:
                bound(pond, *paths, **ends)
            assert caught.value.hint
        with pytest.raises(e.PathNotFoundError):
            bound(pond, "/nope", first=hour(1))


class TestOverlaps:
    def test_versions_that_follow_each_other_are_not_read(self, pond: Pond) -> None:
        append(pond, "/s", 0, 1, 2)
        append(pond, "/s", 3, 4)
        with mp.collect_stats() as seen:
            found = detect_overlaps(pond.read(), ["/s"])
        assert runs(found.runs) == [
            ("/s@v1", hour(0), hour(2), None),
            ("/s@v2", hour(3), hour(4), None),
        ]
        assert found.overlaps == ()
        assert seen.rows_decoded == 0

    def test_versions_that_share_a_time(self, pond: Pond) -> None:
        append(pond, "/s", 0, 1, 2, 5)
        append(pond, "/s", 2, 3)
        append(pond, "/s", 9)
        found = detect_overlaps(pond.read(), ["/s"])
        assert runs(found.runs) == [
            ("/s@v1", hour(0), hour(2), 3),
            ("/s@v2", hour(2), hour(3), 2),
            ("/s@v1", hour(5), hour(5), 1),
            ("/s@v3", hour(9), hour(9), None),
        ]
        assert shared(found.overlaps) == [("/s@v1", "/s@v2", hour(2), hour(3), 1, 2, 1)]

    def test_a_gap_that_another_fills(self, pond: Pond) -> None:
        append(pond, "/a", 0, 1, 8, 9)
        append(pond, "/b", 4, 5)
        found = detect_overlaps(pond.read(), ["/*"])
        assert [run.sources for run in found.runs] == [("/a@v1",), ("/b@v1",), ("/a@v1",)]
        assert shared(found.overlaps) == [("/a@v1", "/b@v1", hour(4), hour(5), 0, 2, 0)]

    def test_series_as_wholes(self, pond: Pond) -> None:
        append(pond, "/a", 0, 3)
        append(pond, "/a", 1, 2)
        append(pond, "/b", 7)
        found = detect_overlaps(pond.read(), ["/a", "/b"], by="path")
        assert found.sources == ("/a", "/b")
        assert found.overlaps == ()
        assert [run.sources for run in found.runs] == [("/a",), ("/b",)]

    def test_bounds_take_overlaps_away(self, pond: Pond) -> None:
        append(pond, "/a", 0, 1, 2, 3)
        append(pond, "/b", 2, 3, 4)
        assert len(detect_overlaps(pond.read(), ["/a", "/b"]).overlaps) == 1
        bound(pond, "/a", last=hour(1))
        found = detect_overlaps(pond.read(), ["/a", "/b"])
        assert found.overlaps == ()
        assert runs(found.runs)[0] == ("/a@v1", hour(0), hour(1), None)
        bound(pond, "/a", last=None)
        bound(pond, "/a", first=hour(10))
        assert detect_overlaps(pond.read(), ["/a"]).runs == ()

    def test_many_turns_are_one_mixed_run(
        self, pond: Pond, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "MOST_RUNS", 5)
        append(pond, "/a", *range(0, 20, 2))
        append(pond, "/b", *range(3, 30, 2))
        found = detect_overlaps(pond.read(), ["/a", "/b"])
        assert runs(found.runs) == [
            ("/a@v1", hour(0), hour(2), 2),
            ("/a@v1+/b@v1", hour(3), hour(18), 16),
            ("/b@v1", hour(19), hour(29), 6),
        ]
        assert found.runs[1].switches == 15

    def test_too_many_rows_are_refused(self, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_ROWS", 5)
        append(pond, "/a", *range(4))
        append(pond, "/b", *range(4))
        with pytest.raises(e.BudgetExceededError):
            detect_overlaps(pond.read(), ["/a", "/b"])

    def test_series_without_rows_and_rows_without_a_time(self, pond: Pond) -> None:
        import pyarrow as pa

        type_ = pa.timestamp("us")
        with pond.write() as tx:
            tx.append_series("/none", pa.table({"time": pa.array([], type_)}))
            tx.append_series("/nulls", pa.table({"time": pa.array([None, 0, 5], type_)}))
            tx.append_series("/local", pa.table({"time": pa.array([5, None, 2**60], type_)}))
            tx.commit()
        found = detect_overlaps(pond.read(), ["/*"])
        assert found.sources == ("/nulls@v1", "/local@v1")
        assert found.overlaps[0].same_times == 1
        assert [run.rows for run in found.runs] == [2, 2]

    def test_what_was_restored_counts_without_what_came_later(self, pond: Pond) -> None:
        append(pond, "/s", 0, 1)
        append(pond, "/s", 1, 2)
        with pond.write() as tx:
            tx.restore("/s@v1")
            tx.commit()
        found = detect_overlaps(pond.read(), ["/s"])
        assert found.sources == ("/s@v3",)
        assert found.overlaps == ()

    def test_compaction_changes_nothing(self, pond: Pond) -> None:
        for number in range(10):
            append(pond, "/s", number, number + 1)
        before = detect_overlaps(pond.read(), ["/s"])
        assert len(before.overlaps) == 9
        assert "/s" in {done.path for done in pond.maintain().compacted}
        assert detect_overlaps(pond.read(), ["/s"]) == before

    def test_only_series(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/f", b"")
            tx.commit()
        with pytest.raises(e.PathTypeError, match="has no time"):
            detect_overlaps(pond.read(), ["/f"])

    @given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5), min_size=1, max_size=4))
    def test_like_a_naive_search(
        self, tmp_path_factory: pytest.TempPathFactory, versions: list[list[int]]
    ) -> None:
        pond = mp.create(tmp_path_factory.mktemp("naive") / "pond")
        for hours in versions:
            append(pond, "/s", *hours)
        found = detect_overlaps(pond.read(), ["/s"])
        order = {name: at for at, name in enumerate(found.sources)}
        rows = sorted(
            (hour(n), order[f"/s@v{at}"], f"/s@v{at}")
            for at, hours in enumerate(versions, start=1)
            for n in hours
        )
        naive = []
        for name, group in groupby(rows, key=lambda row: row[2]):
            times = [row[0] for row in group]
            naive.append((name, times[0], times[-1]))
        assert [run[:3] for run in runs(found.runs)] == naive
        pairs = {
            frozenset((f"/s@v{i + 1}", f"/s@v{j + 1}"))
            for i, one in enumerate(versions)
            for j, other in enumerate(versions)
            if i < j and max(min(one), min(other)) <= min(max(one), max(other))
        }
        assert {frozenset((each.one, each.other)) for each in found.overlaps} == pairs

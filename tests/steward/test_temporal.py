"""Series and time: bounds of versions, bounds that are set, and what a range spares to read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import millpond as mp
from millpond.base.errors import PathTypeError, SchemaError, TypeMismatchError
from millpond.fs.entry import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond

DAY = datetime(2024, 5, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def append(pond: Pond, path: str, *parts: Any, **how: Any) -> None:
    with pond.write() as tx:
        for rows in parts:
            tx.append_series(path, rows, **how)
        tx.commit()


def rows(start: datetime, count: int = 24, step: timedelta = timedelta(hours=1)) -> Any:
    return [{"timestamp": start + n * step, "n": n} for n in range(count)]


def micros(values: list[int | None], type_: Any, name: str = "timestamp") -> pa.Table:
    return pa.table({name: pa.array(values, type_), "n": list(range(len(values)))})


def bounds(pond: Pond, path: str) -> list[tuple[datetime | None, datetime | None]]:
    return [(s.min_event_time, s.max_event_time) for s in pond[path].versions()]


UTC_MICROS = pa.timestamp("us", "UTC")


class TestBounds:
    def test_each_version_has_its_own_to_the_microsecond(self, pond: Pond) -> None:
        append(pond, "/s", [{"timestamp": DAY + MICRO}, {"timestamp": DAY + 7 * MICRO}])
        append(pond, "/s", [{"timestamp": DAY - 3 * MICRO}])
        assert bounds(pond, "/s") == [
            (DAY + MICRO, DAY + 7 * MICRO),
            (DAY - 3 * MICRO, DAY - 3 * MICRO),
        ]

    @pytest.mark.parametrize(
        ("values", "type_", "first", "last"),
        [
            pytest.param([5, None, 0], UTC_MICROS, 0, 5, id="nulls"),
            pytest.param([None, None], UTC_MICROS, None, None, id="only nulls"),
            pytest.param([], UTC_MICROS, None, None, id="nothing"),
            pytest.param([-7, 3], pa.timestamp("us"), -7, 3, id="without a zone"),
            pytest.param([-7000, 3000], pa.timestamp("ns", "UTC"), -7, 3, id="nanoseconds"),
            pytest.param([-7, 3], pa.timestamp("ms", "Asia/Tokyo"), -7000, 3000, id="other zone"),
            pytest.param([-7, 3], pa.timestamp("s", "UTC"), -7_000_000, 3_000_000, id="seconds"),
            pytest.param([-(10**18), 10**18], UTC_MICROS, -(10**18), 10**18, id="far away"),
        ],
    )
    def test_of_all_kinds_of_times(
        self, pond: Pond, values: Any, type_: Any, first: int | None, last: int | None
    ) -> None:
        append(pond, "/s", micros(values, type_))
        row = pond.read().row("/s")
        assert (row.min_event_time, row.max_event_time) == (first, last)

    def test_times_that_python_has_no_datetime_for_are_shown_as_its_ends(self, pond: Pond) -> None:
        append(pond, "/s", micros([-(10**18), 10**18], UTC_MICROS))
        (only,) = bounds(pond, "/s")
        assert [time and time.year for time in only] == [1, 9999]

    def test_nanoseconds_that_would_be_lost_are_refused(self, pond: Pond) -> None:
        with pytest.raises(SchemaError, match="would lose data"):
            append(pond, "/s", micros([1], pa.timestamp("ns", "UTC")))
        assert not pond.read().exists("/s")

    @pytest.mark.parametrize("order", [(0, 5), (5, 0)])
    def test_what_one_transaction_appends_is_one_version(
        self, pond: Pond, order: tuple[int, int]
    ) -> None:
        append(pond, "/s", *(micros([value], UTC_MICROS) for value in order))
        row = pond.read().row("/s")
        assert (row.version, row.min_event_time, row.max_event_time) == (1, 0, 5)

    def test_bounds_that_were_set_before_do_not_widen_a_version(self, pond: Pond) -> None:
        append(pond, "/s", micros([0, 9], UTC_MICROS))
        with pond.write() as tx:
            tx.change("/s", min_override=1)
            tx.append_series("/s", micros([5], UTC_MICROS))
            tx.commit()
        row = pond.read().row("/s")
        assert (row.version, row.min_event_time, row.max_event_time) == (2, 5, 5)

    def test_many_row_groups(self, pond: Pond) -> None:
        values = [*range(100, 300_000), 7]
        append(pond, "/s", micros(values, UTC_MICROS))
        row = pond.read().row("/s")
        assert (row.min_event_time, row.max_event_time) == (7, 299_999)


class TestTimeColumn:
    @pytest.mark.parametrize("name", ["timestamp", "Timestamp", "event_time", "time", "ts"])
    def test_is_found_by_its_name(self, pond: Pond, name: str) -> None:
        append(pond, "/s", micros([1], UTC_MICROS, name))
        assert pond["/s"].stat().time_column == name

    def test_can_be_declared_and_stays(self, pond: Pond) -> None:
        table = micros([1], UTC_MICROS).append_column("seen", pa.array([2], UTC_MICROS))
        append(pond, "/s", table, time_column="seen")
        append(pond, "/s", table)
        assert [s.time_column for s in pond["/s"].versions()] == ["seen", "seen"]
        assert pond.read().row("/s").min_event_time == 2
        with pytest.raises(PathTypeError, match="is in 'seen', not in 'timestamp'"):
            append(pond, "/s", table, time_column="timestamp")

    def test_has_to_be_a_time(self, pond: Pond) -> None:
        with pytest.raises(SchemaError, match="'n' is no column with a timestamp") as error:
            append(pond, "/s", micros([1], UTC_MICROS), time_column="n")
        assert "timestamp" in str(error.value.hint)
        with pytest.raises(SchemaError, match="a series needs a column with its time"):
            append(pond, "/s", [{"timestamp": "noon"}])


class TestOverrides:
    def test_both_ends_belong_to_it(self, pond: Pond) -> None:
        append(pond, "/s", rows(DAY))
        low, high = DAY + timedelta(hours=3), DAY + timedelta(hours=5)
        with pond.write() as tx:
            tx.change("/s", min_override=to_micros(low), max_override=to_micros(high))
            tx.commit()
        assert pond["/s"].to_arrow()["n"].to_pylist() == [3, 4, 5]

    @pytest.mark.parametrize("zone", ["UTC", None])
    @pytest.mark.parametrize(
        ("ends", "expected"),
        [
            ({"min_override": 2}, [2, 3]),
            ({"max_override": 2}, [1, 2]),
            ({"min_override": 4}, []),
            ({"min_override": 2, "max_override": None}, [2, 3]),
        ],
    )
    def test_either_end_may_be_open(
        self, pond: Pond, zone: str | None, ends: dict[str, int], expected: list[int]
    ) -> None:
        type_ = pa.timestamp("us", zone)
        append(pond, "/s", micros([1, None, 2, 3], type_))
        with pond.write() as tx:
            tx.change("/s", **ends)
            tx.commit()
        times = pond["/s"].to_arrow()["timestamp"]
        assert times.cast(pa.int64()).to_pylist() == expected

    def test_hold_for_appends_and_for_old_versions(self, pond: Pond) -> None:
        append(pond, "/s", micros([1, 2, 3], UTC_MICROS))
        with pond.write() as tx:
            tx.change("/s", min_override=2)
            tx.commit()
        append(pond, "/s", micros([0, 4], UTC_MICROS))
        assert [s.version for s in pond["/s"].versions()] == [1, 2]
        times = pond["/s"].to_arrow()["timestamp"].cast(pa.int64())
        assert sorted(times.to_pylist()) == [2, 3, 4]
        first = pond["/s@v1"].to_arrow()["timestamp"].cast(pa.int64())
        assert sorted(first.to_pylist()) == [2, 3]

    def test_hold_against_an_append_of_another_writer(self, pond: Pond, tmp_path: Path) -> None:
        append(pond, "/s", micros([1, 2, 3], UTC_MICROS))
        other = mp.open(tmp_path / "pond")
        theirs = other.write()
        theirs.append_series("/s", micros([0, 4], UTC_MICROS))
        with pond.write() as tx:
            tx.change("/s", min_override=2)
            tx.commit()
        theirs.commit()
        times = pond.read()["/s"].to_arrow()["timestamp"].cast(pa.int64())
        assert sorted(times.to_pylist()) == [2, 3, 4]

    def test_are_in_every_way_to_read(self, pond: Pond) -> None:
        append(pond, "/s", micros([1, 2, 3], UTC_MICROS))
        with pond.write() as tx:
            tx.change("/s", min_override=3)
            tx.commit()
        handle = pond["/s"]
        stored = mp.stored("/s", {"n": "long"})
        assert stored.to_pylist(scope=pond.read()) == [{"n": 2}]
        assert pa.table(handle).num_rows == 1
        assert handle.to_arrow(columns=["n"]).to_pylist() == [{"n": 2}]
        assert handle.to_arrow(predicate=mp.col("n") < 2).num_rows == 0
        assert len(handle.to_pandas()) == 1
        assert [h.to_arrow().num_rows for h in pond["/"].glob("*")] == [1]

    @pytest.mark.spark
    def test_are_in_spark(self, pond: Pond, spark: Any) -> None:
        append(pond, "/s", micros([1, 2, 3], UTC_MICROS))
        with pond.write() as tx:
            tx.change("/s", min_override=2)
            tx.commit()
        assert pond["/s"].to_spark(spark).count() == 2
        stored = mp.stored("/s", {"n": "long"})
        assert stored.to_pylist(engine="spark", scope=pond.read()) == [{"n": 1}, {"n": 2}]


class TestRange:
    def test_both_ends_belong_to_it(self, pond: Pond) -> None:
        append(pond, "/s", rows(DAY))
        start, end = DAY + timedelta(hours=2), DAY + timedelta(hours=4)
        read = pond["/s"].to_arrow
        assert read(time_start=start, time_end=end)["n"].to_pylist() == [2, 3, 4]
        assert read(time_start=start + MICRO, time_end=end - MICRO)["n"].to_pylist() == [3]
        assert read(time_end=DAY)["n"].to_pylist() == [0]
        assert read(time_start=end, columns=["n"]).num_rows == 20

    @pytest.mark.parametrize("zone", ["UTC", None])
    def test_times_are_utc_unless_they_say_otherwise(self, pond: Pond, zone: str | None) -> None:
        hours = [h * 3_600_000_000 for h in range(24)]
        append(pond, "/s", micros([*hours], pa.timestamp("us", zone)))
        here = timezone(timedelta(hours=-5))
        for start in (
            datetime(1970, 1, 1, 22),  # noqa: DTZ001 - that is the point
            datetime(1970, 1, 1, 22, tzinfo=UTC),
            datetime(1970, 1, 1, 17, tzinfo=here),
        ):
            assert pond["/s"].to_arrow(time_start=start)["n"].to_pylist() == [22, 23]

    def test_is_within_the_bounds_that_were_set(self, pond: Pond) -> None:
        append(pond, "/s", rows(DAY))
        with pond.write() as tx:
            tx.change("/s", min_override=to_micros(DAY + timedelta(hours=20)))
            tx.commit()
        found = pond["/s"].to_arrow(time_start=DAY, time_end=DAY + timedelta(hours=21))
        assert found["n"].to_pylist() == [20, 21]

    def test_a_table_has_no_time(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/t", rows(DAY))
            tx.commit()
        with pytest.raises(PathTypeError, match="/t is a table and has no time"):
            pond["/t"].to_arrow(time_start=DAY)

    def test_a_time_is_a_datetime(self, pond: Pond) -> None:
        append(pond, "/s", rows(DAY))
        with pytest.raises(TypeMismatchError, match="a datetime, not '2024'"):
            pond["/s"].to_arrow(time_start="2024")  # type: ignore[arg-type]


class TestPruning:
    """What is not read, by counters."""

    def test_versions_and_files_outside_are_not_opened(self, pond: Pond) -> None:
        for day in range(25):
            append(pond, "/s", rows(DAY + timedelta(days=day)))
        start, end = DAY + timedelta(days=20), DAY + timedelta(days=21, hours=6)
        handle = mp.open(pond.location)["/s"]
        plan = handle.plan(time_start=start, time_end=end)
        with mp.collect_stats() as seen:
            assert plan.count(engine="arrow") == 24 + 7
        assert seen.files_opened == 2  # of twenty-five: the others were ruled out by the log
        everything = handle.plan()
        with mp.collect_stats() as seen:
            assert everything.count(engine="arrow") == 25 * 24
        assert seen.files_opened == 25

    def test_bounds_that_were_set_prune_as_well(self, pond: Pond) -> None:
        for day in range(12):
            append(pond, "/s", rows(DAY + timedelta(days=day)))
        with pond.write() as tx:
            tx.change("/s", min_override=to_micros(DAY + timedelta(days=11)))
            tx.commit()
        plan = pond["/s"].plan()
        with mp.collect_stats() as seen:
            assert plan.to_arrow(engine="arrow").num_rows == 24
        assert (seen.files_opened, seen.rows_decoded) == (1, 24)

    def test_row_groups_outside_are_not_decoded(self, pond: Pond) -> None:
        count = 400_000
        append(pond, "/s", micros([n * 1_000_000 for n in range(count)], UTC_MICROS))
        start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=count - 10)
        plan = pond["/s"].plan(time_start=start)
        with mp.collect_stats() as seen:
            assert plan.to_arrow(engine="arrow").num_rows == 10
        assert seen.files_opened == 1
        assert (seen.batches_decoded, seen.batches_pruned) == (1, 3)

    def test_a_range_outside_of_everything_opens_nothing(self, pond: Pond) -> None:
        for day in range(5):
            append(pond, "/s", rows(DAY + timedelta(days=day)))
        plan = pond["/s"].plan(time_start=DAY + timedelta(days=50))
        with mp.collect_stats() as seen:
            assert plan.to_arrow(engine="arrow").num_rows == 0
        assert (seen.files_opened, seen.rows_decoded) == (0, 0)

    def test_only_the_wanted_columns_and_the_time_are_decoded(self, pond: Pond) -> None:
        wide = [{"timestamp": DAY, **{f"c{n}": n for n in range(20)}}]
        append(pond, "/s", wide)
        plan = pond["/s"].plan(columns=["c7"], time_start=DAY - timedelta(days=1))
        with mp.collect_stats() as seen:
            assert plan.to_arrow(engine="arrow").to_pylist() == [{"c7": 7}]
        assert seen.columns_decoded <= 2

    @pytest.mark.spark
    def test_spark_is_given_the_files_inside_alone(self, pond: Pond, spark: Any) -> None:
        for day in range(4):
            append(pond, "/s", rows(DAY + timedelta(days=day)))
        frame = pond["/s"].to_spark(spark, time_start=DAY + timedelta(days=3, hours=20))
        assert len(frame.inputFiles()) == 1
        assert frame.count() == 4

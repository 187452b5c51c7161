"""`timeseries-join` and `timeseries-pivot`: one row a time, and only what changed is computed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp
from millpond.base.errors import FactoryConfigError, PathNotFoundError, SchemaError, SourceError
from millpond.provider import stretch
from millpond.provider.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.provider.stretch import Bundle
    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def cached(pond: Pond, kind: str) -> dict[str, int]:
    """The files of a kind of results, and when each was written."""
    found = (Path(pond.location) / "cache" / kind).rglob("*.parquet")
    return {file.name: file.stat().st_mtime_ns for file in found}


def series(pond: Pond, **hours: list[float]) -> None:
    for name, times in hours.items():
        append(pond, f"/{name}", [{"timestamp": at(hour), "x": hour} for hour in times])


def join(pond: Pond, *inputs: dict[str, Any], path: str = "/j", **more: Any) -> None:
    make(pond, path, "timeseries-join", inputs=list(inputs), **more)


class TestJoin:
    def test_each_time_is_one_row(self, pond: Pond) -> None:
        series(pond, a=[1], b=[1, 2], c=[1, 2])
        join(pond, *({"pattern": f"series:///{n}", "scope": n.upper()} for n in "abc"))
        assert rows_of(pond, "/j") == [
            {"timestamp": at(1), "A.x": 1, "B.x": 1, "C.x": 1},
            {"timestamp": at(2), "A.x": None, "B.x": 2, "C.x": 2},
        ]

    def test_a_sensor_that_was_swapped_is_one_column(self, pond: Pond) -> None:
        series(pond, old=[0, 1, 2, 3], new=[2, 3, 4, 5])
        join(
            pond,
            {"pattern": "/old", "scope": "Weir", "range": {"end": str(at(2))}},
            {"pattern": "/new", "scope": "Weir", "range": {"begin": str(at(2))}},
        )
        found = rows_of(pond, "/j")
        assert [(row["timestamp"], row["Weir.x"]) for row in found] == [
            (at(hour), hour) for hour in range(6)
        ]
        with mp.collect_stats():
            described = pond.read().derivation.rows("/j").schema.names
        assert described == ("timestamp", "Weir.x")

    def test_patterns_and_odd_names(self, pond: Pond) -> None:
        odd = "AT500_Surface.DO.mg/L"
        append(pond, "/s-1", [{"timestamp": at(0), odd: 1.5, 'say "hi"': True}])
        append(pond, "/s-2", [{"timestamp": at(1), odd: 2.5}])
        join(pond, {"pattern": "series:///s-*", "scope": "a b.c"}, {"pattern": "/none"})
        assert rows_of(pond, "/j") == [
            {"timestamp": at(0), f"a b.c.{odd}": 1.5, 'a b.c.say "hi"': True},
            {"timestamp": at(1), f"a b.c.{odd}": 2.5, 'a b.c.say "hi"': None},
        ]

    def test_scopes_of_captures(self, pond: Pond) -> None:
        hours: dict[str, list[float]] = {"s-a": [1], "s-b": [1, 2], "t-a": [2]}
        series(pond, **hours)
        join(
            pond,
            {"pattern": "series:///*-*", "scope": "$1 $$"},
            {"pattern": "/no/*", "scope": "$0"},
        )
        assert rows_of(pond, "/j") == [
            {"timestamp": at(1), "a $.x": 1, "b $.x": 1},
            {"timestamp": at(2), "a $.x": 2, "b $.x": 2},
        ]

    def test_scopes_of_captures_have_their_own_ranges(self, pond: Pond) -> None:
        hours: dict[str, list[float]] = {"old-a": [0, 1, 2], "new-a": [2, 3], "old-b": [2]}
        series(pond, **hours)
        ends, begins = {"end": str(at(2))}, {"begin": str(at(2))}
        join(
            pond,
            {"pattern": "/old-*", "scope": "$0", "range": ends},
            {"pattern": "/new-*", "scope": "$0", "range": begins},
        )
        found = rows_of(pond, "/j", columns=["a.x", "b.x"])
        assert [tuple(row.values()) for row in found] == [(0, None), (1, None), (2, 2), (3, None)]

    def test_captures_that_are_not_there(self, pond: Pond) -> None:
        with pytest.raises(FactoryConfigError, match=r"inputs.0.scope: '\$1' asks for \$1"):
            join(pond, {"pattern": "/s/*", "scope": "$1"})

    def test_transforms_come_before_the_scope(self, pond: Pond) -> None:
        series(pond, a=[0])
        make(pond, "/rename", "column-rename", renames={"x": "level"})
        join(pond, {"pattern": "/a", "scope": "A", "transforms": ["/rename"]})
        assert rows_of(pond, "/j") == [{"timestamp": at(0), "A.level": 0}]
        make(pond, "/rename", "column-rename", renames={"x": "depth"})
        assert list(rows_of(pond, "/j")[0]) == ["timestamp", "A.depth"]

    def test_only_what_changed_is_computed(
        self, pond: Pond, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stretch, "STRETCH_ROWS", 50)
        series(pond, a=[h / 4 for h in range(400)], b=[h / 4 for h in range(400)])
        join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/b", "scope": "B"})
        assert len(rows_of(pond, "/j")) == 400
        before = cached(pond, "joined")
        assert len(before) > 8
        append(pond, "/a", [{"timestamp": at(30.1), "x": -1.0}])
        found = rows_of(pond, "/j")
        assert {"timestamp": at(30.1), "A.x": -1, "B.x": None} in found
        assert len(found) == 401
        after = cached(pond, "joined")
        assert {name: after[name] for name in before} == before, "what was kept stays"
        assert len(after) == len(before) + 1
        with mp.collect_stats() as seen:
            assert len(rows_of(pond, "/j", time_start=at(30), time_end=at(31))) == 6
        assert seen.rows_decoded < 200

    def test_a_transaction_sees_what_it_has_written(self, pond: Pond) -> None:
        series(pond, a=[0, 1])
        join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/new", "scope": "N"})
        make(pond, "/r", "temporal-reduce", in_pattern="/a", out_pattern="a", resolutions=["1d"],
             aggregations=[{"type": "count"}])  # fmt: skip
        with pond.write() as tx:
            for count in (3, 4):
                tx.append_series("/a", [{"timestamp": at(count), "x": 5}])
                tx.write_table("/new", [{"timestamp": at(h), "y": h} for h in range(9, 9 + count)])
                reduced = tx.to_arrow("/r/a/res=1d.series")
                assert reduced.column("x.count").to_pylist() == [count]
                assert tx.to_arrow("/j").num_rows == 2 * count
            tx.rollback()
        assert len(rows_of(pond, "/j")) == 2

    def test_reduced_after_it(self, pond: Pond) -> None:
        series(pond, a=[0, 1], b=[1, 25])
        join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/b", "scope": "B"})
        make(pond, "/r", "temporal-reduce", in_pattern="/j", out_pattern="j", resolutions=["1d"],
             aggregations=[{"type": "sum"}])  # fmt: skip
        assert rows_of(pond, "/r/j/res=1d.series") == [
            {"timestamp": at(0), "A.x.sum": 1, "B.x.sum": 1},
            {"timestamp": at(24), "A.x.sum": None, "B.x.sum": 25},
        ]

    def test_a_time_that_transforms_have_changed(
        self, pond: Pond, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stretch, "STRETCH_ROWS", 10)
        hours = range(0, 4000, 20)
        append(pond, "/a", [{"timestamp": at(h), "x": h} for h in hours])
        append(pond, "/b", [{"time": at(h), "y": h} for h in hours])
        renamed = {"factory": "column-rename", "config": {"renames": {"time": "timestamp"}}}
        join(pond, {"pattern": "/a"}, {"pattern": "/b", "transforms": [renamed]})
        assert rows_of(pond, "/j") == [{"timestamp": at(h), "x": h, "y": h} for h in hours]
        some = {"time_start": at(400), "time_end": at(420)}
        assert [row["y"] for row in rows_of(pond, "/j", **some)] == [400, 420]
        with mp.collect_stats() as seen:
            append(pond, "/a", [{"timestamp": at(4000), "x": 1}])
            assert len(rows_of(pond, "/j")) == 201
        assert seen.rows_decoded < 700

    def test_a_time_that_is_not_that_of_the_series(self, pond: Pond) -> None:
        hours = range(0, 4000, 4)
        rows = [{"timestamp": at(h), "time": at(8000 - h), "x": h, "k": "a"} for h in hours]
        append(pond, "/s", rows[:500])
        append(pond, "/s", rows[500:])
        some = {"time_start": at(7900), "time_end": at(7904)}
        join(pond, {"pattern": "/s"}, time_column="time")
        make(pond, "/p", "timeseries-pivot", in_pattern="/s", pivot_column="k", value_column="x",
             time_column="time")  # fmt: skip
        make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["8h"],
             time_column="time", aggregations=[{"type": "sum", "columns": ["x"]}])  # fmt: skip
        assert len(rows_of(pond, "/j")) == len(rows_of(pond, "/p")) == 1000
        assert [row["x"] for row in rows_of(pond, "/j", **some)] == [100, 96]
        assert [row["a"] for row in rows_of(pond, "/p", **some)] == [100, 96]
        path = "/r/s/res=8h.series"
        few = {"time_start": at(7896), "time_end": at(7904)}
        assert [row["x.sum"] for row in rows_of(pond, path, **few)] == [204, 188]
        assert sum(row["x.sum"] for row in rows_of(pond, path)) == sum(hours)

    def test_a_cast_makes_another_time(self, pond: Pond) -> None:
        append(pond, "/s", [{"timestamp": at(h), "x": h} for h in range(40)])
        cast = {"factory": "column-rename", "config": {"casts": {"timestamp": "timestamp_ntz"}}}
        join(pond, {"pattern": "/s", "transforms": [cast]})
        assert len(rows_of(pond, "/j")) == 40
        assert len(rows_of(pond, "/j", time_start=at(3), time_end=at(4))) == 2

    def test_the_time_stays_after_the_join(self, pond: Pond) -> None:
        series(pond, a=[0])
        renamed = {"factory": "column-rename", "config": {"renames": {"timestamp": "t"}}}
        join(pond, {"pattern": "/a"}, post_transforms=[renamed])
        with pytest.raises(SchemaError, match=r"post_transforms .* the time 'timestamp'"):
            rows_of(pond, "/j")

    def test_inputs_without_rows(self, pond: Pond) -> None:
        times = pa.array([], pa.timestamp("us", "UTC"))
        rows = pa.table(
            {"timestamp": times, "x": pa.array([], pa.float64()), "k": pa.array([], pa.string())}
        )
        with pond.write() as tx:
            tx.append_series("/empty", rows)
            tx.commit()
        join(pond, {"pattern": "/empty", "scope": "E"})
        assert rows_of(pond, "/j") == []
        assert pond.read().to_arrow("/j").column_names == ["timestamp", "E.x", "E.k"]
        make(
            pond, "/p", "timeseries-pivot", in_pattern="/empty", pivot_column="k", value_column="x"
        )
        assert rows_of(pond, "/p") == []
        append(pond, "/empty", [{"timestamp": at(1), "x": 2.0, "k": "a"}])
        assert rows_of(pond, "/j") == [{"timestamp": at(1), "E.x": 2.0, "E.k": "a"}]
        assert rows_of(pond, "/p") == [{"timestamp": at(1), "a": 2.0}]

    def test_what_can_not_be(self, pond: Pond) -> None:
        series(pond, a=[0])
        append(pond, "/t", [{"time": at(0), "x": 1.0}])
        append(pond, "/l", [{"timestamp": at(0), "y": [1, 2]}])
        join(pond, {"pattern": "/a"}, {"pattern": "/t"})
        with pytest.raises(SchemaError, match="the time is 'timestamp' of /a and 'time' of /t"):
            rows_of(pond, "/j")
        join(pond, {"pattern": "/l"}, path="/k")
        with pytest.raises(SchemaError, match=r"'y' is a .* and can't be joined"):
            rows_of(pond, "/k")
        join(pond, {"pattern": "/nothing/*"}, path="/n")
        with pytest.raises(PathNotFoundError, match="nothing matches any input of /n"):
            rows_of(pond, "/n")
        with pytest.raises(FactoryConfigError, match=r"inputs.0.range: it would end"):
            join(pond, {"pattern": "/a", "range": {"begin": "2024-02-01", "end": "2024-01-01"}})


HOURS = st.lists(st.integers(0, 40), max_size=10, unique=True)


@settings(max_examples=4)
@given(st.lists(st.tuples(HOURS, HOURS), min_size=1, max_size=4))
def test_any_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[list[int], list[int]]]
) -> None:
    pond = mp.create(tmp_path_factory.mktemp("join") / "pond")
    series(pond, a=[50.0], b=[50.0])
    join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/b", "scope": "B"})
    known: dict[str, set[float]] = {"a": {50}, "b": {50}}
    for hours in history:
        for name, new in zip("ab", hours, strict=True):
            if new:
                series(pond, **{name: [float(hour) for hour in new]})
                known[name] |= set(new)
        wanted = [
            {"timestamp": at(h), "A.x": h if h in known["a"] else None,
             "B.x": h if h in known["b"] else None}
            for h in sorted(known["a"] | known["b"])
        ]  # fmt: skip
        assert rows_of(pond, "/j") == wanted


class TestPivot:
    def test_values_are_found_in_the_data(self, pond: Pond) -> None:
        def readings(hour: int, *sensors: str) -> None:
            rows = [{"timestamp": at(hour), "sensor": s, "v": hour + 0.5} for s in sensors]
            append(pond, "/r", rows)

        readings(0, "a b", "c/d.e")
        make(
            pond, "/p", "timeseries-pivot", in_pattern="/r", pivot_column="sensor", value_column="v"
        )
        assert rows_of(pond, "/p") == [{"timestamp": at(0), "a b": 0.5, "c/d.e": 0.5}]
        before = cached(pond, "pivoted")
        readings(5000, 'new "one"')
        assert rows_of(pond, "/p") == [
            {"timestamp": at(0), "a b": 0.5, "c/d.e": 0.5, 'new "one"': None},
            {"timestamp": at(5000), "a b": None, "c/d.e": None, 'new "one"': 5000.5},
        ]
        after = cached(pond, "pivoted")
        assert {name: after[name] for name in before if name in after} == before

    def test_columns_of_many_inputs(self, pond: Pond) -> None:
        series(pond, x1=[0, 1], x2=[1])
        make(pond, "/p", "timeseries-pivot", pattern="series:///x*", columns=["x"])
        assert rows_of(pond, "/p") == [
            {"timestamp": at(0), "1.x": 0, "2.x": None},
            {"timestamp": at(1), "1.x": 1, "2.x": 1},
        ]

    @pytest.mark.parametrize(
        "config",
        [{}, {"in_pattern": "/r"}, {"pattern": "/r"}, {"columns": ["x"]},
         {"pattern": "/r", "columns": ["x"], "pivot_column": "y"}],
    )  # fmt: skip
    def test_one_of_two_forms(self, pond: Pond, config: dict[str, Any]) -> None:
        with pytest.raises(FactoryConfigError, match="give in_pattern, pivot_column"):
            make(pond, "/p", "timeseries-pivot", **config)

    def test_columns_that_are_not_there(self, pond: Pond) -> None:
        series(pond, a=[0])
        make(pond, "/p", "timeseries-pivot", in_pattern="/a", pivot_column="x", value_column="y")
        with pytest.raises(SchemaError, match="there is no column 'y'"):
            rows_of(pond, "/p")


def test_times_without_rows_do_not_cut_the_work(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 20)
    runs: list[int] = []
    table = Runs._table

    def counted(self: Runs, run: Sequence[Bundle]) -> pa.Table:
        runs.append(len(run))
        return table(self, run)

    monkeypatch.setattr(Runs, "_table", counted)
    days = [24.0 * day for day in range(1, 400, 13)]
    for day in days:  # each is a piece, and the sensor is off in between
        append(pond, "/a", [{"timestamp": at(day + n / 60), "x": day} for n in range(30)])
    join(pond, {"pattern": "/a", "scope": "A"})
    assert [row["A.x"] for row in rows_of(pond, "/j")] == [day for day in days for _ in range(30)]
    assert len(runs) == 1
    assert runs[0] > 10
    for late in (days[3], days[20]):
        append(pond, "/a", [{"timestamp": at(late + 0.252), "x": -1.0}])
    found = rows_of(pond, "/j")
    assert [row["timestamp"] for row in found] == sorted(row["timestamp"] for row in found)
    assert [row["A.x"] for row in found].count(-1.0) == 2
    assert len(found) == 30 * len(days) + 2
    assert len(runs) == 3, "what is kept between two that are missing is not computed again"


@pytest.mark.spark
def test_on_spark(spark: object, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr("millpond.provider.reading.FEW_ROWS", -1)
    series(pond, a=[1], b=[1, 2], c=[1, 2])
    join(pond, *({"pattern": f"series:///{n}", "scope": n.upper()} for n in "abc"))
    assert [row["B.x"] for row in rows_of(pond, "/j")] == [1, 2]
    make(pond, "/chain-0", "sql-derived-series", patterns={"s": "/j"},
         query='SELECT timestamp, "A.x" + 1 AS x FROM s')  # fmt: skip
    for number in range(1, 10):
        make(
            pond,
            f"/chain-{number}",
            "sql-derived-series",
            patterns={"s": f"/chain-{number - 1}"},
            query="SELECT timestamp, x + 1 AS x FROM s",
        )
    assert sorted(rows_of(pond, "/chain-9"), key=lambda row: row["timestamp"]) == [
        {"timestamp": at(1), "x": 11.0},
        {"timestamp": at(2), "x": None},
    ]


@pytest.mark.spark
def test_spark_writes_by_itself(
    spark: object, pond: Pond, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del spark
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 50)
    awkward = 'a.b/c "d", e`f'
    hours = [h / 4 for h in (*range(-300, 400), *range(1000, 1400))]  # also before 2024, a gap
    append(pond, "/a", [{"timestamp": at(h), awkward: h, "n": int(h)} for h in hours])
    append(pond, "/b", [{"timestamp": at(h), "x": -0.0} for h in hours[::3]])
    append(pond, "/b", [{"timestamp": at(h), "x": None, "name": "ü"} for h in hours[::5]])
    long = [{"timestamp": at(h), "site": f"s {h % 3}", "x": h} for h in hours]
    append(pond, "/long", long)
    join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/b", "scope": "B"})
    make(pond, "/p", "timeseries-pivot", in_pattern="/long", pivot_column="site", value_column="x")
    wanted = rows_of(pond, "/j"), rows_of(pond, "/p")
    shutil.rmtree(tmp_path / "pond" / "cache")
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr("millpond.provider.runs.WRITTEN_ROWS", 0)
    assert (rows_of(pond, "/j"), rows_of(pond, "/p")) == wanted
    before = cached(pond, "joined")
    files = (tmp_path / "pond" / "cache" / "joined").rglob("*.parquet")
    written = [meta for file in files if (meta := pq.read_metadata(file)).num_rows]
    assert len(written) > 10
    assert all(meta.created_by.startswith("parquet-mr") for meta in written)
    append(pond, "/a", [{"timestamp": at(30.1), awkward: -1.0, "n": 7}])
    assert {"timestamp": at(30.1), f"A.{awkward}": -1, "A.n": 7, "B.x": None, "B.name": None} in (
        rows_of(pond, "/j")
    )
    after = cached(pond, "joined")
    assert {name: after[name] for name in before} == before, "what was kept stays"
    assert len(after) == len(before) + 1


@pytest.mark.spark
def test_nothing_is_kept_of_what_fails_in_spark(
    spark: object, pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    series(pond, a=[1], b=[1, 2])
    join(pond, {"pattern": "/a", "scope": "A"}, {"pattern": "/b", "scope": "B"})
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr("millpond.provider.reading.FEW_ROWS", -1)
    monkeypatch.setattr("millpond.provider.runs.WRITTEN_ROWS", 0)
    table = pond.read().delta("/a")
    (name,) = table.files(columns=("path",)).to_arrow().column("path").to_pylist()
    file = Path(table.location) / name
    file.write_bytes(b"broken" * 100)
    with pytest.raises(SourceError) as caught:
        rows_of(pond, "/j")
    assert name in str(caught.value)
    assert cached(pond, "joined") == {}

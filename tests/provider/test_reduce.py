"""`temporal-reduce`: always what one GROUP BY over all rows gives, and only what is new is read."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.provider.ponds import START, append, at, make, rows_of

import millpond as mp
from millpond.base.errors import FactoryConfigError, SchemaError
from millpond.fs.entry import to_micros
from millpond.provider import stretch

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond

HOUR = 3_600_000_000
LOGS = 80
"""At most so many lines of Delta logs are read on the way."""
KINDS = ("avg", "min", "max", "count", "sum", "first", "last")


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def reduced(pond: Pond, *resolutions: str, kinds: tuple[str, ...] = KINDS, **more: Any) -> None:
    aggregations = [{"type": kind, "columns": ["x"]} for kind in kinds]
    config = {"in_pattern": "/s", "out_pattern": "s", "aggregations": aggregations, **more}
    make(pond, "/r", "temporal-reduce", resolutions=list(resolutions), **config)


def naive(rows: list[dict[str, Any]], hours: int) -> list[dict[str, Any]]:
    """What one GROUP BY gives, in plain Python."""
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[int((row["timestamp"] - START).total_seconds() // 3600) // hours].append(row)
    found = []
    for bucket in sorted(groups):
        inside = sorted(groups[bucket], key=lambda row: row["timestamp"])
        values = [row["x"] for row in inside if row.get("x") is not None]
        found.append({
            "timestamp": at(bucket * hours),
            "x.avg": sum(values) / len(values) if values else None,
            "x.min": min(values, default=None),
            "x.max": max(values, default=None),
            "x.count": len(values),
            "x.sum": sum(values) if values else None,
            "x.first": values[0] if values else None,
            "x.last": values[-1] if values else None,
        })  # fmt: skip
    return found


@pytest.mark.parametrize("columns", [{}, {"columns": ["timestamp"]}])
def test_rows_of_a_bucket_are_counted(pond: Pond, columns: dict[str, Any]) -> None:
    append(pond, "/s", [{"timestamp": at(h / 2), "x": None if h % 2 else 1.0} for h in range(5)])
    make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "count", **columns}])  # fmt: skip
    append(pond, "/s", [{"timestamp": at(2.25), "x": 1.0}])
    found = rows_of(pond, "/r/s/res=1h.series")
    assert [row["timestamp.count"] for row in found] == [2, 2, 2]
    if not columns:
        assert [row["x.count"] for row in found] == [1, 1, 2]


def test_a_series_of_times_alone_is_counted(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(h)} for h in (0, 0, 1)])
    make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "count"}])  # fmt: skip
    assert [row["timestamp.count"] for row in rows_of(pond, "/r/s/res=1h.series")] == [2, 1]


def test_the_time_has_no_average(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1.0}])
    make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "avg", "columns": ["timestamp"]}])  # fmt: skip
    with pytest.raises(SchemaError, match="there is no avg of 'timestamp'"):
        rows_of(pond, "/r/s/res=1h.series")


def test_a_year_at_many_resolutions(pond: Pond) -> None:
    points = [{"name": "x", "components": [{"type": "line", "slope": 1}]}]
    year = {"start": "2023-01-01", "end": "2023-12-31T23:00", "interval": "1h"}
    make(pond, "/s", "synthetic-timeseries", **year, points=points)
    reduced(pond, "1h", "2h", "4h", "12h", "24h", kinds=("avg",))
    counts = {name: len(rows_of(pond, f"/r/s/{name}")) for name in pond.read().children("/r/s")}
    assert counts == {
        "res=1h.series": 8760,
        "res=2h.series": 4380,
        "res=4h.series": 2190,
        "res=12h.series": 730,
        "res=24h.series": 365,
    }


def test_late_rows_and_what_is_read(pond: Pond) -> None:
    rows = [{"timestamp": at(number / 100), "x": number} for number in range(10_000)]
    append(pond, "/s", rows)
    reduced(pond, "1h", "6h", kinds=("sum", "max"))

    def wanted(rows: list[dict[str, Any]], hours: int) -> list[dict[str, Any]]:
        names = ("timestamp", "x.sum", "x.max")
        return [{name: row[name] for name in names} for row in naive(rows, hours)]

    assert rows_of(pond, "/r/s/res=6h.series") == wanted(rows, 6)
    late = [{"timestamp": at(30.5), "x": -7}]
    append(pond, "/s", late)
    with mp.collect_stats() as seen:
        assert rows_of(pond, "/r/s/res=1h.series") == wanted(rows + late, 1)
    # The partials of a hundred hours, the late row, and the outcome: none of the 10,000 rows.
    assert seen.rows_decoded <= 100 + 1 + 1 + 100 + LOGS
    before = cached(pond)
    with mp.collect_stats() as seen:
        assert rows_of(pond, "/r/s/res=6h.series") == wanted(rows + late, 6)
    assert seen.rows_decoded <= 101 + 17 + LOGS, "coarser ones come from finer ones"
    assert len(cached(pond)) == len(before) + 1


def cached(pond: Pond) -> list[Path]:
    from pathlib import Path

    return sorted((Path(pond.location) / "cache").rglob("*.parquet"))


def test_the_second_time_nothing_is_computed(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(hour), "x": hour} for hour in range(48)])
    append(pond, "/s", [{"timestamp": at(hour / 100), "x": hour} for hour in range(1000)])
    reduced(pond, "24h")
    first = rows_of(pond, "/r/s/res=24h.series")
    before = cached(pond)
    with mp.collect_stats() as seen:
        assert rows_of(mp.open(pond.location), "/r/s/res=24h.series") == first
    assert seen.rows_decoded <= 2 + LOGS
    assert cached(pond) == before
    for file in before:
        file.unlink()
    assert rows_of(mp.open(pond.location), "/r/s/res=24h.series") == first, "all is derived"


def test_many_appends_become_few_partials(pond: Pond) -> None:
    rows: list[dict[str, Any]] = []
    append(pond, "/s", rows or [{"timestamp": at(0), "x": 0}])
    rows.append({"timestamp": at(0), "x": 0})
    reduced(pond, "1h")
    for hour in range(1, 40):
        new = [{"timestamp": at(hour), "x": hour}]
        append(pond, "/s", new)
        rows += new
        if hour % 7 == 0:
            assert rows_of(pond, "/r/s/res=1h.series") == naive(rows, 1)
    assert rows_of(pond, "/r/s/res=1h.series") == naive(rows, 1)
    pond.maintain()
    assert rows_of(pond, "/r/s/res=1h.series") == naive(rows, 1), "compaction changes nothing"


def test_a_late_row_leaves_other_stretches_alone(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 90)
    rows: list[dict[str, Any]] = []
    for day in range(20):  # sixteen of them have one partial
        rows += (new := [{"timestamp": at(24 * day + h), "x": float(h)} for h in range(24)])
        append(pond, "/s", new)
    reduced(pond, "1h", "24h")
    for hours in (24, 1):
        assert rows_of(pond, f"/r/s/res={hours}h.series") == naive(rows, hours)
    late = {"timestamp": at(24 * 3 + 5.5), "x": 100.0}
    append(pond, "/s", [late])
    for hours in (24, 1):
        assert rows_of(pond, f"/r/s/res={hours}h.series") == naive([*rows, late], hours)


def test_a_column_that_appears_later_is_null_before(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1}])
    aggregations = [{"type": kind, "columns": ["*"]} for kind in ("sum", "count")]
    make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=aggregations)  # fmt: skip
    assert list(rows_of(pond, "/r/s/res=1h.series")[0]) == ["timestamp", "x.sum", "x.count"]
    append(pond, "/s", [{"timestamp": at(1), "x": 2, 'Water Temp. °C/"q"': 9}])
    odd = 'Water Temp. °C/"q"'
    assert rows_of(pond, "/r/s/res=1h.series") == [
        {"timestamp": at(0), "x.sum": 1, f"{odd}.sum": None, "x.count": 1, f"{odd}.count": 0},
        {"timestamp": at(1), "x.sum": 2, f"{odd}.sum": 9, "x.count": 1, f"{odd}.count": 1},
    ]


def test_each_match_has_a_directory_of_its_own(pond: Pond) -> None:
    for site in ("weir", "mill"):
        append(pond, f"/{site}-level", [{"timestamp": at(0), "x": 1}])
    make(pond, "/r", "temporal-reduce", in_pattern="series:///*-*", out_pattern="$1/by/$0",
         resolutions=["1h"], aggregations=[{"type": "sum"}])  # fmt: skip
    found = [handle.path for handle in pond.read()["/"].glob("r/**/*.series")]
    assert found == ["/r/level/by/mill/res=1h.series", "/r/level/by/weir/res=1h.series"]
    make(pond, "/both", "temporal-reduce", in_pattern="series:///*-*", out_pattern="all",
         resolutions=["1h"], aggregations=[{"type": "sum"}])  # fmt: skip
    assert rows_of(pond, "/both/all/res=1h.series") == [{"timestamp": at(0), "x.sum": 2}]


def test_a_link_is_read_like_a_path(pond: Pond) -> None:
    append(pond, "/s1", [{"timestamp": at(0), "x": 3}])
    with pond.write() as tx:
        tx.make_link("/s2", "s1")
        tx.commit()
    make(pond, "/r", "temporal-reduce", in_pattern="/s*", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "sum"}, {"type": "count", "columns": ["x"]}])  # fmt: skip
    assert pond.read().derivation.reading("/").united("/s*").plan().count(engine="arrow") == 2
    assert rows_of(pond, "/r/s/res=1h.series") == [{"timestamp": at(0), "x.sum": 6, "x.count": 2}]


def test_a_range_of_time_reads_its_pieces_alone(pond: Pond) -> None:
    for day in range(6):
        append(pond, "/s", [{"timestamp": at(24 * day + h / 50), "x": h} for h in range(1200)])
    reduced(pond, "6h", kinds=("sum",))
    with mp.collect_stats() as seen:
        found = rows_of(pond, "/r/s/res=6h.series", time_start=at(30), time_end=at(40))
    assert [row["timestamp"] for row in found] == [at(30), at(36)]
    assert seen.rows_decoded <= 1200 + 4 + 4 + LOGS


def test_bounds_hold(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(hour), "x": 1} for hour in range(10)])
    reduced(pond, "24h", kinds=("count",))
    assert rows_of(pond, "/r/s/res=24h.series")[0]["x.count"] == 10
    with pond.write() as tx:
        tx.set_bounds("/s", first=at(4), last=at(7))
        tx.commit()
    assert rows_of(pond, "/r/s/res=24h.series")[0]["x.count"] == 4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"resolutions": []}, FactoryConfigError, "resolutions"),
        ({"resolutions": ["1h", "60m"]}, FactoryConfigError, "a resolution stands twice"),
        ({"aggregations": [{"type": "mean"}]}, FactoryConfigError, "'mean' is no aggregate"),
        ({"aggregations": [{"type": "p101"}]}, FactoryConfigError, "'p101' is no aggregate"),
    ],
)
def test_bad_configurations(
    pond: Pond, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    config = {"in_pattern": "/s", "out_pattern": "s", "resolutions": ["1h"],
              "aggregations": [{"type": "sum"}], **change}  # fmt: skip
    with pond.write() as tx:
        with pytest.raises(error, match=message):
            tx.make_factory("/r", "temporal-reduce", config)
        tx.rollback()


def test_columns_that_do_not_fit(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1, "note": "a"}])
    for columns, message in (
        (["note"], "there is no sum of 'note'"),
        (["y"], "no column 'y'"),
        (["x", "temp*"], r"/s has no column 'temp\*', of which sum (.|\n)*columns are x, note"),
    ):
        config = {"in_pattern": "/s", "out_pattern": "s", "resolutions": ["1h"],
                  "aggregations": [{"type": "sum", "columns": columns}]}  # fmt: skip
        make(pond, "/r", "temporal-reduce", **config)
        with pytest.raises(SchemaError, match=message):
            rows_of(pond, "/r/s/res=1h.series")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("../../x", r"out_pattern: '\.\.' leads elsewhere"),
        ("$0/./y", r"out_pattern: '\.' leads elsewhere"),
        ("/", "out_pattern: it names nothing"),
        ("a//$0", "out_pattern: '' can't be a name"),
        ("$3", r"out_pattern: '\$3' asks for \$3, but the pattern has 1 wildcard"),
        ("${1}", r"out_pattern: .* asks for \$1"),
    ],
)
def test_where_outcomes_can_not_be(pond: Pond, out: str, message: str) -> None:
    with pytest.raises(FactoryConfigError, match=message):
        reduced(pond, "1h", in_pattern="series:///s/*", out_pattern=out)
    assert not pond.read().exists("/r")


def test_where_outcomes_are_may_be_told_later(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1}])
    reduced(pond, "1h", in_pattern="/{{ what }}", out_pattern="$0-$1")
    pond.variables = {"what": "s"}
    with pytest.raises(FactoryConfigError, match=r"asks for \$0, but the pattern has 0"):
        pond.read().children("/r")
    reduced(pond, "1h", out_pattern="{{ where }}")
    pond.variables = {"where": "../s"}
    with pytest.raises(FactoryConfigError, match="leads elsewhere"):
        pond.read().children("/r")


def test_schemes_that_there_are_not(pond: Pond) -> None:
    said = r"in_pattern: there is no format 'cvs' .*did you mean csv\?.* json,"
    with pytest.raises(FactoryConfigError, match=said):
        reduced(pond, "1h", in_pattern="cvs:///x")
    with pytest.raises(FactoryConfigError, match="in_pattern: 's' is neither a path"):
        reduced(pond, "1h", in_pattern="s")


# Any history

TIMES = st.integers(0, 60 * 30).map(lambda minutes: at(minutes / 60))
ROWS = st.lists(
    st.fixed_dictionaries({"timestamp": TIMES, "x": st.none() | st.integers(-50, 50)}),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row["timestamp"],
)
HISTORIES = st.lists(st.tuples(ROWS, st.sampled_from(["append", "look", "maintain", "rollback"])),
                     min_size=1, max_size=6)  # fmt: skip


def check_history(place: Path, history: Any) -> None:
    pond = mp.create(place / str(uuid.uuid4()))
    seen: set[Any] = set()
    rows: list[dict[str, Any]] = []
    append(pond, "/s", [{"timestamp": at(-1), "x": 0}])
    rows.append({"timestamp": at(-1), "x": 0})
    reduced(pond, "1h", "3h", "7h")
    for new, then in history:
        fresh = [row for row in new if row["timestamp"] not in seen]
        if fresh and then != "rollback":
            append(pond, "/s", fresh)
            rows += fresh
            seen |= {row["timestamp"] for row in fresh}
        if then == "look":
            check(pond, rows, 1)
        if then == "maintain":
            pond.maintain()
    for hours in (7, 1, 3):
        check(pond, rows, hours)


def check(pond: Pond, rows: list[dict[str, Any]], hours: int) -> None:
    found = rows_of(pond, f"/r/s/res={hours}h.series")
    assert found == naive_from_epoch(rows, hours)


def naive_from_epoch(rows: list[dict[str, Any]], hours: int) -> list[dict[str, Any]]:
    """The same as `naive`, with buckets that begin at the epoch."""
    from datetime import UTC, datetime, timedelta

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    offset = int((START - epoch).total_seconds() // 3600) % hours
    moved = [{**row, "timestamp": row["timestamp"] + timedelta(hours=offset)} for row in rows]
    return [
        {**row, "timestamp": row["timestamp"] - timedelta(hours=offset)}
        for row in naive(moved, hours)
    ]


@settings(max_examples=5)
@given(HISTORIES)
def test_any_history(tmp_path_factory: pytest.TempPathFactory, history: Any) -> None:
    check_history(tmp_path_factory.mktemp("history"), history)


@pytest.mark.spark
def test_a_history_on_spark(spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr("millpond.provider.reading.FEW_ROWS", -1)
    first = [{"timestamp": at(hour), "x": hour} for hour in range(9)]
    late = [{"timestamp": at(2.5), "x": -4}, {"timestamp": at(3.5), "x": None}]
    check_history(tmp_path, [(first, "look"), (late, "append")])


@pytest.mark.slow
@pytest.mark.spark
@settings(max_examples=10)
@given(HISTORIES)
def test_any_history_on_spark(
    spark: object, tmp_path_factory: pytest.TempPathFactory, history: Any
) -> None:
    del spark
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MILLPOND_ENGINE", "spark")
        patch.setattr("millpond.provider.reading.FEW_ROWS", -1)
        check_history(tmp_path_factory.mktemp("history"), history)


@pytest.mark.spark
def test_what_can_not_be_merged(spark: object, pond: Pond) -> None:
    del spark
    append(pond, "/s", [{"timestamp": at(h / 4), "x": v} for h, v in enumerate([5, 1, 3, 9, 2, 8])])
    reduced(pond, "1h", kinds=("median", "p90", "stddev", "sum"))
    found = rows_of(pond, "/r/s/res=1h.series")
    assert [row["x.median"] for row in found] == [4.0, 5.0]
    assert found[0]["x.p90"] == pytest.approx(7.8)
    assert found[1]["x.stddev"] == pytest.approx(4.2426406871)
    append(pond, "/s", [{"timestamp": at(0.1), "x": 4}])
    assert [row["x.median"] for row in rows_of(pond, "/r/s/res=1h.series")] == [4.0, 5.0]
    assert [row["x.sum"] for row in rows_of(pond, "/r/s/res=1h.series")] == [22, 10]


@pytest.mark.spark
def test_times_without_a_zone(spark: object, pond: Pond) -> None:
    del spark
    rows = [{"timestamp": at(h / 4).replace(tzinfo=None), "x": h} for h in range(6)]
    append(pond, "/s", rows)
    reduced(pond, "1h", kinds=("median", "sum"))
    first = at(0).replace(tzinfo=None)
    found = rows_of(pond, "/r/s/res=1h.series")
    assert found[0] == {"timestamp": first, "x.median": 1.5, "x.sum": 6}
    some = rows_of(pond, "/r/s/res=1h.series", time_start=at(1), time_end=at(1))
    assert [row["x.median"] for row in some] == [4.5]


def test_what_comes_after_it_is_computed_for_new_windows_alone(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(h), "x": h} for h in range(20_000)])
    make(pond, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "max"}])  # fmt: skip
    make(pond, "/j", "timeseries-join", inputs=[{"pattern": "/r/s/*.series", "scope": "S"}])
    make(pond, "/again", "temporal-reduce", in_pattern="/j", out_pattern="j", resolutions=["1d"],
         aggregations=[{"type": "sum"}])  # fmt: skip
    assert len(rows_of(pond, "/again/j/res=1d.series")) == 834
    append(pond, "/s", [{"timestamp": at(20_000), "x": 7}])
    source = pond.read().derivation.rows("/r/s/res=1h.series")
    assert len(source.pieces()) == 6
    assert source.plan_of(source.pieces()[2:4]).count(engine="arrow") == 8192
    source.plan()
    with mp.collect_stats() as seen:
        rows = pond.read().derivation.rows("/j")
        new = [piece for piece in rows.pieces() if (piece.last or 0) > to_micros(at(20_000))]
        assert len(new) < len(rows.pieces())
        assert rows.plan().count(engine="arrow") == 20_001
    assert seen.rows_emitted < 8_000
    found = rows_of(pond, "/again/j/res=1d.series")
    assert sum(row["S.x.max.sum"] for row in found) == sum(range(20_000)) + 7

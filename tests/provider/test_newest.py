"""Several rows of one key and time: the newest version wins, then the last row in it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp
from millpond.provider import runs as runs_module
from millpond.provider import stretch
from millpond.provider.runs import Runs
from millpond.steward.keeping import compaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millpond.provider.stretch import Bundle
    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def row(hour: float, x: float | None, **more: Any) -> dict[str, Any]:
    return {"timestamp": at(hour), "x": x, **more}


def join(pond: Pond, *patterns: str, scope: str = "S") -> None:
    make(pond, "/j", "timeseries-join", inputs=[{"pattern": p, "scope": scope} for p in patterns])


def joined(pond: Pond) -> list[float | None]:
    return [each["S.x"] for each in rows_of(pond, "/j")]


def test_a_correction_wins_in_a_join(pond: Pond) -> None:
    append(pond, "/a", [row(0, 1.0), row(1, 9.9), row(2, 3.0)])
    join(pond, "/a")
    assert joined(pond) == [1.0, 9.9, 3.0]  # and this is kept
    append(pond, "/a", [row(1, 2.1)])
    assert joined(pond) == [1.0, 2.1, 3.0]
    append(pond, "/a", [row(1, 7.0), row(1, 4.0)])
    assert joined(pond) == [1.0, 4.0, 3.0]


def test_a_null_corrects_nothing(pond: Pond) -> None:
    append(pond, "/a", [row(0, 1.0, y=5.0)])
    join(pond, "/a")
    append(pond, "/a", [row(0, None, y=6.0)])
    assert rows_of(pond, "/j") == [{"timestamp": at(0), "S.x": 1.0, "S.y": 6.0}]


def test_of_several_inputs_the_later_one_wins(pond: Pond) -> None:
    append(pond, "/new", [row(0, 1.0), row(1, 2.0)])
    append(pond, "/old", [row(1, 9.0), row(2, 9.0)])
    join(pond, "/old", "/new")
    assert joined(pond) == [1.0, 2.0, 9.0]


def test_a_correction_wins_in_both_forms_of_a_pivot(pond: Pond) -> None:
    append(pond, "/r", [row(0, 9.9, sensor="a"), row(0, 5.0, sensor="b")])
    make(pond, "/p", "timeseries-pivot", in_pattern="/r", pivot_column="sensor", value_column="x")
    make(pond, "/w", "timeseries-pivot", pattern="series:///r*", columns=["x"])
    assert rows_of(pond, "/p") == [{"timestamp": at(0), "a": 9.9, "b": 5.0}]
    append(pond, "/r", [row(0, 2.1, sensor="a")])
    assert rows_of(pond, "/p") == [{"timestamp": at(0), "a": 2.1, "b": 5.0}]
    assert rows_of(pond, "/w") == [{"timestamp": at(0), ".x": 2.1}]


def test_a_correction_wins_at_both_ends_of_a_bucket(pond: Pond) -> None:
    append(pond, "/a", [row(0, 1.0), row(0.5, 9.9)])
    make(
        pond, "/r", "temporal-reduce", in_pattern="/a", out_pattern="a", resolutions=["1h", "6h"],
        aggregations=[{"type": "first"}, {"type": "last"}],
    )  # fmt: skip
    assert rows_of(pond, "/r/a/res=1h.series")[0]["x.first"] == 1.0
    append(pond, "/a", [row(0, 0.4), row(0.5, 2.1)])
    for width in ("1h", "6h"):
        [found] = rows_of(pond, f"/r/a/res={width}.series")
        assert (found["x.first"], found["x.last"]) == (0.4, 2.1)


def test_maintenance_keeps_the_order_of_versions(pond: Pond) -> None:
    for number in range(2 * compaction.ENOUGH_FILES):
        append(pond, "/a", [row(0, 100.0 - number), row(number, 1.0)])
    join(pond, "/a")
    newest = joined(pond)
    assert newest[0] == 101.0 - 2 * compaction.ENOUGH_FILES
    done = pond.maintain()
    assert any(each.path == "/a" for each in done.compacted)
    assert joined(pond) == newest
    append(pond, "/a", [row(0, 7.0)])
    assert joined(pond)[0] == 7.0


@pytest.mark.parametrize("maintained", [False, True])
def test_the_version_counts_and_not_when_a_file_was_written(pond: Pond, maintained: bool) -> None:
    append(pond, "/a", [row(1, 0.0)])
    join(pond, "/a")
    other = mp.open(pond.location)
    with pond.write("begins first, commits last") as tx:
        tx.append_series("/a", [row(0, 2.1)])
        append(other, "/a", [row(0, 9.9)])
        tx.commit()
    stored = pond.read().to_arrow("/a")["x"].to_pylist()
    assert stored == [0.0, 9.9, 2.1]
    assert joined(pond) == [2.1, 0.0]
    if maintained:
        for number in range(10):  # past a checkpoint
            append(pond, "/a", [row(50 + number, 0.0)])
        pond.maintain()
        assert pond.read().to_arrow("/a")["x"].to_pylist()[:3] == stored
        assert joined(pond)[:2] == [2.1, 0.0]


def test_files_of_one_version_keep_their_order(pond: Pond) -> None:
    with pond.write() as tx:
        for value in (9.9, 5.0, 2.1):
            tx.append_series("/a", [row(0, value)])
        tx.commit()
    assert pond.read().to_arrow("/a")["x"].to_pylist() == [9.9, 5.0, 2.1]
    join(pond, "/a")
    assert joined(pond) == [2.1]


def test_rows_are_computed_once_where_nothing_repeats(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    run = Runs._run

    def noted(self: Runs, bundles: Sequence[Bundle], plan: Any) -> Any:
        plans.append("last" if "last(" in str(plan) else "max")
        return run(self, bundles, plan)

    monkeypatch.setattr(Runs, "_run", noted)
    append(pond, "/a", [row(0, 1.0), row(1, 2.0)])
    append(pond, "/b", [row(0, 1.0), row(5, None)])
    make(
        pond, "/j", "timeseries-join", inputs=[{"pattern": p, "scope": p[1]} for p in ("/a", "/b")]
    )
    rows_of(pond, "/j")
    assert plans == ["max"]
    plans.clear()
    append(pond, "/b", [row(5, 3.0)])  # there is a null at this time: nothing repeats
    rows_of(pond, "/j")
    assert plans == ["max"]
    plans.clear()
    append(pond, "/b", [row(0, 2.0)])
    rows_of(pond, "/j")
    assert plans == ["max", "last"]


def model(history: list[list[dict[str, Any]]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for version in history:
        for each in version:
            place = (each["timestamp"], each["sensor"])
            found.setdefault(place, None)
            if each["x"] is not None:
                found[place] = each["x"]
    return found


def check_history(pond: Pond, seed: int, *, versions: int) -> None:
    """Append at random, with many repetitions, and compare with the model after each version."""
    random, history = Random(seed), []
    for number in range(versions):
        rows = [
            row(hour, value, sensor=sensor)
            for hour, value, sensor in zip(
                random.choices(range(30), k=5),
                random.choices([None, 1.0, 2.0, 3.0, 4.0], k=5),
                random.choices("ab", k=5),
                strict=True,
            )
        ]
        append(pond, "/s", [*rows, row(0, 0.0, sensor="a"), row(0, 0.0, sensor="b")])
        history.append([*rows, row(0, 0.0, sensor="a"), row(0, 0.0, sensor="b")])
        if number == 0:
            make(pond, "/p", "timeseries-pivot",
                 in_pattern="/s", pivot_column="sensor", value_column="x")  # fmt: skip
        if random.random() < 0.2:
            pond.maintain()
        wanted = model(history)
        found = {
            (each["timestamp"], name): each[name] for each in rows_of(pond, "/p") for name in "ab"
        }
        assert {place: found.get(place) for place in wanted} == wanted


@pytest.mark.parametrize("seed", range(6))
def test_any_history(pond: Pond, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 4)
    check_history(pond, seed, versions=12)


@pytest.mark.spark
def test_any_history_on_spark(spark: object, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 4)
    check_history(pond, 1, versions=3)


@pytest.mark.spark
def test_what_spark_writes_by_itself_is_checked(
    spark: object, pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    monkeypatch.setattr(runs_module, "WRITTEN_ROWS", 1)
    append(pond, "/a", [row(0, 1.0), row(1, 9.9)])
    append(pond, "/b", [row(0, 1.0)])
    make(
        pond, "/j", "timeseries-join", inputs=[{"pattern": p, "scope": p[1]} for p in ("/a", "/b")]
    )
    assert [each["a.x"] for each in rows_of(pond, "/j")] == [1.0, 9.9]
    append(pond, "/a", [row(1, 2.1)])
    assert [each["a.x"] for each in rows_of(pond, "/j")] == [1.0, 2.1]
    assert rows_of(pond, "/j")[0].keys() == {"timestamp", "a.x", "b.x"}


def test_a_series_without_rows_has_an_order(pond: Pond) -> None:
    append(pond, "/a", [row(0, 1.0)])
    assert pond.read().to_arrow("/a", time_start=at(1)).num_rows == 0

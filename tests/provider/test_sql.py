"""Queries as paths, on Spark: columns without running, chains, and ranges that reach the files."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp
from millpond.base.errors import EvaluationError
from millpond.steward.running import run_node

if TYPE_CHECKING:
    from millpond.steward.pond import Pond

pytestmark = pytest.mark.spark


@pytest.fixture
def pond(spark: object, tmp_path: Path) -> Pond:
    del spark
    made = mp.create(tmp_path / "pond")
    for day in range(4):
        rows = [{"timestamp": at(24 * day + h), "x y": float(h), "site": "a"} for h in range(24)]
        append(made, "/s", rows)
    return made


def query(pond: Pond, path: str, text: str, **patterns: str) -> None:
    make(pond, path, "sql-derived-series", patterns=patterns or {"s": "/s"}, query=text)


def files_of(pond: Pond, path: str, **wanted: Any) -> int:
    """How many data files a plan would read."""
    from millpond.plan.sources import Values
    from millpond.plan.tree import topological

    plan = pond.read().plan(path, **wanted)
    return sum(node.data.num_rows for node in topological(plan) if isinstance(node, Values))


def test_ranges_reach_the_files(pond: Pond) -> None:
    some = {"time_start": at(30), "time_end": at(40)}
    query(pond, "/plain", "SELECT timestamp, 2 * \"x y\" AS x FROM s WHERE site = 'a'")
    assert files_of(pond, "/plain") == 4
    assert files_of(pond, "/plain", **some) == 1
    assert len(rows_of(pond, "/plain", **some)) == 11
    query(pond, "/daily", "SELECT timestamp, count(*) AS n FROM s GROUP BY timestamp")
    assert files_of(pond, "/daily", **some) == 1
    query(pond, "/window",
          "SELECT timestamp, sum(\"x y\") OVER (ORDER BY timestamp) AS x FROM s")  # fmt: skip
    assert files_of(pond, "/window", **some) == 4, "what sums up all rows needs all rows"
    total = sum(float(h) for h in range(24))
    assert rows_of(pond, "/window", time_start=at(24), time_end=at(24))[0]["x"] == total
    query(pond, "/shifted", "SELECT timestamp + INTERVAL 1 DAY AS timestamp FROM s")
    assert len(rows_of(pond, "/shifted", **some)) == 11, "a time that was computed is no column"
    query(pond, "/twice",
          "SELECT a.timestamp FROM s a JOIN s b ON a.timestamp = b.timestamp")  # fmt: skip
    assert len(rows_of(pond, "/twice", **some)) == 11


def test_what_the_environment_says_is_not_repeated_when_it_runs(
    pond: Pond, monkeypatch: pytest.MonkeyPatch
) -> None:
    import traceback

    monkeypatch.setenv("TOKEN", "xyzzy-secret")
    query(pond, "/key", "SELECT timestamp, cast(site || '${env:TOKEN}' AS INT) AS x FROM s")
    with pytest.raises(EvaluationError) as caught:
        rows_of(pond, "/key")
    told = "".join(traceback.format_exception(caught.value))
    assert "xyzzy" not in told + pond["/key"].plan().explain(physical=True, engine="spark")
    assert "${env:TOKEN}" in str(caught.value)


def test_a_subquery_needs_all_rows(pond: Pond) -> None:
    some = {"time_start": at(30), "time_end": at(40)}
    for number, text in enumerate(
        (
            'SELECT timestamp, "x y" - (SELECT avg("x y") FROM s) AS x FROM s',
            'SELECT timestamp FROM s WHERE "x y" >= (SELECT min("x y") FROM s WHERE site = \'a\')',
            "SELECT timestamp FROM s WHERE EXISTS (SELECT 1 FROM s WHERE timestamp < '2024-01-02')",
            "WITH m AS (SELECT max(timestamp) t FROM s) SELECT timestamp FROM s, m",
        )
    ):
        query(pond, f"/sub-{number}", text)
        found = rows_of(pond, f"/sub-{number}", **some)  # before all of them are read, and kept
        inside = [
            row for row in rows_of(pond, f"/sub-{number}") if at(30) <= row["timestamp"] <= at(40)
        ]
        assert sorted(found, key=str) == sorted(inside, key=str), text
        assert len(found) == 11


def cached(pond: Pond) -> list[str]:
    """The results of queries."""
    return [file.name for file in Path(pond.location).rglob("cache/queried/**/*.parquet")]


def test_rows_that_were_all_read_are_kept(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    query(pond, "/q", 'SELECT timestamp, "x y" * 2 AS x FROM s')
    some = {"time_start": at(30), "time_end": at(40)}
    assert len(rows_of(pond, "/q", **some)) == 11
    assert cached(pond) == [], "some are not all"
    found = rows_of(pond, "/q")
    assert len(cached(pond)) == 1

    def never(*_: object, **__: object) -> None:
        raise AssertionError("Spark is asked")

    with monkeypatch.context() as patch:
        patch.setattr("millpond.engine.spark.engine.SparkEngine.execute", never)
        again = mp.open(pond.location)
        assert rows_of(again, "/q") == found
        assert len(rows_of(again, "/q", **some)) == 11
        assert again.read()["/q"].plan().count(engine="arrow") == len(found)
    append(pond, "/s", [{"timestamp": at(500), "x y": 1.0, "site": "new"}])
    assert len(rows_of(pond, "/q")) == len(found) + 1


def test_the_beginning_of_rows_is_not_kept(pond: Pond) -> None:
    query(pond, "/q", 'SELECT timestamp, "x y" AS x FROM s')
    scope = pond.read()
    batches = iter(scope.keeping("/q", scope.plan("/q").execute(engine="spark")))
    next(batches)
    del batches
    assert cached(pond) == []


def test_what_changes_by_itself_is_not_kept(pond: Pond) -> None:
    query(pond, "/random", "SELECT timestamp, rand() AS x FROM s")
    make(pond, "/r", "temporal-reduce", in_pattern="/random", out_pattern="r", resolutions=["1d"],
         aggregations=[{"type": "sum"}])  # fmt: skip
    assert rows_of(pond, "/random") != rows_of(pond, "/random")
    assert cached(pond) == []
    path = "/r/r/res=1d.series"
    assert rows_of(mp.open(pond.location), path) != rows_of(mp.open(pond.location), path)


def test_a_transaction_keeps_nothing(pond: Pond) -> None:
    query(pond, "/q", 'SELECT timestamp, "x y" AS x FROM s')
    with pond.write() as tx:
        tx.append_series("/s", [{"timestamp": at(600), "x y": 7.0, "site": "b"}])
        drafted = tx.to_arrow("/q").to_pylist()
        assert [row["x"] for row in drafted if row["timestamp"] == at(600)] == [7]
        assert cached(pond) == []
        tx.rollback()
    append(pond, "/s", [{"timestamp": at(600), "x y": 8.0, "site": "b"}])
    found = [row["x"] for row in rows_of(pond, "/q") if row["timestamp"] == at(600)]
    assert found == [8]


def test_columns_are_known_without_running(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    query(pond, "/q", 'SELECT timestamp, "x y" * 2 AS "a.b" FROM s')
    wanted = ("timestamp", "a.b")
    assert pond.read().derivation.rows("/q").schema.names == wanted
    from millpond.engine.spark.engine import SparkEngine

    def refuse(*given: object) -> None:
        raise AssertionError("Spark was asked again")

    monkeypatch.setattr(SparkEngine, "sql_schema", refuse)
    assert mp.open(pond.location).read().derivation.rows("/q").schema.names == wanted


def test_many_inputs_are_united_by_name(pond: Pond) -> None:
    append(pond, "/t", [{"timestamp": at(0), "z": 1}])
    text = "SELECT count(z) AS zs, count(*) AS n, max(timestamp) AS timestamp FROM a"
    query(pond, "/u", text, a="series:///[st]")
    assert rows_of(pond, "/u") == [{"zs": 1, "n": 97, "timestamp": at(95)}]


def test_a_query_that_nobody_has_read_is_materialized(pond: Pond) -> None:
    query(pond, "/q", "SELECT *, 5 AS five FROM s", s="/s")
    make(pond, "/m", "materialize", source="/q", target="/out")
    run_node(pond, "/m")
    found = rows_of(pond, "/out")
    assert found == rows_of(pond, "/q")
    assert {row["five"] for row in found} == {5}
    with pond.write() as tx:  # and by hand: what a query gives is a path again
        tx.write_table("/again", pond["/q"].plan())
        tx.commit()
    assert rows_of(pond, "/again") == found


def test_columns_that_are_dropped_below_a_query(pond: Pond) -> None:
    make(pond, "/drop", "column-rename", drops=["x y"])
    config = {"patterns": {"s": "/s"}, "query": "SELECT * FROM s", "transforms": ["/drop"]}
    make(pond, "/q", "sql-derived-series", **config)
    before = rows_of(pond, "/s")
    assert "x y" in before[0]
    for row in before:
        del row["x y"]
    assert sorted(rows_of(pond, "/q"), key=itemgetter("timestamp")) == before
    narrow = mp.sql("SELECT * FROM s", s=pond["/s"].plan().select("x y"))
    assert {tuple(row) for row in narrow.to_pylist(engine="spark")} == {("x y",)}

"""Nodes that are computed, as a person meets them: paths like others. Queries are in test_sql."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import millpond as mp
from millpond.base.errors import (
    CycleError,
    FactoryConfigError,
    PathTypeError,
    PluginError,
    SchemaError,
)
from millpond.fs.entry import EntryType

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond

START = datetime(2024, 1, 1, tzinfo=UTC)


def made_up(**more: Any) -> dict[str, Any]:
    points = [{"name": "level", "components": [{"type": "line", "slope": 24}]}]
    given = {"start": "2024-01-01", "end": "2024-01-02T23:00", "interval": "1h", "points": points}
    return {**given, **more}


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def make(pond: Pond, path: str, factory: str, config: dict[str, Any]) -> None:
    with pond.write() as tx:
        tx.make_factory(path, factory, config)
        tx.commit()


def directory(*entries: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {"entries": [{"name": n, "factory": f, "config": c} for n, f, c in entries]}


class TestSynthetic:
    def test_rows(self, pond: Pond) -> None:
        make(pond, "/made", "synthetic-timeseries", made_up())
        rows = pond["/made"].to_arrow().to_pylist()
        assert len(rows) == 48
        assert rows[0] == {"timestamp": START, "level": 0.0}
        assert rows[-1]["timestamp"] == START + timedelta(hours=47)
        assert rows[-1]["level"] == pytest.approx(47)

    def test_the_end_belongs_to_it(self, pond: Pond) -> None:
        year = made_up(start="2025-01-01", end="2025-12-31T23:00")
        make(pond, "/made", "synthetic-timeseries", year)
        assert pond["/made"].to_arrow().num_rows == 8760
        for end, rows in (("2024-01-01", 1), ("2024-01-01T01:59", 2), ("2024-01-01T02:00", 3)):
            make(pond, f"/{rows}", "synthetic-timeseries", made_up(end=end))
            assert pond[f"/{rows}"].to_arrow().num_rows == rows

    def test_a_range_of_time(self, pond: Pond) -> None:
        make(pond, "/made", "synthetic-timeseries", made_up())
        plan = pond["/made"].plan(time_start=START + timedelta(hours=46))
        assert plan.count(engine="arrow") == 2

    def test_it_is_made_once(self, pond: Pond) -> None:
        make(pond, "/made", "synthetic-timeseries", made_up())
        scope = pond.read()
        before = scope.to_arrow("/made")
        cached = list((pond_place(pond) / "cache/synthetic").rglob("*.parquet"))
        assert len(cached) == 1
        stamp = cached[0].stat().st_mtime_ns
        assert pond.read()["/made"].to_arrow() == before
        assert cached[0].stat().st_mtime_ns == stamp
        cached[0].unlink()
        assert pond.read()["/made"].to_arrow() == before, "deleting it loses nothing"

    def test_shapes(self, pond: Pond) -> None:
        def point(kind: str, **more: Any) -> dict[str, Any]:
            return {"name": kind, "components": [{"type": kind, "period": "4h", **more}]}

        points = [point("sine"), point("triangle"), point("square", offset=5), point("noise")]
        make(pond, "/made", "synthetic-timeseries", made_up(points=points, end="2024-01-01T04:00"))
        found = pond["/made"].to_arrow().to_pydict()
        assert found["sine"] == pytest.approx([0, 1, 0, -1, 0], abs=1e-12)
        assert found["triangle"] == pytest.approx([0, 1, 0, -1, 0])
        assert found["square"] == [6, 6, 4, 4, 6]
        assert all(-1 <= value <= 1 for value in found["noise"])
        assert len(set(found["noise"])) == 5


class TestDirectories:
    def test_children_are_paths(self, pond: Pond) -> None:
        inner = directory(("deep", "synthetic-timeseries", made_up()))
        entries = directory(("a", "synthetic-timeseries", made_up()), ("in", "dynamic-dir", inner))
        make(pond, "/derived", "dynamic-dir", entries)
        scope = pond.read()
        assert sorted(scope.children("/derived")) == ["a", "in"]
        assert scope.exists("/derived/in/deep")
        assert not scope.exists("/derived/in/other")
        assert scope.stat("/derived/a").entry_type is EntryType.DYNAMIC_SERIES
        found = [str(handle.path) for handle in scope["/"].glob("derived/**/deep")]
        assert found == ["/derived/in/deep"]
        assert scope["/derived/in/deep"].to_arrow().num_rows == 48

    def test_ids_are_the_same_for_everybody(self, pond: Pond) -> None:
        make(pond, "/d", "dynamic-dir", directory(("a", "synthetic-timeseries", made_up())))
        first = pond.read().stat("/d/a").node_id
        assert mp.open(pond.location).read().stat("/d/a").node_id == first
        with pond.write() as tx:
            tx.write_bytes("/other", b"x")
            tx.commit()
        assert pond.read().stat("/d/a").node_id == first

    def test_nothing_is_written_there(self, pond: Pond) -> None:
        make(pond, "/d", "dynamic-dir", directory(("a", "synthetic-timeseries", made_up())))
        with pond.write() as tx:
            with pytest.raises(PathTypeError, match="nothing can be put into it"):
                tx.write_bytes("/d/b", b"x")
            tx.rollback()

    def test_a_transaction_sees_its_own(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_factory(
                "/d", "dynamic-dir", directory(("a", "synthetic-timeseries", made_up()))
            )
            assert tx.to_arrow("/d/a").num_rows == 48
            tx.make_factory(
                "/d", "dynamic-dir", directory(("b", "synthetic-timeseries", made_up()))
            )
            assert list(tx.children("/d")) == ["b"]
            tx.rollback()

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({}, "entries: it is missing"),
            (directory(("a/b", "synthetic-timeseries", {})), "entries.0.name: "),
            (directory(("a", "synthetic-timeseries", {})),
             r"entries.0 \(a\): start: it is missing"),
            (directory(("a", "dynamic-dir", directory()), ("a", "dynamic-dir", directory())),
             "there are two entries 'a'"),
            (directory(("x", "dynamic-dir", directory(("y", "dynamic-dir", {"z": 1})))),
             r"entries.0 \(x\): entries.0 \(y\): z: there is no such member \(and 1 more\)"),
        ],
    )  # fmt: skip
    def test_configurations_are_checked_to_the_bottom(
        self, pond: Pond, config: dict[str, Any], message: str
    ) -> None:
        with pond.write() as tx:
            with pytest.raises(FactoryConfigError, match=message):
                tx.make_factory("/d", "dynamic-dir", config)
            assert not tx.exists("/d")
            tx.rollback()

    def test_a_factory_that_is_not_there(self, pond: Pond) -> None:
        with pond.write() as tx:
            with pytest.raises(PluginError, match="dynamic-dir"):
                tx.make_factory("/d", "dynamic-dri", {})
            tx.rollback()


class TestReferences:
    def test_variables_and_environment(self, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
        config = made_up(interval="{{ step }}", end="${env:UNTIL}")
        make(pond, "/made", "synthetic-timeseries", config)
        row = pond.read().row("/made")
        assert json.loads(row.config or "")["interval"] == "{{ step }}", "stored as it was given"
        with pytest.raises(FactoryConfigError, match="no variable UNTIL"):
            pond["/made"].to_arrow()
        monkeypatch.setenv("UNTIL", "2024-01-01T18:00")
        with pytest.raises(FactoryConfigError, match="the variable step is not given"):
            pond.read()["/made"].to_arrow()
        pond.variables = {"step": "6h"}
        assert pond.read()["/made"].to_arrow().num_rows == 4
        pond.variables = {"step": "12h"}
        assert pond.read()["/made"].to_arrow().num_rows == 2

    def test_what_the_environment_says_is_not_repeated(
        self, pond: Pond, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TOKEN", "hunter2secret")
        query = {"patterns": {"s": "/s"}, "query": "SELECT '${env:TOKEN}' FROM s WHERE ("}
        for factory, config in (
            ("synthetic-timeseries", made_up(interval="${env:TOKEN}")),
            ("sql-derived-table", query),
            ("dynamic-dir", directory(("q", "sql-derived-table", query))),
        ):
            with pytest.raises(FactoryConfigError) as caught:
                make(pond, "/secret", factory, config)
            assert "hunter2" not in str(caught.value)
            assert "${env:TOKEN}" in str(caught.value)

    def test_defaults(self, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("UNTIL", raising=False)
        make(pond, "/made", "synthetic-timeseries", made_up(end="${env:UNTIL:-2024-01-01T23:00}"))
        assert pond["/made"].to_arrow().num_rows == 24


def query(pattern: str, text: str = "SELECT * FROM s") -> dict[str, Any]:
    return {"patterns": {"s": pattern}, "query": text}


class TestCycles:
    def test_of_itself(self, pond: Pond) -> None:
        make(pond, "/a", "sql-derived-series", query("/a"))
        with pytest.raises(CycleError, match="/a is computed from itself: /a -> /a") as caught:
            pond["/a"].plan()
        assert caught.value.paths == ("/a", "/a")

    def test_of_three(self, pond: Pond) -> None:
        with pond.write() as tx:
            for name, of in (("a", "/b"), ("b", "/c"), ("c", "/a")):
                tx.make_factory(f"/{name}", "sql-derived-series", query(of))
            tx.commit()
        with pytest.raises(CycleError, match="/b -> /c -> /a -> /b"):
            pond["/b"].plan()
        with pond.write() as tx:
            with pytest.raises(CycleError):
                tx.plan("/a")
            tx.rollback()

    def test_a_directory_that_looks_into_itself(self, pond: Pond) -> None:
        entries = directory(("a", "sql-derived-series", query("/d/*")))
        make(pond, "/d", "dynamic-dir", entries)
        assert list(pond.read().children("/d")) == ["a"], "it can be listed"
        with pytest.raises(CycleError, match="/d/a -> /d/a"):
            pond["/d/a"].plan()


def test_a_table_is_of_one_path(pond: Pond) -> None:
    with pond.write() as tx:
        for name in ("a", "b"):
            tx.write_table(f"/in-{name}", [{"x": 1}])
        tx.make_factory("/t", "sql-derived-table", query("table:///in-*"))
        tx.commit()
    with pytest.raises(FactoryConfigError, match=r"matches 2 paths: /in-a, /in-b"):
        pond["/t"].plan()


class TestRenames:
    @pytest.fixture
    def rows(self) -> Any:
        from millpond.plan.make import values

        return values([{"Temp.C": 1, "Temp F": "2", "DO mg/L": 3.0, "junk": None}])

    def renamed(self, plan: Any, **config: Any) -> Any:
        from millpond.provider.factories.column_rename import ColumnRename

        factory = ColumnRename()
        return factory.transform(plan, factory.parse(config, {}))

    def test_by_name_and_by_pattern(self, rows: Any) -> None:
        found = self.renamed(rows, renames={"DO mg/L": "do", "Temp*": "Temperature$0"})
        assert found.schema.names == ("Temperature.C", "Temperature F", "do", "junk")

    def test_by_rules(self, rows: Any) -> None:
        rules = [{"pattern": r"Temp[. ](\w)", "replacement": r"t_\1"}]
        assert self.renamed(rows, rules=rules).schema.names[:2] == ("t_C", "t_F")

    def test_drops_and_casts(self, rows: Any) -> None:
        found = self.renamed(rows, drops=["j*"], casts={"Temp F": "long", "Temp.C": "double"})
        assert found.to_pylist(engine="arrow") == [{"Temp.C": 1.0, "Temp F": 2, "DO mg/L": 3.0}]

    def test_two_of_one_name(self, rows: Any) -> None:
        with pytest.raises(SchemaError, match=r"'Temp.C' and 'Temp F' would both be named 'T'"):
            self.renamed(rows, renames={"Temp*": "T"})

    @pytest.mark.parametrize(
        ("replacement", "message"),
        [("t_$1", r"\$1 is no group here: the first is \\1"), ("${0}", r"\$\{0\} is no group"),
         (r"t_\2", "does not fit the pattern: invalid group")],
    )  # fmt: skip
    def test_groups_of_rules(self, rows: Any, replacement: str, message: str) -> None:
        rules = [{"pattern": r"Temp(.*)", "replacement": replacement}]
        with pytest.raises(FactoryConfigError, match=rf"rules.0.replacement: .*{message}"):
            self.renamed(rows, rules=rules)

    @pytest.mark.parametrize("what", ["casts", "renames"])
    def test_names_are_of_columns(self, rows: Any, what: str) -> None:
        with pytest.raises(SchemaError, match=f"{what} .* no column 'Temp.F'") as caught:
            self.renamed(rows, **{what: {"Temp.F": "string"}})
        assert "'Temp F'" in str(caught.value.hint)
        found = self.renamed(rows, drops=["none"], **{what: {"Salt*": "string"}})
        assert found.schema == rows.schema, "a pattern may match nothing"

    def test_captures_that_are_not_there(self, rows: Any) -> None:
        with pytest.raises(FactoryConfigError, match="asks for \\$1"):
            self.renamed(rows, renames={"Temp*": "T$1"})


def pond_place(pond: Pond) -> Path:
    from pathlib import Path

    return Path(pond.location)

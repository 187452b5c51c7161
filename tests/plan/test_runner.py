"""Where rows leave a plan: counted, in pandas, on the screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import MillpondError, PlanError
from millpond.plan.expr import col
from millpond.plan.make import values

if TYPE_CHECKING:
    from pathlib import Path

ROWS = values([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 3, "b": None}])


class TestCount:
    def test_of_rows_not_of_values(self) -> None:
        assert ROWS.count(engine="arrow") == 3
        assert ROWS.filter(col("a") > 1).count(engine="arrow") == 1
        assert values([{}, {}]).count(engine="arrow") == 2
        assert ROWS.head(0).count(engine="arrow") == 0

    def test_decodes_only_what_decides_about_rows(self, tmp_path: Path) -> None:
        table = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
        plan = mp.scan(tmp_path / "t.parquet")
        with mp.collect_stats() as seen:
            assert plan.count(engine="arrow") == 1000
        assert (seen.files_opened, seen.batches_decoded, seen.columns_decoded) == (1, 0, 0)
        with mp.collect_stats() as seen:
            assert plan.filter(col("a") >= 850).count(engine="arrow") == 150
        assert (seen.batches_decoded, seen.columns_decoded, seen.columns_skipped) == (2, 2, 2)


class TestPandas:
    def test_has_the_same_rows(self) -> None:
        frame = ROWS.select("b").to_pandas(engine="arrow")
        assert list(frame.columns) == ["b"]
        assert list(frame["b"]) == ["x", "y", None]

    def test_is_asked_for_where_it_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pandas"]:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MillpondError, match="needs the package pandas"):
            ROWS.to_pandas(engine="arrow")


class TestShow:
    def test_the_first_rows_under_names_and_types(self, capsys: pytest.CaptureFixture[str]) -> None:
        ROWS.show(2, engine="arrow")
        out = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
        assert out[0] == ["a", "b"]
        assert out[1] == ["long", "string"]
        assert out[3:-1] == [["1", "x"], ["null", "y"]]
        assert " ".join(out[-1]) == "2 rows, and there are more"

    def test_all_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        ROWS.show(engine="arrow")
        assert capsys.readouterr().out.splitlines()[-1] == "3 rows"

    def test_what_could_break_a_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        wide = {f"column_{n}": "v" * 20 for n in range(20)}
        values([{"a": "[red]one\ntwo", "b": "x" * 500, **wide}]).show(engine="arrow")
        out = capsys.readouterr().out
        assert "[red]one\\ntwo" in out
        assert "x" * 59 + "…" in out
        assert out.count("v" * 20) == 20

    def test_nothing_at_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        values([{}, {}]).show(engine="arrow")
        assert capsys.readouterr().out.split() == ["2", "rows"]
        with pytest.raises(PlanError, match="a number of rows"):
            ROWS.show(-1, engine="arrow")

"""Hints lead on: what they name works, and one thing is one thing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.store.local import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli, Real


@pytest.fixture
def filled(cli: Cli, place: Path) -> Cli:
    pq.write_table(pa.table({"x": [1, 2]}), place.parent / "raw.parquet")
    (place.parent / "raw.csv").write_text("x\n1\n2\n")
    for name in ("raw.parquet", "raw.csv"):
        cli.ok("copy", f"./{name}", f"/{name}")
    cli.ok("copy", f"host+table://{place.parent}/raw.parquet", "/t")
    return cli


@pytest.mark.parametrize("scheme", ["series", "table"])
@pytest.mark.parametrize("name", ["raw.parquet", "raw.csv"])
def test_a_scheme_of_rows_for_bytes_names_the_format(filled: Cli, scheme: str, name: str) -> None:
    error = filled.fails("cat", f"{scheme}:///{name}", code=8)
    url = re.search(r"its rows: (\S+);", error)
    assert url is not None
    assert filled.ok("cat", url[1]) == "x\n1\n2\n"


@pytest.mark.parametrize("scheme", ["series", "csv"])
def test_a_scheme_for_a_table_names_the_path(filled: Cli, scheme: str) -> None:
    error = filled.fails("cat", f"{scheme}:///t", code=8)
    assert "its rows: /t" in error
    assert filled.ok("cat", "/t") == "x\n1\n2\n"


def test_a_url_in_the_place_of_a_path(filled: Cli) -> None:
    assert "host:///tmp is a URL" in filled.fails("list", "host:///tmp", code=2)
    error = filled.fails("list", "csv:///raw.csv", code=2)
    assert "paths of the pond: /raw.csv" in error
    assert "/raw.csv" in filled.ok("list", "/raw.csv")
    with pytest.raises(mp.errors.PathSyntaxError, match=r"the path in it is /raw\.csv"):
        mp.open("pond").read().stat("csv:///raw.csv")


def test_what_is_no_query_is_refused_in_our_words(filled: Cli, real: Real) -> None:
    for text in ('show columns from "/t"', 'describe "/t"', "set x = 1"):
        found = real("sql", text, POND=str(mp.open("pond").location))
        assert found.returncode == 4, found
        assert "is not a query" in found.stderr
        assert "Falling back" not in found.stderr
        assert found.stdout == ""
    assert "columns" in filled.json("describe", "/t")


def test_explain_says_why(filled: Cli) -> None:
    assert "arrow: it can run all of this plan" in filled.ok("cat", "/t", "--explain")
    assert "arrow: asked for by --engine" in filled.ok(
        "--engine", "arrow", "cat", "/t", "--explain"
    )


def test_the_setting_is_a_reason(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_ENGINE", "arrow")
    assert "arrow: the setting `engine` says so" in filled.ok("cat", "/t", "--explain")


def test_one_damaged_object_is_one(filled: Cli, place: Path) -> None:
    assert "is sound" not in filled("fsck").stderr
    [table] = [
        path for path in (place / "tables").rglob("*.parquet") if "_delta_log" not in str(path)
    ]
    LocalStore(str(table.parent)).put(table.name, b"no Parquet", mode="overwrite")
    result = filled("fsck")
    assert result.exit_code == 10
    assert "1 object is damaged or missing" in result.stderr


@pytest.mark.spark
def test_a_query_names_its_inputs(spark: object, filled: Cli) -> None:
    del spark
    result = filled("control", "sql", "SELECT * FROM control_table")
    assert result.exit_code != 0
    assert "a query reads its inputs alone: control" in result.stderr
    assert filled.ok("control", "sql", "SELECT count(*) AS n FROM control", "--format", "csv")

"""`pond sql`: one query, from an argument, a file or standard input; errors as users see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.cli.calls import Cli


@pytest.fixture
def filled(cli: Cli, place: Path) -> Cli:
    with mp.open(place).write() as tx:
        tx.make_directory("/s")
        tx.write_table("/s/a", [{"site": "a", "level": n} for n in range(3)])
        tx.write_table("/s/b", [{"site": "b", "level": 9}])
        tx.commit()
    return cli


def test_an_unknown_path_is_shown_where_it_stands(filled: Cli) -> None:
    said = filled.fails("sql", 'SELECT * FROM "/s/c d"', code=6)
    assert said == (
        "error: there is nothing at /s/c d (line 1, column 15)\n"
        '  SELECT * FROM "/s/c d"\n'
        "                ^\n"
        "  hint: /s has a, b\n"
    )


def test_wrong_sql_is_shown_where_it_stops(filled: Cli) -> None:
    said = filled.fails("sql", 'SELECT * FROM "/s/a"\nWHERE (level > 1', code=4)
    assert "line 2" in said
    assert "\n  WHERE (level > 1\n" in said


def test_one_query_alone(filled: Cli) -> None:
    said = filled.fails("sql", "SELECT 1", "-f", "q.sql", code=2)
    assert "q.sql" in said
    assert "one query is wanted" in filled.fails("sql", "SELECT 1; SELECT 2", code=4)
    assert "DROP is not a query" in filled.fails("sql", "DROP TABLE x", code=4)


@pytest.mark.spark
class TestOnSpark:
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        """The session that all tests share."""

    def test_formats_limits_and_sources_of_the_text(self, filled: Cli, tmp_path: Path) -> None:
        text = 'SELECT site, level FROM "/s/*" WHERE level > 0 ORDER BY level DESC'
        assert filled.ok("sql", text) == "site,level\nb,9\na,2\na,1\n"
        assert filled.ok("sql", text, "--limit", "1") == "site,level\nb,9\n"
        assert [json.loads(line) for line in filled.ok("--json", "sql", text).splitlines()] == [
            {"site": "b", "level": 9},
            {"site": "a", "level": 2},
            {"site": "a", "level": 1},
        ]
        (tmp_path / "q.sql").write_text(f"-- levels\n{text};\n")
        assert filled.ok("sql", "-f", "q.sql", "--format", "csv").count("\n") == 4
        assert filled.ok("sql", "-", stdin=text).count("\n") == 4
        assert filled.ok("sql", stdin=text).count("\n") == 4

    def test_the_past_and_the_plan(self, filled: Cli) -> None:
        assert filled.ok("sql", 'SELECT count(*) AS n FROM "/s/a"', "--as-of", "1") == "n\n3\n"
        shown = filled.ok("sql", 'SELECT level FROM "/s/a"', "--explain")
        assert "Sql" in shown
        assert "/s/a" in shown

    def test_an_unknown_column_is_shown_where_it_stands(self, filled: Cli) -> None:
        said = filled.fails("sql", 'SELECT site,\n  levl\nFROM "/s/a"', code=4)
        assert "`levl` cannot be resolved" in said
        assert "(line 2, column 3)\n    levl\n    ^\n" in said

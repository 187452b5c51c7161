"""`cat`, `describe` and `copy` of raw files that a format reads, of the pond and elsewhere."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli, Real

PAGE = (
    "<table><tr><td>Location</td><td>Weir</td></tr></table><table><tr><th>Date Time</th>"
    "<th>Level (m)</th></tr><tr><td>2024-05-01 00:00:00</td><td>2.9</td></tr></table>"
)
POINT = {"timeUnixNano": "1714521600000000000", "asDouble": 2.9}
METRICS = {
    "resourceMetrics": [
        {"scopeMetrics": [{"metrics": [{"name": "level", "gauge": {"dataPoints": [POINT]}}]}]}
    ]
}


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    """A pond with raw files."""
    with mp.open(place).write() as tx:
        tx.make_directory("/raw")
        tx.write_bytes("/raw/a.csv", b"time;n\n2024-05-01T00:00:00Z;1\n")
        tx.write_bytes("/raw/b.csv", b"time;n;site\n2024-05-02T00:00:00Z;2.5;weir\n")
        tx.write_bytes("/raw/c.jsonl", b'{"n": 1}\n')
        tx.write_bytes("/raw/page.htm", PAGE.encode())
        tx.write_bytes("/raw/packed", gzip.compress(b"n\n1\n"))
        tx.write_table("/t", [{"n": 1}])
        tx.append_series("/log.csv", [{"n": 1, "time": datetime(2024, 5, 1, tzinfo=UTC)}])
        tx.commit()
    return cli


class TestCat:
    def test_files_of_the_pond_are_united(self, full: Cli) -> None:
        assert full.ok("cat", "csv:///raw/*.csv?delimiter=;") == (
            "time,n,site\n2024-05-01T00:00:00Z,1.0,\n2024-05-02T00:00:00Z,2.5,weir\n"
        )
        one = full.ok("cat", "csv:///raw/*.csv?delimiter=;", "--time-start", "2024-05-02")
        assert one == "time,n,site\n2024-05-02T00:00:00Z,2.5,weir\n"
        two = full.ok("cat", "json:///raw/c.jsonl", "/t", "--format", "json")
        assert two == '{"n":1}\n{"n":1}\n'

    def test_compressions_and_other_formats(self, full: Cli) -> None:
        assert full.ok("cat", "csv+gzip:///raw/packed") == "n\n1\n"
        assert full.ok("cat", "csv://gzip/raw/packed") == "n\n1\n"
        level = "timestamp,Level (m)\n2024-05-01T00:00:00Z,2.9\n"
        assert full.ok("cat", "excelhtml:///raw/page.htm") == level

    def test_versions_and_moments(self, full: Cli, place: Path) -> None:
        with mp.open(place).write() as tx:
            tx.write_bytes("/raw/c.jsonl", b'{"n": 2}\n')
            tx.commit()
        assert full.ok("cat", "json:///raw/c.jsonl") == "n\n2\n"
        for args in (("json:///raw/c.jsonl@v1",), ("json:///raw/c.jsonl", "--version", "1"),
                     ("json:///raw/c.jsonl", "--as-of", "1")):  # fmt: skip
            assert full.ok("cat", *args) == "n\n1\n"

    def test_entries_of_a_kind(self, full: Cli) -> None:
        assert full.ok("cat", "table:///*") == "n\n1\n"
        assert full.ok("cat", "series:///log.csv") == "n,time\n1,2024-05-01T00:00:00Z\n"
        assert "is a table, which series:// does not name" in full.fails(
            "cat", "series:///t", code=8
        )

    @pytest.mark.parametrize(
        ("url", "code", "said"),
        [
            ("csv:///raw/*.txt", 6, "nothing matches /raw/*.txt"),
            ("csv:///raw/a.cvs", 6, "did you mean /raw/a.csv"),
            ("csv:///t", 8, "/t is a table, which csv:// does not name"),
            ("csv:///raw", 8, "/raw is a directory"),
            ("csv:///raw/*.csv?sep=;", 8, "options of csv are delimiter"),
            ("cvs:///raw/a.csv", 8, "did you mean csv"),
            ("json:///raw/a.csv", 12, "line 1 of /raw/a.csv is not a JSON object"),
            ("csv:///raw/packed", 12, "/raw/packed"),
            ("host+weblog:///no/such.log", 6, "/no/such.log"),
        ],
    )
    def test_errors(self, full: Cli, url: str, code: int, said: str) -> None:
        assert said in full.fails("cat", url, code=code)

    def test_columns_that_do_not_fit_name_both_files(self, full: Cli, place: Path) -> None:
        with mp.open(place).write() as tx:
            tx.write_bytes("/raw/b.csv", b"n\nhigh\n")
            tx.commit()
        said = full.fails("cat", "csv:///raw/*.csv?delimiter=;", code=4)
        assert "long in /raw/a.csv and string in /raw/b.csv" in said

    def test_files_of_this_machine_need_no_pond(self, real: Real, tmp_path: Path) -> None:
        (tmp_path / "page.htm").write_text(PAGE)
        (tmp_path / "m.jsonl").write_text(json.dumps(METRICS))
        (tmp_path / "odd").write_bytes(gzip.compress(b"a|b\n1|NA\n"))
        found = real("cat", "host+excelhtml://./page.htm", POND="")
        assert found.stdout == "timestamp,Level (m)\n2024-05-01T00:00:00Z,2.9\n", found.stderr
        found = real("cat", "host+oteljson://./m.jsonl", POND="")
        assert found.stdout == "timestamp,level\n2024-05-01T00:00:00Z,2.9\n", found.stderr
        found = real("cat", "host+csv+gzip://./odd?delimiter=|&null_values=NA", POND="")
        assert found.stdout == "a,b\n1,\n", found.stderr

    @pytest.mark.spark
    def test_sql(self, full: Cli, spark: object) -> None:
        query = "SELECT max(n) AS n FROM source"
        assert full.ok("cat", "csv:///raw/*.csv?delimiter=;", "--sql", query) == "n\n2.5\n"


def test_delta_tables_have_versions_of_their_own(full: Cli, place: Path) -> None:
    url = f"host+delta://{next((place / 'tables').iterdir())}?version=0"
    assert full.json("describe", url)["delta"]["version"] == 0
    shutil.copytree(place / "data", place.parent / "data")
    full.ok("copy", "-p", "./data", "/copied/")
    assert full.ok("cat", "delta:///copied/data", "--limit", "1").count("\n") == 2
    assert "?version=1" in full.fails("cat", "delta:///copied/data", "--version", "1", code=8)


def test_describe(full: Cli) -> None:
    found = full.json("describe", "csv:///raw/*.csv?delimiter=;")
    assert (found["files"], found["rows"], found["type"]) == (2, 2, "csv")
    assert [column["type"] for column in found["columns"]] == ["timestamp", "double", "string"]
    assert found["time"] == {"column": "time"}
    assert full.json("describe", "table:///t")["path"] == "/t"


def test_copies_within_the_pond_convert(full: Cli) -> None:
    found = full.json("copy", "-p", "csv+series:///raw/*.csv?delimiter=;", "/series/")
    assert [(one["source"], one["target"]) for one in found["copied"]] == [
        ("/raw/a.csv", "/series/a.csv"),
        ("/raw/b.csv", "/series/b.csv"),
    ]
    assert full.ok("cat", "/series/a.csv") == "time,n\n2024-05-01T00:00:00Z,1\n"
    full.ok("copy", "json+table:///raw/c.jsonl", "/c")
    assert full.json("describe", "/c")["type"] == "table"
    full.ok("copy", "table:///*", "/series/")
    assert full.ok("cat", "/series/t") == "n\n1\n"
    said = full.fails("copy", "json+series:///raw/c.jsonl", "/d", code=4)
    assert "/raw/c.jsonl" in said
    assert "csv+table:///raw/a.csv" in full.fails("copy", "csv:///raw/a.csv", "/x", code=8)


def test_copies_out_as_arrow(full: Cli, tmp_path: Path) -> None:
    full.ok("copy", "/t", "host+arrow://./t.arrow")
    assert full.ok("cat", "host+arrow://./t.arrow") == "n\n1\n"
    said = full.fails("copy", "/t", "host+csv+gzip://./t.csv.gz", code=8)
    assert "not how it is written" in said
    full.fails("copy", "/t", "host+weblog://./t.log", code=8)

"""`pond cat`: formats, choices, errors; and that rows start no JVM."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.cli.terminal import on_terminal

import millpond as mp
from millpond.cli.main import pond as group

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.cli.calls import Cli, Real


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    """A pond with two series, a table and files."""
    with mp.open(place).write() as tx:
        tx.make_directory("/s")
        for day in (1, 2, 3):
            tx.append_series("/s/a", [{"time": at(day), "n": day}])
        tx.append_series("/s/b", [{"time": at(2), "n": 20, "site": "weir, old"}])
        tx.write_table("/t", [{"x": 1.0, "y": None}, {"x": float("nan"), "y": [1]}])
        tx.write_bytes("/a.txt", b"hello\n")
        tx.write_bytes("/b.txt", b"you\n")
        tx.write_bytes("/big", b"\0" + os.urandom(300_000))
        tx.commit()
    with mp.open(place).write() as tx:
        tx.append_series("/s/a", [{"time": at(4), "n": 4}])
        tx.write_bytes("/a.txt", b"bye\n")
        tx.commit()
    return cli


def at(day: int) -> datetime:
    return datetime(2024, 5, day, tzinfo=UTC)


def raw(*args: str) -> bytes:
    result = CliRunner().invoke(group, list(args))
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


class TestBytes:
    def test_as_they_are(self, full: Cli, place: Path) -> None:
        assert raw("cat", "/a.txt") == b"bye\n"
        assert raw("cat", "/*.txt") == b"bye\nyou\n"
        assert raw("cat", "b.txt", "/a.txt", "--format", "raw") == b"you\nbye\n"
        assert raw("cat", "/big") == mp.open(place)["/big"].read_bytes()

    def test_versions_and_moments(self, full: Cli) -> None:
        assert full.ok("cat", "/a.txt@v1") == "hello\n"
        assert full.ok("cat", "/a.txt", "--version", "1") == "hello\n"
        assert full.ok("cat", "/a.txt", "--as-of", "1") == "hello\n"
        assert "no version 9" in full.fails("cat", "/a.txt", "--version", "9", code=6)
        assert "transaction 99" in full.fails("cat", "/a.txt", "--as-of", "99", code=6)

    @pytest.mark.parametrize(
        "option", [("--format", "table"), ("--sql", "SELECT 1"), ("--limit", "1"), ("--explain",)]
    )
    def test_what_needs_rows(self, full: Cli, option: tuple[str, ...]) -> None:
        said = full.fails("cat", "/a.txt", *option, code=8)
        assert " ".join(option[:1]) in said
        assert "csv:///a.txt" in said

    def test_damage_is_found(self, full: Cli, place: Path) -> None:
        digest = mp.open(place)["/big"].stat().blake3
        assert digest is not None
        blob = place / "blobs" / digest[:2] / digest
        blob.write_bytes(blob.read_bytes()[:-1] + b"!")
        result = full("cat", "/big")
        assert result.exit_code == 10
        assert "/big" in result.stderr


class TestRows:
    def test_csv_where_nobody_looks(self, full: Cli) -> None:
        expected = (
            "time,n\n2024-05-01T00:00:00Z,1\n2024-05-02T00:00:00Z,2\n"
            "2024-05-03T00:00:00Z,3\n2024-05-04T00:00:00Z,4\n"
        )
        for options in ((), ("--format", "raw"), ("--format", "csv")):
            assert full.ok("cat", "/s/a", *options) == expected

    def test_json(self, full: Cli) -> None:
        for args in (
            ("cat", "/t", "--json"),
            ("--json", "cat", "/t"),
            ("cat", "/t", "--format", "json"),
        ):
            lines = full.ok(*args).splitlines()
            assert [json.loads(line) for line in lines] == [
                {"x": 1.0, "y": None}, {"x": "NaN", "y": [1]},
            ]  # fmt: skip

    def test_parquet_and_arrow(self, full: Cli, place: Path) -> None:
        expected = mp.open(place)["/s/a"].to_arrow()
        found = pq.read_table(io.BytesIO(raw("cat", "/s/a", "--format", "parquet")))
        assert found.equals(expected)
        found = pa.ipc.open_stream(raw("cat", "/s/a", "--format", "arrow")).read_all()
        assert found.equals(expected)

    def test_table(self, full: Cli) -> None:
        result = full("cat", "/s/*", "--format", "table")
        assert result.stdout.splitlines() == [
            "time                     n  site",
            "timestamp             long  string",
            "2024-05-01T00:00:00Z     1  null",
            "2024-05-02T00:00:00Z     2  null",
            "2024-05-03T00:00:00Z     3  null",
            "2024-05-04T00:00:00Z     4  null",
            "2024-05-02T00:00:00Z    20  weir, old",
        ]
        assert result.stderr == "5 rows\n"

    def test_tables_cut_long_values_and_hide_control_characters(
        self, full: Cli, place: Path
    ) -> None:
        with mp.open(place).write() as tx:
            tx.write_table("/odd", [{"a": "x" * 100, "b\n": "\x1b[2J\n", "w": "水" * 50}])
            tx.commit()
        lines = full.ok("cat", "/odd", "--format", "table").splitlines()
        assert len(lines) == 3
        assert "b\\n" in lines[0]
        assert "x" * 59 + "…  \\x1b[2J\\n" in lines[2]
        assert "水" * 29 + "…" in lines[2]
        assert "水" * 30 not in lines[2]

    def test_widths_come_from_the_first_rows(
        self, full: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("millpond.cli.rowtable.FIRST_ROWS", 2)
        with mp.open(place).write() as tx:
            tx.write_table("/w", [{"a": text} for text in ("one", "two", "three four", "five")])
            tx.commit()
        assert full.ok("cat", "/w", "--format", "table").splitlines()[2:] == [
            "one", "two", "three…", "five",
        ]  # fmt: skip

    def test_limits(self, full: Cli) -> None:
        assert full.ok("cat", "/s/a", "--limit", "1") == "time,n\n2024-05-01T00:00:00Z,1\n"
        assert full.ok("cat", "/s/a", "--limit", "0") == "time,n\n"
        full.fails("cat", "/s/a", "--limit", "-1", code=2)

    def test_ranges_of_times(self, full: Cli) -> None:
        def numbers(*options: str) -> list[str]:
            lines = full.ok("cat", "/s/a", *options).splitlines()[1:]
            return [line.rpartition(",")[2] for line in lines]

        assert numbers("--time-start", "2024-05-03") == ["3", "4"]
        assert numbers("--time-end", "2024-05-02") == ["1", "2"]
        assert numbers("--time-end", "2024-05-01T23:59:59Z") == ["1"]
        assert numbers("--time-start", "2024-05-02T02:00:00+02:00", "--time-end", "20240503") == [
            "2", "3",
        ]  # fmt: skip
        said = full.fails(
            "cat", "/s/a", "--time-start", "2024-05-03", "--time-end", "2024-05-01", code=2
        )
        assert "--time-end" in said
        full.fails("cat", "/s/a", "--time-start", "soon", code=2)
        assert "time" in full.fails("cat", "/t", "--time-start", "2024-05-01", code=8)

    def test_moments_of_the_pond(self, full: Cli) -> None:
        assert "2024-05-04" not in full.ok("cat", "/s/a", "--as-of", "1")
        assert full.ok("cat", "/s/a@v2") == "time,n\n2024-05-04T00:00:00Z,4\n"

    def test_explain_computes_nothing(self, full: Cli, place: Path) -> None:
        (place / "r.yaml").write_text(
            "in_pattern: /s/a\nout_pattern: a\nresolutions: [1h]\naggregations: [{type: max}]\n"
        )
        (place / "j.yaml").write_text("inputs: [{pattern: '/r/**/*.series', scope: R}]\n")
        full.ok("mknod", "temporal-reduce", "/r", "--config-path", str(place / "r.yaml"))
        full.ok("mknod", "timeseries-join", "/j", "--config-path", str(place / "j.yaml"))
        text = full.ok("cat", "/j", "--explain")
        assert text.count("Aggregate") >= 4, "all that is to be done, in both plans"
        assert not list(place.rglob("cache/**/*.parquet"))
        rows = full.ok("cat", "/j")
        assert full.ok("cat", "/j", "--explain").count("Aggregate") == 0, "it is kept now"
        assert full.ok("cat", "/j") == rows

    def test_explain_reads_nothing(self, full: Cli, place: Path) -> None:
        text = full.ok("cat", "/s/a", "--explain", "--limit", "1")
        assert "Optimized plan" in text
        assert "arrow" in text
        assert json.loads(full.ok("cat", "/s/a", "--explain", "--json"))

    def test_errors_say_what_is_nearby(self, full: Cli) -> None:
        assert "/a.txt" in full.fails("cat", "/a.tx", code=6)
        assert "nothing matches /x*" in full.fails("cat", "/x*", code=6)
        assert "pond list" in full.fails("cat", "/s", code=8)
        assert "three slashes" in full.fails("cat", "host://a.csv", code=8)
        full.fails("cat", code=2)
        error = json.loads(full.fails("--json", "cat", "/nope", code=6))
        assert error["error"] == "PathNotFoundError"
        assert error["hint"]


class TestHost:
    def test_no_pond_is_needed(self, real: Real, tmp_path: Path) -> None:
        (tmp_path / "a b.csv").write_text(
            "time,n\n2024-05-01T00:00:00Z,1\n2024-05-02T00:00:00Z,2\n"
        )
        found = real("cat", "host+csv://./a b.csv", "--time-start", "2024-05-02", POND="")
        assert found.stdout == "time,n\n2024-05-02T00:00:00Z,2\n", found.stderr
        found = real("cat", "./a b.csv", POND="")
        assert found.stdout == (tmp_path / "a b.csv").read_text()

    def test_formats(self, full: Cli, tmp_path: Path) -> None:
        pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
        (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
        for scheme, name in (("parquet", "a.parquet"), ("json", "a.jsonl")):
            assert full.ok("cat", f"host+{scheme}://./{name}", "--limit", "1") == "a\n1\n"
        table = next(iter((tmp_path / "pond" / "tables").iterdir()))
        assert full.ok("cat", f"host+delta://{table}").count("\n") >= 2

    def test_what_is_not_parquet(self, full: Cli, tmp_path: Path) -> None:
        (tmp_path / "a.parquet").write_text("a\n1\n")
        assert "is not Parquet" in full.fails("cat", "host+parquet://./a.parquet", code=12)

    def test_a_name_that_is_too_long_for_a_file_is_only_missing(self, full: Cli) -> None:
        assert "hint:" in full.fails("cat", "a" * 250, code=6)
        assert "hint:" in full.fails("cat", f"{'a' * 200}/{'b' * 200}/" * 30, code=6)


class TestSql:
    pytestmark = pytest.mark.spark

    def test_over_source(self, full: Cli, spark: object) -> None:
        query = "SELECT site, sum(n) AS total FROM source GROUP BY site ORDER BY total"
        assert full.ok("cat", "/s/*", "--sql", query) == 'site,total\n,10\n"weir, old",20\n'
        query = "SELECT n FROM source ORDER BY n DESC"
        assert full.ok("cat", "/s/a", "--sql", query, "--limit", "2") == "n\n4\n3\n"
        assert full.ok("cat", "/s/a", "--sql", query, "--time-end", "2024-05-01") == "n\n1\n"

    def test_over_files_of_this_machine(self, full: Cli, tmp_path: Path, spark: object) -> None:
        (tmp_path / "a.csv").write_text("n\n1\n2\n")
        query = "SELECT sum(n) AS n FROM source"
        assert full.ok("cat", "host+csv://./a.csv", "--sql", query) == "n\n3\n"

    def test_more_slashes_than_a_path_needs(self, full: Cli, tmp_path: Path, spark: object) -> None:
        (tmp_path / "a.csv").write_text("n\n1\n3\n")
        query = "SELECT n FROM source WHERE n > 1"
        assert full.ok("cat", f"host+csv:///{tmp_path}/a.csv", "--sql", query) == "n\n3\n"
        rows = mp.scan(f"/{tmp_path}/a.csv").to_pylist(engine="spark")
        assert rows == [{"n": 1}, {"n": 3}]

    def test_errors_have_positions(self, full: Cli, spark: object) -> None:
        said = full.fails("cat", "/s/a", "--sql", "SELECT n FROM source WHERE", code=4)
        assert "line 1" in said
        assert "^" in said
        said = full.fails("cat", "/s/a", "--sql", "SELECT\n nn FROM source", code=4)
        assert "nn" in said
        assert "line 2" in said
        said = full.fails("cat", "/s/a", "--sql", "DROP TABLE source", code=4)
        assert "DROP" in said

    def test_the_arrow_engine_has_no_sql(self, full: Cli, spark: object) -> None:
        said = full.fails("--engine", "arrow", "cat", "/s/a", "--sql", "SELECT 1 AS a", code=12)
        assert "Sql" in said

    def test_rows_on_spark_if_that_is_wanted(
        self, full: Cli, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The settings of the session that runs.
        monkeypatch.setenv("MILLPOND_SPARK_MASTER", str(spark.sparkContext.master))
        monkeypatch.setenv("MILLPOND_SPARK_DRIVER_MEMORY", "2g")
        text = full.ok("--engine", "spark", "cat", "/s/a", "--explain")
        assert "spark: asked for by --engine" in text
        assert full.ok("--engine", "spark", "cat", "/s/a") == full.ok("cat", "/s/a")


@pytest.mark.parametrize(
    "args",
    [
        ("/s/a",),
        ("/s/*", "--limit", "1", "--format", "table"),
        ("/s/a", "--time-start", "2024-05-02", "--time-end", "2024-05-03"),
        ("/s/a", "--version", "1"),
        ("/s/a", "--as-of", "1", "--format", "parquet"),
        ("host+csv://./a.csv",),
        ("/a.txt",),
    ],
)
def test_no_jvm_is_started_and_no_pyspark_imported(
    full: Cli, tmp_path: Path, args: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    source = (
        "import sys\n"
        "from millpond.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: code = stop.code\n"
        "found = [name for name in ('pyspark', 'py4j') if name in sys.modules]\n"
        "sys.stderr.write(f'imported {found}')\n"
        "sys.exit(code)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", source, "cat", *args],
        capture_output=True,
        env={**os.environ, "JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"},
        cwd=tmp_path,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout
    assert b"imported []" in answer.stderr


@pytest.mark.parametrize("format_", ["raw", "table", "json", "parquet", "arrow"])
def test_readers_that_go_away_are_no_error(full: Cli, place: Path, format_: str) -> None:
    with mp.open(place).write() as tx:
        tx.write_table("/long", pa.table({"n": list(range(300_000))}))
        tx.commit()
    with subprocess.Popen(
        [sys.executable, "-m", "millpond.cli", "cat", "/long", "--format", format_],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait() == 141
    assert said == b""


class TestTerminal:
    def test_rows_are_a_table(self, full: Cli, tmp_path: Path) -> None:
        code, seen, said = on_terminal("cat", "/s/b", cwd=tmp_path, stream="stdout")
        assert code == 0
        assert seen.splitlines() == [
            "time                     n  site",
            "timestamp             long  string",
            "2024-05-02T00:00:00Z    20  weir, old",
        ]
        assert said == "1 row\n"

    def test_columns_are_cut_to_fit(self, full: Cli, tmp_path: Path) -> None:
        _, seen, _ = on_terminal("cat", "/s/b", cwd=tmp_path, stream="stdout", columns=30)
        assert seen.splitlines()[2] == "2024-05-02T0…    20  weir, old"
        assert all(len(line) <= 30 for line in seen.splitlines())

    def test_other_formats_are_what_they_are(self, full: Cli, tmp_path: Path) -> None:
        args = ("cat", "/s/b", "--format", "csv")
        _, seen, _ = on_terminal(*args, cwd=tmp_path, stream="stdout")
        assert seen == full.ok(*args)
        _, seen, _ = on_terminal("cat", "/a.txt", cwd=tmp_path, stream="stdout")
        assert seen == "bye\n"

    @pytest.mark.parametrize(
        ("args", "hint"),
        [
            (("/s/b", "--format", "parquet"), "csv, json or table"),
            (("/s/b", "--format", "arrow"), "csv, json or table"),
            (("/big",), "--format raw"),
        ],
    )
    def test_binary_data_is_kept_from_it(
        self, full: Cli, tmp_path: Path, args: tuple[str, ...], hint: str
    ) -> None:
        code, seen, said = on_terminal("cat", *args, cwd=tmp_path, stream="stdout")
        assert (code, seen) == (8, "")
        assert hint in said


def test_rows_that_fail_at_once_leave_no_header(full: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,v\n1,1\n2,x\n")
    said = full.fails("cat", "host+csv://./a.csv?infer_rows=1", code=12)
    assert "line 3 of" in said
    assert "column 'v' holds 'x', which is not of type long" in said
    assert "infer_rows=0" in said
    (tmp_path / "b.csv").write_text("n,v\n")
    assert full.ok("cat", "host+csv://./b.csv") == "n,v\n"

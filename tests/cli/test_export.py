"""`pond export`: rows and files below a directory, cut by time, and pages that link to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.cli.terminal import on_terminal

import millpond as mp

if TYPE_CHECKING:
    from tests.cli.calls import Cli, Real

    from millpond.steward.pond import Pond

START = datetime(2024, 4, 30, 22, tzinfo=UTC)


def levels(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"timestamp": START + timedelta(hours=n), "level": float(n)}
        for n in range(first, first + count)
    ]


@pytest.fixture
def pond(cli: Cli, place: Path) -> Pond:
    pond = mp.open(place)
    with pond.write() as tx:
        tx.make_directory("/sensors/north", parents=True)
        tx.append_series("/sensors/north/weir", levels(5))
        tx.append_series("/sensors/lock", levels(2, 100))
        tx.write_table("/sensors/sites", [{"site": "Weir"}])
        tx.write_bytes("/sensors/readme.txt", b"in metres\n")
        tx.commit()
    return pond


def make(pond: Pond, path: str, factory: str, config: dict[str, Any]) -> None:
    with pond.write() as tx:
        tx.make_factory(path, factory, config)
        tx.commit()


def tree(directory: str = "out") -> list[str]:
    base = Path(directory)
    return sorted(str(file.relative_to(base)) for file in base.rglob("*") if file.is_file())


class TestFiles:
    def test_the_tree_is_kept(self, cli: Cli, pond: Pond) -> None:
        cli.ok("export", "/sensors", "out")
        assert tree() == [
            "sensors/lock.parquet",
            "sensors/north/weir.parquet",
            "sensors/readme.txt",
            "sensors/sites.parquet",
        ]
        assert pq.read_table("out/sensors/north/weir.parquet").to_pylist() == levels(5)
        assert Path("out/sensors/readme.txt").read_bytes() == b"in metres\n"

    def test_patterns_and_a_prefix(self, cli: Cli, pond: Pond) -> None:
        cli.ok("export", "/sensors/*", "/sensors/**/weir", "out", "--strip-prefix", "/sensors")
        assert tree() == ["lock.parquet", "north/weir.parquet", "readme.txt", "sites.parquet"]

    def test_kinds_and_formats_of_the_pond(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/raw.csv", b"timestamp,mm\n2024-05-01T00:00:00Z,3\n")
            tx.commit()
        cli.ok("export", "series:///sensors/*", "csv:///raw.csv", "out")
        assert tree() == ["raw.parquet", "sensors/lock.parquet"]
        assert pq.read_table("out/raw.parquet")["mm"].to_pylist() == [3]
        cli.ok("export", "csv:///raw.csv", "cut", "--temporal", "year")
        assert tree("cut") == ["raw/year=2024/raw.parquet"]

    @pytest.mark.parametrize(
        ("format_", "name", "first"),
        [
            ("csv", "lock.csv", "timestamp,level"),
            ("json", "lock.jsonl", '{"timestamp":"2024-05-05T02:00:00Z","level":100.0}'),
        ],
    )
    def test_formats(self, cli: Cli, pond: Pond, format_: str, name: str, first: str) -> None:
        cli.ok("export", "/sensors/lock", "out", "--format", format_)
        assert Path("out/sensors", name).read_text().splitlines()[0] == first

    def test_a_version(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/sensors/readme.txt", b"in feet\n")
            tx.commit()
        cli.ok("export", "/sensors/readme.txt@v1", "out")
        assert Path("out/sensors/readme.txt").read_bytes() == b"in metres\n"

    def test_what_is_computed(self, cli: Cli, pond: Pond) -> None:
        points = [{"name": "level", "components": [{"type": "line", "slope": 24}]}]
        made = {
            "start": "2024-01-30",
            "end": "2024-02-01T12:00",
            "interval": "12h",
            "points": points,
        }
        make(pond, "/tide", "synthetic-timeseries", made)
        cli.ok("export", "/tide", "out", "--temporal", "year,month")
        assert tree() == ["tide/year=2024/month=01/tide.parquet",
                          "tide/year=2024/month=02/tide.parquet"]  # fmt: skip
        cli.ok("copy", "/tide", "./tide.csv")
        assert len(Path("tide.csv").read_text().splitlines()) == 7

    def test_the_directory_has_a_host(self, cli: Cli, pond: Pond, tmp_path: Path) -> None:
        cli.ok("export", "/sensors/lock", f"host://{tmp_path}/there")
        assert tree(f"{tmp_path}/there") == ["sensors/lock.parquet"]

    def test_a_summary(self, cli: Cli, pond: Pond, tmp_path: Path) -> None:
        found = cli.json("export", "/sensors/lock", "/sensors/readme.txt", "out")
        size = Path("out/sensors/lock.parquet").stat().st_size
        assert found == {
            "directory": str(tmp_path / "out"),
            "exported": [
                {"path": "/sensors/lock", "format": "parquet", "rows": 2, "size": size,
                 "files": ["sensors/lock.parquet"]},
                {"path": "/sensors/readme.txt", "format": "data", "rows": None, "size": 10,
                 "files": ["sensors/readme.txt"]},
            ],
            "skipped": [],
            "files": 2,
            "size": size + 10,
        }  # fmt: skip

    def test_what_has_neither_is_left_out(self, cli: Cli, pond: Pond) -> None:
        make(pond, "/sensors/run", "log-ingest", {"active_pattern": "/l", "pond_path": "/l"})
        result = cli("export", "/sensors/*", "out")
        assert result.exit_code == 0
        assert "left out /sensors/run: it has neither bytes nor rows" in result.stderr
        assert "pond run" in cli.fails("export", "/sensors/run", "out2", code=8)


class TestTemporal:
    def test_folders(self, cli: Cli, pond: Pond) -> None:
        cli.ok("export", "/sensors/north/weir", "out", "--temporal", "year,month")
        folder = "sensors/north/weir/year=2024"
        assert tree() == [f"{folder}/month=04/weir.parquet", f"{folder}/month=05/weir.parquet"]
        rows = [pq.ParquetFile(f"out/{file}").read().to_pylist() for file in tree()]
        assert rows == [levels(2), levels(3, 2)]

    @pytest.mark.parametrize(
        ("units", "count", "last"),
        [
            ("year", 1, "year=2024"),
            ("year,month,day", 2, "year=2024/month=05/day=01"),
            ("year,month,day,hour", 5, "year=2024/month=05/day=01/hour=02"),
        ],
    )
    def test_units(self, cli: Cli, pond: Pond, units: str, count: int, last: str) -> None:
        cli.ok("export", "/sensors/north/weir", "out", "--temporal", units)
        assert len(tree()) == count
        assert tree()[-1] == f"sensors/north/weir/{last}/weir.parquet"

    def test_late_rows_are_in_their_folder(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.append_series("/sensors/north/weir", levels(1, -24 * 40))
            tx.append_series("/sensors/north/weir", levels(1, -1))
            tx.commit()
        cli.ok("export", "/sensors/north/weir", "out", "--temporal", "year,month")
        found = ds.dataset("out/sensors/north/weir", partitioning="hive").to_table()
        assert found.num_rows == 7
        times, months = found["timestamp"].to_pylist(), found["month"].to_pylist()
        assert [time.month for time in times] == months
        april = pq.ParquetFile("out/sensors/north/weir/year=2024/month=04/weir.parquet").read()
        assert april["timestamp"].to_pylist() == [START + timedelta(hours=n) for n in (-1, 0, 1)]

    def test_many_batches(self, cli: Cli, pond: Pond) -> None:
        minutes = pa.array([(n * 7919) % 400_000 * 60_000_000 for n in range(400_000)])
        table = pa.table({"timestamp": minutes.cast(pa.timestamp("us", "UTC"))})
        with pond.write() as tx:
            tx.append_series("/long", table)
            tx.commit()
        found = cli.json("export", "/long", "out", "--temporal", "year,month")["exported"][0]
        assert found["rows"] == 400_000
        assert len(found["files"]) == 10
        counts = [pq.ParquetFile(f"out/{file}").metadata.num_rows for file in found["files"]]
        assert counts[:3] == [31 * 1440, 28 * 1440, 31 * 1440]
        assert sum(counts) == 400_000

    def test_rows_without_a_time(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.append_series("/sensors/lock", [*levels(1), {"timestamp": None, "level": 1.0}])
            tx.commit()
        cli.ok("export", "/sensors/lock", "out", "--temporal", "year")
        assert tree() == [
            "sensors/lock/year=2024/lock.parquet",
            "sensors/lock/year=__HIVE_DEFAULT_PARTITION__/lock.parquet",
        ]

    def test_what_has_no_time_is_one_file(self, cli: Cli, pond: Pond) -> None:
        cli.ok("export", "/sensors/sites", "/sensors/readme.txt", "out", "--temporal", "year")
        assert tree() == ["sensors/readme.txt", "sensors/sites.parquet"]

    def test_again(self, cli: Cli, pond: Pond) -> None:
        export = ("export", "/sensors/north/weir", "out", "--temporal")
        cli.ok(*export, "year,month,day")
        assert "--overwrite" in cli.fails(*export, "year,month", code=7)
        mine = Path("out/sensors/north/weir/year=2024/notes.txt")
        mine.write_text("mine")
        cli.ok(*export, "year,month", "--overwrite")
        found = ds.dataset("out/sensors/north/weir", partitioning="hive",
                           exclude_invalid_files=True)  # fmt: skip
        assert found.to_table().num_rows == 5, "nothing of the first export is read with it"
        assert mine.read_text() == "mine"

    def test_a_column_of_that_name(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.append_series("/odd", [{"timestamp": START, "year": 3}])
            tx.commit()
        assert "'year'" in cli.fails("export", "/odd", "out", "--temporal", "year", code=4)

    @pytest.mark.parametrize("units", ["month", "year,day", "year,month,minute", "", "year,"])
    def test_units_that_can_not_be(self, cli: Cli, pond: Pond, units: str) -> None:
        said = cli.fails("export", "/sensors/lock", "out", "--temporal", units, code=2)
        assert "year,month" in said


class TestPages:
    def test_they_see_what_was_exported(self, cli: Cli, pond: Pond) -> None:
        text = (
            "{% for i in inputs %}<a href='{{ exported[i.path] }}'>{{ i.name }}</a>"
            "{{ i.files|join(',') }}\n{% endfor %}"
        )
        config = {"in_pattern": "/sensors/**/*", "out_pattern": "index.html", "template": text}
        make(pond, "/a pages", "template", config)
        cli.ok("export", "/a pages", "/sensors", "out", "--temporal", "year,month")
        folder = "../sensors/north/weir/"
        april, may = (f"year=2024/month=0{month}/weir.parquet" for month in (4, 5))
        assert Path("out/a pages/index.html").read_text().splitlines() == [
            "<a href='../sensors/lock/'>lock</a>../sensors/lock/year=2024/month=05/lock.parquet",
            f"<a href='{folder}'>weir</a>{folder}{april},{folder}{may}",
            "<a href='../sensors/readme.txt'>readme.txt</a>../sensors/readme.txt",
            "<a href='../sensors/sites.parquet'>sites</a>../sensors/sites.parquet",
        ]

    def test_they_link_to_each_other(self, cli: Cli, pond: Pond) -> None:
        text = "{% for path, url in exported.items() %}{{ path }}={{ url }}\n{% endfor %}"
        config = {"in_pattern": "/sensors/*", "out_pattern": "$0/i.md", "template": text}
        make(pond, "/p", "template", config)
        cli.ok("export", "/p", "out", "--strip-prefix", "/p")
        found = Path("out/lock/i.md").read_text().splitlines()
        assert found == ["/p/lock/i.md=i.md", "/p/readme.txt/i.md=../readme.txt/i.md",
                         "/p/sites/i.md=../sites/i.md"]  # fmt: skip
        assert cli.ok("cat", "/p/lock/i.md") == "", "outside of an export there is nothing"

    def test_a_mistake_in_one(self, cli: Cli, pond: Pond) -> None:
        config = {"in_pattern": "/sensors/lock", "out_pattern": "i.md", "template": "a\n{{ b }}"}
        make(pond, "/p", "template", config)
        said = cli.fails("export", "/sensors/lock", "/p", "out", code=3)
        assert "/p (template):2: 'b' is undefined (rendering /p/i.md)" in said
        assert tree() == ["sensors/lock.parquet"], "and nothing of it is there"


class TestMistakes:
    def test_what_is_there(self, cli: Cli, pond: Pond) -> None:
        cli.ok("export", "/sensors/readme.txt", "out")
        file = Path("out/sensors/readme.txt")
        file.write_text("changed")
        said = cli.fails("export", "/sensors", "out", code=7)
        assert "readme.txt is there already" in said
        assert "--overwrite" in said
        assert tree() == ["sensors/readme.txt"], "nothing is written before all was looked at"
        assert file.read_text() == "changed"
        cli.ok("export", "/sensors", "out", "--overwrite")
        assert file.read_text() == "in metres\n"

    def test_nothing_matches(self, cli: Cli, pond: Pond) -> None:
        assert "nothing matches /sensor/*" in cli.fails("export", "/sensor/*", "out", code=6)
        assert "/sensors" in cli.fails("export", "/sensor", "out", code=6)
        assert not Path("out").exists()

    def test_no_directory(self, cli: Cli, pond: Pond) -> None:
        Path("out").write_text("")
        said = cli.fails("export", "/sensors", "out", code=7)
        assert "out is a file, and a directory is needed there" in said

    def test_into_the_pond_itself(self, cli: Cli, pond: Pond) -> None:
        said = cli.fails("export", "/sensors", "pond/sub", code=8)
        assert "belongs to the pond itself" in said

    def test_two_of_one_name(self, cli: Cli, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/sensors/lock.csv", [{"a": 1}])
            tx.append_series("/sensors/lock.pq", levels(1))
            tx.commit()
        both = cli.fails("export", "/sensors/lock", "/sensors/lock.csv", "out", code=7)
        assert "/sensors/lock and /sensors/lock.csv would both become" in both
        cut = ("export", "/sensors/lock", "/sensors/lock.pq", "out", "--temporal", "year")
        assert "/sensors/lock and /sensors/lock.pq would both become" in cli.fails(*cut, code=7)

    def test_a_prefix_that_is_not_there(self, cli: Cli, pond: Pond) -> None:
        said = cli.fails("export", "/sensors/lock", "out", "--strip-prefix", "/other", code=8)
        assert "does not begin with /other" in said

    @pytest.mark.parametrize("source", ["./x", "host:///x", "host+csv:///x.csv"])
    def test_of_this_machine(self, cli: Cli, pond: Pond, source: str) -> None:
        assert "is of this machine" in cli.fails("export", source, "out", code=2)

    def test_usage(self, cli: Cli, pond: Pond) -> None:
        cli.fails("export", "/sensors", code=2)
        cli.fails("export", "/sensors", "out", "--format", "xlsx", code=2)


def test_in_a_process_of_its_own(cli: Cli, real: Real, pond: Pond) -> None:
    done = real("--json", "export", "/sensors", "out", "--temporal", "year")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == 4
    assert done.stderr == "", "no progress where nobody looks"


def test_progress_on_a_terminal(cli: Cli, pond: Pond, tmp_path: Path) -> None:
    code, seen, data = on_terminal("export", "/sensors", "out", cwd=tmp_path, stream="stderr")
    assert (code, data) == (0, "")
    assert "exporting" in seen
    assert "exported 4 paths as 4 files" in seen

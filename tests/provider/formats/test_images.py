"""Files are parsed once: what was read of each version is kept, and counted."""

from __future__ import annotations

import gzip
import io
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base import errors as e
from millpond.provider.formats.csv import Csv
from millpond.provider.formats.jsonlines import JsonLines
from millpond.provider.rows import Asked
from millpond.steward.places import parse_place
from millpond.steward.rows.host import host_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.plan.node import Plan
    from millpond.provider.kept import Counts
    from millpond.provider.rows import Rows
    from millpond.steward.pond import Pond
    from millpond.steward.read import ReadScope


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def write(pond: Pond, files: dict[str, bytes | str], *, series: bool = False) -> None:
    with pond.write() as tx:
        for path, content in files.items():
            if not tx.exists(path.rpartition("/")[0] or "/"):
                tx.make_directory(path.rpartition("/")[0], parents=True)
            data = content.encode() if isinstance(content, str) else content
            tx.write_bytes(path, data, series=series)
        tx.commit()


def united(scope: ReadScope, url: str) -> Rows:
    return scope.derivation.reading("/").united(url)


def rows(scope: ReadScope, url: str, asked: Asked | None = None) -> list[dict[str, Any]]:
    plan = united(scope, url).plan(asked or Asked())
    found: list[dict[str, Any]] = plan.to_pylist(engine="arrow")
    return found


def counts(scope: ReadScope) -> Counts:
    return scope.derivation.images.kept.counts


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def fresh(pond: Pond) -> ReadScope:
    """A scope that remembers nothing, as another process would have it."""
    return mp.open(pond.location).read()


def everywhere(
    pond: Pond, directory: Path, scheme: str, files: dict[str, str]
) -> list[tuple[str, Callable[[], Plan]]]:
    """The same files in a pond and on this machine: where they are, and what reads them."""
    write(pond, {f"/raw/{name}": text for name, text in files.items()})
    (directory / "raw").mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / "raw" / name).write_text(text)
    host = f"host+{scheme}://{directory}/raw/*"
    return [
        ("/raw", lambda: united(fresh(pond), f"{scheme}:///raw/*").plan()),
        (f"{directory}/raw", lambda: host_plan(parse_place(host))),
    ]


MIDNIGHT_AND_TEN = [datetime.fromisoformat(f"2026-01-{at}:00:00") for at in ("01T00", "03T10")]


class TestOnce:
    def test_the_second_read_parses_nothing(self, pond: Pond) -> None:
        write(pond, {"/raw/a.csv": "n\n1\n", "/raw/b.csv": "n\n2\n"})
        first = fresh(pond)
        assert rows(first, "csv:///raw/*.csv") == [{"n": 1}, {"n": 2}]
        assert (counts(first).made, counts(first).rows_made) == (2, 2)
        again = fresh(pond)
        assert rows(again, "csv:///raw/*.csv") == [{"n": 1}, {"n": 2}]
        assert (counts(again).made, counts(again).found) == (0, 2)

    def test_a_new_version_is_parsed_by_itself(self, pond: Pond) -> None:
        write(pond, {"/raw/a.csv": "n\n1\n", "/raw/b.csv": "n\n2\n"})
        rows(fresh(pond), "csv:///raw/*.csv")
        write(pond, {"/raw/b.csv": "n\n3\n"})
        scope = fresh(pond)
        assert rows(scope, "csv:///raw/*.csv") == [{"n": 1}, {"n": 3}]
        assert counts(scope).made == 1
        assert rows(scope, "csv:///raw/b.csv@v1") == [{"n": 2}]
        assert counts(scope).made == 1

    def test_each_version_of_a_series_has_its_image(self, pond: Pond) -> None:
        write(pond, {"/raw/log.jsonl": '{"n": 1}\n'}, series=True)
        rows(fresh(pond), "json:///raw/log.jsonl")
        write(pond, {"/raw/log.jsonl": '{"n": 2, "new": "x"}\n'}, series=True)
        scope = fresh(pond)
        found = united(scope, "json:///raw/log.jsonl")
        assert found.plan().to_pylist(engine="arrow") == [
            {"n": 1, "new": None},
            {"n": 2, "new": "x"},
        ]
        assert counts(scope).made == 1
        assert [piece.rows for piece in found.pieces()] == [1, 1]

    def test_equal_content_under_two_names_is_parsed_once(self, pond: Pond) -> None:
        write(pond, {"/raw/a.csv": "n\n1\n", "/raw/b.csv": "n\n1\n"})
        scope = fresh(pond)
        found = united(scope, "csv:///raw/*")
        assert found.plan().to_pylist(engine="arrow") == [{"n": 1}, {"n": 1}]
        assert counts(scope).made == 1
        assert len({piece.key for piece in found.pieces()}) == 2

    def test_options_and_compressions_have_images_of_their_own(self, pond: Pond) -> None:
        write(pond, {"/a.csv": "n;m\n1;2\n"})
        scope = fresh(pond)
        assert rows(scope, "csv:///a.csv") == [{"n;m": "1;2"}]
        assert rows(scope, "csv:///a.csv?delimiter=;") == [{"n": 1, "m": 2}]
        assert counts(scope).made == 2

    def test_what_is_lost_is_made_again(self, pond: Pond) -> None:
        write(pond, {"/a.csv": "n\n1\n"})
        rows(fresh(pond), "csv:///a.csv")
        shutil.rmtree(f"{pond.location}/cache")
        assert rows(fresh(pond), "csv:///a.csv") == [{"n": 1}]

    def test_a_failure_leaves_nothing(self, pond: Pond) -> None:
        write(pond, {"/a.log": "no log\n"})
        for _ in range(2):
            scope = fresh(pond)
            with pytest.raises(e.SourceError, match=r"line 1 of /a\.log is no line of a web log"):
                rows(scope, "weblog:///a.log")
            assert counts(scope).made == 0

    def test_types_of_other_programs(self, pond: Pond) -> None:
        data = pa.table({
            "t": pa.array([1_500, None], pa.timestamp("ns")),
            "d": pa.array(["a", "b"]).dictionary_encode(),
            "u": pa.array([1, 2], pa.uint16()),
            "l": pa.array([["x"], []], pa.large_list(pa.large_string())),
        })  # fmt: skip
        parquet, stream = io.BytesIO(), io.BytesIO()
        pq.write_table(data, parquet)
        with pa.ipc.new_stream(stream, data.schema) as writer:
            writer.write_table(data)
        write(pond, {"/a.parquet": parquet.getvalue(), "/a.arrow": stream.getvalue()})
        for url in ("parquet:///a.parquet", "arrow:///a.arrow"):
            assert rows(fresh(pond), url) == [
                {
                    "t": datetime.fromisoformat("1970-01-01T00:00:00.000001"),
                    "d": "a",
                    "u": 1,
                    "l": ["x"],
                },
                {"t": None, "d": "b", "u": 2, "l": []},
            ]

    def test_parquet_is_its_own_image(self, pond: Pond) -> None:
        times = pa.array([micros("2024-05-01"), micros("2024-05-03")], pa.timestamp("us", "UTC"))
        sink = io.BytesIO()
        data = pa.table({"time": times, "pad": [bytes(100_000), b""]})
        pq.write_table(data, sink, compression="none", use_dictionary=False)
        write(pond, {"/big.parquet": sink.getvalue()})
        for _ in range(2):
            scope = fresh(pond)
            found = united(scope, "parquet:///big.parquet")
            assert len(found.plan().to_pylist(engine="arrow")) == 2
            assert [(p.first, p.last) for p in found.pieces()] == [
                (micros("2024-05-01"), micros("2024-05-03"))
            ]
            assert counts(scope).made == 0


class TestTogether:
    def test_missing_columns_are_null_and_numbers_widen(self, pond: Pond) -> None:
        write(
            pond,
            {"/raw/a.csv": "n,w\n1,x\n", "/raw/b.csv": "v,n\n7,2.5\n", "/raw/c.csv": "n\n3\n",
             "/raw/d.csv": "w,n\n,\n", "/raw/e.csv": "", "/raw/f.csv": "w,n\n"},
        )  # fmt: skip
        assert rows(fresh(pond), "csv:///raw/*") == [
            {"n": 1.0, "w": "x", "v": None},
            {"n": 2.5, "w": None, "v": 7},
            {"n": 3.0, "w": None, "v": None},
            {"n": None, "w": None, "v": None},
        ]

    def test_types_that_have_nothing_in_common_name_both_files(self, pond: Pond) -> None:
        write(pond, {"/raw/a.csv": "n\n1\n", "/raw/b.csv": "n\nhigh\n"})
        with pytest.raises(e.SchemaError) as caught:
            rows(fresh(pond), "csv:///raw/*")
        assert "long in /raw/a.csv" in caught.value.message
        assert "string in /raw/b.csv" in caught.value.message

    def test_dates_and_times_of_a_zone_name_both_files(self, pond: Pond, tmp_path: Path) -> None:
        files = {"a.csv": "t\n2026-01-01\n", "b.csv": "t\n2026-01-03T00:00:00Z\n"}
        for place, read in everywhere(pond, tmp_path, "csv", files):
            with pytest.raises(e.SchemaError) as caught:
                read()
            assert f"date in {place}/a.csv and timestamp in {place}/b.csv" in caught.value.message

    def test_dates_are_midnight_among_times_without_a_zone(
        self, pond: Pond, tmp_path: Path
    ) -> None:
        files = {"a.csv": "t\n2026-01-01\n", "b.csv": "t\n2026-01-03T10:00:00\n"}
        for _, read in everywhere(pond, tmp_path, "csv", files):
            assert [row["t"] for row in read().to_pylist(engine="arrow")] == MIDNIGHT_AND_TEN

    @pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
    def test_whole_numbers_beside_fractions_lose_no_digit(
        self, pond: Pond, tmp_path: Path, number: int
    ) -> None:
        files = {"a.csv": "n\n1\n", "b.csv": "n\n2.5\n", "c.csv": f"n\n7\n{number}\n"}
        for place, read in everywhere(pond, tmp_path, "csv", files):
            for _ in range(2):  # parsed, and known from before
                with pytest.raises(e.SchemaError) as caught:
                    read()
                said = f"long in {place}/c.csv and double in {place}/b.csv, and {number} is beyond"
                assert said in caught.value.message
        write(pond, {"/raw/b.csv": "n\n2\n"})
        assert [row["n"] for row in rows(fresh(pond), "csv:///raw/*")] == [1, 2, 7, number]

    def test_whole_numbers_that_doubles_hold_widen(self, pond: Pond, tmp_path: Path) -> None:
        files = {"a.csv": f"n\n{2**53}\n{-(2**53)}\n", "b.csv": "n\n2.5\n"}
        for _, read in everywhere(pond, tmp_path, "csv", files):
            found = [row["n"] for row in read().to_pylist(engine="arrow")]
            assert found == [2.0**53, -(2.0**53), 2.5]

    def test_lists_of_numbers_widen_like_numbers(self, pond: Pond, tmp_path: Path) -> None:
        files = {"a.jsonl": '{"n": [[1], []]}\n', "b.jsonl": '{"n": [[2.5]]}\n'}
        for _, read in everywhere(pond, tmp_path, "json", files):
            found = [row["n"] for row in read().to_pylist(engine="arrow")]
            assert found == [[[1.0], []], [[2.5]]]
        files["a.jsonl"] = f'{{"n": [[1, {2**53 + 1}]]}}\n'
        for _, read in everywhere(pond, tmp_path, "json", files):
            with pytest.raises(e.SchemaError, match=f"{2**53 + 1} is beyond"):
                read()

    def test_compressed_files_through_patterns(self, pond: Pond) -> None:
        packed = gzip.compress(b"n\n1\n")
        write(pond, {"/raw/a.csv.gz": packed, "/raw/b.csv": "n\n2\n", "/odd/a": packed})
        assert rows(fresh(pond), "csv:///raw/*") == [{"n": 1}, {"n": 2}]
        assert rows(fresh(pond), "csv+gzip:///odd/*") == [{"n": 1}]
        assert rows(fresh(pond), "csv://gzip/odd/*") == [{"n": 1}]
        with pytest.raises(e.SourceError, match=r"/raw/b.csv can't be read as csv"):
            rows(fresh(pond), "csv+gzip:///raw/*")

    def test_ranges_of_time_leave_files_out(self, pond: Pond) -> None:
        files: dict[str, bytes | str] = {
            f"/raw/{day}.csv": f"time,n\n2024-05-0{day}T00:00:00Z,{day}\n" for day in (1, 2, 3)
        }
        write(pond, files)
        found = united(fresh(pond), "csv:///raw/*")
        assert found.time_column == "time"
        asked = Asked(micros("2024-05-02"), micros("2024-05-02"))
        assert [row["n"] for row in found.plan(asked).to_pylist(engine="arrow")] == [2]
        run = found.plan(asked).execute(engine="arrow")
        assert sum(batch.num_rows for batch in run) == 1
        assert run.counters.files_opened == 1

    def test_a_scope_takes_urls_like_paths(self, pond: Pond) -> None:
        write(pond, {f"/raw/{n}.csv": f"time,n\n2024-05-0{n}T00:00:00Z,{n}\n" for n in (1, 2)})
        scope = fresh(pond)
        assert scope.to_arrow("csv:///raw/*", columns=["n"]).to_pylist() == [{"n": 1}, {"n": 2}]
        late = scope.to_arrow("csv:///raw/*", time_start=datetime(2024, 5, 2, tzinfo=UTC))
        assert late["n"].to_pylist() == [2]
        with pytest.raises(e.PathNotFoundError, match="nothing matches csv:///no/"):
            scope.plan("csv:///no/*")

    def test_a_key_changes_with_the_content_alone(self, pond: Pond) -> None:
        write(pond, {"/raw/a.csv": "n\n1\n"})
        before = united(fresh(pond), "csv:///raw/*")
        write(pond, {"/other": "x"})
        assert united(fresh(pond), "csv:///raw/*").key == before.key
        assert united(fresh(pond), "csv:///raw/*?delimiter=;").key != before.key
        assert [p.key for p in united(fresh(pond), "csv:///raw/*").pieces()] == [
            p.key for p in before.pieces()
        ]
        write(pond, {"/raw/b.csv": "n,m\n2,1\n"})
        after = united(fresh(pond), "csv:///raw/*")
        assert after.key != before.key
        assert [p.key for p in before.pieces()] == [p.key for p in after.pieces()][:1]

    def test_rows_without_times_have_no_ranges(self, pond: Pond) -> None:
        write(pond, {"/a.csv": "n\n1\n"})
        with pytest.raises(e.SchemaError, match=r"/a\.csv has no column with a time"):
            rows(fresh(pond), "csv:///a.csv", Asked(1, 2))


CSV = (
    "n,v,d,t,z,b,s,u\n"
    '1,2,2024-05-01,2024-05-01 10:00,2024-05-01T10:00:00.5+02:00,true," x",\n'
    ',2.5,,,,,"",\n'
    " 3 ,7,2024-05-01,2024-05-01,2024-05-01 10:00:00Z,False,é,\n"
)
JSON = (
    '{"n": 1, "v": 1, "t": "2024-05-01 10:00", "deep": {"a": [1], "t": "2024-05-01"}, "u": null}\n'
    '{"v": 2.5, "z": "2024-05-01T10:00:00+02:00", "deep": {"b": true}}\n'
)


@pytest.mark.parametrize(("scheme", "text"), [("csv", CSV), ("json", JSON)])
def test_engines_and_images_give_the_same(
    pond: Pond, tmp_path: Path, scheme: str, text: str
) -> None:
    write(pond, {"/file": text})
    (tmp_path / "file").write_text(text)
    scanned = host_plan(parse_place(f"host+{scheme}://{tmp_path}/file"))
    kept = united(fresh(pond), f"{scheme}:///file").plan()
    assert [file.path for file in scanned.files] == [f"{tmp_path}/file"]  # type: ignore[attr-defined]
    assert scanned.schema == kept.schema
    assert scanned.to_pylist(engine="arrow") == kept.to_pylist(engine="arrow")


class TestHostAndDelta:
    def test_files_of_this_machine_by_size_and_time(self, pond: Pond, tmp_path: Path) -> None:
        (tmp_path / "a-1.csv").write_text("n\n1\n")
        url = f"host+csv://{tmp_path}/*-*.csv"
        scope = fresh(pond)
        assert [m.captures for m in scope.derivation.reading("/x").match(url)] == [("a", "1")]
        for made in (1, 0):
            scope = fresh(pond)
            assert rows(scope, url) == [{"n": 1}]
            assert counts(scope).made == made
        key = united(fresh(pond), url).key
        (tmp_path / "a-1.csv").write_text("n\n1\n2\n")
        assert united(fresh(pond), url).key != key
        assert rows(fresh(pond), url) == [{"n": 1}, {"n": 2}]
        assert fresh(pond).derivation.reading("/x").match(f"host+csv://{tmp_path}/*.no") == []

    def test_delta_tables(self, pond: Pond, tmp_path: Path) -> None:
        from millpond.kernel.write.create import create_table
        from millpond.plan.types import LONG, Struct

        created = create_table(str(tmp_path / "d"), Struct.of(n=LONG))
        for value in (1, 2):
            tx = created.transaction()
            tx.append([{"n": value}])
            tx.commit()
            created = created.update()
        both = [{"n": 1}, {"n": 2}]  # in the order of versions
        assert rows(fresh(pond), f"host+delta://{tmp_path}/d") == both
        assert rows(fresh(pond), f"host+delta://{tmp_path}/d?version=1") == [{"n": 1}]
        files = (file for file in (tmp_path / "d").rglob("*") if file.is_file())
        write(pond, {f"/copied/{f.relative_to(tmp_path)}": f.read_bytes() for f in files})
        shutil.rmtree(tmp_path / "d")
        for _ in range(2):
            found = united(fresh(pond), "delta:///copied/d")
            assert found.plan().to_pylist(engine="arrow") == both
            assert len(found.pieces()) == 2
            assert found.plan_of(found.pieces()[:1]).count(engine="arrow") == 1
        with pytest.raises(e.PathTypeError, match="no Delta table: it has no _delta_log"):
            rows(fresh(pond), "delta:///copied")

    def test_what_has_rows_already(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/t", [{"n": 1}])
            tx.commit()
        assert rows(fresh(pond), "delta:///t") == [{"n": 1}]
        with pytest.raises(e.PathTypeError, match=r"versions of its own(.|\n)*/t@v3"):
            rows(fresh(pond), "delta:///t?version=1")
        assert fresh(pond).derivation.reading("/").match("csv:///t") == []


@pytest.mark.spark
class TestSpark:
    def test_large_files_are_parsed_by_spark(
        self, pond: Pond, spark: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MILLPOND_ARROW_MAX_PARSE_BYTES", "70000")
        lines = [f'{n},2024-05-01T00:00:00.5Z,"x, {n}"\n' for n in range(5000)]
        large = "n,time,text\n" + "".join(lines)
        objects = "".join(f'{{"n": {n}, "t": "2024-05-01"}}\n' for n in range(5000))
        write(pond, {"/a.csv": large, "/a.jsonl": objects})
        scope = fresh(pond)
        with monkeypatch.context() as patch:
            for format_ in (Csv, JsonLines):
                patch.delattr(format_, "parse")  # which would parse in this process
            by_spark = [rows(scope, url) for url in ("csv:///a.csv", "json:///a.jsonl")]
        assert counts(scope).rows_made == 10_000
        shutil.rmtree(f"{pond.location}/cache")
        monkeypatch.setenv("MILLPOND_ARROW_MAX_PARSE_BYTES", "70000000")
        assert [rows(fresh(pond), u) for u in ("csv:///a.csv", "json:///a.jsonl")] == by_spark

    def test_errors_of_spark_name_the_file(
        self, pond: Pond, spark: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MILLPOND_ARROW_MAX_PARSE_BYTES", "70000")
        write(pond, {"/raw/a.csv": "n\n" + "1000000\n" * 12_000 + "high\n"})
        with pytest.raises(e.SourceError) as caught:
            rows(fresh(pond), "csv:///raw/a.csv?infer_rows=10")
        assert "/raw/a.csv: column 'n' holds" in caught.value.message
        assert "infer_rows=0" in (caught.value.hint or "")
        for late, said in (("1,x", "column 'v' holds 'x', and nothing"), ("1,", None)):
            write(pond, {"/raw/a.csv": "n,v\n" + "1000000,\n" * 12_000 + f"{late}\n"})
            if said is None:
                assert len(rows(fresh(pond), "csv:///raw/a.csv?infer_rows=10")) == 12_001
            else:
                with pytest.raises(e.SourceError, match=said):
                    rows(fresh(pond), "csv:///raw/a.csv?infer_rows=10")

    def test_types_of_files_together(self, pond: Pond, spark: object, tmp_path: Path) -> None:
        files = {
            "a": '{"n": 1, "l": [1], "t": "2026-01-01"}\n',
            "b": '{"n": 2.5, "l": [2.5], "t": "2026-01-03T10:00:00"}\n',
        }
        for _, read in everywhere(pond, tmp_path, "json", files):
            found = sorted(read().to_pylist(engine="spark"), key=lambda row: row["n"])
            assert [row["n"] for row in found] == [1.0, 2.5]
            assert [row["l"] for row in found] == [[1.0], [2.5]]
            assert [row["t"] for row in found] == MIDNIGHT_AND_TEN

    def test_queries_over_raw_files(self, pond: Pond, spark: object, tmp_path: Path) -> None:
        (tmp_path / "limits.csv").write_text("site;most\nweir;2\n")
        write(pond, {
            "/raw/weir.csv": "timestamp;level\n2024-05-01T00:00:00Z;1\n",
            "/raw/lake.csv": "timestamp;level\n2024-05-02T00:00:00Z;2.5\n",
        })  # fmt: skip
        config = {
            "patterns": {
                "levels": "csv:///raw/*.csv?delimiter=;",
                "limits": f"host+csv://{tmp_path}/limits.csv?delimiter=;",
            },
            "query": "SELECT timestamp, level > most AS high FROM levels, limits ORDER BY 1",
        }
        with pond.write() as tx:
            tx.make_factory("/high", "sql-derived-series", config)
            tx.commit()
        assert pond["/high"].to_arrow()["high"].to_pylist() == [False, True]

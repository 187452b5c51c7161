"""Handles: paths in the hand, their bytes and rows, and the libraries that read them."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import millpond as mp
from millpond.base.errors import (
    DirectoryError,
    IntegrityError,
    PathNotFoundError,
    PathTypeError,
    PlanError,
    PondError,
    ScopeError,
    TypeMismatchError,
)
from millpond.fs.blobs import blob_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.steward.pond import Pond

NOON = datetime(2024, 5, 30, 12, tzinfo=UTC)
LEVELS = [
    {"time": NOON.replace(hour=hour), "level": level, "site": {"name": name}}
    for hour, level, name in ((9, 2.9, "Weir"), (10, None, "Intake"), (11, 3.2, "Weir"))
]


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    with made.write() as tx:
        tx.make_directory("/sites/north", parents=True)
        tx.append_series("/sites/levels", LEVELS)
        tx.write_table("/sites/names", [{"id": 1, "name": "Weir"}, {"id": 2, "name": "Intake"}])
        tx.write_bytes("/sites/north/readme.txt", b"first\nsecond\n")
        tx.write_bytes("/odd [name]", b"x")
        tx.commit()
    return made


class TestPaths:
    def test_directories_iterate_and_join(self, pond: Pond) -> None:
        paths = [handle.path for handle in pond["/sites"]]
        assert paths == ["/sites/levels", "/sites/names", "/sites/north"]
        assert [handle.name for handle in pond["/"]] == ["odd [name]", "sites"]
        assert (pond["/sites"] / "north" / "readme.txt").read_text() == "first\nsecond\n"
        assert pond["/"].name == ""
        with pytest.raises(PathTypeError, match="/sites/names is a table"):
            iter(pond["/sites/names"])

    def test_nothing_is_read_before_it_is_asked_for(self, pond: Pond) -> None:
        handle = pond["/nowhere"]
        assert not handle.exists()
        with pytest.raises(PathNotFoundError):
            handle.stat()

    @pytest.mark.parametrize(
        ("start", "pattern", "expected"),
        [
            ("/", "*", ["/odd [name]", "/sites"]),
            ("/", "**/*.txt", ["/sites/north/readme.txt"]),
            ("/sites", "n*", ["/sites/names", "/sites/north"]),
            ("/sites", "north/readme.???", ["/sites/north/readme.txt"]),
            ("/sites", "x*", []),
            ("/odd [name]", "*", []),
        ],
    )
    def test_glob(self, pond: Pond, start: str, pattern: str, expected: list[str]) -> None:
        assert [handle.path for handle in pond[start].glob(pattern)] == expected

    def test_a_directory_whose_name_looks_like_a_pattern(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_directory("/[ab]*")
            tx.make_directory("/a")
            tx.write_bytes("/[ab]*/in", b"")
            tx.write_bytes("/a/out", b"")
            tx.commit()
        assert [handle.path for handle in pond["/[ab]*"].glob("*")] == ["/[ab]*/in"]

    def test_stat_of_the_root(self, pond: Pond) -> None:
        assert pond["/"].stat().is_directory

    def test_versions(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/sites/names", [{"id": 3, "name": "Gate"}])
            tx.commit()
        handle = pond["/sites/names"]
        assert [stat.path for stat in handle.versions()] == ["/sites/names@v1", "/sites/names@v2"]
        assert handle.at(1).to_arrow().num_rows == 2
        assert handle.at(1).at(2).to_arrow().num_rows == 1
        with pytest.raises(PathNotFoundError, match="has no version 3"):
            handle.at(3).to_arrow()

    def test_goes_on_seeing_what_its_scope_sees(self, pond: Pond) -> None:
        before = pond["/sites/north/readme.txt"]
        with pond.write() as tx:
            tx.write_bytes("/sites/north/readme.txt", b"new")
            inside = tx["/sites/north/readme.txt"].read_bytes()
            tx.commit()
        assert inside == b"new"
        assert before.read_bytes() == b"first\nsecond\n"
        assert pond["/sites/north/readme.txt"].read_bytes() == b"new"

    def test_belongs_to_its_thread(self, pond: Pond) -> None:
        handle = pond["/sites"]
        found: list[BaseException] = []

        def use() -> None:
            try:
                handle.stat()
            except ScopeError as error:
                found.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert "/sites belongs to another thread" in str(found[0])


class TestThePast:
    def test_by_number_and_by_time(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.remove("/sites", recursive=True)
            tx.commit()
        first = pond.read(as_of=1)
        made = first.stat("/sites").modified
        assert made is not None
        assert first.exists("/sites")
        assert not pond.read(as_of=0).exists("/sites")
        assert pond.read(as_of=made).exists("/sites")
        assert pond.read(as_of=made.replace(tzinfo=None)).exists("/sites")  # UTC
        assert not pond.read(as_of=made - timedelta(microseconds=1)).exists("/sites")
        assert not pond.read(as_of=NOON + timedelta(days=36_500)).exists("/sites")

    def test_what_is_no_time(self, pond: Pond) -> None:
        with pytest.raises(PondError, match="there is no transaction 99"):
            pond.read(as_of=99)
        with pytest.raises(TypeMismatchError, match="a datetime, not '2024'"):
            pond.read(as_of="2024")  # type: ignore[arg-type]


class TestBytes:
    def test_a_file_to_seek_in(self, pond: Pond) -> None:
        with pond["/sites/north/readme.txt"].open() as file:
            assert file.readline() == b"first\n"
            assert file.seek(-7, io.SEEK_END) == 6
            assert file.read(3) == b"sec"
            assert file.seek(-2, io.SEEK_CUR) == 7
            assert file.read() == b"econd\n"
            assert file.read() == b""
            assert file.seek(100) == 100
            assert file.read(1) == b""

    def test_a_large_one_in_ranges(self, pond: Pond) -> None:
        content = bytes(range(256)) * 40_000
        with pond.write() as tx:
            tx.write_bytes("/large", content)
            tx.commit()
        with pond["/large"].open() as file:
            assert file.read() == content
            for start, length in ((0, 1), (5_000_000, 300_000), (len(content) - 3, 10)):
                file.seek(start)
                assert file.read(length) == content[start : start + length]

    def test_a_series_of_bytes_is_one_file(self, pond: Pond) -> None:
        parts = [b"", b"ab", b"c" * 100_000, b"d"]
        for part in parts:
            with pond.write() as tx:
                tx.write_bytes("/log", part, series=True)
                tx.commit()
        whole = b"".join(parts)
        with pond["/log"].open() as file:
            assert file.read() == whole
            file.seek(1)
            assert file.read(3) == b"bcc"
            file.seek(-2, io.SEEK_END)
            assert file.read() == b"cd"
        assert pond["/log@v2"].open().read() == b"ab"

    def test_an_empty_file(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/empty", b"")
            tx.commit()
        assert pond["/empty"].open().read() == b""

    @pytest.mark.parametrize(
        ("harm", "expected"),
        [
            (lambda data: data[:-1] + b"?", "is damaged"),
            (lambda data: data[:-10], "ends after 99990 of 100000 bytes"),
            (lambda data: None, "is gone"),
        ],
    )
    def test_damage_is_found_before_the_last_bytes_are_given(
        self, pond: Pond, harm: Callable[[bytes], bytes | None], expected: str
    ) -> None:
        with pond.write() as tx:
            tx.write_bytes("/large", b"x" * 100_000)
            tx.commit()
        digest = pond["/large"].stat().blake3
        assert digest is not None
        place = blob_path(digest)
        harmed = harm(pond.store.get(place))
        if harmed is None:
            pond.store.delete(place)
        else:
            pond.store.put(place, harmed, mode="overwrite")
        file = pond["/large"].open()
        with pytest.raises(IntegrityError, match=expected):
            list(iter(lambda: file.read(7), b""))

    def test_what_has_no_bytes(self, pond: Pond) -> None:
        with pytest.raises(DirectoryError):
            pond["/sites"].open()
        with pytest.raises(PathTypeError, match="it has rows, not bytes"):
            pond["/sites/names"].open()


class TestRows:
    def test_columns_and_a_predicate(self, pond: Pond) -> None:
        handle = pond["/sites/levels"]
        assert handle.schema.names == ("time", "level", "site")
        found = handle.to_arrow(columns=["level"], predicate=mp.path("site.name") == "Weir")
        assert found.to_pylist() == [{"level": 2.9}, {"level": 3.2}]
        with pytest.raises(PathTypeError, match="it has no rows"):
            pond["/sites/north/readme.txt"].to_arrow()

    @pytest.mark.parametrize("engine", ["arrow", pytest.param("spark", marks=pytest.mark.spark)])
    def test_plans_are_bound_to_a_scope_when_they_run(
        self, pond: Pond, engine: str, request: pytest.FixtureRequest
    ) -> None:
        if engine == "spark":
            request.getfixturevalue("spark")
        names = mp.stored("/sites/names", {"name": "string", "id": "long"})
        plan = names.filter(mp.col("id") > 1).select("name")
        before = pond.read()
        with pond.write() as tx:
            tx.write_table("/sites/names", [{"id": 7, "name": "Gate"}])
            inside = plan.to_pylist(engine=engine, scope=tx)
            tx.commit()
        assert plan.to_pylist(engine=engine, scope=before) == [{"name": "Intake"}]
        assert inside == [{"name": "Gate"}]
        assert plan.to_pylist(engine=engine, scope=pond.read()) == [{"name": "Gate"}]
        assert plan.to_pylist(engine=engine, scope=pond.read(as_of=1)) == [{"name": "Intake"}]

    @pytest.mark.parametrize("engine", ["arrow", pytest.param("spark", marks=pytest.mark.spark)])
    def test_two_paths_are_joined_in_one_scope(
        self, pond: Pond, engine: str, request: pytest.FixtureRequest
    ) -> None:
        if engine == "spark":
            request.getfixturevalue("spark")
        scope = pond.read()
        levels = mp.stored("/sites/levels", scope["/sites/levels"].schema)
        names = mp.stored("/sites/names", scope["/sites/names"].schema)
        site = levels.select(mp.path("site.name").alias("site"), "level")
        joined = site.join(names, on=[("site", "name")]).aggregate("id", top=mp.agg.max("level"))
        assert joined.sort("id").to_pylist(engine=engine, scope=scope) == [
            {"id": 1, "top": 3.2},
            {"id": 2, "top": None},
        ]

    def test_a_plan_that_names_what_is_not_there(self, pond: Pond) -> None:
        with pytest.raises(PlanError, match="no scope was given"):
            mp.stored("/sites/names", {"id": "long"}).to_pylist()
        with pytest.raises(PlanError, match=r"/sites/names has .* in this scope, not"):
            mp.stored("/sites/names", {"gone": "long"}).to_pylist(scope=pond.read())
        with pytest.raises(PlanError, match=r"/sites/names has .* in this scope, not"):
            mp.stored("/sites/names", {"id": "string"}).to_pylist(scope=pond.read())
        with pytest.raises(PathNotFoundError):
            mp.stored("/sites/nams", {"id": "long"}).to_pylist(scope=pond.read())

    def test_explain_with_a_scope_reads_no_data(self, pond: Pond) -> None:
        plan = mp.stored("/sites/names", {"id": "long"}).filter(mp.col("id") == 2)
        assert "Stored" in plan.explain()
        assert "parquet" in plan.explain(scope=pond.read())


class TestOtherLibraries:
    """`__arrow_c_stream__` is all that they need."""

    def test_pyarrow(self, pond: Pond) -> None:
        handle = pond["/sites/levels"]
        assert pa.table(handle).to_pylist() == LEVELS
        with pa.RecordBatchReader.from_stream(handle) as reader:
            assert reader.schema.names == ["time", "level", "site"]
            assert reader.read_all().num_rows == 3

    def test_pandas(self, pond: Pond) -> None:
        frame = pond["/sites/levels"].to_pandas(columns=["time", "level"])
        assert frame["level"].sum() == pytest.approx(6.1)
        assert str(frame["time"].dtype) == "datetime64[us, UTC]"
        assert pa.table(pond["/sites/names"]).to_pandas()["name"].tolist() == ["Weir", "Intake"]

    def test_polars(self, pond: Pond) -> None:
        import polars as pl

        frame = pl.DataFrame(pond["/sites/levels"])
        assert frame.select(pl.col("level").max()).item() == 3.2
        assert frame["site"].struct.field("name").to_list() == ["Weir", "Intake", "Weir"]
        assert frame.schema["time"] == pl.Datetime("us", "UTC")

    def test_duckdb(self, pond: Pond) -> None:
        import duckdb

        levels, names = pond["/sites/levels"], pond["/sites/names"]
        query = (
            "select n.id, max(l.level) from levels l join names n on l.site.name = n.name "
            "group by 1 order by 1"
        )
        with duckdb.connect() as connection:
            connection.register("levels", levels)
            connection.register("names", names)
            assert connection.sql(query).fetchall() == [(1, 3.2), (2, None)]
        assert duckdb.sql("select count(*) from levels").fetchall() == [(3,)]

    @pytest.mark.spark
    def test_spark(self, pond: Pond, spark: Any) -> None:
        frame = pond["/sites/levels"].to_spark(spark, columns=["level"], time_start=NOON)
        assert frame.columns == ["level"]
        assert frame.count() == 0
        assert pond["/sites/names"].to_spark().agg({"id": "max"}).collect()[0][0] == 2

    def test_and_back_into_the_pond(self, pond: Pond) -> None:
        import duckdb
        import polars as pl

        names = pond["/sites/names"]
        with pond.write() as tx:
            tx.write_table("/polars", pl.DataFrame(names).filter(pl.col("id") == 2))
            tx.write_table("/duckdb", duckdb.sql("select id + 1 as id from names"))
            tx.write_table("/pandas", names.to_pandas())
            tx.write_table("/handle", names)
            tx.write_table("/plan", names.plan().filter(mp.col("id") == 1))
            tx.commit()
        assert pond["/polars"].to_arrow().to_pylist() == [{"id": 2, "name": "Intake"}]
        assert sorted(pond["/duckdb"].to_arrow()["id"].to_pylist()) == [2, 3]
        assert pond["/pandas"].to_arrow() == pond["/handle"].to_arrow() == names.to_arrow()
        assert pond["/plan"].to_arrow().num_rows == 1

    def test_a_stream_is_read_in_other_threads_but_for_open_transactions(self, pond: Pond) -> None:
        with ThreadPoolExecutor(1) as pool, pond.write() as tx:
            tx.write_table("/new", [{"a": 1}])
            assert pa.table(tx["/new"]).num_rows == 1
            with pytest.raises(ScopeError, match="belongs to another thread"):
                pool.submit(pa.table, tx["/new"]).result()
            assert pool.submit(pa.table, pond["/sites/names"]).result().num_rows == 2
            tx.rollback()


class TestNotebooks:
    def test_rows_are_shown_escaped_and_few(self, pond: Pond) -> None:
        rows = [{"note": f"<b>{n}</b> & more", "long": "y" * 200} for n in range(30)]
        with pond.write() as tx:
            tx.write_table("/notes", rows)
            tx.commit()
        text = pond["/notes"]._repr_html_()
        assert "&lt;b&gt;9&lt;/b&gt; &amp; more" in text
        assert "<b>10" not in text
        assert "&lt;b&gt;10" not in text
        assert "y" * 81 not in text
        assert text.endswith("<p>…</p>")

    def test_directories_files_and_nothing(self, pond: Pond) -> None:
        assert "/sites/levels" in pond["/sites"]._repr_html_()
        assert "data, version 1, 13 bytes" in pond["/sites/north/readme.txt"]._repr_html_()
        assert "nothing is there" in pond["/nowhere"]._repr_html_()

    def test_no_more_is_read_than_shown(self, pond: Pond) -> None:
        for _ in range(4):
            with pond.write() as tx:
                tx.append_series("/s", [{"time": NOON, "n": n} for n in range(10)])
                tx.commit()
        pond["/s"].plan()
        with mp.collect_stats() as seen:
            pond["/s"]._repr_html_()
        assert seen.rows_decoded < 40

"""`pond://`: what fsspec's own suite does not ask: versions, tables, transactions, threads."""

from __future__ import annotations

import io
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import (
    ConfigError,
    DirectoryError,
    IntegrityError,
    PathError,
    PathExistsError,
    PathNotFoundError,
    PathTypeError,
    ScopeError,
    WriteConflictError,
)
from millpond.fs.blobs import blob_path

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond
    from millpond.surfaces.fsspec import PondFileSystem

NOON = datetime(2024, 5, 30, 12, tzinfo=UTC)


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    with made.write() as tx:
        tx.make_directory("/a/b", parents=True)
        tx.write_bytes("/a/x.csv", b"k,v\n1,2\n3,4\n")
        tx.write_bytes("/a/b/large", b"0123456789" * 20_000)
        tx.write_table("/a/table", [{"i": 1, "s": "one"}, {"i": 2, "s": None}])
        tx.append_series("/a/series", [{"time": NOON, "v": 1.5}])
        tx.write_bytes("/a/log", b"one\n", series=True)
        tx.commit()
    return made


@pytest.fixture
def fs(pond: Pond) -> PondFileSystem:
    found: PondFileSystem = fsspec.filesystem("pond", location=pond.location)
    return found


class TestLooking:
    def test_names_with_and_without_protocol(self, fs: PondFileSystem) -> None:
        for path in ("/a/x.csv", "pond:///a/x.csv", "a/x.csv", "pond://a/x.csv", "/a/x.csv/"):
            assert fs.info(path)["name"] == "/a/x.csv"
        assert fs.info("pond:///")["type"] == "directory"
        assert fs.unstrip_protocol("/a/x.csv") == "pond:///a/x.csv"

    def test_listings(self, fs: PondFileSystem) -> None:
        assert fs.ls("/", detail=False) == ["/a"]
        found = {entry["name"]: entry for entry in fs.ls("/a")}
        kinds = {name: entry["type"] for name, entry in found.items()}
        assert kinds.pop("/a/b") == "directory"
        assert set(kinds.values()) == {"file"}
        assert {name: entry["size"] for name, entry in found.items()} == {
            "/a/b": 0,
            "/a/log": 4,
            "/a/series": None,
            "/a/table": None,
            "/a/x.csv": 12,
        }
        assert fs.ls("/a/x.csv") == [fs.info("/a/x.csv")]
        assert all(fs.info(name) == entry for name, entry in found.items())
        with pytest.raises(FileNotFoundError, match=r"did you mean /a/x\.csv"):
            fs.ls("/a/x.cs")

    def test_find_glob_walk_du(self, fs: PondFileSystem) -> None:
        assert fs.find("/a/b") == ["/a/b/large"]
        assert fs.glob("/**/*.csv") == ["/a/x.csv"]
        assert fs.glob("pond:///a/[sx]*") == ["/a/series", "/a/x.csv"]
        names = ["log", "series", "table", "x.csv"]
        assert list(fs.walk("/a")) == [("/a", ["b"], names), ("/a/b", [], ["large"])]
        assert fs.du("/a") == 200_000 + 12 + 4

    def test_exists_and_kinds(self, fs: PondFileSystem) -> None:
        assert fs.exists("/a")
        assert not fs.exists("/a/nothing")
        assert not fs.exists("/a/x.csv/below")
        assert fs.isdir("/a")
        assert not fs.isdir("/a/x.csv")
        assert fs.isfile("/a/table")
        assert not fs.isfile("/nothing")

    def test_times(self, fs: PondFileSystem, pond: Pond) -> None:
        first = fs.modified("/a/x.csv")
        assert fs.created("/a/x.csv") == first
        fs.pipe("/a/x.csv", b"new")
        assert fs.created("/a/x.csv") == first
        assert fs.modified("/a/x.csv") == pond.read().stat("/a/x.csv").modified
        assert fs.modified("/a/x.csv") > first
        with pytest.raises(PathTypeError, match="the root was never written"):
            fs.created("/")

    def test_links(self, fs: PondFileSystem, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_link("/a/file", "x.csv")
            tx.make_link("/a/up", "..")
            tx.make_link("/a/nowhere", "nothing")
            tx.commit()
        assert fs.cat("/a/file") == fs.cat("/a/x.csv")
        assert fs.info("/a/file")["destination"] == "x.csv"
        assert fs.isdir("/a/up")
        assert fs.ls("/a/up", detail=False) == ["/a/up/a"]
        assert fs.lexists("/a/nowhere")
        assert not fs.exists("/a/nowhere")
        kinds = {entry["name"]: entry["type"] for entry in fs.ls("/a") if entry["islink"]}
        assert kinds == {"/a/file": "file", "/a/nowhere": "link", "/a/up": "link"}
        assert "/a/up" in fs.find("/")  # and it is not entered, or this would not end
        fs.rm_file("/a/nowhere")
        fs.rm("/a/up", recursive=True)
        assert fs.exists("/a/x.csv")

    def test_one_operation_sees_one_version(self, fs: PondFileSystem, pond: Pond) -> None:
        walk = fs.walk("/")
        assert next(walk)[0] == "/"
        with pond.write() as tx:
            tx.remove("/a", recursive=True)
            tx.commit()
        assert [path for path, _, _ in walk] == ["/a", "/a/b"]
        assert not fs.exists("/a")


class TestReading:
    def test_ranges(self, fs: PondFileSystem) -> None:
        assert fs.cat_file("/a/x.csv", 4, 7) == b"1,2"
        assert fs.cat_file("/a/x.csv", start=-4) == b"3,4\n"
        assert fs.cat_file("/a/x.csv", end=-9) == b"k,v"
        assert fs.cat_file("/a/x.csv", 5, 2) == b""
        assert fs.cat_ranges(["/a/x.csv", "/a/b/large"], [0, 150_000], [3, 150_010]) == [
            b"k,v",
            b"0123456789",
        ]
        assert fs.head("/a/b/large", 3) == b"012"
        assert fs.tail("/a/b/large", 3) == b"789"
        assert fs.cat(["/a/x.csv", "/a/log"])["/a/log"] == b"one\n"

    def test_a_large_file_is_not_read_for_a_range(self, fs: PondFileSystem, pond: Pond) -> None:
        asked: list[int] = []
        blobs = fs.session.pond.blobs
        read = blobs.read_range

        def counted(row: Any, inline: Any, start: int, length: int) -> bytes:
            asked.append(length)
            return read(row, inline, start, length)

        blobs.read_range = counted  # type: ignore[method-assign]
        with fs.open("/a/b/large", block_size=1000) as file:
            file.seek(123_456)
            assert file.read(4) == b"6789"
        assert asked == [1000]

    def test_versions(self, fs: PondFileSystem) -> None:
        fs.pipe("/a/x.csv", b"second")
        assert fs.cat("/a/x.csv@v1").startswith(b"k,v")
        assert fs.cat("pond:///a/x.csv@v2") == b"second"
        assert fs.info("/a/x.csv@v1")["size"] == 12
        assert fs.info("/a/x.csv")["version"] == 2
        assert not fs.exists("/a/x.csv@v3")
        with pytest.raises(PathNotFoundError):
            fs.open("/a/x.csv@v3")
        with fs.open("/a/x.csv@v2") as file:
            assert file.read() == b"second"

    def test_the_pond_as_it_was(self, fs: PondFileSystem, pond: Pond) -> None:
        fs.pipe("/a/x.csv", b"second")
        before: Any = fsspec.filesystem("pond", location=pond.location, as_of=1)
        assert before.cat("/a/x.csv").startswith(b"k,v")
        moment = fs.created("/a/x.csv").isoformat()
        then: Any = fsspec.filesystem("pond", location=pond.location, as_of=moment)
        assert then.cat("/a/x.csv").startswith(b"k,v")
        with pytest.raises(ScopeError, match="shows the pond as it was"):
            before.pipe("/a/x.csv", b"third")
        assert fs.cat("/a/x.csv") == b"second"

    def test_rows_are_a_file_of_parquet(self, fs: PondFileSystem, tmp_path: Path) -> None:
        with fs.open("/a/table") as file:
            assert pq.read_table(file).to_pylist() == [{"i": 1, "s": "one"}, {"i": 2, "s": None}]
        fs.get("/a/series", str(tmp_path / "series.parquet"))
        assert pq.read_table(tmp_path / "series.parquet")["v"].to_pylist() == [1.5]
        assert fs.cat_file("/a/table", -4) == b"PAR1"
        assert fs.cat_file("/a/table@v1", 0, 4) == b"PAR1"

    def test_rows_are_within_the_bounds_of_a_series(self, fs: PondFileSystem, pond: Pond) -> None:
        with pond.write() as tx:
            tx.change("/a/series", max_override=0)
            tx.commit()
        assert pq.read_table(io.BytesIO(fs.cat("/a/series"))).num_rows == 0

    def test_damage_is_an_error(self, fs: PondFileSystem, pond: Pond) -> None:
        digest = fs.info("/a/b/large")["blake3"]
        pond.store.put(blob_path(digest), b"?" * 200_000, mode="overwrite")
        with pytest.raises(IntegrityError, match="/a/b/large"):
            fs.cat("/a/b/large")

    def test_a_directory_is_no_file(self, fs: PondFileSystem) -> None:
        with pytest.raises(DirectoryError):
            fs.open("/a")
        with pytest.raises(DirectoryError):
            fs.open("/")


class TestWriting:
    def test_a_new_version_when_it_is_closed(self, fs: PondFileSystem, pond: Pond) -> None:
        with fs.open("/a/x.csv", "wb") as file:
            assert file.write(b"new ") == 4
            file.write(b"text")
            assert file.tell() == 8
            assert pond.read()["/a/x.csv"].read_bytes().startswith(b"k,v")
        assert pond.read()["/a/x.csv"].read_bytes() == b"new text"
        assert [stat.version for stat in pond.read()["/a/x.csv"].versions()] == [1, 2]

    def test_text_and_compression(self, fs: PondFileSystem, pond: Pond) -> None:
        fs.write_text("/a/note", "Grüße\n", encoding="utf-8")
        assert fs.read_text("/a/note", encoding="utf-8") == "Grüße\n"
        with fs.open("/a/x.gz", "wt", compression="gzip") as file:
            file.write("packed")
        assert fs.cat("/a/x.gz")[:2] == b"\x1f\x8b"
        with fs.open("/a/x.gz", "rt", compression="infer") as file:
            assert file.read() == "packed"

    def test_a_file_that_is_written_here_and_there(self, fs: PondFileSystem) -> None:
        with fs.open("/a/x.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("inside.txt", "hello")
        with fs.open("/a/x.zip") as file, zipfile.ZipFile(file) as archive:
            assert archive.read("inside.txt") == b"hello"

    def test_a_large_file(self, fs: PondFileSystem, tmp_path: Path) -> None:
        content = bytes(range(256)) * 50_000
        with fs.open("/a/new", "wb") as file:
            for start in range(0, len(content), 1_000_000):
                file.write(memoryview(content)[start : start + 1_000_000])
        assert fs.cat("/a/new") == content
        (tmp_path / "local").write_bytes(content)
        fs.put(str(tmp_path / "local"), "/a/put")
        assert fs.info("/a/put")["blake3"] == fs.info("/a/new")["blake3"]
        fs.get("/a/put", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == content

    def test_nothing_is_kept_when_the_block_fails(self, fs: PondFileSystem) -> None:
        def write_half() -> None:
            with fs.open("/a/half", "wb") as file:
                file.write(b"half of it")
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            write_half()
        assert not fs.exists("/a/half")

    def test_appending(self, fs: PondFileSystem, pond: Pond) -> None:
        for path in ("/a/x.csv", "/a/log", "/a/fresh"):
            before = fs.cat(path) if fs.exists(path) else b""
            with fs.open(path, "ab") as file:
                assert file.tell() == len(before)
                assert not file.seekable()
                file.write(b"more\n")
                assert file.tell() == len(before) + 5
            assert fs.cat(path) == before + b"more\n"
        assert fs.cat("/a/x.csv@v2") == b"k,v\n1,2\n3,4\nmore\n"
        assert fs.cat("/a/log@v2") == b"more\n"  # a series keeps what is new
        assert pond.read().stat("/a/fresh").entry_type == "data"

    def test_what_another_writer_has_put_is_not_lost_by_appending(
        self, fs: PondFileSystem, pond: Pond
    ) -> None:
        file, log = fs.open("/a/x.csv", "ab"), fs.open("/a/log", "ab")
        file.write(b"mine\n")
        log.write(b"mine\n")
        with pond.write() as tx:
            tx.write_bytes("/a/x.csv", b"theirs\n")
            tx.write_bytes("/a/log", b"theirs\n", series=True)
            tx.commit()
        with pytest.raises(WriteConflictError, match=r"/a/x\.csv was written meanwhile"):
            file.close()
        log.close()
        assert fs.cat("/a/x.csv") == b"theirs\n"
        assert fs.cat("/a/log") == b"one\ntheirs\nmine\n"

    def test_a_file_that_must_be_new(self, fs: PondFileSystem) -> None:
        with pytest.raises(FileExistsError):
            fs.open("/a/x.csv", "xb")
        first, second = fs.open("/a/new", "xb"), fs.open("/a/new", "xb")
        first.write(b"first")
        second.write(b"second")
        first.close()
        with pytest.raises(PathExistsError):
            second.close()
        assert fs.cat("/a/new") == b"first"

    @pytest.mark.parametrize(
        ("path", "mode", "error", "message"),
        [
            ("/a/table", "wb", PathTypeError, "as a file it can only be read"),
            ("/a/series", "ab", PathTypeError, "as a file it can only be read"),
            ("/a/log", "wb", PathTypeError, "what is in it stays"),
            ("/a/x.csv", "r+b", PathTypeError, "can't be opened with the mode 'r[+]b'"),
        ],
    )
    def test_what_can_not_be_opened(
        self, fs: PondFileSystem, path: str, mode: str, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message) as raised:
            fs.open(path, mode)
        assert getattr(raised.value, "hint", None)

    @pytest.mark.parametrize("path", ["/no/such/file", "/a", "/a/x.csv/below", "/a/x@v1"])
    def test_where_nothing_can_be_put(self, fs: PondFileSystem, pond: Pond, path: str) -> None:
        before = pond.read().txn_seq
        with pytest.raises(PathError):
            fs.pipe(path, b"")
        assert pond.read().txn_seq == before

    def test_directories_for_files_if_asked_for(self, pond: Pond) -> None:
        fs: Any = fsspec.filesystem("pond", location=pond.location, auto_mkdir=True)
        before = pond.read().txn_seq
        fs.pipe("/new/place/file", b"1")
        assert fs.cat("/new/place/file") == b"1"
        assert pond.read().txn_seq == before + 1


class TestNames:
    def test_directories(self, fs: PondFileSystem) -> None:
        fs.mkdir("/new/deep")
        with pytest.raises(FileNotFoundError):
            fs.mkdir("/other/deep", create_parents=False)
        for make in (fs.mkdir, fs.makedirs):
            with pytest.raises(FileExistsError):
                make("/new/deep")
        fs.makedirs("/new/deep", exist_ok=True)
        with pytest.raises(OSError, match="something in it"):
            fs.rmdir("/new")
        with pytest.raises(NotADirectoryError):
            fs.rmdir("/a/x.csv")
        fs.rmdir("/new/deep")
        assert fs.ls("/new") == []

    def test_removing(self, fs: PondFileSystem, pond: Pond) -> None:
        with pytest.raises(IsADirectoryError):
            fs.rm("/a")
        with pytest.raises(FileNotFoundError):
            fs.rm("/nothing")
        fs.rm(["/a/b", "/a/b/large", "/a/*.csv"], recursive=True)
        assert fs.find("/") == ["/a/log", "/a/series", "/a/table"]
        with pond.write() as tx:
            tx.restore("/a/b")
            tx.commit()
        assert fs.exists("/a/b/large")
        fs.rm("/a", recursive=True, maxdepth=1)
        assert fs.find("/") == ["/a/b/large"]

    def test_moving_is_one_row_and_keeps_the_node(self, fs: PondFileSystem) -> None:
        node = fs.info("/a/b")["node_id"]
        fs.mv("/a/b", "/c", recursive=True)
        assert fs.info("/c")["node_id"] == node
        fs.mv("/c/large", "/a")
        assert fs.exists("/a/large")
        fs.mv("/a/table", "/c/")
        assert fs.info("/c/table")["entry_type"] == "table"
        with pytest.raises(FileNotFoundError):
            fs.mv("/nothing", "/c")
        with pytest.raises(FileNotFoundError):
            fs.mv("/a/large", "/no/such/large")

    def test_moving_onto_a_file_makes_a_version_of_it(self, fs: PondFileSystem) -> None:
        fs.pipe("/a/other", b"other")
        fs.mv("/a/other", "/a/x.csv")
        assert not fs.exists("/a/other")
        assert fs.cat("/a/x.csv") == b"other"
        assert fs.cat("/a/x.csv@v1").startswith(b"k,v")
        fs.mv("/a/x.csv", "/a/x.csv")
        assert fs.info("/a/x.csv")["version"] == 2

    def test_moving_what_a_pattern_names(self, fs: PondFileSystem, pond: Pond) -> None:
        before = pond.read().txn_seq
        fs.mv("/a/*.csv", "/a/b/")
        assert fs.find("/a/b") == ["/a/b/large", "/a/b/x.csv"]
        assert not fs.exists("/a/x.csv")
        assert pond.read().txn_seq == before + 1

    def test_copies_are_what_they_are_copies_of(self, fs: PondFileSystem, pond: Pond) -> None:
        before = pond.read().txn_seq
        fs.copy("/a", "/z", recursive=True)
        assert pond.read().txn_seq == before + 1
        kinds = {entry["name"]: entry["entry_type"] for entry in fs.ls("/z")}
        assert kinds["/z/table"] == "table"
        assert kinds["/z/series"] == "series"
        assert kinds["/z/log"] == "data:series"
        assert pond["/z/series"].to_arrow() == pond["/a/series"].to_arrow()
        assert fs.cat("/z/b/large") == fs.cat("/a/b/large")
        with pytest.raises(PathExistsError, match="a series would be added to it"):
            fs.copy("/a/series", "/z/series")


class TestTransactions:
    def test_several_operations_are_one(self, fs: PondFileSystem, pond: Pond) -> None:
        before = pond.read().txn_seq
        with fs.transaction:
            fs.mkdir("/t")
            fs.pipe("/t/1", b"one")
            with fs.open("/t/2", "wb") as file:
                file.write(b"two")
            fs.mv("/t/2", "/t/3")
            fs.rm("/a", recursive=True)
            assert fs.find("/") == ["/t/1", "/t/3"]
            assert fs.cat("/t/3") == b"two"
            assert pond.read().exists("/a")
            assert not pond.read().exists("/t")
        assert fs.find("/") == ["/t/1", "/t/3"]
        assert pond.read().txn_seq == before + 1
        assert not fs._intrans

    def test_an_error_takes_all_back(self, fs: PondFileSystem, pond: Pond) -> None:
        before = pond.read().txn_seq
        files: list[Any] = []

        def fail() -> None:
            with fs.transaction:
                fs.pipe("/t", b"one")
                files.append(fs.open("/u", "wb"))
                files[0].write(b"two")
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            fail()
        assert files[0].closed
        assert pond.read().txn_seq == before
        assert not fs.exists("/t")
        fs.pipe("/t", b"later")
        assert fs.cat("/t") == b"later"

    def test_a_file_that_is_still_open_is_closed(self, fs: PondFileSystem) -> None:
        with fs.transaction:
            open_ = fs.open("/t", "wb")
            open_.write(b"left open")
        assert open_.closed
        assert fs.cat("/t") == b"left open"

    def test_without_a_block(self, fs: PondFileSystem, pond: Pond) -> None:
        fs.start_transaction()
        fs.pipe("/t", b"1")
        assert not pond.read().exists("/t")
        fs.end_transaction()
        assert pond.read().exists("/t")
        fs.start_transaction()
        fs.pipe("/u", b"1")
        fs.transaction.complete(commit=False)
        assert not fs.exists("/u")

    def test_a_second_one_inside_is_an_error(self, fs: PondFileSystem) -> None:
        with fs.transaction:
            fs.pipe("/t", b"1")
            with pytest.raises(ScopeError, match="is open in the same task"):
                fs.start_transaction()
            fs.pipe("/u", b"2")
        assert fs.find("/", maxdepth=1) == ["/t", "/u"]

    def test_another_writer_in_its_way(self, fs: PondFileSystem, pond: Pond) -> None:
        fs.start_transaction()
        fs.pipe("/a/x.csv", b"mine")
        fs.pipe("/a/other", b"mine")
        with pond.write() as tx:
            tx.write_bytes("/a/x.csv", b"theirs")
            tx.commit()
        with pytest.raises(WriteConflictError, match=r"/a/x\.csv"):
            fs.end_transaction()
        assert fs.cat("/a/x.csv") == b"theirs"
        assert not fs.exists("/a/other")

    def test_many_files_in_one_operation_are_one(
        self, fs: PondFileSystem, pond: Pond, tmp_path: Path
    ) -> None:
        source = tmp_path / "source"
        (source / "below").mkdir(parents=True)
        for number in range(5):
            (source / "below" / f"{number}").write_bytes(b"%d" % number)
        before = pond.read().txn_seq
        fs.put(str(source), "/put", recursive=True)
        fs.pipe({"/a/1": b"1", "/a/2": b"2"})
        fs.rm("/put/below", recursive=True)
        assert pond.read().txn_seq == before + 3
        said = pond.oplog.log.table().history(1)[0]["millpond"]
        assert said["message"] == "fsspec: rm"

    def test_an_operation_that_fails_leaves_nothing(self, fs: PondFileSystem, pond: Pond) -> None:
        before = pond.read().txn_seq
        with pytest.raises(FileNotFoundError):
            fs.pipe({"/a/1": b"1", "/no/such/2": b"2"})
        assert pond.read().txn_seq == before
        assert not fs.exists("/a/1")


class TestThreads:
    def test_share_a_filesystem(self, fs: PondFileSystem) -> None:
        def work(number: int) -> bytes:
            fs.makedirs("/shared/deep", exist_ok=True)
            fs.pipe(f"/shared/deep/{number}", b"%d" % number)
            return bytes(fs.cat(f"/shared/deep/{number}"))

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(8))) == [b"%d" % n for n in range(8)]
        assert len(fs.ls("/shared/deep")) == 8

    def test_a_transaction_stays_in_its_thread(self, fs: PondFileSystem) -> None:
        with fs.transaction, ThreadPoolExecutor(1) as pool:
            fs.pipe("/t", b"1")
            with pytest.raises(ScopeError, match="belongs to another thread"):
                pool.submit(fs.pipe, "/u", b"1").result()
            fs.pipe("/v", b"1")
        assert fs.exists("/v")
        assert not fs.exists("/u")


class TestInstances:
    def test_where_the_pond_is(
        self, pond: Pond, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("POND", raising=False)
        with pytest.raises(ConfigError, match="not said which pond"):
            fsspec.filesystem("pond")
        other = mp.create(tmp_path / "other")
        for each in (pond, other):
            monkeypatch.setenv("POND", each.location)
            found: Any = fsspec.filesystem("pond")
            assert found.session.pond.location == each.location
            with fsspec.open("pond:///here", "wb") as file:
                file.write(each.location.encode())
        assert other.read()["/here"].read_text() == other.location

    def test_a_relative_location_is_meant_from_here(
        self, pond: Pond, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        mp.create(tmp_path / "elsewhere" / "pond")
        for place in (tmp_path, tmp_path / "elsewhere"):
            monkeypatch.chdir(place)
            found: Any = fsspec.filesystem("pond", location="pond")
            assert found.session.pond.location == str(place / "pond")

    def test_pickles_and_json(self, fs: PondFileSystem) -> None:
        assert pickle.loads(pickle.dumps(fs)).cat("/a/log") == b"one\n"
        again = fsspec.AbstractFileSystem.from_json(fs.to_json())
        assert again.cat("/a/log") == b"one\n"
        assert fs.fsid == again.fsid

    def test_mapper_and_caches(self, fs: PondFileSystem, pond: Pond, tmp_path: Path) -> None:
        mapper = fs.get_mapper("/a")
        assert mapper["x.csv"].startswith(b"k,v")
        mapper["new"] = b"1"
        assert fs.cat("/a/new") == b"1"
        url, where = "simplecache::pond:///a/x.csv", {"location": pond.location}
        cache = {"cache_storage": str(tmp_path / "cache")}
        with fsspec.open(url, pond=where, simplecache=cache) as file:
            assert file.read().startswith(b"k,v")

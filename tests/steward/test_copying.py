"""Copying into a pond, out of it and within it: what arrives, and what is refused in time."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rights import without_rights

import millpond as mp
from millpond.base import errors as e
from millpond.fs.entry import EntryType
from millpond.fs.walk import walk
from millpond.steward.copying.host import find_items
from millpond.steward.copying.into import copy_in
from millpond.steward.copying.out import copy_out, new_file
from millpond.steward.copying.within import copy_within
from millpond.steward.places import parse_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.copying import Copied
    from millpond.steward.pond import Pond

UTC = pa.timestamp("us", "UTC")
ODD_NAMES = ("with space", "ünï ☂", "new\nline", "50%25#?.csv", "-rf", "a[1]*.csv", "x" * 255)


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    found.mkdir()
    return found


def ignore(count: int) -> None:
    del count


def into(pond: Pond, *args: str, **how: Any) -> list[Copied]:
    *sources, target = args
    with pond.write() as tx:
        copied = copy_in(tx, [parse_place(s) for s in sources], target, **how).run(ignore)
        tx.commit()
    return copied


def out(pond: Pond, *args: str, **how: Any) -> list[Copied]:
    *sources, target = args
    return copy_out(pond.read(), sources, parse_place(target), **how).run(ignore)


def within(pond: Pond, *args: str, **how: Any) -> list[Copied]:
    *sources, target = args
    with pond.write() as tx:
        copied = copy_within(tx, sources, target, **how).run(ignore)
        tx.commit()
    return copied


def tree(pond: Pond) -> dict[str, str]:
    return {found.path: str(found.entry_type) for found in walk(pond.read().tree)}


def host_tree(top: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(top)): None if path.is_dir() else path.read_bytes()
        for path in sorted(top.rglob("*"))
    }


def write_series(path: Path, times: list[int], **columns: Any) -> Path:
    pq.write_table(pa.table({"timestamp": pa.array(times, UTC), **columns}), path)
    return path


def refused(pond: Pond, act: Callable[[], object]) -> e.MillpondError:
    """The error of something that leaves the pond as it was."""
    before = pond.read().txn_seq, tree(pond)
    with pytest.raises(e.MillpondError) as caught:
        act()
    pond.refresh()
    assert (pond.read().txn_seq, tree(pond)) == before
    assert caught.value.hint
    return caught.value


class TestInto:
    def test_a_file_gets_the_name_of_the_target_or_keeps_its_own(
        self, pond: Pond, files: Path
    ) -> None:
        (files / "a.txt").write_bytes(b"hello")
        into(pond, f"host://{files}/a.txt", "/b")
        into(pond, f"host://{files}/a.txt", "/")
        into(pond, f"host://{files}/a.txt", "/dir/", make_parents=True)
        into(pond, f"host://{files}/a.txt", "/dir")
        assert tree(pond) == {
            "/a.txt": "data", "/b": "data", "/dir": "directory", "/dir/a.txt": "data",
        }  # fmt: skip
        assert pond["/b"].read_bytes() == b"hello"
        assert pond["/dir/a.txt"].stat().version == 2

    def test_what_is_there_gets_a_new_version(self, pond: Pond, files: Path) -> None:
        for content in (b"one", b"two", b"two"):
            (files / "a").write_bytes(content)
            into(pond, f"host://{files}/a", "/a")
        assert pond["/a"].stat().version == 3
        assert pond["/a@v1"].read_bytes() == b"one"

    def test_sizes_around_what_lives_in_a_row(self, pond: Pond, files: Path) -> None:
        for size in (0, 1, 64 * 1024, 64 * 1024 + 1, 3_000_000):
            content = os.urandom(size)
            (files / "a").write_bytes(content)
            seen: list[int] = []
            with pond.write() as tx:
                plan = copy_in(tx, [parse_place(f"host://{files}/a")], "/a")
                assert plan.size == 2 * size
                plan.run(seen.append)
                tx.commit()
            assert sum(seen) == plan.size
            assert pond["/a"].read_bytes() == content

    def test_directories_with_everything_in_them_are_one_transaction(
        self, pond: Pond, files: Path
    ) -> None:
        (files / "d" / "deep" / "er").mkdir(parents=True)
        (files / "d" / "none").mkdir()
        (files / "d" / "deep" / "er" / "x").write_bytes(b"")
        (files / "d" / "y").write_bytes(b"y")
        copied = into(pond, f"host://{files}/d", "/")
        assert tree(pond) == {
            "/d": "directory", "/d/deep": "directory", "/d/deep/er": "directory",
            "/d/deep/er/x": "data", "/d/none": "directory", "/d/y": "data",
        }  # fmt: skip
        assert sorted(one.target for one in copied) == ["/d/deep/er/x", "/d/y"]
        assert pond.read().txn_seq == 1
        into(pond, f"host://{files}/d/", "/copy")
        assert "/copy/deep/er/x" in tree(pond)
        into(pond, f"host://{files}/d", "/copy")
        assert "/copy/d/deep/er/x" in tree(pond)

    def test_odd_names(self, pond: Pond, files: Path) -> None:
        for name in ODD_NAMES:
            (files / name).write_text(name)
        with pond.write() as tx:
            place = parse_place(f"host://{files}")
            copy_in(tx, [place], "/odd").run(ignore)
            tx.commit()
        assert set(pond.read().children("/odd")) == set(ODD_NAMES)
        for name in ODD_NAMES:
            assert pond.read().read_bytes(f"/odd/{name}") == name.encode()

    def test_patterns_match_directories_as_cp_does(self, pond: Pond, files: Path) -> None:
        top = files / "top"
        for name in ("a", "sub/b", "sub/deep/c", "sub x"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(name.encode())
        (top / "empty").mkdir()
        (top / "sub" / "linked").symlink_to(top / "a")
        for pattern, wanted in (
            ("*", ["a", "empty", "sub", "sub x", "sub/b", "sub/deep", "sub/deep/c", "sub/linked"]),
            (
                "**/*",
                ["a", "empty", "sub", "sub x", "sub/b", "sub/deep", "sub/deep/c", "sub/linked"],
            ),
            ("s*", ["sub", "sub x", "sub/b", "sub/deep", "sub/deep/c", "sub/linked"]),
            ("**", ["a", "b", "c", "linked", "sub x"]),
        ):
            target = f"/{len(pond['/'].scope.children())}"
            with pond.write() as tx:
                tx.make_directory(target)
                tx.commit()
            into(pond, f"host://{top}/{pattern}", f"{target}/")
            found = [handle.path.removeprefix(f"{target}/") for handle in pond[target].glob("**/*")]
            assert sorted(found) == wanted, pattern

    def test_a_link_to_nothing_is_not_left_out(self, pond: Pond, files: Path) -> None:
        (files / "links").mkdir()
        (files / "links" / "gone").symlink_to(files / "nowhere")
        error = refused(pond, lambda: into(pond, f"host://{files}/links/*", "/"))
        assert "is a link to" in error.message

    def test_patterns(self, pond: Pond, files: Path) -> None:
        for name in ("a.csv", "b.csv", "c.txt"):
            (files / name).write_text(name)
        into(pond, f"host://{files}/*.csv", "/")
        assert set(tree(pond)) == {"/a.csv", "/b.csv"}
        error = refused(pond, lambda: into(pond, f"host://{files}/*.json", "/"))
        assert isinstance(error, e.ObjectNotFoundError)

    def test_links_are_followed(self, pond: Pond, files: Path) -> None:
        (files / "real").mkdir()
        (files / "real" / "f").write_text("content")
        (files / "d").mkdir()
        (files / "d" / "file").symlink_to("../real/f")
        (files / "d" / "one").symlink_to("../real")
        (files / "d" / "two").symlink_to(files / "real")
        into(pond, f"host://{files}/d", "/")
        assert tree(pond) == {
            "/d": "directory", "/d/file": "data", "/d/one": "directory", "/d/one/f": "data",
            "/d/two": "directory", "/d/two/f": "data",
        }  # fmt: skip

    def test_links_in_circles(self, pond: Pond, files: Path) -> None:
        (files / "d" / "e").mkdir(parents=True)
        (files / "d" / "e" / "back").symlink_to(files / "d")
        error = refused(pond, lambda: into(pond, f"host://{files}/d", "/"))
        assert isinstance(error, e.LinkLoopError)
        assert f"{files}/d/e/back" in error.message
        (files / "self").symlink_to("self")
        error = refused(pond, lambda: into(pond, f"host://{files}/self", "/"))
        assert isinstance(error, e.LinkLoopError)

    def test_links_to_nothing(self, pond: Pond, files: Path) -> None:
        (files / "d").mkdir()
        (files / "d" / "broken").symlink_to("nowhere")
        error = refused(pond, lambda: into(pond, f"host://{files}/d", "/"))
        assert isinstance(error, e.ObjectNotFoundError)
        assert "nowhere" in error.message

    def test_what_is_neither_file_nor_directory(self, pond: Pond, files: Path) -> None:
        (files / "d").mkdir()
        os.mkfifo(files / "d" / "pipe")
        error = refused(pond, lambda: into(pond, f"host://{files}/d", "/"))
        assert f"{files}/d/pipe is a pipe" in error.message
        (files / "d" / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(files / "d" / "s"))
            error = refused(pond, lambda: into(pond, f"host://{files}/d", "/"))
        assert "a socket" in error.message
        assert "a device" in refused(pond, lambda: into(pond, "host:///dev/null", "/")).message

    def test_files_that_are_not_there_say_what_is(self, pond: Pond, files: Path) -> None:
        (files / "levels.csv").write_text("x")
        error = refused(pond, lambda: into(pond, f"host://{files}/level.csv", "/"))
        assert isinstance(error, e.ObjectNotFoundError)
        assert f"{files}/levels.csv" in (error.hint or "")
        refused(pond, lambda: into(pond, f"host://{files}/no/such/dir", "/"))

    def test_no_permission(self, common: Path) -> None:
        (common / "d").mkdir()
        (common / "d" / "secret").write_text("x")
        (common / "d" / "secret").chmod(0)
        with without_rights(), pytest.raises(e.StoreAccessError) as caught:
            find_items(str(common))
        assert "secret" in caught.value.message
        (common / "d").chmod(0)
        with without_rights(), pytest.raises(e.StoreAccessError, match="/d"):
            find_items(str(common))
        (common / "d").chmod(0o700)

    def test_a_pond_does_not_copy_itself(self, pond: Pond, files: Path) -> None:
        location = Path(pond.location)
        for source in (location, location.parent, location / "data"):
            error = refused(pond, partial(into, pond, f"host://{source}", "/x"))
            assert "the pond itself" in error.message
        (files / "link").symlink_to(location)
        refused(pond, lambda: into(pond, f"host://{files}", "/x"))

    def test_names_that_can_not_be(self, pond: Pond, files: Path) -> None:
        (files / "d").mkdir()
        Path(os.fsdecode(os.fsencode(files / "d") + b"/\xff\xfe")).write_text("x")
        error = refused(pond, lambda: into(pond, f"host://{files}/d", "/"))
        assert isinstance(error, e.PathSyntaxError)
        (files / "t@v3").write_text("x")
        refused(pond, lambda: into(pond, f"host://{files}/t@v3", "/"))
        refused(pond, lambda: into(pond, "host:///", "/"))

    def test_parents_have_to_be_there_or_are_made(self, pond: Pond, files: Path) -> None:
        (files / "a").write_text("x")
        source = f"host://{files}/a"
        for target in ("/x/y", "/x/", "/x/y/z/"):
            error = refused(pond, partial(into, pond, source, target))
            assert isinstance(error, e.PathNotFoundError)
            assert "pond mkdir -p" in (error.hint or "")
        into(pond, source, "/x/y", make_parents=True)
        into(pond, source, "/p/q/", make_parents=True)
        assert tree(pond) == {
            "/p": "directory", "/p/q": "directory", "/p/q/a": "data",
            "/x": "directory", "/x/y": "data",
        }  # fmt: skip

    def test_targets_that_can_not_be(self, pond: Pond, files: Path) -> None:
        (files / "a").write_text("x")
        (files / "b").write_text("x")
        (files / "d").mkdir()
        into(pond, f"host://{files}/a", "/f")
        a, b = f"host://{files}/a", f"host://{files}/b"
        assert isinstance(refused(pond, lambda: into(pond, a, b, "/f")), e.NoDirectoryError)
        assert isinstance(refused(pond, lambda: into(pond, a, "/f/")), e.NoDirectoryError)
        assert isinstance(refused(pond, lambda: into(pond, a, "/f/x")), e.MillpondError)
        refused(pond, lambda: into(pond, f"host://{files}/d", "/f"))
        refused(pond, lambda: into(pond, a, "/f@v1"))
        (files / "d" / "a").write_text("other")
        error = refused(pond, lambda: into(pond, a, f"host://{files}/d/a", "/"))
        assert isinstance(error, e.PathExistsError)
        assert "both become /a" in error.message

    def test_bytes_stay_what_they_are(self, pond: Pond, files: Path) -> None:
        (files / "a").write_text("1\n")
        into(pond, f"host+data+series://{files}/a", "/log")
        into(pond, f"host://{files}/a", "/log")
        assert pond["/log"].stat().entry_type is EntryType.DATA_SERIES
        assert pond["/log"].read_bytes() == b"1\n1\n"
        pq.write_table(pa.table({"x": [1]}), files / "t.parquet")
        into(pond, f"host+table://{files}/t.parquet", "/t")
        error = refused(pond, lambda: into(pond, f"host://{files}/a", "/t"))
        assert "host+table://" in (error.hint or "")


class TestRowsInto:
    def test_parquet_as_table_and_as_series_with_its_times(self, pond: Pond, files: Path) -> None:
        file = write_series(files / "a.parquet", [1_000_000, 5_000_000, 3_000_000], v=[1, 2, None])
        into(pond, f"host+table://{file}", "/t")
        into(pond, f"host+series://{file}", "/s")
        stat = pond["/s"].stat()
        assert (stat.min_event_time, stat.max_event_time) == (_time(1), _time(5))
        assert stat.time_column == "timestamp"
        assert pond["/s"].to_arrow().equals(pond["/t"].to_arrow())
        assert pond["/t"].to_arrow().column("v").to_pylist() == [1, 2, None]

    def test_a_table_gets_new_rows_and_a_series_more(self, pond: Pond, files: Path) -> None:
        one = write_series(files / "a.parquet", [1], v=[1])
        two = write_series(files / "b.parquet", [2], v=[2], w=["new"])
        for file in (one, two):
            into(pond, f"host+table://{file}", "/t")
            into(pond, f"host+series://{file}", "/s")
        assert pond["/t"].to_arrow().column("v").to_pylist() == [2]
        assert pond["/s"].to_arrow().column("w").to_pylist() == [None, "new"]
        assert pond["/t@v1"].to_arrow().num_rows == 1

    def test_columns_without_nulls_may_have_some_later(self, pond: Pond, files: Path) -> None:
        strict = pa.schema([pa.field("x", pa.int64(), nullable=False)])
        pq.write_table(pa.table({"x": [1]}, strict), files / "a.parquet")
        pq.write_table(pa.table({"x": pa.array([None], pa.int64())}), files / "b.parquet")
        into(pond, f"host+table://{files}/a.parquet", "/t")
        into(pond, f"host+table://{files}/b.parquet", "/t")
        assert pond["/t"].to_arrow().to_pylist() == [{"x": None}]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "it is empty"),
            (b"a,b\n1,2\n", "it begins with b'a,b\\n'"),
            (b"PAR1 cut off", "its end is missing"),
        ],
    )
    def test_what_is_not_parquet_is_told(
        self, pond: Pond, files: Path, content: bytes, said: str
    ) -> None:
        (files / "a.parquet").write_bytes(content)
        for kind in ("table", "series"):
            error = refused(pond, partial(into, pond, f"host+{kind}://{files}/a.parquet", "/t"))
            assert f"{files}/a.parquet is not Parquet" in error.message
            assert said in error.message

    def test_damaged_parquet_leaves_nothing(self, pond: Pond, files: Path) -> None:
        content = bytearray(write_series(files / "a.parquet", list(range(5000))).read_bytes())
        content[10:2000] = os.urandom(1990)
        (files / "a.parquet").write_bytes(content)
        error = refused(pond, lambda: into(pond, f"host+table://{files}/a.parquet", "/t"))
        assert str(files / "a.parquet") in error.message
        assert not [p for p in (Path(pond.location) / "tables").rglob("*") if p.is_file()]

    def test_csv_and_json_become_rows(self, pond: Pond, files: Path) -> None:
        (files / "a.csv").write_text("time;n\n2024-01-01T00:00:00Z;1\n2024-01-02T00:00:00Z;\n")
        (files / "a.jsonl").write_text('{"n": 1, "deep": {"x": [1, 2]}}\n{"n": null}\n')
        (files / "a.tsv").write_text("a\tb\n1\t2\n")
        into(pond, f"host+csv+series://{files}/a.csv?delimiter=;", "/s")
        into(pond, f"host+json+table://{files}/a.jsonl", "/j")
        into(pond, f"host+csv+table://{files}/a.tsv", "/tabs")
        assert pond["/s"].to_arrow().column("n").to_pylist() == [1, None]
        assert pond["/s"].stat().time_column == "time"
        assert pond["/j"].to_arrow().to_pylist()[0] == {"n": 1, "deep": {"x": [1, 2]}}
        assert pond["/tabs"].to_arrow().to_pylist() == [{"a": 1, "b": 2}]

    def test_delta_tables(self, pond: Pond, files: Path) -> None:
        with mp.create(files / "other").write() as tx:
            tx.write_table("/t", [{"a": 1}, {"a": 2}])
            tx.commit()
        (table,) = (files / "other" / "tables").iterdir()
        into(pond, f"host+delta+table://{table}", "/d")
        assert sorted(pond["/d"].to_arrow().column("a").to_pylist()) == [1, 2]

    def test_directories_of_tables(self, pond: Pond, files: Path) -> None:
        (files / "d" / "e").mkdir(parents=True)
        write_series(files / "d" / "a", [1])
        write_series(files / "d" / "e" / "b", [2])
        into(pond, f"host+series://{files}/d", "/s")
        assert tree(pond) == {
            "/s": "directory", "/s/a": "series", "/s/e": "directory", "/s/e/b": "series",
        }  # fmt: skip
        (files / "d" / "readme").write_text("no table")
        error = refused(pond, lambda: into(pond, f"host+series://{files}/d", "/again"))
        assert "readme is not Parquet" in error.message

    def test_time_columns(self, pond: Pond, files: Path) -> None:
        moments = pa.array([1, 2], UTC)
        pq.write_table(pa.table({"when": moments, "n": [1, 2]}), files / "a.parquet")
        source = f"host+series://{files}/a.parquet"
        error = refused(pond, lambda: into(pond, source, "/s"))
        assert f"{files}/a.parquet" in error.message
        assert error.hint == "say which one it is: --time-column NAME"
        into(pond, source, "/s", time_column="when")
        assert pond["/s"].stat().time_column == "when"
        refused(pond, lambda: into(pond, source, "/s2", time_column="n"))
        pq.write_table(pa.table({"n": [1]}), files / "b.parquet")
        error = refused(pond, lambda: into(pond, f"host+series://{files}/b.parquet", "/s2"))
        assert "host+table://" in (error.hint or "")
        refused(pond, lambda: into(pond, f"host://{files}/b.parquet", "/x", time_column="when"))

    def test_it_has_to_be_said_what_rows_become(self, pond: Pond, files: Path) -> None:
        (files / "a.csv").write_text("a\n1\n")
        error = refused(pond, lambda: into(pond, f"host+csv://{files}/a.csv", "/x"))
        assert f"host+csv+table://{files}/a.csv" in (error.hint or "")

    def test_types_that_do_not_fit_name_the_file(self, pond: Pond, files: Path) -> None:
        (files / "a.csv").write_text("a\n1\n")
        (files / "b.csv").write_text("a\nx\n")
        into(pond, f"host+csv+table://{files}/a.csv", "/t")
        error = refused(pond, lambda: into(pond, f"host+csv+table://{files}/b.csv", "/t"))
        assert f"{files}/b.csv" in error.message

    def test_if_one_of_many_fails_none_is_there(self, pond: Pond, files: Path) -> None:
        (files / "a.csv").write_text("timestamp\n2024-01-01T00:00:00Z\n")
        (files / "b.csv").write_text("no\n1\n")
        source = f"host+csv+series://{files}/*.csv"
        refused(pond, lambda: into(pond, source, "/"))
        assert tree(pond) == {}

    def test_many_columns_and_wide_values(self, pond: Pond, files: Path) -> None:
        names = [f"column {n} with a long name" for n in range(2000)]
        table = pa.table({name: pa.array(["x" * 50, None]) for name in names})
        pq.write_table(table, files / "wide.parquet")
        into(pond, f"host+table://{files}/wide.parquet", "/wide")
        assert pond["/wide"].to_arrow().equals(table)
        out(pond, "/wide", f"host://{files}/again.csv")
        again = mp.scan(files / "again.csv").to_arrow(engine="arrow")
        assert again.equals(table)


class TestOut:
    @pytest.fixture
    def full(self, pond: Pond, files: Path) -> Pond:
        with pond.write() as tx:
            tx.make_directory("/a/b", parents=True)
            tx.make_directory("/empty")
            tx.write_bytes("/a/f", b"file")
            tx.write_bytes("/a/b/big", b"x" * 200_000)
            tx.write_bytes("/log", b"one ", series=True)
            tx.write_table("/t", [{"n": 1}, {"n": 2}])
            tx.append_series("/a/s.csv", [{"timestamp": _time(1), "n": 1}])
            tx.make_link("/a/link", "f")
            tx.commit()
        with pond.write() as tx:
            tx.write_bytes("/log", b"two", series=True)
            tx.write_table("/t", [{"n": 3}])
            tx.commit()
        return pond

    def test_a_tree_is_kept(self, full: Pond, files: Path) -> None:
        copied = out(full, "/", f"host://{files}/out/")
        found = host_tree(files / "out")
        assert found.pop("t.parquet") is not None
        assert found == {
            "a": None, "a/b": None, "a/b/big": b"x" * 200_000, "a/f": b"file", "a/link": b"file",
            "a/s.csv": b"timestamp,n\n1970-01-01T00:00:01Z,1\n", "empty": None, "log": b"one two",
        }  # fmt: skip
        assert pq.read_table(files / "out" / "t.parquet").to_pylist() == [{"n": 3}]
        assert {one.source for one in copied} == {
            "/a/b/big", "/a/f", "/a/link", "/a/s.csv", "/log", "/t",
        }  # fmt: skip
        assert all(Path(one.target).stat().st_size == one.size for one in copied)

    def test_paths_are_kept_below_a_directory_unless_they_are_stripped(
        self, full: Pond, files: Path
    ) -> None:
        out(full, "/a/b/big", f"host://{files}/one/")
        assert (files / "one" / "a" / "b" / "big").exists()
        out(full, "/a", f"host://{files}/two", strip_prefix="/a")
        assert set(host_tree(files / "two")) == {"b", "b/big", "f", "link", "s.csv"}
        out(full, "/a/b/big", f"host://{files}/three/", strip_prefix="a/b/")
        assert set(host_tree(files / "three")) == {"big"}
        error = refused(
            full, lambda: out(full, "/a", "/log", f"host://{files}/4/", strip_prefix="/a")
        )
        assert "/log" in error.message
        assert not (files / "4").exists()

    def test_one_file_gets_the_name_it_is_given(self, full: Pond, files: Path) -> None:
        out(full, "/a/f", f"host://{files}/new/name")
        assert (files / "new" / "name").read_bytes() == b"file"
        out(full, "/t@v1", f"host://{files}/old.jsonl")
        assert (files / "old.jsonl").read_bytes() == b'{"n":1}\n{"n":2}\n'

    def test_patterns(self, full: Pond, files: Path) -> None:
        out(full, "/a/*", f"host://{files}/out", strip_prefix="/a")
        assert set(host_tree(files / "out")) == {"b", "b/big", "f", "link", "s.csv"}
        out(full, "/**", f"host://{files}/all")
        assert set(host_tree(files / "all")) >= {"a/b/big", "log", "t.parquet", "empty"}
        assert isinstance(
            refused(full, lambda: out(full, "/x*", f"host://{files}/no/")), e.PathNotFoundError
        )

    @pytest.mark.parametrize(
        ("target", "content"),
        [
            ("host://{}/t.csv", b"n\n3\n"),
            ("host+csv://{}/t.data", b"n\n3\n"),
            ("host://{}/t.JSON", b'{"n":3}\n'),
            ("host+json://{}/x", b'{"n":3}\n'),
        ],
    )
    def test_formats(self, full: Pond, files: Path, target: str, content: bytes) -> None:
        (copied,) = out(full, "/t", target.format(files))
        assert Path(copied.target).read_bytes() == content

    def test_formats_of_trees(self, full: Pond, files: Path) -> None:
        out(full, "/t", "/a/s.csv", f"host+json://{files}/out/")
        assert set(host_tree(files / "out")) == {"a", "a/s.jsonl", "t.jsonl"}
        out(full, "/a/s.csv", f"host+parquet://{files}/p/")
        assert set(host_tree(files / "p")) == {"a", "a/s.parquet"}

    def test_formats_that_can_not_be(self, full: Pond, files: Path) -> None:
        error = refused(full, lambda: out(full, "/t", f"host://{files}/t"))
        assert ".csv" in (error.hint or "")
        error = refused(full, lambda: out(full, "/a/f", f"host+csv://{files}/f"))
        assert "host://" in (error.hint or "")
        for scheme in ("host+csv+table", "host+series", "host+delta"):
            target = f"{scheme}://{files}/t"
            refused(full, partial(out, full, "/t", target))
        assert host_tree(files) == {}

    def test_what_is_there_is_not_touched_unless_that_is_said(
        self, full: Pond, files: Path
    ) -> None:
        (files / "a").mkdir()
        (files / "a" / "f").write_bytes(b"mine")
        target = f"host://{files}/"
        error = refused(full, lambda: out(full, "/a/b", "/a/f", target))
        assert isinstance(error, e.ObjectExistsError)
        assert "--overwrite" in (error.hint or "")
        assert host_tree(files) == {"a": None, "a/f": b"mine"}
        out(full, "/a/f", target, overwrite=True)
        assert (files / "a" / "f").read_bytes() == b"file"
        (files / "t.parquet").mkdir()
        error = refused(full, lambda: out(full, "/t", target, overwrite=True))
        assert "is a directory" in error.message

    def test_a_file_where_a_directory_is_needed(self, full: Pond, files: Path) -> None:
        (files / "out").write_text("mine")
        for args in (("/a", f"host://{files}/out"), ("/log", f"host://{files}/out/")):
            error = refused(full, partial(out, full, *args))
            assert "a directory is needed" in error.message
        assert host_tree(files) == {"out": b"mine"}

    def test_not_into_the_pond_itself(self, full: Pond) -> None:
        error = refused(full, lambda: out(full, "/log", f"host://{full.location}/tables/"))
        assert "the pond itself" in error.message

    def test_two_that_would_be_one(self, full: Pond, files: Path) -> None:
        with full.write() as tx:
            tx.write_bytes("/t.parquet", b"bytes")
            tx.commit()
        error = refused(full, lambda: out(full, "/t", "/t.parquet", f"host://{files}/"))
        assert "both become" in error.message
        assert host_tree(files) == {}

    def test_links(self, full: Pond, files: Path) -> None:
        with full.write() as tx:
            tx.make_link("/a/b/up", "/a")
            tx.commit()
        error = refused(full, lambda: out(full, "/a", f"host://{files}/out/"))
        assert isinstance(error, e.LinkLoopError)
        assert "/a/b/up" in error.message
        with full.write() as tx:
            tx.remove("/a/b/up")
            tx.make_link("/a/b/nowhere", "gone")
            tx.commit()
        error = refused(full, lambda: out(full, "/a", f"host://{files}/out/"))
        assert isinstance(error, e.PathNotFoundError)
        assert "gone" in error.message
        assert host_tree(files) == {}

    def test_odd_names_come_out_as_they_went_in(self, pond: Pond, files: Path) -> None:
        with pond.write() as tx:
            for name in ODD_NAMES:
                tx.write_bytes(f"/{name}", name.encode())
            tx.commit()
        out(pond, "/", f"host://{files}/")
        assert host_tree(files) == {name: name.encode() for name in ODD_NAMES}

    def test_a_name_that_gets_too_long_is_an_error(self, pond: Pond, files: Path) -> None:
        with pond.write() as tx:
            tx.write_table(f"/{'x' * 250}", [{"n": 1}])
            tx.commit()
        error = _raised(lambda: out(pond, "/", f"host://{files}/"))
        assert isinstance(error, e.StoreError)
        assert host_tree(files) == {}

    def test_a_file_is_whole_or_not_there(self, full: Pond, files: Path) -> None:
        digest = full["/a/b/big"].stat().blake3
        assert digest is not None
        blob = Path(full.location) / "blobs" / digest[:2] / digest
        blob.write_bytes(b"y" + blob.read_bytes()[1:])
        error = _raised(lambda: out(full, "/a/b/big", f"host://{files}/big"))
        assert isinstance(error, e.IntegrityError)
        assert host_tree(files) == {}

    def test_no_permission(self, common: Path) -> None:
        common.chmod(0o555)
        with (
            without_rights(),
            pytest.raises(e.StoreAccessError) as caught,
            new_file(str(common / "x"), overwrite=False),
        ):
            pass
        assert caught.value.hint
        assert host_tree(common) == {}

    def test_files_are_written_beside_and_named_at_the_end(self, files: Path) -> None:
        with new_file(str(files / "x"), overwrite=False) as sink:
            sink.write(b"half")
            assert not (files / "x").exists()
        assert host_tree(files) == {"x": b"half"}
        mask = os.umask(0)
        os.umask(mask)
        assert (files / "x").stat().st_mode & 0o777 == 0o666 & ~mask
        with (
            pytest.raises(e.ObjectExistsError, match="meanwhile"),
            new_file(str(files / "y"), overwrite=False),
        ):
            (files / "y").write_bytes(b"other")
        assert host_tree(files) == {"x": b"half", "y": b"other"}


class TestWithin:
    def test_every_kind(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_directory("/a/b", parents=True)
            tx.write_bytes("/a/f", b"file")
            tx.write_bytes("/a/b/big", b"x" * 200_000)
            tx.write_bytes("/a/log", b"one ", series=True)
            tx.write_table("/a/t", [{"n": 1}])
            tx.append_series("/a/s", [{"when": _time(1), "n": 1}], time_column="when")
            tx.make_link("/a/link", "f")
            tx.commit()
        within(pond, "/a", "/c")
        kinds = {path: kind for path, kind in tree(pond).items() if path.startswith("/c")}
        assert kinds == {
            "/c": "directory", "/c/b": "directory", "/c/b/big": "data", "/c/f": "data",
            "/c/link": "symlink", "/c/log": "data:series", "/c/s": "series", "/c/t": "table",
        }  # fmt: skip
        assert pond["/c/link"].read_bytes() == b"file"
        assert pond["/c/b/big"].stat().blake3 == pond["/a/b/big"].stat().blake3
        assert pond["/c/s"].stat().time_column == "when"
        assert pond["/c/t"].to_arrow().to_pylist() == [{"n": 1}]
        with pond.write() as tx:
            tx.write_table("/a/t", [{"n": 2}])
            tx.commit()
        assert pond["/c/t"].to_arrow().to_pylist() == [{"n": 1}]

    def test_bytes_are_neither_read_nor_stored_again(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/big", b"x" * 200_000)
            tx.commit()
        blobs = Path(pond.location) / "blobs"
        away = blobs.rename(blobs.with_name("away"))
        within(pond, "/big", "/again")
        assert not blobs.exists()
        away.rename(blobs)
        assert pond["/again"].read_bytes() == b"x" * 200_000

    def test_versions_and_patterns(self, pond: Pond) -> None:
        for content in (b"one", b"two"):
            with pond.write() as tx:
                tx.write_bytes("/f", content)
                tx.commit()
        within(pond, "/f@v1", "/old")
        within(pond, "/f@v1", "/f")
        assert pond["/old"].read_bytes() == pond["/f"].read_bytes() == b"one"
        assert pond["/f"].stat().version == 3
        within(pond, "/*", "/all/", make_parents=True)
        assert set(pond.read().children("/all")) == {"f", "old"}

    def test_what_can_not_be(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_directory("/a")
            tx.write_bytes("/a/f", b"")
            tx.write_table("/t", [{"n": 1}])
            tx.commit()
        refused(pond, lambda: within(pond, "/a", "/a/b"))
        refused(pond, lambda: within(pond, "/a", "/a"))
        refused(pond, lambda: within(pond, "/", "/b"))
        refused(pond, lambda: within(pond, "/a/f", "/a/f"))
        refused(pond, lambda: within(pond, "/a/f", "/t"))
        refused(pond, lambda: within(pond, "/a/nope", "/b"))
        refused(pond, lambda: within(pond, "/a/*x", "/b"))


def _time(seconds: int) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


def _raised(act: Callable[[], object]) -> BaseException:
    with pytest.raises(e.MillpondError) as caught:
        act()
    return caught.value

"""Libraries that know nothing of ponds and use `pond://`: pandas, pyarrow, UPath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import fsspec
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs as arrow_fs
from upath import UPath

import millpond as mp
from millpond.surfaces.upath import PondPath

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    with made.write() as tx:
        tx.make_directory("/a")
        tx.write_bytes("/a/x.csv", b"k,v\n1,2\n3,4\n")
        tx.write_table("/a/table", [{"i": 1}, {"i": 2}])
        tx.commit()
    return made


class TestPandas:
    def test_reads_and_writes(self, pond: Pond) -> None:
        where: Any = {"storage_options": {"location": pond.location}}
        frame = pd.read_csv("pond:///a/x.csv", **where)
        assert frame["v"].tolist() == [2, 4]
        frame.to_csv("pond:///a/y.csv", index=False, **where)
        frame.to_parquet("pond:///a/y.parquet", **where)
        frame.to_json("pond:///a/y.json", orient="records", lines=True, **where)
        frame["v"] += 1
        frame.to_csv("pond:///a/y.csv", index=False, **where)
        assert pond.read()["/a/y.csv"].read_text() == "k,v\n1,3\n3,5\n"
        assert pond.read()["/a/y.csv@v1"].read_bytes() == pond["/a/x.csv"].read_bytes()
        assert pd.read_parquet("pond:///a/y.parquet", **where)["k"].tolist() == [1, 3]
        assert pd.read_json("pond:///a/y.json", lines=True, **where)["k"].tolist() == [1, 3]

    def test_reads_the_rows_of_a_table(self, pond: Pond) -> None:
        frame = pd.read_parquet("pond:///a/table", storage_options={"location": pond.location})
        assert frame["i"].tolist() == [1, 2]


class TestPyarrow:
    def test_through_the_handler(self, pond: Pond) -> None:
        inner = fsspec.filesystem("pond", location=pond.location)
        files = arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(inner))
        found = files.get_file_info(arrow_fs.FileSelector("/a"))
        assert [(info.path, info.size) for info in found] == [
            ("/a/table", None),
            ("/a/x.csv", 12),
        ]
        assert files.get_file_info("/nothing").type is arrow_fs.FileType.NotFound
        with files.open_output_stream("/a/new") as stream:
            stream.write(b"bytes")
        with files.open_input_file("/a/new") as file:
            assert file.read_at(3, 1) == b"yte"
        files.move("/a/new", "/a/newer")
        files.copy_file("/a/newer", "/a/copy")
        files.delete_file("/a/newer")
        files.create_dir("/b/c", recursive=True)
        files.delete_dir("/b")
        assert [entry.name for entry in pond.read()["/a"]] == ["copy", "table", "x.csv"]
        assert pq.read_table("/a/table", filesystem=files)["i"].to_pylist() == [1, 2]

    def test_a_dataset_that_many_threads_write(self, pond: Pond) -> None:
        inner = fsspec.filesystem("pond", location=pond.location)
        rows = pa.table({"part": [n % 7 for n in range(70)], "n": list(range(70))})
        pq.write_to_dataset(rows, "/set", filesystem=inner, partition_cols=["part"])
        assert len(inner.ls("/set")) == 7
        found = ds.dataset("/set", filesystem=inner, partitioning="hive").to_table()
        assert sorted(found["n"].to_pylist()) == list(range(70))


class TestPaths:
    @pytest.fixture
    def root(self, pond: Pond) -> UPath:
        return UPath("pond:///", location=pond.location)

    def test_are_ours(self, root: UPath) -> None:
        assert type(root) is PondPath
        assert str(root / "a" / "x.csv") == "pond:///a/x.csv"
        assert (root / "a" / "x.csv").path == "/a/x.csv"
        assert (root / "a" / "x.csv").parent == root / "a"
        assert root.parent == root

    def test_look(self, root: UPath) -> None:
        assert [path.path for path in root.iterdir()] == ["/a"]
        assert sorted(path.name for path in (root / "a").iterdir()) == ["table", "x.csv"]
        assert [path.path for path in root.glob("*/*.csv")] == ["/a/x.csv"]
        assert [path.path for path in root.rglob("*.csv")] == ["/a/x.csv"]
        file = root / "a" / "x.csv"
        assert file.exists()
        assert file.is_file()
        assert not file.is_dir()
        assert file.suffix == ".csv"
        assert file.stat().st_size == 12
        assert file.stat().st_mtime > 0
        assert not (root / "nothing").exists()
        with pytest.raises(FileNotFoundError):
            (root / "nothing").stat()

    def test_read_and_write(self, root: UPath, pond: Pond) -> None:
        folder = root / "new" / "deep"
        with pytest.raises(FileNotFoundError):
            folder.mkdir()
        folder.mkdir(parents=True)
        folder.mkdir(parents=True, exist_ok=True)
        with pytest.raises(FileExistsError):
            folder.mkdir()
        file = folder / "note.txt"
        file.write_text("first")
        file.write_text("second")
        with file.open("a") as stream:
            stream.write(", third")
        assert file.read_text() == "second, third"
        assert (folder / "note.txt@v1").read_bytes() == b"first"
        moved = file.rename(folder / "other.txt")
        assert moved.read_text() == "second, third"
        assert not file.exists()
        assert len(pond.read()["/new/deep/other.txt"].versions()) == 3
        moved.unlink()
        folder.rmdir()
        assert [path.name for path in (root / "new").iterdir()] == []

    def test_links(self, root: UPath, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_link("/l", "a/x.csv")
            tx.commit()
        assert (root / "l").is_symlink()
        assert (root / "l").read_bytes() == (root / "a" / "x.csv").read_bytes()

    def test_by_the_variable(self, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("POND", pond.location)
        assert UPath("pond:///a/x.csv").read_text().startswith("k,v")

"""A Delta table in the hand: what it tells of itself, and tables in stores that are no disk."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.kernel.handmade import (
    add,
    begin,
    checkpoint,
    commit,
    hint,
    metadata,
    numbers,
    paths,
    protocol,
    remove,
)

from millpond import col, delta_table
from millpond.base.errors import DataFileMissingError, TableNotFoundError, VersionNotFoundError
from millpond.base.store import open_store
from millpond.kernel import DeltaTable, names
from millpond.kernel.times import commit_times
from millpond.plan.types import LONG, STRING, Field, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.base.settings import Settings
    from millpond.base.store import Store
    from millpond.testing.s3 import S3Server

NUMBER = count()


def test_what_a_table_tells_of_itself(tmp_path: Path) -> None:
    notes = {"comment": "how many"}
    schema = Struct((Field("n", LONG).with_metadata(notes), Field("p", STRING)))
    shape = metadata(schema, ["p"], appendOnly="true")
    shape["metaData"] |= {"name": "mill", "description": "a pond"}
    commit(tmp_path, 0, protocol(), shape)
    table = delta_table(tmp_path)
    assert repr(table) == f"DeltaTable({str(tmp_path)!r}, version=0)"
    assert table.location == str(tmp_path)
    assert table.schema == Struct.of(n=LONG, p=STRING)
    assert table.snapshot.schema.field("n").metadata_dict() == notes
    assert table.partition_columns == ("p",)
    assert (table.metadata.name, table.metadata.description) == ("mill", "a pond")
    assert table.metadata.configuration == {"delta.appendOnly": "true"}
    assert table.protocol.min_writer_version == 2


def test_live_files_are_an_arrow_table_or_batches(tmp_path: Path) -> None:
    begin(tmp_path, add("a", tags={"k": "v"}), add("b"))
    files = delta_table(tmp_path).files()
    assert len(files) == files.num_rows == 2
    assert files.column_names[0] == "path"
    assert files["path"].to_pylist() == ["a", "b"]
    assert pa.table(files).equals(files.to_arrow())
    assert sum(batch.num_rows for batch in files.batches()) == 2
    with pytest.raises(AttributeError):
        _ = files.no_such_thing
    with pytest.raises(AttributeError):
        _ = files._no_such_thing
    few = delta_table(tmp_path).files(columns=["path", "size"])
    assert few.column_names == ["path", "size"]


def test_an_older_version_stays_as_it_is(tmp_path: Path) -> None:
    begin(tmp_path, numbers(tmp_path, "a.parquet", 1))
    old = delta_table(tmp_path)
    commit(tmp_path, 1, remove("a.parquet"), numbers(tmp_path, "b.parquet", 2))
    assert old.scan().to_arrow()["n"].to_pylist() == [1]
    assert old.update().scan().to_arrow()["n"].to_pylist() == [2]
    assert delta_table(tmp_path, 0).scan().to_arrow()["n"].to_pylist() == [1]


# ---- stores


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest) -> tuple[str, Settings | None]:
    """The URL of a table to be, and the settings to reach it."""
    if request.param == "memory":
        return f"memory://kernel-{next(NUMBER)}/some/table", None
    server: S3Server = request.getfixturevalue("s3_server")
    url = server.create_bucket(f"kernel-{next(NUMBER)}")
    return f"{url}/some/table", server.settings()


def upload(table: Path, url: str, settings: Settings | None) -> Store:
    """A local table's files to a store, under the same names."""
    scheme, _, rest = url.partition("://")
    host, _, prefix = rest.partition("/")
    store = open_store(f"{scheme}://{host}", settings=settings)
    for file in sorted(table.rglob("*")):
        if file.is_file():
            name = f"{prefix}/{file.relative_to(table)}"
            store.put(name, file.read_bytes(), mode="overwrite")
    return store


def write(table: Path) -> None:
    """Versions 0 to 3 with odd names, a V2 checkpoint with a sidecar at 2, and a hint."""
    files = [numbers(table, f"a %#? {n}.parquet", n, n + 100) for n in range(4)]
    begin(table, files[0])
    commit(table, 1, files[1])
    commit(table, 2, remove(files[0]["add"]["path"]), files[2])
    commit(table, 3, files[3])
    side = checkpoint(table, 2, files[1], files[2], name=f"{names.SIDECARS}/one side.parquet")
    sidecar = {"sidecar": {"path": "one%20side.parquet", "sizeInBytes": side.stat().st_size}}
    unique = names.unique_checkpoint_name(2, "80a083e8-7026-4e79-81be-64bd76c43a10")
    checkpoint(table, 2, protocol(), metadata(), sidecar, name=unique)
    hint(table, {"version": 2})


def test_a_table_in_a_store(tmp_path: Path, place: tuple[str, Settings | None]) -> None:
    url, settings = place
    write(tmp_path)
    store = upload(tmp_path, url, settings)

    def opened(**how: Any) -> DeltaTable:
        return delta_table(url, settings=settings, **how)

    table = opened()
    assert (table.version, table.location) == (3, url)
    assert table.snapshot.segment.checkpoint is not None
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 2, 3, 101, 102, 103]
    some = table.scan(predicate=col("n") > 102).to_arrow()
    assert some["n"].to_pylist() == [103]
    assert [sorted(opened(version=v).scan().to_arrow()["n"].to_pylist()) for v in (0, 1)] == [
        *([0, 100], [0, 1, 100, 101]),
    ]
    times = commit_times(opened(version=1).snapshot.segment.commits, {})
    assert [opened(timestamp=moment).version for moment in times.values()] == [0, 1]
    with pytest.raises(VersionNotFoundError):
        opened(timestamp=0)
    assert [row["version"] for row in table.history()] == [3, 2, 1, 0]
    commit(tmp_path, 4, add("gone.parquet"))
    content = (tmp_path / "_delta_log" / names.commit_name(4)).read_bytes()
    store.put(f"some/table/_delta_log/{names.commit_name(4)}", content)
    newer = table.update()
    assert newer.version == 4
    assert "gone.parquet" in paths(newer.files()["path"].to_pylist())
    with pytest.raises(DataFileMissingError, match=r"gone\.parquet"):
        newer.scan().to_arrow()


def test_no_table_in_a_store(place: tuple[str, Settings | None]) -> None:
    url, settings = place
    with pytest.raises(TableNotFoundError, match="contains _delta_log"):
        delta_table(url, settings=settings)

"""Whether a pond is whole: every table for every reader, and nothing needed among the rubbish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable as TheirTable
from deltalake import QueryBuilder
from tests.steward.deeds import measured, seen

import millpond as mp
from millpond.base.store import open_store
from millpond.kernel.table import delta_table

if TYPE_CHECKING:
    from millpond.fs.entry import Row
    from millpond.steward.pond import Pond


def check_whole(location: str, expected: dict[str, Any]) -> None:
    """What is expected is seen, also by others; then the pond is used, and swept."""
    pond = mp.open(location)
    assert seen(pond.read()) == expected
    check_tables(pond)
    go_on(pond)
    after = seen(pond.read())
    sweep(location)
    assert seen(mp.open(location).read()) == after
    check_tables(mp.open(location))


def table_rows(pond: Pond) -> list[Row]:
    """The newest row of each node that has a table, wherever it is."""
    scope = pond.read()
    todo, found = ["/"], []
    while todo:
        for stat in scope.children(todo.pop()).values():
            if stat.is_directory:
                todo.append(stat.path)
            elif stat.entry_type.is_table:
                found.append(scope.row(stat.path))
    return found


def check_tables(pond: Pond) -> None:
    """Other readers of Delta see each table at the version that the pond names, with its rows."""
    for row in table_rows(pond):
        place = f"{pond.location}/tables/{row.node_id}"
        theirs = TheirTable(place)
        assert theirs.version() == row.delta_version
        query = QueryBuilder().register("t", theirs).execute("select * from t")
        mine = delta_table(place, row.delta_version).scan().to_arrow()
        rows = pa.table(query.read_all()).select(mine.column_names).cast(mine.schema)
        assert _sorted(rows.to_pylist()) == _sorted(mine.to_pylist())


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: sorted(map(str, row.items())))


def go_on(pond: Pond) -> None:
    """The next transaction works, on the nodes that a crashed one was about, too."""
    before = pond.read()
    rows = before.to_arrow("/s").num_rows
    with pond.write("go on") as tx:
        tx.write_table("/t", [{"id": 9, "name": "nine"}])
        tx.append_series("/s", measured(100))
        tx.write_bytes("/a/file", b"next")
        tx.write_bytes("/log", b"next\n", series=True)
        assert tx.commit().txn_seq == before.txn_seq + 1
    scope = pond.read()
    assert scope.read_bytes("/a/file") == b"next"
    assert scope.read_bytes("/log") == before.read_bytes("/log") + b"next\n"
    assert scope.to_arrow("/t").column("id").to_pylist() == [9]
    assert scope.to_arrow("/s").num_rows == rows + 1


def rubbish(location: str) -> list[str]:
    """What is in a pond's place and named by nothing; the control table and caches are left out."""
    pond = mp.open(location)
    named = _of_log(f"{location}/data", "data")
    parts = pond.oplog.log.open().files
    tree = pond.read().tree
    rows = [row for part in parts for node in tree.partition(part).by_node.values() for row in node]
    for node_id in {row.node_id for row in rows if row.entry_type.is_table}:
        named |= _of_log(f"{location}/tables/{node_id}", f"tables/{node_id}")
    named |= {
        f"blobs/{row.blake3[:2]}/{row.blake3}"
        for row in rows
        if row.entry_type.is_bytes and row.blake3
    }
    found = [meta.path for meta in open_store(location).list()]
    kept = ("data/", "tables/", "blobs/")
    return [path for path in found if path.startswith(kept) and path not in named]


def _of_log(place: str, prefix: str) -> set[str]:
    """The files of a Delta table: its log, and all data files of all its versions."""
    log = [path for path in (Path(place) / "_delta_log").iterdir() if path.is_file()]
    found = {f"{prefix}/_delta_log/{path.name}" for path in log}
    commits = [path for path in log if path.suffix == ".json"]
    assert len(commits) == delta_table(place).version + 1, "a test's log is never cleaned"
    for commit in commits:
        actions = map(json.loads, commit.read_text().splitlines())
        found |= {f"{prefix}/{action['add']['path']}" for action in actions if "add" in action}
    return found


def sweep(location: str) -> list[str]:
    """Delete the rubbish, and say what it was."""
    found = rubbish(location)
    store = open_store(location)
    for path in found:
        store.delete(path)
    return found

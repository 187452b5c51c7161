"""What the tests of writing share: rows as both readers see them, and what is in a directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable as RustTable
from deltalake import QueryBuilder

from millpond.kernel.write import create_table
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.kernel.table import DeltaTable

PLAIN = Struct.of(id=LONG, site=STRING)
MARKS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


def new_table(
    path: Path,
    schema: Struct = PLAIN,
    configuration: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> DeltaTable:
    """An empty table."""
    return create_table(path, schema, configuration=configuration, partition_by=partition_by)


def append(table: DeltaTable, rows: Any, **how: Any) -> DeltaTable:
    """The table with more rows."""
    with table.transaction(**how) as tx:
        tx.append(rows)
    return table.update()


def ids(count: int, start: int = 0, site: str | None = None) -> list[dict[str, Any]]:
    """Rows with running ids."""
    return [{"id": start + i, "site": site} for i in range(count)]


def ours(table: DeltaTable, **how: Any) -> list[dict[str, Any]]:
    """All rows as this kernel reads them."""
    rows: list[dict[str, Any]] = table.scan(**how).to_arrow().to_pylist(maps_as_pydicts="strict")
    return rows


def theirs(path: Path | str, **storage: Any) -> list[dict[str, Any]]:
    """All rows as `deltalake` reads them."""
    table = RustTable(str(path), **storage)
    found = QueryBuilder().register("t", table).execute("select * from t").read_all()
    rows: list[dict[str, Any]] = pa.table(found).to_pylist(maps_as_pydicts="strict")
    return rows


def id_list(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The ids, sorted; rows that are there twice show."""
    return sorted(row["id"] for row in rows)


def actions(path: Path, version: int) -> dict[str, list[dict[str, Any]]]:
    """What a commit holds, by kind of action."""
    found: dict[str, list[dict[str, Any]]] = {}
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    for line in text.splitlines():
        for kind, body in json.loads(line).items():
            found.setdefault(kind, []).append(body)
    return found


def data_files(path: Path) -> set[str]:
    """Every file below a table that is not of its log."""
    files = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    return {name for name in files if not name.startswith("_delta_log/")}


def known_files(table: DeltaTable) -> set[str]:
    """Every file that some commit of the log names."""
    path = Path(table.location)
    found = set()
    for version in range(table.version + 1):
        named = actions(path, version)
        for action in (*named.get("add", ()), *named.get("remove", ()), *named.get("cdc", ())):
            found.add(unquote(action["path"]))
            vector = action.get("deletionVector")
            if vector is not None:
                from millpond.kernel.dv import DeletionVector

                place = DeletionVector.from_dict(vector, table=str(path)).location(str(path))
                found.add((place or "").removeprefix(f"{path}/"))
    return found

"""Small files become large ones: those of tables behind nodes, and those of the OpLog.

Content stays what it is. A node's table is rearranged by a transaction like any other, so that
writers and readers need not know of it; the OpLog by a commit that says again what the last
transaction said, and behind which every writer goes on.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import WriteConflictError
from millpond.fs.entry import to_micros
from millpond.fs.oplog.log import NewFile
from millpond.fs.oplog.rows import PARTITION, write_parquet
from millpond.fs.paths import child
from millpond.kernel.age import by_age

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.steward.pond import Pond
    from millpond.steward.scope import Scope

KIND: Final = "maintenance"
"""The kind of such transactions: nothing runs after them."""
SMALL_BYTES: Final = 32 << 20
"""Data files below this size are written together, and so are files with deleted rows."""
ENOUGH_FILES: Final = 8
"""So many have to stand side by side, or it is not worth the while."""
SMALL_ROWS: Final = 1 << 20
"""The same for files of the OpLog; what is inline in rows is at most so much larger."""
ENOUGH_ROW_FILES: Final = 4
HELD_BYTES: Final = 64 << 20
"""Files of the OpLog are exchanged by commits of about this size."""
MOST_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was written anew."""

    path: str
    """Of the node; or `oplog`."""
    before: int
    """Files."""
    after: int
    size: int
    """Bytes of those before."""


# Tables


def table_nodes(scope: Scope) -> Iterator[tuple[str, Row]]:
    """All live nodes whose table was written more than once: others need no upkeep."""
    todo = [("/", scope.locate("/").node_id)]
    while todo:
        place, part = todo.pop()
        for name, row in scope.tree.children(part).items():
            path = child(place, name)
            if row.entry_type.is_table:
                if (row.delta_version or 0) > 1:
                    yield path, row
            elif row.entry_type.is_directory and not row.entry_type.is_dynamic:
                todo.append((path, row.node_id))


def small_runs(table: DeltaTable) -> list[list[dict[str, Any]]]:
    """Small files that stand side by side when files are sorted by age: rows keep their order."""
    columns = ("path", "size", "modificationTime", "tags", "deletionVector")
    files = table.files(columns=columns).to_arrow().to_pylist()
    runs: list[list[dict[str, Any]]] = [[]]
    for file in sorted(files, key=by_age):
        if (file["size"] or 0) < SMALL_BYTES or file["deletionVector"] is not None:
            runs[-1].append(file)
        else:
            runs.append([])
    return [run for run in runs if _is_worth(run)]


def _is_worth(run: list[dict[str, Any]]) -> bool:
    return len(run) >= ENOUGH_FILES or any(file["deletionVector"] is not None for file in run)


def compact_table(pond: Pond, path: str) -> Compacted | None:
    """Rearrange the table of a node; None if that is not worth the while, or it is too busy."""
    for _ in range(MOST_ATTEMPTS):
        if not small_runs(pond.read(fresh=False).delta(path)):
            return None
        try:
            return _rearranged(pond, path)
        except WriteConflictError:
            pond.refresh()
    return None


def _rearranged(pond: Pond, path: str) -> Compacted | None:
    with pond.begin({"message": f"compact {path}"}, kind=KIND) as tx:
        runs = small_runs(tx.delta(path))
        after = tx.rearrange(path, [[file["path"] for file in run] for run in runs])
        tx.commit()
    files = [file for run in runs for file in run]
    return Compacted(path, len(files), after, sum(file["size"] or 0 for file in files))


# The OpLog


def compact_oplog(pond: Pond) -> Compacted | None:
    """Write the small files of each directory as few; None if there are not enough."""
    groups = _small_groups(pond)
    before, after, size = 0, 0, 0
    held: list[tuple[str, list[tuple[str, int]]]] = []
    for number, group in enumerate(groups):
        held.append(group)
        weight = sum(s for _, files in held for _, s in files)
        if weight >= HELD_BYTES or number == len(groups) - 1:
            if _exchanged(pond, held):
                before += sum(len(files) for _, files in held)
                after, size = after + len(held), size + weight
            held = []
    return Compacted("oplog", before, after, size) if before else None


def _small_groups(pond: Pond) -> list[tuple[str, list[tuple[str, int]]]]:
    """Small files that can become one, by directory."""
    found: dict[str, list[tuple[str, int]]] = {}
    columns = ("path", "partitionValues", "size")
    for file in pond.oplog.log.table().files(columns=columns).to_arrow().to_pylist():
        if (file["size"] or 0) < SMALL_ROWS:
            part = dict(file["partitionValues"])[PARTITION]
            found.setdefault(part, []).append((file["path"], file["size"] or 0))
    groups = [(part, group) for part, files in found.items() for group in _cut(files)]
    return [group for group in groups if len(group[1]) >= ENOUGH_ROW_FILES]


def _cut(files: list[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    group: list[tuple[str, int]] = []
    for file in files:
        if group and sum(size for _, size in group) + file[1] > 8 * SMALL_ROWS:
            yield group
            group = []
        group.append(file)
    yield group


def _exchanged(pond: Pond, groups: list[tuple[str, list[tuple[str, int]]]]) -> bool:
    """Commit one file for each group; not if another one has compacted meanwhile."""
    log = pond.oplog.log
    new = [_merged(pond, part, [path for path, _ in files]) for part, files in groups]
    now = to_micros(pond.clock.now())
    gone = [(part, path, size) for part, files in groups for path, size in files]
    removed = [_remove(part, path, size, now) for part, path, size in gone]
    txn_id = str(uuid.uuid4())
    state = log.open()
    for _ in range(MOST_ATTEMPTS):
        if any(path not in state.files.get(part, ()) for part, path, _ in gone):
            return False
        made = log.commit(
            state,
            new,
            {"timestamp": now},
            txn_id=txn_id,
            removed=removed,
            data_change=False,
            operation="OPTIMIZE",
        )
        if made is not None:
            return True
        state = log.refresh(state)
    return False


def _merged(pond: Pond, part: str, paths: list[str]) -> NewFile:
    rows: list[Row] = []
    for path in paths:
        file = pond.oplog.open_file(path)
        both = zip(file.rows(part), file.contents(), strict=True)
        rows += [replace(row, content=content) for row, content in both]
    rows.sort(key=lambda row: row.txn_seq)
    return NewFile({PARTITION: part}, write_parquet(rows), len(rows))


def _remove(part: str, path: str, size: int, micros: int) -> Mapping[str, Any]:
    return {
        "path": path,
        "deletionTimestamp": micros // 1000,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": {PARTITION: part},
        "size": size,
    }

"""Log compaction: many commits as one file that says what is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import ObjectExistsError, PlanError
from millpond.base.store import open_store
from millpond.kernel.actions import (
    ADD,
    DOMAIN,
    METADATA,
    PROTOCOL,
    REMOVE,
    TXN,
    log_columns,
)
from millpond.kernel.names import compaction_name
from millpond.kernel.phase import scan_log, together
from millpond.kernel.replay import AddRemoveDedup
from millpond.kernel.scan import keyed
from millpond.kernel.write.commit import encode_commit, log_path
from millpond.kernel.write.features import check_upkeep
from millpond.kernel.write.info import engine_info
from millpond.kernel.write.listed import listed
from millpond.kernel.write.state import plain
from millpond.plan.arguments import whole_of
from millpond.plan.expr import col

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millpond.kernel.segment import LogFile
    from millpond.kernel.table import DeltaTable
    from millpond.plan.executor import Executor

_OTHERS = log_columns(protocol=PROTOCOL, metaData=METADATA, txn=TXN, domainMetadata=DOMAIN)
_FILES = log_columns(add=ADD, remove=REMOVE)


def compact_log(table: DeltaTable, start: int, end: int) -> str:
    """Write the commits from `start` to `end` as one file; its path, relative to the table.

    Readers that know it need none of those commits; a file that is there already says the same.
    """
    first, last = whole_of(start, "compact_log()"), whole_of(end, "compact_log()")
    if not 0 <= first < last <= table.version:
        raise PlanError(
            f"versions {start} to {end} can't be compacted",
            hint=f"two or more versions up to {table.version}, oldest first",
        )
    check_upkeep(table.snapshot)
    store = open_store(table.location, settings=table.settings)
    known = {f.name.version: f for f in listed(store, table.location) if f.name.kind == "commit"}
    missing = [v for v in range(start, end + 1) if v not in known]
    if missing:
        raise PlanError(
            f"the log of {table.location} has no commit {missing[0]}",
            hint="it was removed, or is not published yet; compact what is there",
        )
    newest = [known[v] for v in range(end, start - 1, -1)]
    engine = table.log_engine("auto")
    path = log_path(compaction_name(start, end))
    actions = [*_others(newest, engine), *_files(newest, table.location, engine)]
    # It says nothing of the commits; its seal is there for readers of ours.
    info = ("commitInfo", {"operation": "COMPACT LOG", "engineInfo": engine_info()})
    try:
        store.put(path, encode_commit([info, *actions], first))
    except ObjectExistsError:
        return path
    return path


def _others(
    commits: Sequence[LogFile], engine: str | Executor
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The newest protocol and metadata, and the newest of each application and domain."""
    has = [col(name).is_not_null() for name in _OTHERS.names]
    rows = together(scan_log(commits, _OTHERS)).filter(has[0] | has[1] | has[2] | has[3])
    seen: set[tuple[str, Any]] = set()
    for row in rows.to_arrow(engine=engine).to_pylist(maps_as_pydicts="lossy"):
        for field in _OTHERS:
            action = row[field.name]
            if action is None:
                continue
            key = (field.name, action.get("appId") or action.get("domain"))
            if key not in seen:
                seen.add(key)
                yield field.name, plain(action, field.type)  # type: ignore[arg-type]


def _files(
    commits: Sequence[LogFile], table: str, engine: str | Executor
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The action that counts for each file."""
    dedup = AddRemoveDedup(table, keep_removes=True)
    rows = keyed(together(scan_log(commits, _FILES))).filter_ordered(dedup)
    for row in (
        rows.select("add", "remove").to_arrow(engine=engine).to_pylist(maps_as_pydicts="lossy")
    ):
        kind, type_ = ("add", ADD) if row["add"] is not None else ("remove", REMOVE)
        yield kind, plain(row[kind], type_)

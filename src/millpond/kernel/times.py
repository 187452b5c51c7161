"""Time travel: the version of a moment, by commit times that only ever grow.

A commit's time is its file's, made later than the one before; where a table has in-commit
timestamps, it is the one that the commit itself states.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from millpond.base.errors import CorruptLogError, VersionNotFoundError
from millpond.kernel.actions import log_columns
from millpond.kernel.features import IN_COMMIT_TIMESTAMPS
from millpond.kernel.machine import Consume, StateMachinePhase
from millpond.kernel.phase import BasePhase, scan_log, together
from millpond.plan.expr import path
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from millpond.kernel.open import Wanted
    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.node import Plan

ENABLED: Final = IN_COMMIT_TIMESTAMPS
ENABLED_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
ENABLED_TIME: Final = "delta.inCommitTimestampEnablementTimestamp"
_STATED: Final = log_columns(commitInfo=Struct.of(inCommitTimestamp=LONG))
_VERSION: Final = re.compile(r"[0-9]{1,19}")


def to_millis(moment: dt.datetime | str | int, table: str) -> int:
    """Milliseconds since the epoch; a time without a zone is in UTC."""
    found = moment
    if isinstance(found, str):
        try:
            found = dt.datetime.fromisoformat(found)
        except ValueError as error:
            raise VersionNotFoundError(
                f"{moment!r} is no timestamp", table=table, hint="such as 2024-05-31T12:00:00Z"
            ) from error
    if isinstance(found, dt.datetime):
        zoned = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
        return int((zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1))
    if isinstance(found, bool) or not isinstance(found, int):
        raise VersionNotFoundError(
            f"{moment!r} is no timestamp", table=table, hint="a datetime, ISO text or milliseconds"
        )
    return found


def has_stated_times(snapshot: Snapshot) -> bool:
    """Whether commits state their own times."""
    return snapshot.metadata.configuration.get(ENABLED, "").lower() == "true"


def first_stated(snapshot: Snapshot) -> int:
    """The first version whose commit states its own time."""
    text = snapshot.metadata.configuration.get(ENABLED_VERSION, "0")
    return int(text) if _VERSION.fullmatch(text) else 0


def commit_times(commits: Iterable[LogFile], stated: Mapping[int, int]) -> dict[int, int]:
    """Each version's time in milliseconds, oldest first, each later than the one before."""
    found: dict[int, int] = {}
    last: int | None = None
    for file in commits:
        time = stated.get(file.name.version)
        if time is None:
            time = file.modified if last is None else max(file.modified, last + 1)
        found[file.name.version] = last = time
    return found


@dataclass(frozen=True, slots=True)
class CommitTimes(BasePhase):
    """The times that commits state themselves; then the version of a moment is opened."""

    wanted: Wanted
    commits: tuple[LogFile, ...]
    snapshot: Snapshot

    def plan(self) -> Plan:
        """The stated times, where the table has them; otherwise no row."""
        from millpond.plan.sources import Scan

        files: list[LogFile] = []
        if has_stated_times(self.snapshot):
            first = first_stated(self.snapshot)
            files = [file for file in self.commits if file.name.version >= first]
        if not files:
            return Scan("json", (), _STATED)
        stated = path("commitInfo.inCommitTimestamp").is_not_null()
        return together(scan_log(files, _STATED)).filter(stated)

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """Open the latest version that is not younger than the moment."""
        from millpond.kernel.open import ListLog

        assert self.wanted.millis is not None
        stated: dict[int, int] = {}
        if rows.num_rows:
            versions = rows.column("version").to_pylist()
            infos = rows.column("commitInfo").to_pylist()
            stated = {v: i["inCommitTimestamp"] for v, i in zip(versions, infos, strict=True)}
        times = self._of_the_time(commit_times(self.commits, stated), stated)
        version = version_at(times, self.wanted.millis, self.table)
        wanted = replace(self.wanted, version=version, millis=None)
        return Consume(ListLog(self.table, wanted, 0))

    def _of_the_time(self, times: dict[int, int], stated: Mapping[int, int]) -> dict[int, int]:
        """The commits to search: stated times and those of files are not from one clock."""
        if not times:
            raise VersionNotFoundError(
                f"the log of {self.table} holds a checkpoint and no commits, so no time is known",
                table=self.table,
                hint="open it by version, or the latest",
            )
        if not has_stated_times(self.snapshot):
            return times
        first = first_stated(self.snapshot)
        late = {version: time for version, time in times.items() if version >= first}
        silent = sorted(set(late) - set(stated))
        if silent:
            raise CorruptLogError(
                f"commit {silent[0]} of {self.table} does not state its time, and should",
                table=self.table,
                hint="open it by version",
            )
        early = {version: time for version, time in times.items() if version < first}
        is_late = (
            late and self.wanted.millis is not None and self.wanted.millis >= min(late.values())
        )
        return late if is_late or not early else early


def version_at(times: Mapping[int, int], millis: int, table: str) -> int:
    """The latest version at or before a moment."""
    versions, moments = list(times), list(times.values())
    position = bisect_right(moments, millis)
    if not position:
        raise VersionNotFoundError(
            f"{table} has no version as old as {_shown(millis)}",
            table=table,
            hint=f"the oldest is version {versions[0]} of {_shown(moments[0])}",
        )
    return versions[position - 1]


def _shown(millis: int) -> str:
    try:
        return dt.datetime.fromtimestamp(millis / 1000, dt.UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{millis} ms"

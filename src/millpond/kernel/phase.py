"""What phases have in common, and the plans that several of them hand out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CheckpointError,
    CorruptLogError,
    MillpondError,
    SourceError,
    StaleChecksumError,
)
from millpond.kernel.names import (
    LOG_DIRECTORY,
    SIDECARS,
    file_name,
    parse_name,
    parse_staged_name,
)
from millpond.plan.sources import DynamicScan, File, ListFiles, Scan
from millpond.plan.types import BINARY, LONG, STRING, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    import pyarrow as pa

    from millpond.kernel.machine import StateMachinePhase
    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.sources import Format, OnError

VERSION: Final = Field("version", LONG)
_SIZE: Final = attrgetter("size")
CONTENT: Final = Struct((Field("content", BINARY),))


@dataclass(frozen=True, slots=True)
class BasePhase:
    """A phase of a table's machine, which by default runs in order and reads files of the log."""

    table: str

    @property
    def name(self) -> str:
        """The class's name."""
        return type(self).__name__

    @property
    def is_parallelizable(self) -> bool:
        """Rows come in order."""
        return False

    def failed(self, error: MillpondError) -> MillpondError:
        """A file of the log that can't be read is named; of all else the machine says where."""
        return log_error(self.table, error)

    def instead(self, error: MillpondError) -> StateMachinePhase[Any] | None:  # noqa: ARG002
        """Nothing: a failure is told."""
        return None

    @property
    def remembered(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def check(self, batch: pa.RecordBatch) -> None:
        """Any rows may be."""

    def resume(
        self,
        error: MillpondError,  # noqa: ARG002
        handed: Sequence[pa.RecordBatch],  # noqa: ARG002
    ) -> StateMachinePhase[Any] | None:
        """Nothing: a failure is told."""
        return None

    @property
    def log(self) -> str:
        """Where the log is."""
        return f"{self.table}/{LOG_DIRECTORY}"


def list_log(log: str, start_from: str | None) -> Plan:
    """A listing of the log."""
    return ListFiles(log, start_from)


def read_if_there(log: str, name: str) -> Plan:
    """One file's bytes, or no row at all where it does not exist."""
    from millpond.plan.expr import col

    found = ListFiles(log, name).filter(col("path").ends_with(f"/{name}"))
    return DynamicScan(found, "bytes", CONTENT)


def read_bytes(path: str) -> Plan:
    """One file's bytes."""
    return Scan("bytes", (File(path),), CONTENT)


def scan_log(
    files: Iterable[LogFile], columns: Struct, versions: bool = True, strictly: bool = True
) -> list[Plan]:
    """Scans of log files in the given order; neighbours of one format share a scan.

    The column `version` says which commit a row is of; it is -1 in a compaction of many.
    """
    wanted = Struct((*columns.fields, VERSION)) if versions else columns
    constants = (VERSION.name,) if versions else ()
    scans: list[Plan] = []
    for is_json, group in groupby(files, attrgetter("is_json")):
        of_format = tuple(group)
        check_sizes(of_format)
        named = tuple(
            File(f.path, f.size, None, (_version(f),) if versions else ()) for f in of_format
        )
        # What does not fit in a log is no null: it could be the path of a removed file.
        format_: Format = "json" if is_json else "parquet"
        on_error: OnError = "error" if strictly or not is_json else "null"
        scans.append(Scan(format_, named, wanted, constants, strict=strictly, on_error=on_error))
    return scans


def check_sizes(files: Sequence[LogFile]) -> None:
    """Refuse a commit of no bytes: what it was about is lost, so it does not count as nothing."""
    if all(map(_SIZE, files)):  # of thousands, this is fast
        return
    for file in files:
        version = file.name.version
        if not file.size and file.name.kind == "commit":
            table = file.path.rpartition(f"/{LOG_DIRECTORY}/")[0]
            raise CorruptLogError(
                f"the commit {file_name(file.path)} of {table} is empty",
                table=table,
                path=file.path,
                hint=f"version={version - 1} may still be readable"
                if version
                else "the log is damaged: restore it from a backup",
            )


def _version(file: LogFile) -> int:
    return -1 if file.name.kind == "compaction" else file.name.version


def together(scans: list[Plan]) -> Plan:
    """The rows of several scans, one after the other."""
    return scans[0] if len(scans) == 1 else scans[0].union(*scans[1:])


def vector_id(vector: str) -> Expr:
    """The unique id of a deletion vector, null where there is none."""
    from millpond.plan.expr import if_else, lit, path

    offset = path(f"{vector}.offset")
    at = if_else(offset.is_null(), "", lit("@").concat(offset.cast(STRING)))
    return path(f"{vector}.storageType").concat(path(f"{vector}.pathOrInlineDv").coalesce(""), at)


def listed_commits(snapshot: Snapshot, rows: pa.Table) -> dict[int, LogFile]:
    """The commits of a listing, up to a snapshot's version, oldest first."""
    from millpond.kernel.segment import LogSegmentBuilder

    builder = LogSegmentBuilder(snapshot.table, max_version=snapshot.version)
    builder.add(rows)
    # A catalog may have given some of them: those are in no listing.
    for file in snapshot.segment.commits:
        builder.commits[file.name.version] = file
    return dict(sorted(builder.commits.items()))


def lacking(found: Container[int], first: int, last: int) -> tuple[int, int] | None:
    """The first and the last of these versions that were not found; None if all were."""
    least = next((v for v in range(first, last + 1) if v not in found), None)
    most = next((v for v in range(last, first - 1, -1) if v not in found), None)
    return None if least is None or most is None else (least, most)


_ANEW: Final = "the log may have been cleaned up since the table was opened: open it anew"


def log_error(table: str, error: MillpondError) -> MillpondError:
    """An unreadable file of a log by what it is, and what still works without it."""
    if not isinstance(error, SourceError) or f"/{LOG_DIRECTORY}/" not in error.path:
        return error
    if isinstance(error, StaleChecksumError):
        return CorruptLogError(error.message, table=table, path=error.path, hint=error.hint)
    name = file_name(error.path)
    parsed = parse_name(name) or parse_staged_name(name)
    is_sidecar = f"/{SIDECARS}/" in error.path
    if is_sidecar or (parsed is not None and parsed.kind == "checkpoint"):
        kind = "sidecar of a checkpoint," if is_sidecar else "checkpoint"
        to_remove = "the checkpoint that names it" if is_sidecar else "this file"
        return CheckpointError(
            f"the {kind} {name}{',' * is_sidecar} of {table} can't be read: {error.message}",
            table=table,
            path=error.path,
            hint=_ANEW
            if error.missing
            else f"if the log still holds every commit, remove {to_remove}, and the table "
            "is read without it; otherwise version=… before it may still be readable",
        )
    if parsed is None or parsed.kind == "checksum":
        return error
    before = parsed.version - 1
    hint = f"version={before} may still be readable" if before >= 0 else "restore it from a backup"
    return CorruptLogError(
        f"the {parsed.kind} {name} of {table} can't be read: {error.message}",
        table=table,
        path=error.path,
        hint=_ANEW if error.missing else hint,
    )

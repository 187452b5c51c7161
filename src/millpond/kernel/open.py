"""The snapshot machine: hint, listing, checksum, protocol and metadata, then a `Snapshot`.

    ReadHint -> ListLog -> (ReadChecksum) -> ProtocolMetadata -> Snapshot

By timestamp, the latest snapshot is found first, then the times of its commits (`CommitTimes`),
then the version that they name. `UpdateLog` lists only what is new since a known snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CorruptLogError,
    MissingActionError,
    VersionNotFoundError,
)
from millpond.base.textseals import parse_sealed
from millpond.kernel.actions import METADATA, PROTOCOL, Metadata, Protocol, log_columns
from millpond.kernel.features import is_catalog_managed
from millpond.kernel.machine import Consume, StateMachine, StateMachinePhase, Terminus
from millpond.kernel.names import LAST_CHECKPOINT, version_prefix
from millpond.kernel.paths import table_location
from millpond.kernel.phase import (
    BasePhase,
    list_log,
    read_bytes,
    read_if_there,
    scan_log,
    together,
)
from millpond.kernel.replay import FirstOfEach
from millpond.kernel.segment import LogFile, LogSegment, LogSegmentBuilder
from millpond.kernel.snapshot import Snapshot
from millpond.plan.expr import col, path

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

_PM: Final = log_columns(protocol=PROTOCOL, metaData=METADATA)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which snapshot: a version, a time (milliseconds), or the latest; and a catalog's tail."""

    version: int | None = None
    millis: int | None = None
    log_tail: tuple[LogFile, ...] | None = None
    """An empty one is a catalog's answer, too: all commits are published. None is no answer."""
    listed: tuple[LogFile, ...] = ()
    """What a listing would give, where that is known."""

    def builder(self, table: str) -> LogSegmentBuilder:
        """An empty builder for this request."""
        return LogSegmentBuilder(table, max_version=self.version, log_tail=self.log_tail or ())


@dataclass(frozen=True, slots=True)
class SnapshotBuilder:
    """How a snapshot is asked for: `SnapshotBuilder(location).at_version(3).machine("arrow")`."""

    location: str | os.PathLike[str]
    wanted: Wanted = field(default_factory=Wanted)

    def at_version(self, version: int) -> SnapshotBuilder:
        """Exactly this version."""
        if type(version) is not int or version < 0:
            raise VersionNotFoundError(
                f"{version!r} is no version", table=str(self.location), hint="versions count from 0"
            )
        return replace(self, wanted=replace(self.wanted, version=version, millis=None))

    def at_timestamp(self, moment: dt.datetime | str | int) -> SnapshotBuilder:
        """The latest version at or before a moment: a datetime, ISO text, or milliseconds."""
        from millpond.kernel.times import to_millis

        millis = to_millis(moment, str(self.location))
        return replace(self, wanted=replace(self.wanted, version=None, millis=millis))

    def with_log_tail(self, commits: Sequence[LogFile]) -> SnapshotBuilder:
        """Take the ratified commits that a catalog gives; they count from the first of them on.

        A catalog whose commits are all published gives none of them: an empty list.
        """
        tail = checked_tail(commits, str(self.location))
        return replace(self, wanted=replace(self.wanted, log_tail=tail))

    def with_listing(self, files: Sequence[LogFile]) -> SnapshotBuilder:
        """Who knows the newest files of the log, from a checkpoint on, saves its listing."""
        return replace(self, wanted=replace(self.wanted, listed=tuple(files)))

    def start(self) -> StateMachinePhase[Snapshot]:
        """The first phase."""
        if self.wanted.listed:
            builder = self.wanted.builder(table_location(self.location))
            for file in self.wanted.listed:
                builder.add_file(file)
            return _after_listing(builder.table, self.wanted, builder.build(), builder)
        return Consume(ReadHint(table_location(self.location), self.wanted))

    def machine(self, engine: str | Executor = "arrow") -> StateMachine[Snapshot]:
        """The machine on an engine."""
        return StateMachine(self.start(), engine, table=table_location(self.location))

    def build(self, engine: str | Executor = "arrow") -> Snapshot:
        """Run the machine."""
        return self.machine(engine).run_to_terminal()


def checked_tail(commits: Sequence[LogFile], table: str) -> tuple[LogFile, ...]:
    """Return a catalog's commits, oldest first; refuse gaps and what is not a commit."""
    tail = tuple(sorted(commits, key=lambda file: file.name.version))
    versions = [file.name.version for file in tail]
    if versions and versions != list(range(versions[0], versions[0] + len(versions))):
        raise CorruptLogError(
            f"a catalog's log tail has gaps: {versions}",
            table=table,
            hint="give every ratified commit from the first of them on",
        )
    other = next((file for file in tail if file.name.kind != "commit"), None)
    if other is not None:
        raise CorruptLogError(
            f"{other.path} in a catalog's log tail is a {other.name.kind}, not a commit",
            table=table,
            hint="give commits alone",
        )
    return tail


@dataclass(frozen=True, slots=True)
class ReadHint(BasePhase):
    """`_last_checkpoint` says where to begin; without it, or if it is garbage, at 0."""

    wanted: Wanted

    def plan(self) -> Plan:
        """The hint's bytes, if there is one."""
        return read_if_there(self.log, LAST_CHECKPOINT)

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """List from the checkpoint that it names."""
        version = _hinted(rows)
        wanted = self.wanted.version
        if self.wanted.millis is not None or (wanted is not None and version > wanted):
            version = 0
        return Consume(ListLog(self.table, self.wanted, version))


def _hinted(rows: pa.Table) -> int:
    if not rows.num_rows:
        return 0
    version = (parse_sealed(rows.column("content")[0].as_py()) or {}).get("version")
    valid = isinstance(version, int) and not isinstance(version, bool) and version > 0
    return int(version) if valid and version is not None else 0


@dataclass(frozen=True, slots=True)
class ListLog(BasePhase):
    """The log's files from a version on become a segment."""

    wanted: Wanted
    start: int

    def plan(self) -> Plan:
        """The listing. Names that begin with no digit come last and do not matter."""
        return list_log(self.log, version_prefix(self.start) if self.start else None)

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """Protocol and metadata of the segment; or list everything, if the hint led nowhere."""
        builder = self.wanted.builder(self.table)
        builder.add(rows)
        if self.start:
            whole = builder.checkpoints and builder.latest_checkpoint() is not None
            if not whole:
                return Consume(ListLog(self.table, self.wanted, 0))
        segment = builder.build()
        if self.wanted.version is not None and segment.version < self.wanted.version:
            oldest = min(builder.commits, default=segment.version)
            raise VersionNotFoundError(
                f"{self.table} has no version {self.wanted.version}",
                table=self.table,
                hint=f"it has versions {oldest} to {segment.version}"
                if oldest < segment.version
                else f"the latest is {segment.version}",
            )
        return _after_listing(self.table, self.wanted, segment, builder)


def _after_listing(
    table: str, wanted: Wanted, segment: LogSegment, builder: LogSegmentBuilder
) -> StateMachinePhase[Snapshot]:
    listed = None
    if wanted.millis is not None:
        listed = tuple(builder.commits[v] for v in sorted(builder.commits))
    goal = Goal(wanted, listed)
    if segment.checksum is not None:
        return Consume(ReadChecksum(table, segment, goal))
    return Consume(ProtocolMetadata(table, segment, goal))


@dataclass(frozen=True, slots=True)
class Goal:
    """What the snapshot is for: to be given, or to find the version of a time."""

    wanted: Wanted
    commits: tuple[LogFile, ...] | None = None

    def reached(self, snapshot: Snapshot) -> StateMachinePhase[Snapshot]:
        """The snapshot, or the search for a time."""
        if self.commits is not None and self.wanted.millis is not None:
            from millpond.kernel.times import CommitTimes

            return Consume(CommitTimes(snapshot.table, self.wanted, self.commits, snapshot))
        if is_catalog_managed(snapshot.protocol) and self.wanted.log_tail is None:
            from millpond.base.errors import UnsupportedFeatureError

            raise UnsupportedFeatureError(
                f"{snapshot.table} is managed by a catalog, which alone knows its latest commits",
                table=snapshot.table,
                features=("catalogManaged",),
                hint="give the commits that the catalog has ratified and not published, or an "
                "empty list: SnapshotBuilder(location).with_log_tail([…]), update(log_tail=[…])",
            )
        snapshot.check_readable()
        return Terminus(snapshot)


@dataclass(frozen=True, slots=True)
class ReadChecksum(BasePhase):
    """A version's checksum holds its protocol and metadata; a broken one is as good as none."""

    segment: LogSegment
    goal: Goal

    def plan(self) -> Plan:
        """Its bytes."""
        assert self.segment.checksum is not None
        return read_bytes(self.segment.checksum.path)

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """Done if it is the version's own, otherwise what came after it decides."""
        assert self.segment.checksum is not None
        known = _from_checksum(rows)
        if known is None:
            return Consume(ProtocolMetadata(self.table, self.segment, self.goal))
        if self.segment.checksum.name.version == self.segment.version:
            return self.goal.reached(Snapshot(self.segment, *known))
        since = self.segment.checksum.name.version
        later = tuple(file for file in self.segment.cover() if file.name.end > since)
        return Consume(ProtocolMetadata(self.table, self.segment, self.goal, later, known))


def _from_checksum(rows: pa.Table) -> tuple[Protocol, Metadata] | None:
    data = parse_sealed(rows.column("content")[0].as_py()) or {}
    try:
        return Protocol.from_dict(data["protocol"]), Metadata.from_dict(data["metadata"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class ProtocolMetadata(BasePhase):
    """The newest protocol and the newest metadata; reading stops when both are found."""

    segment: LogSegment
    goal: Goal
    later: tuple[LogFile, ...] | None = None
    """Only these commits are read, newest first; `known` is what held before them."""
    known: tuple[Protocol, Metadata] | None = None

    def plan(self) -> Plan:
        """At most two rows: one with a protocol, one with metadata."""
        commits = self.segment.cover() if self.later is None else self.later
        has = col("protocol").is_not_null() | col("metaData").is_not_null()
        scans = [scan.filter(has) for scan in scan_log(commits, _PM, versions=False)]
        if self.later is None and self.segment.checkpoint is not None:
            # Statistics of these leaves rule out row groups; those of a whole struct do not exist.
            leaves = path("protocol.minReaderVersion"), path("metaData.schemaString")
            either = leaves[0].is_not_null() | leaves[1].is_not_null()
            files = self.segment.checkpoint.files
            scans += [scan.filter(either) for scan in scan_log(files, _PM, versions=False)]
        first = FirstOfEach(("protocol", "metaData"))
        return together(scans).filter_ordered(first).head(2)

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """The snapshot."""
        found: dict[str, Any] = {}
        for row in rows.to_pylist(maps_as_pydicts="lossy"):
            for name in ("protocol", "metaData"):
                if row[name] is not None:
                    found.setdefault(name, row[name])
        protocol, metadata = self.known or (None, None)
        try:
            if "protocol" in found:
                protocol = Protocol.from_dict(found["protocol"])
            if "metaData" in found:
                metadata = Metadata.from_dict(found["metaData"])
        except ValueError as error:
            raise CorruptLogError(
                f"the log of {self.table} is broken: {error}",
                table=self.table,
                hint="an older version may still be readable",
            ) from error
        if protocol is None or metadata is None:
            what = "protocol" if protocol is None else "metadata"
            raise MissingActionError(
                f"the log of {self.table} has no {what} up to version {self.segment.version}",
                table=self.table,
                hint="the log is damaged: restore it from a backup",
            )
        return self.goal.reached(Snapshot(self.segment, protocol, metadata))


@dataclass(frozen=True, slots=True)
class UpdateLog(BasePhase):
    """What is new since a snapshot; a log that was exchanged meanwhile is opened anew."""

    snapshot: Snapshot
    wanted: Wanted

    def plan(self) -> Plan:
        """The listing from the snapshot's own version on."""
        return list_log(self.log, version_prefix(self.snapshot.version))

    def next(self, rows: pa.Table) -> StateMachinePhase[Snapshot]:
        """The same snapshot, or a segment with new commits, and with a new checkpoint if any."""
        old = self.snapshot.segment
        builder = self.wanted.builder(self.table)
        builder.add(rows)
        last = old.commits[-1] if old.commits else old.checkpoint_commit
        tail = {file.name.version: file for file in builder.log_tail}
        seen = tail.get(old.version) or builder.commits.get(old.version)
        if last is not None and not (seen is not None and _same(seen, last)):
            return Consume(ReadHint(self.table, self.wanted))
        for file in (*old.commits, *((old.checkpoint_commit,) if old.checkpoint_commit else ())):
            if file.name.version not in tail:
                builder.commits.setdefault(file.name.version, file)
        for file in (*old.compactions, *(old.checkpoint.files if old.checkpoint else ())):
            builder.add_file(file)
        segment = builder.build()
        if segment.version <= old.version:
            return Goal(self.wanted).reached(self.snapshot)
        new = range(segment.version, old.version, -1)
        if any(version not in builder.commits for version in new):
            return Consume(ProtocolMetadata(self.table, segment, Goal(self.wanted)))
        later = tuple(builder.commits[version] for version in new)
        known = (self.snapshot.protocol, self.snapshot.metadata)
        return Consume(ProtocolMetadata(self.table, segment, Goal(self.wanted), later, known))


def _same(one: LogFile, other: LogFile) -> bool:
    return (one.size, one.modified) == (other.size, other.modified)

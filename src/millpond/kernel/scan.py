"""The scan machine: which files of a snapshot are live, and which of them a predicate needs.

    CommitReplay -> (CheckpointManifest) -> (CheckpointProbe) -> CheckpointReplay -> Scan

Commits are replayed newest first. What they were about is known then, so the checkpoint's files
can be read in any order, on any number of machines, without the ones that were mentioned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PlanError, VersionNotFoundError
from millpond.kernel.actions import ADD, REMOVE, log_columns, picked
from millpond.kernel.checkpointed import (
    CheckpointManifest,
    CheckpointProbe,
    CheckpointReplay,
    ManifestOnly,
)
from millpond.kernel.machine import (
    Consume,
    PartialResult,
    StateMachine,
    StateMachinePhase,
    Terminus,
)
from millpond.kernel.names import version_prefix
from millpond.kernel.phase import (
    BasePhase,
    lacking,
    list_log,
    listed_commits,
    scan_log,
    together,
)
from millpond.kernel.replay import AddRemoveDedup
from millpond.plan.bind import bind_predicate
from millpond.plan.expr import col, if_else, path
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.kernel.segment import LogFile
    from millpond.kernel.skipping import Skipping
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.sources import File

FILE_COLUMNS: Final = (
    *("path", "partitionValues", "size", "modificationTime", "stats", "deletionVector"),
    *("tags", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"),
)
"""What is told of a live file, by the names that an add action has for it."""


@dataclass(frozen=True)
class Scan:
    """Which live files of a snapshot are wanted, and what of them. All phases share it."""

    snapshot: Snapshot
    columns: tuple[str, ...] = FILE_COLUMNS
    skipping: Skipping | None = None

    @property
    def schema(self) -> Struct:
        """The columns of partial results: one row for each live file."""
        return ADD.select(self.columns)

    def start(self) -> StateMachinePhase[Scan]:
        """The first phase."""
        if self.snapshot.segment.commits:
            dedup = AddRemoveDedup(self.snapshot.table)
            return PartialResult(CommitReplay(self.snapshot.table, self, dedup))
        return self.after_commits(None)

    def machine(self, engine: str | Executor = "arrow") -> StateMachine[Scan]:
        """The machine on an engine."""
        return StateMachine(self.start(), engine, table=self.snapshot.table)

    def after_commits(self, dedup: AddRemoveDedup | None) -> StateMachinePhase[Scan]:
        """The checkpoint, if there is one."""
        checkpoint = self.snapshot.segment.checkpoint
        if checkpoint is None:
            return Terminus(self)
        # The protocol need not be asked: a checkpoint that names files must not be read without.
        if checkpoint.may_have_sidecars:
            return Consume(CheckpointManifest(self.snapshot.table, self, dedup))
        return self.after_manifest(dedup, ())

    def after_manifest(
        self, dedup: AddRemoveDedup | None, sidecars: tuple[File, ...]
    ) -> StateMachinePhase[Scan]:
        """Whether statistics are there as columns matters only to a predicate that needs them."""
        if self.skipping is not None and self.skipping.stats.fields:
            return Consume(CheckpointProbe(self.snapshot.table, self, dedup, sidecars))
        return PartialResult(CheckpointReplay(self.snapshot.table, self, dedup, sidecars))

    def rows(self, adds: Plan) -> Plan:
        """The wanted columns of add actions."""
        return adds.select(*(path(f'add."{name}"').alias(name) for name in self.columns))

    def needed(self, adds: Plan, *, parsed: bool = False) -> Plan:
        """Add actions without the files that a predicate rules out."""
        from millpond.plan.rows import ParseJson

        if self.skipping is None:
            return adds
        stats = self.skipping.stats
        values = path("add.partitionValues").alias("partitionValues")
        if not stats.fields:
            judged = adds.select(values, col("add"))
        elif parsed:
            judged = adds.select(values, path("add.stats_parsed").alias("stats"), col("add"))
        else:
            texts = adds.select(values, path("add.stats").alias("json"), col("add"))
            judged = ParseJson(texts, "json", stats, "stats").drop("json")
        return judged.filter(self.skipping.keep.coalesce(True)).select("add")

    def add_fields(self, *, parsed: bool = False) -> Struct:
        """What of an add action has to be read."""
        wanted = {*self.columns, "path", "deletionVector"}
        if self.skipping is not None:
            wanted.add("partitionValues")
            if self.skipping.stats.fields and not parsed:
                wanted.add("stats")
        found = picked(ADD, *(name for name in ADD.names if name in wanted))
        if parsed and self.skipping is not None:
            found = Struct((*found.fields, Field("stats_parsed", self.skipping.stats)))
        return found


_DV: Final = ("storageType", "pathOrInlineDv", "offset")


@dataclass(frozen=True)
class CommitReplay(BasePhase):
    """Live adds of the commits, newest first; the filter gathers what they were about."""

    files: Scan
    dedup: AddRemoveDedup

    def plan(self) -> Plan:
        """Actions, newest first, past the filter."""
        segment = self.files.snapshot.segment
        add = self.files.add_fields()
        remove = picked(REMOVE, "path", "deletionVector")
        actions = together(scan_log(segment.cover(), log_columns(add=add, remove=remove)))
        adds = keyed(actions).filter_ordered(self.dedup)
        return self.files.rows(self.files.needed(adds))

    def next(self) -> StateMachinePhase[Scan]:
        """The checkpoint."""
        self.dedup.seen  # noqa: B018 - too early is an error
        return self.files.after_commits(self.dedup)


def keyed(actions: Plan) -> Plan:
    """Adds and removes with what `AddRemoveDedup` looks at."""
    either = [
        path(f"add.deletionVector.{n}").coalesce(path(f"remove.deletionVector.{n}")) for n in _DV
    ]
    has = col("add").is_not_null() | col("remove").is_not_null()
    names = ("dv_type", "dv_path", "dv_offset")
    return actions.filter(has).with_columns(
        is_add=col("add").is_not_null(),
        key_path=path("add.path").coalesce(path("remove.path")),
        **dict(zip(names, either, strict=True)),
    )


def checkpoint_files(
    snapshot: Snapshot, engine: str | Executor
) -> tuple[tuple[LogFile, ...], tuple[File, ...]]:
    """The files of a snapshot's checkpoint: its own, and the sidecars that they name."""
    checkpoint = snapshot.segment.checkpoint
    if checkpoint is None:
        return (), ()
    state = Scan(snapshot, ("path",)).after_commits(None)
    if not isinstance(state, Consume):
        return checkpoint.files, ()
    machine: StateMachine[Any] = StateMachine(
        Consume(ManifestOnly(snapshot.table, Scan(snapshot, ("path",)), None)), engine
    )
    return checkpoint.files, machine.run_to_terminal()


@dataclass(frozen=True)
class ScanBuilder:
    """How a scan is asked for: `ScanBuilder(snapshot).with_predicate(p).machine("arrow")`."""

    snapshot: Snapshot
    columns: tuple[str, ...] = FILE_COLUMNS
    predicate: Expr | None = None

    def with_columns(self, *columns: str) -> ScanBuilder:
        """Only these facts about each file."""
        for name in columns:
            if name not in FILE_COLUMNS:
                raise PlanError(
                    f"nothing is known of a file by the name {name!r}",
                    hint=f"there are: {', '.join(FILE_COLUMNS)}",
                )
        return replace(self, columns=columns)

    def with_predicate(self, predicate: Expr | None) -> ScanBuilder:
        """Without files in which no row can satisfy a predicate over the table's columns."""
        return replace(self, predicate=predicate)

    def build(self) -> Scan:
        """The scan; nothing is read yet."""
        if self.predicate is None:
            return Scan(self.snapshot, self.columns)
        from millpond.kernel.skipping import skipping_for

        bound = bind_predicate(self.predicate, self.snapshot.plain_schema)
        found = skipping_for(bound, self.snapshot.columns, self.snapshot.partition_columns)
        return Scan(self.snapshot, self.columns, found)

    def start(self) -> StateMachinePhase[Scan]:
        """The first phase."""
        return self.build().start()

    def machine(self, engine: str | Executor = "arrow") -> StateMachine[Scan]:
        """The machine on an engine."""
        return self.build().machine(engine)


@dataclass(frozen=True)
class ListSince(BasePhase):
    """The commits after a version, where a checkpoint stands for them in the segment."""

    files: Scan
    since: int

    def plan(self) -> Plan:
        """The log from there on."""
        return list_log(self.log, version_prefix(self.since + 1))

    def next(self, rows: pa.Table) -> StateMachinePhase[Scan]:
        """Read them, if they are all there."""
        snapshot = self.files.snapshot
        found = listed_commits(snapshot, rows)
        missing = lacking(found, self.since + 1, snapshot.version)
        if missing is not None:
            raise VersionNotFoundError(
                f"what changed between {self.since} and {snapshot.version} of {self.table} "
                f"is not known: the log has no commit {missing[0]} any more",
                table=self.table,
                hint=f"it is known from version {missing[-1]} on; otherwise list all files anew",
            )
        commits = tuple(file for version, file in found.items() if version > self.since)
        return _difference(self.files, commits)


@dataclass(frozen=True)
class CommitDifference(BasePhase):
    """What some commits added and removed, newest first; no checkpoint is read."""

    files: Scan
    commits: tuple[LogFile, ...]
    dedup: AddRemoveDedup

    def plan(self) -> Plan:
        """Adds and removes that count, with `change` telling which."""
        wanted = {*self.files.columns, "path", "deletionVector"}
        remove = picked(REMOVE, *(name for name in REMOVE.names if name in wanted))
        columns = log_columns(add=self.files.add_fields(), remove=remove)
        actions = together(scan_log(reversed(self.commits), columns))
        rows = keyed(actions).filter_ordered(self.dedup)
        facts = [
            path(f'add."{name}"').coalesce(path(f'remove."{name}"')).alias(name)
            if name in REMOVE
            else path(f'add."{name}"').alias(name)
            for name in self.files.columns
        ]
        return rows.select(if_else(col("is_add"), "add", "remove").alias("change"), *facts)

    def next(self) -> StateMachinePhase[Scan]:
        """The end."""
        self.dedup.seen  # noqa: B018 - too early is an error
        return Terminus(self.files)


def _difference(files: Scan, commits: tuple[LogFile, ...]) -> StateMachinePhase[Scan]:
    table = files.snapshot.table
    dedup = AddRemoveDedup(table, keep_removes=True)
    return PartialResult(CommitDifference(table, files, commits, dedup))


def incremental_machine(
    scan: Scan, since: int, engine: str | Executor = "arrow"
) -> StateMachine[Scan]:
    """From a version to a scan's own: what was added and removed, without the checkpoint."""
    snapshot = scan.snapshot
    segment = snapshot.segment
    if type(since) is not int or not -1 <= since <= snapshot.version:
        raise VersionNotFoundError(
            f"{since!r} is no version before {snapshot.version} of {snapshot.table}",
            table=snapshot.table,
            hint="-1 is before the first version",
        )
    commits = tuple(file for file in segment.commits if file.name.version > since)
    start: StateMachinePhase[Scan]
    if since == snapshot.version:
        start = Terminus(scan)
    elif len(commits) == snapshot.version - since:
        start = _difference(scan, commits)
    else:
        start = Consume(ListSince(snapshot.table, scan, since))
    return StateMachine(start, engine, table=snapshot.table)

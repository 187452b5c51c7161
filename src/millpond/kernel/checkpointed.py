"""The phases of a scan that read its checkpoint; see `scan.py` for how they follow each other.

CheckpointManifest -> (CheckpointProbe) -> CheckpointReplay (-> NamelessAdd)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CheckpointError, MillpondError, SourceError
from millpond.kernel.actions import ADD, SIDECAR, log_columns, picked
from millpond.kernel.machine import Consume, PartialResult, StateMachinePhase, Terminus
from millpond.kernel.names import SIDECARS
from millpond.kernel.paths import resolve
from millpond.kernel.phase import BasePhase, log_error, scan_log, together, vector_id
from millpond.plan.expr import col, path
from millpond.plan.sources import File
from millpond.plan.sources import Scan as ScanFiles
from millpond.plan.types import LONG, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from millpond.kernel.replay import AddRemoveDedup
    from millpond.kernel.scan import Scan
    from millpond.kernel.segment import LogSegment
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.sources import Format

_ALWAYS: Final = ("size", "modificationTime")
"""Members that every add has beside its path: where they are, a path has to be."""
_FILE: Final = Field("file", LONG)


@dataclass(frozen=True)
class CheckpointManifest(BasePhase):
    """The sidecars that a V2 checkpoint's one file names."""

    files: Scan
    dedup: AddRemoveDedup | None

    def plan(self) -> Plan:
        """The names of the sidecars."""
        checkpoint = self.files.snapshot.segment.checkpoint
        assert checkpoint is not None
        columns = log_columns(sidecar=picked(SIDECAR, "path", "sizeInBytes"))
        named = together(scan_log(checkpoint.files, columns, versions=False))
        file, size = path("sidecar.path"), path("sidecar.sizeInBytes")
        named = named.filter(file.is_not_null() | size.is_not_null())
        return named.select(file.alias("path"), size.alias("size"))

    def next(self, rows: pa.Table) -> StateMachinePhase[Scan]:
        """Replay them with the checkpoint's own file."""
        return self.files.after_manifest(self.dedup, self.sidecars(rows))

    def sidecars(self, rows: pa.Table) -> tuple[File, ...]:
        """The files that the manifest names; one that it names twice is read once."""
        base = f"{self.files.snapshot.segment.log}/{SIDECARS}"
        paths = rows.column("path").to_pylist()
        if None in paths:
            raise self._nameless()
        sizes = dict(zip(paths, rows.column("size").to_pylist(), strict=True))
        return tuple(File(resolve(base, path), size) for path, size in sizes.items())

    def _nameless(self) -> MillpondError:
        checkpoint = self.files.snapshot.segment.checkpoint
        assert checkpoint is not None
        file = checkpoint.files[0].path
        said = SourceError(f"a sidecar in {file} has no path", engine="kernel", path=file)
        return log_error(self.table, said)


@dataclass(frozen=True)
class ManifestOnly(CheckpointManifest):
    """The manifest for its own sake."""

    def next(self, rows: pa.Table) -> StateMachinePhase[Any]:
        """The sidecars."""
        return Terminus(self.sidecars(rows))


@dataclass(frozen=True)
class CheckpointProbe(BasePhase):
    """Whether the checkpoint holds statistics as columns of today's types; a row says yes."""

    files: Scan
    dedup: AddRemoveDedup | None
    sidecars: tuple[File, ...]

    def plan(self) -> Plan:
        """The first file with a number of records as a column."""
        assert self.files.skipping is not None
        stats = Struct.of(stats_parsed=_with_count(self.files.skipping.stats))
        scan = together(_checkpoint_scans(self.files.snapshot.segment, stats, self.sidecars))
        has = path("add.stats_parsed.numRecords").is_not_null()
        return scan.filter(has).select(path("add.stats_parsed").alias("stats")).head(1)

    def next(self, rows: pa.Table) -> StateMachinePhase[Scan]:
        """Replay with or without them."""
        return self._replay(parsed=rows.num_rows > 0)

    def instead(self, error: MillpondError) -> StateMachinePhase[Scan] | None:
        """Columns that had other types then are left alone; an unreadable file fails again."""
        return self._replay(parsed=False) if isinstance(error, SourceError) else None

    def _replay(self, *, parsed: bool) -> StateMachinePhase[Scan]:
        table = self.files.snapshot.table
        return PartialResult(
            CheckpointReplay(table, self.files, self.dedup, self.sidecars, parsed=parsed)
        )


def _with_count(stats: Struct) -> Struct:
    return stats if "numRecords" in stats else Struct((*stats.fields, Field("numRecords", LONG)))


@dataclass(frozen=True)
class CheckpointReplay(BasePhase):
    """Live adds of the checkpoint: all but those that commits were about, in any order.

    An add without a path is an error, if anything else that each add has is wanted, too: `size`, or
    `modificationTime`. Where paths alone are, it would cost a column more to know of it, so that
    it is left out.
    """

    files: Scan
    dedup: AddRemoveDedup | None
    sidecars: tuple[File, ...] = ()
    parsed: bool = field(default=False)
    handed: pa.Table | None = field(default=None, compare=False)
    """Paths that were handed out already: they don't come again."""

    @property
    def is_parallelizable(self) -> bool:
        """What commits were about is known by now."""
        return True

    def plan(self) -> Plan:
        """Adds that have no tombstone."""
        from millpond.plan.make import values

        add = self.files.add_fields(parsed=self.parsed)
        segment = self.files.snapshot.segment
        scan = together(_checkpoint_scans(segment, add, self.sidecars))
        # What a predicate rules out first: of the row groups that it leaves nothing of, no path
        # is decoded.
        adds = self.files.needed(scan, parsed=self.parsed)
        adds = adds.filter(_is_there("path", *self._witness))
        if self.handed is not None:
            known = [(path("add.path"), col("path"))]
            adds = adds.join(values(self.handed), on=known, how="anti", nulls_equal=True)
        if self.dedup is not None and self.dedup.seen:
            gone = values(self.dedup.tombstones())
            vector = vector_id("add.deletionVector")
            keys = [(path("add.path"), col("path")), (vector, col("dv"))]
            adds = adds.join(gone, on=keys, how="anti", nulls_equal=True)
        return self.files.rows(adds)

    def next(self) -> StateMachinePhase[Scan]:
        """The end."""
        return Terminus(self.files)

    @property
    def _witness(self) -> tuple[str, ...]:
        """What is read of each add anyway, and tells where a path is missing; nothing maybe."""
        columns = self.files.columns
        return tuple(name for name in _ALWAYS if name in columns and "path" in columns)[:1]

    def check(self, batch: pa.RecordBatch) -> None:
        """Each add has a path."""
        if self._witness and batch.column("path").null_count:
            checkpoint = self.files.snapshot.segment.checkpoint
            assert checkpoint is not None
            raise CheckpointError(
                f"an add in the checkpoint of version {checkpoint.version} of {self.table} "
                "has no path",
                table=self.table,
                path=checkpoint.files[0].path,
            )

    def instead(self, error: MillpondError) -> StateMachinePhase[Scan] | None:
        """Statistics as text, where files do not agree about their types as columns."""
        if isinstance(error, CheckpointError):
            return Consume(NamelessAdd(self.table, self._sources(), error))
        return PartialResult(replace(self, parsed=False)) if self._may_misfit(error) else None

    @property
    def remembered(self) -> tuple[str, ...]:
        """The paths, as long as another file may have other types."""
        may_go_on = self.parsed and len(self._sources()) > 1 and "path" in self.files.columns
        return ("path",) if may_go_on else ()

    def resume(
        self, error: MillpondError, handed: Sequence[pa.RecordBatch]
    ) -> StateMachinePhase[Scan] | None:
        """The same, without what was handed out."""
        import pyarrow as pa

        if isinstance(error, CheckpointError):
            return self.instead(error)
        if not self._may_misfit(error) or not self.remembered:
            return None
        paths = pa.Table.from_batches(handed)
        return PartialResult(replace(self, parsed=False, handed=paths))

    def _may_misfit(self, error: MillpondError) -> bool:
        """Whether columns had other types then; a file that is unreadable fails again."""
        return self.parsed and isinstance(error, SourceError) and not error.missing

    def _sources(self) -> tuple[File, ...]:
        checkpoint = self.files.snapshot.segment.checkpoint
        assert checkpoint is not None
        return (*(File(file.path, file.size) for file in checkpoint.files), *self.sidecars)


@dataclass(frozen=True)
class NamelessAdd(BasePhase):
    """In which file of a checkpoint an add has no path: all that follows is an error."""

    files: tuple[File, ...]
    error: CheckpointError

    def plan(self) -> Plan:
        """The number of the file."""
        add = log_columns(add=picked(ADD, "path", *_ALWAYS))
        columns = Struct((*add.fields, _FILE))
        numbered = [replace(file, constants=(n,)) for n, file in enumerate(self.files)]
        scans: list[Plan] = []
        for format_, group in groupby(numbered, _format):
            scans.append(ScanFiles(format_, tuple(group), columns, (_FILE.name,), strict=True))
        lacks = path("add.path").is_null() & _is_there(*_ALWAYS)
        return together(scans).filter(lacks).select(_FILE.name).head(1)

    def next(self, rows: pa.Table) -> StateMachinePhase[Any]:
        """The error, with the file's name."""
        if not rows.num_rows:
            raise self.error
        file = self.files[rows.column(_FILE.name)[0].as_py()].path
        said = SourceError(f"an add in {file} has no path", engine="kernel", path=file)
        raise log_error(self.table, said)


def _is_there(*members: str) -> Expr:
    """Whether an add has any of these."""
    first, *others = (path(f"add.{name}").is_not_null() for name in members)
    for other in others:
        first = first | other
    return first


def _format(file: File) -> Format:
    return "json" if file.path.endswith(".json") else "parquet"


def _checkpoint_scans(segment: LogSegment, add: Struct, sidecars: tuple[File, ...]) -> list[Plan]:
    assert segment.checkpoint is not None
    columns = log_columns(add=add)
    scans = scan_log(segment.checkpoint.files, columns, versions=False)
    if sidecars:
        scans.append(ScanFiles("parquet", sidecars, columns, strict=True))
    return scans

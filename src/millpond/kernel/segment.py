"""Which files of a log make up one version: the newest whole checkpoint, and commits after it.

`LogSegmentBuilder` sees a listing's rows, in any number of batches, and knows nothing of storage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from millpond.base.errors import (
    CorruptLogError,
    LogGapError,
    TableNotFoundError,
    VersionNotFoundError,
)
from millpond.kernel.names import LOG_DIRECTORY, LogName, file_name, parse_name, parse_staged_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa


class LogFile(NamedTuple):
    """A file of the log: where it is, what its name says, how large and old it is.

    A catalog that manages a table gives its commits as such: `LogFile.at(path, size=…)`.
    """

    path: str
    name: LogName
    size: int
    modified: int
    """Milliseconds since the epoch."""

    @classmethod
    def at(cls, path: str, *, size: int, modified: int = 0) -> LogFile:
        """Return a file of a log by its whole path or URL, as a catalog names it.

        >>> LogFile.at("/t/_delta_log/00000000000000000003.json", size=120).name.version
        3
        """
        found = parse_name(file_name(path)) or parse_staged_name(file_name(path))
        if found is None:
            raise CorruptLogError(
                f"{path} has no name of a file of a log",
                table=path.rpartition(f"/{LOG_DIRECTORY}/")[0],
                path=path,
                hint="such as _delta_log/00000000000000000003.json, or one in _staged_commits",
            )
        return cls(path, found, size, modified)

    @property
    def is_json(self) -> bool:
        """Whether it is read as JSON lines."""
        return self.path.endswith(".json")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint: one file, or all parts of several."""

    version: int
    files: tuple[LogFile, ...]

    @property
    def may_have_sidecars(self) -> bool:
        """Whether its one file may name others."""
        return len(self.files) == 1 and self.files[0].name.parts is None


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files that make up a version, oldest first."""

    table: str
    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    """The commits after the checkpoint, each version once."""
    compactions: tuple[LogFile, ...] = ()
    checksum: LogFile | None = None
    """The newest checksum that is not older than the checkpoint."""
    checkpoint_commit: LogFile | None = None
    """The commit of the checkpoint's own version: it tells when that was."""

    @property
    def log(self) -> str:
        """Where the log is."""
        return f"{self.table}/{LOG_DIRECTORY}"

    def cover(self) -> tuple[LogFile, ...]:
        """What to read instead of all commits, newest first: compactions where they fit."""
        by_start: dict[int, LogFile] = {}
        for item in self.compactions:
            known = by_start.get(item.name.version)
            if known is None or known.name.end < item.name.end:
                by_start[item.name.version] = item
        found: list[LogFile] = []
        covered = -1
        for commit in self.commits:
            if commit.name.version <= covered:
                continue
            wide = by_start.get(commit.name.version)
            found.append(commit if wide is None else wide)
            covered = found[-1].name.end
        return tuple(reversed(found))


_EMPTY_MATTERS: Final = ("commit", "checksum")
_SHOWN: Final = 5
"""So many of the missing versions and parts are named."""


@dataclass(slots=True)
class LogSegmentBuilder:
    """Gathers a listing; `build` then says which of the files make up a version."""

    table: str
    max_version: int | None = None
    """No file above this is looked at; None is the latest."""
    log_tail: Sequence[LogFile] = ()
    """Ratified commits that a catalog gives: from the first of them on, it alone counts."""
    commits: dict[int, LogFile] = field(default_factory=dict)
    checkpoints: dict[int, list[LogFile]] = field(default_factory=dict)
    compactions: list[LogFile] = field(default_factory=list)
    checksums: dict[int, LogFile] = field(default_factory=dict)
    has_newer: bool = False
    """Whether there are files above `max_version`."""

    def add(self, listing: pa.RecordBatch | pa.Table) -> None:
        """Some rows of a listing: path, size, modified."""
        import pyarrow as pa

        times = listing.column("modified").cast(pa.int64()).to_pylist()
        rows = zip(
            listing.column("path").to_pylist(), listing.column("size").to_pylist(), times,
            strict=True,
        )  # fmt: skip
        for path, size, modified in rows:
            name = parse_name(file_name(path))
            if name is not None:
                self.add_file(LogFile(path, name, size, (modified or 0) // 1000))

    def add_file(self, file: LogFile) -> None:
        """One file of the log."""
        name = file.name
        if self.max_version is not None and name.end > self.max_version:
            self.has_newer = True
            return
        if not file.size and name.kind not in _EMPTY_MATTERS:
            return
        if name.kind == "commit":
            if not self.log_tail or name.version < self.log_tail[0].name.version:
                self.commits[name.version] = file
        elif name.kind == "checksum":
            self.checksums[name.version] = file
        elif name.kind == "compaction":
            self.compactions.append(file)
        else:
            self.checkpoints.setdefault(name.version, []).append(file)

    def build(self, *, without: frozenset[int] = frozenset()) -> LogSegment:
        """The segment of the newest version that was seen; `without` are checkpoints to avoid."""
        for file in self.log_tail:
            if self.max_version is None or file.name.version <= self.max_version:
                self.commits[file.name.version] = file
        checkpoint = self._checkpoint(without)
        if not self.commits and checkpoint is None:
            raise self._nothing()
        newest = max(self.commits, default=-1)
        version = max(newest, -1 if checkpoint is None else checkpoint.version)
        first = 0 if checkpoint is None else checkpoint.version + 1
        self._check_gaps(first, version, checkpoint)
        commits = tuple(self.commits[v] for v in range(first, version + 1))
        least = -1 if checkpoint is None else checkpoint.version
        checksums = [v for v in self.checksums if least <= v <= version]
        compactions = (
            c for c in self.compactions if first <= c.name.version and c.name.end <= version
        )
        if self.log_tail:
            tail = self.log_tail[0].name.version
            compactions = (c for c in compactions if c.name.end < tail)
        return LogSegment(
            self.table,
            version,
            checkpoint,
            commits,
            tuple(sorted(compactions, key=lambda c: (c.name.version, c.name.end))),
            self.checksums[max(checksums)] if checksums else None,
            None if checkpoint is None else self.commits.get(checkpoint.version),
        )

    def latest_checkpoint(self) -> Checkpoint | None:
        """The newest whole checkpoint that was seen."""
        return self._checkpoint(frozenset())

    def _checkpoint(self, without: frozenset[int]) -> Checkpoint | None:
        for version in sorted(self.checkpoints, reverse=True):
            if version in without:
                continue
            found = _whole(self.checkpoints[version])
            if found is not None:
                return Checkpoint(version, found)
        return None

    def _check_gaps(self, first: int, version: int, checkpoint: Checkpoint | None) -> None:
        # Of a name with a very high version, as many may be missing: only those shown are counted.
        lacking = (v for v in range(first, version + 1) if v not in self.commits)
        missing = list(islice(lacking, _SHOWN + 1))
        if not missing:
            return
        start = min(self.commits)
        begins_late = checkpoint is None and len(self.commits) == version - start + 1
        if begins_late and self.has_newer:
            raise self._cleaned_up()
        if begins_late:
            what = f"its log begins at version {start}, without a checkpoint{self._lacking()}"
        else:
            shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" * (len(missing) > _SHOWN))
            what = f"its log lacks version{'' if len(missing) == 1 else 's'} {shown}"
        before = missing[0] - 1
        readable = (
            f"versions up to {before} can still be read: version={before}"
            if before >= first - 1 and (before >= 0)
            else "restore the missing files from a backup"
        )
        raise LogGapError(f"{self.table} can't be read: {what}", table=self.table, hint=readable)

    def _cleaned_up(self) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"{self.table} has no whole log up to version {self.max_version}",
            table=self.table,
            hint="old commits are cleaned up after a checkpoint: ask for a later version",
        )

    def _lacking(self) -> str:
        """Which parts the newest checkpoint lacks that has parts at all, for a message."""
        for version in sorted(self.checkpoints, reverse=True):
            names = [file.name for file in self.checkpoints[version] if file.name.parts is not None]
            for count in sorted({name.parts for name in names if name.parts}):
                there = {name.part for name in names if name.parts == count}
                absent = (str(part) for part in range(1, count + 1) if part not in there)
                lost = list(islice(absent, _SHOWN))
                if lost:
                    parts = f"part{'' if len(lost) == 1 else 's'} {', '.join(lost)} of {count}"
                    return f" (that of version {version} lacks {parts})"
        return ""

    def _nothing(self) -> Exception:
        known = self.has_newer or self.checkpoints or self.compactions
        if self.max_version is not None and known:
            return self._cleaned_up()
        if self.checkpoints:
            return CorruptLogError(
                f"the log of {self.table} holds nothing but parts of a checkpoint{self._lacking()}",
                table=self.table,
                hint="restore the missing parts from a backup",
            )
        return TableNotFoundError(
            f"{self.table} is no Delta table: {LOG_DIRECTORY} holds no commit",
            table=self.table,
            hint="check the path; a Delta table is the directory that contains _delta_log",
        )


def _whole(files: Iterable[LogFile]) -> tuple[LogFile, ...] | None:
    """The best whole checkpoint of one version: unique, then most parts, then classic."""
    unique: list[LogFile] = []
    parts: dict[int, dict[int, LogFile]] = {}
    classic: list[LogFile] = []
    for file in files:
        if file.name.unique is not None:
            unique.append(file)
        elif file.name.parts is not None and file.name.part is not None:
            parts.setdefault(file.name.parts, {})[file.name.part] = file
        else:
            classic.append(file)
    if unique:
        return (max(unique, key=lambda f: f.path),)
    whole = [count for count, known in parts.items() if len(known) == count]
    if whole:
        chosen = parts[max(whole)]
        return tuple(chosen[part] for part in sorted(chosen))
    return (classic[0],) if classic else None

"""One Delta table looked at from outside: is every file of it what was written?

Nothing is taken on trust: the log is read line by line, each seal and hash is checked, and files
that are damaged are not decoded. `fsck` says what the problems mean for a pond.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import MillpondError, ObjectNotFoundError
from millpond.base.store import open_store
from millpond.base.store.path import is_path
from millpond.base.textseals import TextSealError, check_commit, is_intact, seal_of
from millpond.kernel.commits import PREVIOUS
from millpond.kernel.dv import DeletionVector
from millpond.kernel.names import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    SIDECARS,
    STAGED_COMMITS,
    LogName,
    parse_name,
)
from millpond.kernel.write.conflicts import key_of
from millpond.kernel.write.seal import DIGEST, stream_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.base.settings import Settings
    from millpond.base.store import Store
    from millpond.kernel.replay import Key

Kind = Literal["damaged", "missing", "orphan", "unverified"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about one object of a table."""

    kind: Kind
    object: str
    """Relative to the table."""
    message: str
    first: int | None = None
    """The versions of the table that it is about."""
    last: int | None = None
    size: int = 0


@dataclass(slots=True)
class Life:
    """A data file, and the versions in which it is live."""

    path: str
    size: int | None
    digest: str | None
    first: int
    last: int | None = None
    vector: Mapping[str, Any] | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)

    def is_live_at(self, version: int) -> bool:
        """Whether its rows are in a version."""
        return self.first <= version and (self.last is None or version <= self.last)


@dataclass
class TableCheck:
    """What is found out about a table."""

    store: Store
    location: str
    settings: Settings | None
    objects: dict[str, int] = field(default_factory=dict)
    """The sizes of all objects that are there."""
    problems: list[Problem] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    said: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """What commits say of themselves."""
    oldest: int = 0
    newest: int = -1
    bytes_read: int = 0
    seals: dict[int, str] = field(default_factory=dict)
    """The seals of commits."""
    _last_seal: tuple[str, str] | None = None
    """The commit before, by its path and its seal."""
    _verified: set[str] = field(default_factory=set)
    _known: dict[Key, Life] = field(default_factory=dict)

    @classmethod
    def of(
        cls, location: str, objects: Mapping[str, int], *, settings: Settings | None
    ) -> TableCheck:
        """Read a table's log, and check all of it; `objects` are those that were listed."""
        made = cls(open_store(location, settings=settings), location, settings, dict(objects))
        made._read_log()
        return made

    def exists(self, version: int) -> bool:
        """Whether a version can be read, as far as the log goes."""
        return self.oldest <= version <= self.newest

    def live(self) -> list[Life]:
        """The data files of the newest version."""
        return [life for life in self.lives if life.is_live_at(self.newest)]

    # The log

    def _read_log(self) -> None:
        names = {path: parse_name(path[len(LOG_DIRECTORY) + 1 :]) for path in self._log_files()}
        commits = {n.version: p for p, n in names.items() if n and n.kind == "commit"}
        checkpoints = {p: n for p, n in names.items() if n and n.kind == "checkpoint"}
        digests: dict[str, str] = {}
        for path, name in names.items():
            if name is not None and name.kind == "checksum":
                digests |= self._checksum(path)
            elif name is None and path == f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}":
                self._checked(path, "the hint of the last checkpoint")
        for path, name in checkpoints.items():
            self._checkpoint(path, name, digests.get(path))
        for path in self.objects:
            if path.startswith(f"{LOG_DIRECTORY}/{SIDECARS}/") and path in digests:
                self._hashed(path, digests[path], "a part of a checkpoint")
        self._replay(commits, checkpoints)

    def _log_files(self) -> list[str]:
        prefix = f"{LOG_DIRECTORY}/"
        found = [p for p in self.objects if p.startswith(prefix)]
        return [path for path in found if "/" not in path[len(prefix) :]]

    def _checksum(self, path: str) -> dict[str, str]:
        text = self._checked(path, "a checksum")
        found = json.loads(text).get(DIGEST) if is_intact(text) else None
        return dict(found) if isinstance(found, dict) else {}

    def _checkpoint(self, path: str, name: LogName, digest: str | None) -> None:
        what = f"the checkpoint of version {name.version}"
        if digest is not None:
            self._hashed(path, digest, what, version=name.version)
        else:
            self.problems.append(
                Problem("unverified", path, f"{what} has no hash noted", name.version)
            )

    def _checked(self, path: str, what: str, version: int | None = None) -> bytes:
        """The text of a sealed object; if it is damaged, that is noted."""
        try:
            text = self.store.get(path)
        except ObjectNotFoundError:  # it has just been removed
            return b""
        self.bytes_read += len(text)
        if not (is_intact(text) if version is None else _is_sealed_commit(text, path)):
            self.problems.append(Problem("damaged", path, f"{what} is damaged", version, version))
        return text

    def _replay(self, commits: Mapping[int, str], checkpoints: Mapping[str, LogName]) -> None:
        self.newest = max((*commits, *(n.version for n in checkpoints.values())), default=-1)
        self.oldest = 0
        if 0 not in commits:
            self._begin_at_checkpoint(sorted(checkpoints.values(), key=lambda n: n.version))
        expected = range(self.oldest, self.newest + 1)
        for version in expected:
            path = commits.get(version)
            if path is None:
                missing = f"{LOG_DIRECTORY}/{version:020d}.json"
                said = f"the commit of version {version} is gone"
                self.problems.append(Problem("missing", missing, said, version, self.newest))
                continue
            text = self._checked(path, f"the commit of version {version}", version)
            if version > self.oldest or 0 in commits:
                self._apply(version, _actions(text))
            self._check_chain(version, path, text)
        for version, path in commits.items():  # older ones than any that can be read
            if version < self.oldest:
                self._checked(path, f"the commit of version {version}", version)
        self.lives += self._known.values()

    def _begin_at_checkpoint(self, checkpoints: list[LogName]) -> None:
        """A log that was cleaned up begins with the oldest checkpoint that is whole."""
        from millpond.kernel.table import delta_table

        bad = {problem.object for problem in self.problems if problem.kind != "unverified"}
        for name in checkpoints:
            if any(f"{name.version:020d}.checkpoint" in path for path in bad):
                continue
            try:
                table = delta_table(self.location, name.version, settings=self.settings)
                files = table.files().to_arrow().to_pylist(maps_as_pydicts="lossy")
            except (MillpondError, OSError, pa.ArrowException):
                continue
            self.oldest = name.version
            for add in files:
                self._known[key_of(add)] = _life(add, 0)
            return

    def _check_chain(self, version: int, path: str, text: bytes) -> None:
        """Note it if the next commit was put on top of another one than is there."""
        found, before = _seal_of(text), self._last_seal
        self._last_seal = None if found is None else (path, found)
        if found is not None:
            self.seals[version] = found
        info = self.said.get(version) or {}
        known = info.get(PREVIOUS)
        if before is not None and isinstance(known, str) and known != before[1]:
            said = (
                f"the commit of version {version - 1} is not the one that version {version} follows"
            )
            self.problems.append(Problem("damaged", before[0], said, version - 1, version - 1))

    def _apply(self, version: int, actions: list[Mapping[str, Any]]) -> None:
        for action in actions:
            if "commitInfo" in action:
                self.said[version] = action["commitInfo"]
            remove = action.get("remove")
            if remove is not None:
                life = self._known.pop(key_of(remove), None)
                if life is not None:
                    life.last = version - 1
                    self.lives.append(life)
        for action in actions:
            if "add" in action:
                self._known.setdefault(key_of(action["add"]), _life(action["add"], version))
            elif "cdc" in action:
                told = _life(action["cdc"], version)
                told.last = version
                self.lives.append(told)

    def take_staged(self, paths: list[str]) -> None:
        """Commits that the pond has ratified, and that are not published yet."""
        for path in paths:
            version = int(path.rpartition("/")[2][:20])
            if version != self.newest + 1 or path not in self.objects:
                continue
            text = self._checked(path, f"the staged commit of version {version}", version)
            self.lives = [life for life in self.lives if life not in self._known.values()]
            self._apply(version, _actions(text))
            self.lives += self._known.values()
            self.newest = version
            self._verified.add(path)

    # Data files

    def check_files(self) -> None:
        """Check every data file that is there, or has to be."""
        for life in self.lives:
            self._check_file(life)
            if life.vector is not None:
                self._check_vector(life)

    def _check_file(self, life: Life) -> None:
        if life.path in self._verified:
            return
        self._verified.add(life.path)
        what, versions = f"the data file {life.path}", (life.first, life.last)
        size = self._size(life.path)
        if size is None:
            self.problems.append(Problem("missing", life.path, f"{what} is gone", *versions))
        elif life.size is not None and size != life.size:
            said = f"{what} has {size} bytes, not {life.size}"
            self.problems.append(Problem("damaged", life.path, said, *versions))
        elif life.digest is not None:
            self._hashed(life.path, life.digest, what, *versions)
        else:
            self._decoded(life, what)

    def _size(self, path: str) -> int | None:
        """An object's size; one that was not listed may have come since."""
        if path not in self.objects:
            if not is_path(path):
                return None  # no object can have the name: the log is damaged
            try:
                self.objects[path] = self.store.head(path).size
            except ObjectNotFoundError:
                return None
        return self.objects[path]

    def _decoded(self, life: Life, what: str) -> None:
        """A file whose hash nobody noted can at least be read."""
        versions = (life.first, life.last)
        try:
            pq.ParquetFile(pa.BufferReader(self.store.get(life.path))).read()
        except (MillpondError, OSError, pa.ArrowException) as error:
            said = f"{what} can't be read: {error}"
            self.problems.append(Problem("damaged", life.path, said, *versions))
            return
        self.problems.append(
            Problem("unverified", life.path, f"{what} has no hash noted", *versions)
        )

    def _check_vector(self, life: Life) -> None:
        assert life.vector is not None
        path = life.path
        try:
            vector = DeletionVector.from_dict(life.vector, table=self.location)
            place = vector.location(self.location)
            path = life.path if place is None else place.removeprefix(f"{self.location}/")
            self._verified.add(path)
            parts = [self.store.get_range(path, start, size) for start, size in vector.spans]
            vector.decode(*parts, table=self.location)
        except MillpondError as error:
            said = f"a deletion vector of {life.path} can't be read: {error.message}"
            self.problems.append(Problem("damaged", path, said, life.first, life.last))

    def _hashed(
        self,
        path: str,
        digest: str,
        what: str,
        version: int | None = None,
        last: int | None = None,
    ) -> None:
        try:
            found = stream_digest(self.store.get_stream(path))
        except ObjectNotFoundError:
            return  # it has just been removed
        self.bytes_read += self.objects.get(path, 0)
        if found != digest:
            said = f"{what} is damaged: its hash is {found[:16]}…, not {digest[:16]}…"
            self.problems.append(Problem("damaged", path, said, version, last))

    def orphans(self) -> Iterator[tuple[str, int]]:
        """Objects that nothing names: data files without an action, commits that were staged."""
        named = {life.path for life in self.lives} | self._verified
        for path, size in self.objects.items():
            staged = path.startswith(f"{LOG_DIRECTORY}/{STAGED_COMMITS}/")
            if (staged or not path.startswith("_")) and path not in named:
                yield path, size


def _is_sealed_commit(text: bytes, path: str) -> bool:
    try:
        check_commit(text, path)
        return seal_of(text) is not None
    except TextSealError:
        return False


def _seal_of(text: bytes) -> str | None:
    try:
        return seal_of(text)
    except TextSealError:
        return None


def _actions(text: bytes) -> list[Mapping[str, Any]]:
    """The actions of a commit; of one that is damaged, those that still can be read."""
    found: list[Mapping[str, Any]] = []
    for line in text.splitlines():
        try:
            action = json.loads(line)
        except ValueError:
            continue
        known = ("add", "remove", "cdc", "commitInfo")
        if isinstance(action, dict):
            found.append({k: v for k, v in action.items() if k in known and _is_file(k, v)})
    return found


def _is_file(kind: str, body: Any) -> bool:
    return isinstance(body, dict) and (kind == "commitInfo" or isinstance(body.get("path"), str))


def _life(add: Mapping[str, Any], version: int) -> Life:
    tags = add.get("tags") or {}
    return Life(
        unquote(add["path"]),
        add.get("size"),
        tags.get(DIGEST),
        version,
        vector=add.get("deletionVector"),
        partition=add.get("partitionValues") or {},
    )

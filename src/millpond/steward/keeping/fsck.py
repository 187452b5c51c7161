"""`fsck`: is everything in a pond what was written? What is not is named by its path and version.

Every object is read once and compared with the hash that was noted when it was written: logs,
files of rows, blobs, data files of tables of all versions, the control table. Nothing is changed.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import IntegrityError, MillpondError, ObjectNotFoundError
from millpond.base.textseals import is_intact
from millpond.fs.blobs import blob_path, digest_of
from millpond.fs.entry import MOVED_TO, ROOT
from millpond.fs.oplog.log import INFO
from millpond.fs.oplog.rowfile import RowFile
from millpond.fs.oplog.rows import PARTITION
from millpond.kernel.names import commit_name
from millpond.kernel.write.commit import is_staged_as, log_path
from millpond.kernel.write.seal import stream_digest
from millpond.steward.control.opened import DIRECTORY as OPEN
from millpond.steward.control.records import from_text
from millpond.steward.control.settings import DIRECTORY as SETTINGS
from millpond.steward.keeping.nodenames import NodeNames
from millpond.steward.keeping.root import content_root
from millpond.steward.keeping.tablecheck import Kind, Problem, TableCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.fs.entry import Row
    from millpond.steward.pond import Pond

CACHE: Final = "cache/"
"""What is below can be made again, and is not looked at."""
_log = logging.getLogger("millpond.steward")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, or that nothing needs."""

    kind: Kind
    path: str
    """In the pond; of logs, the directory or node that they are about."""
    version: int | None
    """Of the node: the first one that is concerned."""
    object: str
    """In the pond's store."""
    message: str
    size: int = 0

    @property
    def is_damage(self) -> bool:
        """Whether something is lost, or may be."""
        return self.kind in ("damaged", "missing")


@dataclass(frozen=True, slots=True)
class Report:
    """What was found."""

    findings: tuple[Finding, ...]
    objects: int
    bytes_read: int
    nodes: int
    """With all that were removed and can be restored."""
    versions: int
    root: str | None
    """The content root; None if the pond is too damaged to have one."""
    last_txn_seq: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not any(finding.is_damage for finding in self.findings)

    @property
    def damage(self) -> tuple[Finding, ...]:
        """What is damaged or missing."""
        return tuple(finding for finding in self.findings if finding.is_damage)

    def counts(self) -> dict[str, int]:
        """How many findings there are of each kind."""
        return dict(Counter(finding.kind for finding in self.findings))


def fsck(pond: Pond, *, progress: Callable[[str], None] | None = None) -> Report:
    """Check a pond. It need not be one that can be opened: `fsck(Pond(location))`."""
    return _Fsck(pond, progress or _log.debug).run()


@dataclass
class _Fsck:
    pond: Pond
    tell: Callable[[str], None]
    findings: list[Finding] = field(default_factory=list)
    bytes_read: int = 0
    rows: list[Row] = field(default_factory=list)
    names: NodeNames = field(default_factory=lambda: NodeNames(()))
    _by_table: dict[str, dict[str, int]] = field(default_factory=dict)
    _inline: set[tuple[str, str, int]] = field(default_factory=set)
    """Rows that have their content with them."""

    def run(self) -> Report:
        """All of it."""
        self.objects = {meta.path: meta.size for meta in self.pond.store.list()}
        self._by_table = self._grouped(self.objects)
        oplog = self._oplog()
        self._blobs()
        tables: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.txn_seq):
            if row.entry_type.is_table:
                tables.setdefault(row.node_id, []).append(row)
        for node_id, rows in tables.items():
            self._table(node_id, rows)
        self._strays()
        self._control(oplog)
        versions = {(row.node_id, row.version) for row in self.rows}
        order = {"damaged": 0, "missing": 1, "unverified": 2, "orphan": 3}
        found = sorted(self.findings, key=lambda f: (order[f.kind], f.path, f.object))
        return Report(
            findings=tuple(found),
            objects=sum(not path.startswith(CACHE) for path in self.objects),
            bytes_read=self.bytes_read,
            nodes=len({row.node_id for row in self.rows}),
            versions=len(versions),
            root=self._root(),
            last_txn_seq=max((row.txn_seq for row in self.rows), default=0),
        )

    def _root(self) -> str | None:
        if any(finding.is_damage for finding in self.findings):
            return None
        self.tell("the content root")
        try:
            return content_root(self.pond.read())
        except MillpondError as error:
            self._note("damaged", "/", None, "", f"the content can't be read: {error.message}")
            return None

    def _note(self, kind: Kind, path: str, version: int | None, object_: str, said: str) -> None:
        size = self.objects.get(object_, 0)
        self.findings.append(Finding(kind, path, version, object_, said, size))

    def _check(self, prefix: str) -> TableCheck:
        """One Delta table of the pond."""
        self.tell(prefix)
        place = f"{self.pond.location}/{prefix}"
        mine = self._by_table.get(prefix, {})
        return TableCheck.of(place, mine, settings=self.pond.settings)

    def _grouped(self, objects: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Objects by the Delta table that they belong to."""
        found: dict[str, dict[str, int]] = {}
        for path, size in objects.items():
            top, _, rest = path.partition("/")
            if top == "tables":
                node_id, _, rest = rest.partition("/")
                top = f"{top}/{node_id}"
            found.setdefault(top, {})[rest] = size
        return found

    # The OpLog

    def _oplog(self) -> TableCheck:
        check = self._check("data")
        check.check_files()
        bad = {p.object for p in check.problems if p.kind in ("damaged", "missing")}
        for life in check.live():
            if life.path not in bad:
                self._read_rows(check, life.path, life.partition.get(PARTITION) or "")
        self.names = NodeNames(self.rows)
        self.bytes_read += check.bytes_read
        live = {life.path for life in check.live()}
        for problem in check.problems:
            is_rows = problem.object.startswith(PARTITION)
            if problem.kind == "missing" and is_rows and problem.object not in live:
                continue  # it was compacted, and vacuumed since
            self._note(problem.kind, self._place_of(problem, check), None,
                       f"data/{problem.object}", problem.message)  # fmt: skip
        if not bad:
            self._orphans(check, "data")
        self._check_parents()
        return check

    def _read_rows(self, check: TableCheck, path: str, part_id: str) -> None:
        try:
            file = RowFile(check.store, path)
            rows = file.rows(part_id)
            for row, content in zip(rows, file.contents(), strict=True):
                if content is not None:
                    self._inline.add((row.part_id, row.node_id, row.txn_seq))
                    if row.blake3 is not None and digest_of(content) != row.blake3:
                        said = f"the content of {row.name} is not what was written"
                        self._note("damaged", row.name, row.version, f"data/{path}", said)
            self.rows += rows
        except (IntegrityError, ObjectNotFoundError) as error:
            self._note("damaged", part_id, None, f"data/{path}", error.message)

    def _place_of(self, problem: Problem, check: TableCheck) -> str:
        """The directory whose rows an object has; of a commit, what its transaction wrote."""
        if problem.object.startswith(f"{PARTITION}="):
            part_id = problem.object.partition("/")[0].removeprefix(f"{PARTITION}=")
            return self.names.path(part_id)
        said = check.said.get(-1 if problem.first is None else problem.first, {})
        seq = (said.get(INFO) or {}).get("txn_seq") if isinstance(said, dict) else None
        written = [row for row in self.rows if seq and row.txn_seq == seq]
        return self.names.path(written[0].node_id) if len(written) == 1 else "/"

    def _check_parents(self) -> None:
        """Every node is listed by a directory that there is, or was."""
        known = {row.node_id for row in self.rows if row.entry_type.is_directory}
        for row in self.rows:
            if row.part_id != ROOT and row.part_id not in known:
                said = f"{row.name} is listed by a directory that is not there"
                self._note("missing", self.names.path(row.node_id), row.version,
                           f"data/{PARTITION}={row.part_id}", said)  # fmt: skip

    # Bytes

    def _blobs(self) -> None:
        wanted: dict[str, Row] = {}
        for row in self.rows:
            inline = (row.part_id, row.node_id, row.txn_seq) in self._inline
            moved = row.removed and MOVED_TO in row.attributes
            if row.entry_type.is_bytes and row.blake3 and not inline and not moved:
                wanted.setdefault(row.blake3, row)
        self.tell("blobs")
        for digest, row in wanted.items():
            self._blob(digest, row)
        named = {blob_path(digest) for digest in wanted}
        for path, size in self.objects.items():
            if path.startswith("blobs/") and path not in named:
                said = "no version of any file has this content"
                self.findings.append(Finding("orphan", "", None, path, said, size))

    def _blob(self, digest: str, row: Row) -> None:
        object_, path = blob_path(digest), self.names.path(row.node_id)
        if object_ not in self.objects:
            self._note("missing", path, row.version, object_, f"the content of {path} is gone")
            return
        found = stream_digest(self.pond.store.get_stream(object_))
        self.bytes_read += self.objects[object_]
        if found != digest:
            said = (
                f"the content of {path} is damaged: its hash is {found[:16]}…, not {digest[:16]}…"
            )
            self._note("damaged", path, row.version, object_, said)

    # Tables

    def _table(self, node_id: str, rows: list[Row]) -> None:
        prefix = f"tables/{node_id}"
        path = self.names.path(node_id)
        named: dict[int, int] = {}
        staged: list[str] = []
        for row in rows:
            if row.delta_version is not None:
                named.setdefault(row.delta_version, row.version)
                staged = (row.staged_commit or "").split()
        check = self._check(prefix)
        check.take_staged(staged)
        if not all(map(check.exists, named)):  # it may have been written since we looked
            newer = {meta.path: meta.size for meta in self.pond.store.list(f"{prefix}/")}
            self.objects |= newer
            self._by_table |= self._grouped(newer)
            check = self._check(prefix)
            check.take_staged(staged)
        check.check_files()
        self.bytes_read += check.bytes_read
        for row in rows:
            self._named_commits(check, row, prefix, path)
        for version, node_version in named.items():
            if not check.exists(version):
                said = f"version {version} of the table of {path} is gone"
                self._note("missing", path, node_version, f"{prefix}/_delta_log", said)
        for problem in check.problems:
            self._table_problem(problem, prefix, path, named)
        if not any(problem.kind in ("damaged", "missing") for problem in check.problems):
            self._orphans(check, prefix, path)

    def _named_commits(self, check: TableCheck, row: Row, prefix: str, path: str) -> None:
        """Note commits that are not the ones that a row of the OpLog has ratified."""
        for staged in (row.staged_commit or "").split():
            version = int(staged.rpartition("/")[2][:20])
            if not is_staged_as(staged, check.seals.get(version)):
                said = f"the commit of version {version} is not the one that the OpLog names"
                place = f"{prefix}/{log_path(commit_name(version))}"
                self._note("damaged", path, row.version, place, said)

    def _table_problem(
        self, problem: Problem, prefix: str, path: str, named: Mapping[int, int]
    ) -> None:
        first = problem.first or 0
        last = max(named, default=0) if problem.last is None else problem.last
        concerned = sorted(v for version, v in named.items() if first <= version <= last)
        if not concerned and problem.kind == "missing":
            return  # no version needs it
        shown = ""
        if len(concerned) > 1:
            shown = f" (versions {concerned[0]} to {concerned[-1]} of {path})"
        elif concerned:
            shown = f" (version {concerned[0]} of {path})"
        self._note(problem.kind, path, concerned[0] if concerned else None,
                   f"{prefix}/{problem.object}", f"{problem.message}{shown}")  # fmt: skip

    def _orphans(self, check: TableCheck, prefix: str, path: str = "") -> None:
        for name, size in check.orphans():
            said = "no version needs it: pond maintain removes it when it is old enough"
            self.findings.append(Finding("orphan", path, None, f"{prefix}/{name}", said, size))

    def _strays(self) -> None:
        """Objects that belong to nothing."""
        known = {row.node_id for row in self.rows}
        places = ("data/", "blobs/", "control/", CACHE)
        for path, size in self.objects.items():
            top, _, rest = path.partition("/")
            if path.startswith(places) or (top == "tables" and rest.partition("/")[0] in known):
                continue
            said = "it belongs to no node" if top == "tables" else "it is no part of a pond"
            self.findings.append(Finding("orphan", "", None, path, said, size))

    # The control table

    def _control(self, oplog: TableCheck) -> None:
        check = self._check("control")
        check.check_files()
        self.bytes_read += check.bytes_read
        live = {life.path for life in check.live()}
        for problem in check.problems:
            if problem.kind != "missing" or problem.object in live or "_log" in problem.object:
                self._note(problem.kind, "control", None, f"control/{problem.object}",
                           f"{problem.message}; pond control rebuild makes it again")  # fmt: skip
        if check.newest < 0:
            said = "the control table is gone; pond control rebuild makes it again"
            self._note("missing", "control", None, "control/_delta_log", said)
        for path in check.objects:
            if path.startswith((f"{SETTINGS}/", f"{OPEN}/")) and not _is_good(check, path):
                said = f"{path} can't be read"
                self._note("damaged", "control", None, f"control/{path}", said)
        if not any(finding.is_damage for finding in self.findings):
            self._missing_transactions(oplog)

    def _missing_transactions(self, oplog: TableCheck) -> None:
        """What the control table has seen committed has to be in the OpLog."""
        last: dict[str, Any] = oplog.said.get(oplog.newest, {}).get(INFO) or {}
        table = self.pond.control.rows_in("transaction", self.pond.control.log.open())
        seqs = [seq for seq in table.column("txn_seq").to_pylist() if seq is not None]
        newest = max(seqs, default=0)
        if newest > int(last.get("txn_seq", newest)):
            said = f"transaction {newest} was committed, but the OpLog ends with {last['txn_seq']}"
            self._note("missing", "/", None, "data/_delta_log", said)


def _is_good(check: TableCheck, path: str) -> bool:
    """Whether a note beside the control table can be read; one that is gone by now is no harm."""
    try:
        text = check.store.get(path)
        if path.startswith(f"{SETTINGS}/"):
            return is_intact(text) is True
        return bool(from_text(text))
    except ObjectNotFoundError:
        return True
    except (ValueError, json.JSONDecodeError):
        return False

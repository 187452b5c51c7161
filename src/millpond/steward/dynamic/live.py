"""What is live in a stored table, noted for the next one who asks.

To look into a thousand logs takes longer than to read a thousand notes. A note is of one version;
behind it only the commits that came since are read, so an append costs the same after a thousand.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from millpond.base.errors import ObjectNotFoundError
from millpond.kernel.names import commit_name
from millpond.kernel.write.commit import log_path
from millpond.plan.typejson import schema_from_json, schema_to_json
from millpond.provider.rows import key_of
from millpond.steward.dynamic.shortlog import Fact, Live, fact_of, is_plain, read_short

if TYPE_CHECKING:
    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.provider.kept import Kept
    from millpond.steward.scope import Scope

FEW_COMMITS: Final = 3
"""So many are read as fast as a note, and faster than one is written."""
_COLUMNS: Final = ("path", "size", "stats", "deletionVector", "modificationTime", "tags")


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """Finds what is live in a version of a node's table."""

    scope: Scope
    row: Row
    kept: Kept | None
    """Where notes are; None in a transaction, whose tables are not as the log has them."""

    def find(self) -> Live:
        """What is live."""
        if self.kept is None:
            return self._from_table()
        if self._version <= FEW_COMMITS:
            return self._read(None) or self._from_table()
        noted = self._noted()
        if noted is not None and noted.version == self._version:
            return noted
        found = self._read(noted) or self._read(None) or self._from_table()
        if noted is None or found.version - noted.version >= FEW_COMMITS:
            self._note(found)
        return found

    @property
    def _version(self) -> int:
        return self.row.delta_version or 0

    @property
    def _time(self) -> str | None:
        return self.row.time_column

    def _read(self, since: Live | None) -> Live | None:
        """From the log, line by line, where that is short or goes on from what is known."""
        tables, node = self.scope.pond.tables, self.row.node_id
        return read_short(
            tables.store(node), tables.place(node), self._version, self._time, since=since
        )

    def _from_table(self) -> Live:
        table: DeltaTable = self.scope.table_of(self.row)
        rows = table.files(columns=_COLUMNS).to_arrow().to_pylist()
        files = {row["path"]: fact_of(row, self._time) for row in rows}
        plain = is_plain(table.protocol, table.metadata)
        hidden = any(fact.hidden is not None for fact in files.values())
        # In a transaction, some of it is not where the others look.
        can_scan = plain and not hidden and self.kept is not None
        return Live(self._version, table.schema, files, is_plain=can_scan)

    # Notes

    @property
    def _key(self) -> str:
        return key_of("live by age", self.row.node_id, self._time)

    def _noted(self) -> Live | None:
        """The note, if what it tells of is in the history of this version."""
        assert self.kept is not None
        text = self.kept.read_text(self._key)
        if text is None:
            return None
        said: dict[str, Any] = json.loads(text)
        version: int = said["version"]
        # Who has put back an old state of the pond has other commits of the same numbers.
        if version > self._version or said["commit"] != self._commit(version):
            return None
        files = {fact.path: fact for fact in (Fact(*each) for each in said["files"])}
        return Live(version, schema_from_json(said["schema"]), files, is_plain=said["is_plain"])

    def _note(self, found: Live) -> None:
        assert self.kept is not None
        commit = self._commit(found.version)
        if commit is None:
            return
        said = {
            "version": found.version,
            "commit": commit,
            "schema": schema_to_json(found.schema),
            "is_plain": found.is_plain,
            "files": [astuple(fact) for fact in found.files.values()],
        }
        self.kept.write_text(self._key, json.dumps(said))

    def _commit(self, version: int) -> str | None:
        """Names the commit that made a version, if it is still there."""
        store = self.scope.pond.tables.store(self.row.node_id)
        try:
            return blake3(store.get(log_path(commit_name(version)))).hexdigest(length=16)
        except ObjectNotFoundError:
            return None

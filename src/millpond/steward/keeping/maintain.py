"""The upkeep of a pond: checkpoints, compaction, and, if that is wanted, the removal of garbage.

    recover what a crash left -> compact tables, OpLog, control table -> checkpoints -> vacuum

Content stays what it is, and so does every version. What would be deleted is only told, unless
`dry_run` is False; it is at least as old as `retention`, and no scope of this process needs it.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from millpond.base.errors import ConfigError
from millpond.kernel.table import delta_table
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.steward.control.settings import RETENTION_DAYS
from millpond.steward.control.upkeep import compact as compact_control
from millpond.steward.keeping.compaction import Compacted, compact_oplog, compact_table, table_nodes
from millpond.steward.keeping.vacuum import Garbage, delete_garbage, find_garbage

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from millpond.kernel.table import DeltaTable
    from millpond.steward.control.rebuild import Synced
    from millpond.steward.pond import Pond

CHECKPOINT_AFTER: Final = 5
"""A table with fewer commits behind its last checkpoint is opened fast enough."""
_log = logging.getLogger("millpond.steward")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What was done, and what was or would be deleted."""

    synced: Synced
    compacted: tuple[Compacted, ...]
    checkpoints: tuple[str, ...]
    """Paths of tables, `oplog`, `control`."""
    garbage: tuple[Garbage, ...]
    is_deleted: bool
    before: datetime
    """What was needed at this time or later is kept."""
    swept: int = 0
    """Leftovers of puts that were never finished."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the garbage, by kind."""

    @property
    def bytes(self) -> int:
        """All garbage."""
        return sum(item.size for item in self.garbage)

    def counts(self) -> dict[str, int]:
        """How many objects are garbage, by kind."""
        return dict(Counter(item.kind for item in self.garbage))


def maintain(
    pond: Pond,
    *,
    dry_run: bool = True,
    retention: timedelta | None = None,
    compact: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Maintenance:
    """Look after a pond; see above."""
    tell = progress or _log.debug
    keep = _retention(pond, retention)
    tell("recover")
    synced = pond.sync()
    compacted = _compact(pond, tell) if compact else ()
    checkpoints = _checkpoints(pond, {each.path for each in compacted}, tell)
    tell("vacuum")
    before = _before(pond, keep)
    garbage = find_garbage(pond, before)
    swept = 0
    if not dry_run:
        garbage = delete_garbage(pond, garbage, before)
        swept = pond.store.sweep(before=before)
    sizes: dict[str, int] = {}
    for item in garbage:
        sizes[item.kind] = sizes.get(item.kind, 0) + item.size
    return Maintenance(
        synced, compacted, checkpoints, tuple(garbage), not dry_run, before, swept, sizes
    )


def _retention(pond: Pond, given: timedelta | None) -> timedelta:
    if given is None:
        return timedelta(days=pond.control.setting(RETENTION_DAYS))
    if given < timedelta():
        raise ConfigError(f"a retention of {given} lies in the future", hint="give days or hours")
    return given


def _before(pond: Pond, keep: timedelta) -> datetime:
    """What is older can go: older than the retention, and than every transaction at work."""
    opened = [found.begun for found in pond.control.incomplete()]
    return min([pond.clock.now() - keep, *opened])


def _compact(pond: Pond, tell: Callable[[str], None]) -> tuple[Compacted, ...]:
    found = []
    for path, _ in list(table_nodes(pond.read())):
        tell(path)
        found.append(compact_table(pond, path))
    tell("oplog")
    found.append(compact_oplog(pond))
    tell("control")
    compact_control(pond.control.log)
    pond.refresh()
    return tuple(item for item in found if item is not None)


def _checkpoints(pond: Pond, compacted: set[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """A commit that replaced many files takes long to read, so it is not left behind the last."""
    made = []
    oplog = pond.oplog.log.table()
    if _commits_since(oplog):
        tell("checkpoint of the oplog")
        write_checkpoint(oplog)
        made.append("oplog")
    control = pond.control.log.table()
    if _commits_since(control) >= CHECKPOINT_AFTER:
        tell("checkpoint of the control table")
        write_checkpoint(control)
        made.append("control")
    for path, row in table_nodes(pond.read()):
        place = pond.tables.place(row.node_id)
        table = delta_table(place, row.delta_version, settings=pond.settings)
        behind = _commits_since(table)
        if behind >= CHECKPOINT_AFTER or (behind and path in compacted):
            tell(f"checkpoint of {path}")
            write_checkpoint(table)
            made.append(path)
    return tuple(made)


def _commits_since(table: DeltaTable) -> int:
    segment = table.snapshot.segment
    return table.version - (segment.checkpoint.version if segment.checkpoint is not None else -1)

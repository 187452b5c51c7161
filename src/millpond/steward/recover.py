"""What a crash left: transactions that were not published, and records that were not written.

Who goes on from a transaction publishes it first, so only the last one can be unpublished. That is
looked at whenever a pond is opened; `recover` also looks through the control table.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.base.errors import DeltaError, IntegrityError, StoreError
from millpond.fs.oplog.persistence import state_of
from millpond.steward.control import Record
from millpond.steward.process import is_at_work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond


_log = logging.getLogger("millpond.steward")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found and mended."""

    published: int = 0
    """Commits of tables that stood in the OpLog and now are published."""
    completed: tuple[int, ...] = ()
    """Transactions that were committed, and whose records were not."""
    failed: tuple[str, ...] = ()
    """Transactions that died before they were committed, by their ids."""
    running: tuple[str, ...] = field(default=())
    """Transactions that began a moment ago, and may still be at work."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing had to be done."""
        return not (self.published or self.completed or self.failed)


def finish_last(pond: Pond, tree: Tree) -> int:
    """Publish what the last transaction staged; how much of it was not published yet.

    Who may only read can do without: tables are read from what is staged, then.
    """
    try:
        return pond.tables.publish(state_of(tree).last.get("staged", ()))
    except (StoreError, DeltaError, IntegrityError) as error:
        _log.warning("the last transaction of %s is not published: %s", pond.location, error)
        return 0


def recover(pond: Pond, *, patience_s: float = 0.0) -> Recovery:
    """Finish what was committed, and mark as failed what was not; doing so twice is harmless.

    What a process of this machine is still at work on is left alone. Of other machines nothing is
    known: what began there longer than `patience_s` seconds ago is taken for dead.
    """
    tree = pond.oplog.latest()
    published = pond.tables.publish(state_of(tree).last.get("staged", ()))
    committed = _committed(pond)
    completed: list[int] = []
    failed: list[str] = []
    running: list[str] = []
    records: list[Record] = []
    for txn_id, record in sorted(_incomplete(pond).items()):
        seq = committed.get(txn_id)
        if _is_running(pond, txn_id, record, patience_s):
            running.append(txn_id)
        elif seq is not None:
            completed.append(seq)
            records += _ending(record, txn_id, seq)
        else:
            failed.append(txn_id)
            records.append(
                Record(
                    record_type="failed",
                    txn_id=txn_id,
                    transaction_type=record["transaction_type"],
                    error_message="it ended before it was committed; nothing of it was kept",
                )
            )
    if records:
        pond.control.append(records)
    return Recovery(published, tuple(sorted(completed)), tuple(failed), tuple(running))


def _ending(record: Mapping[str, Any], txn_id: str, seq: int) -> list[Record]:
    """The records that are missing of a transaction that was committed."""
    missing = ("data_committed", "completed")
    return [
        Record(
            record_type=kind,
            txn_seq=seq,
            txn_id=txn_id,
            transaction_type=record["transaction_type"],
        )
        for kind in (missing[1:] if record["record_type"] == missing[0] else missing)
    ]


def _is_running(pond: Pond, txn_id: str, record: Mapping[str, Any], patience_s: float) -> bool:
    said: dict[str, Any] = json.loads(record.get("environment") or "{}")
    known = is_at_work(txn_id, said.get("process", {}))
    if known is not None:
        return known
    return bool((pond.clock.now() - record["timestamp"]).total_seconds() < patience_s)


def _incomplete(pond: Pond) -> dict[str, dict[str, Any]]:
    """Transactions that have begun and have no end in the control table, with their last record."""
    found: dict[str, dict[str, Any]] = {}
    for row in pond.control.records():
        txn_id = row["txn_id"]
        if row["record_category"] != "transaction" or txn_id is None:
            continue
        if row["record_type"] in ("completed", "failed"):
            found.pop(txn_id, None)
        elif row["record_type"] in ("begin", "data_committed"):
            environment = row["environment"] or found.get(txn_id, {}).get("environment")
            found[txn_id] = {**row, "environment": environment}
    return found


def _committed(pond: Pond) -> dict[str, int]:
    """The number of each transaction that the OpLog has, by its id."""
    found: dict[str, int] = {}
    for entry in pond.oplog.log.table().history():
        said = entry.get("millpond") or {}
        if "txn_id" in said:
            found[said["txn_id"]] = said["txn_seq"]
    return found

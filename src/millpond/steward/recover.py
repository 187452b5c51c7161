"""What a crash left: transactions that were not published, and records that were not written.

Who goes on from a transaction publishes it first, so only the last one can be unpublished. That is
looked at whenever a pond is opened; `recover` also looks through the control table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.fs.oplog.persistence import state_of
from millpond.steward.control import Record

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond


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
    """Publish what the last transaction staged; how much of it was not published yet."""
    return pond.tables.publish(state_of(tree).last.get("staged", ()))


def recover(pond: Pond, *, patience_s: float = 0.0) -> Recovery:
    """Finish what was committed, and mark as failed what was not; doing so twice is harmless."""
    tree = pond.oplog.refresh(pond.oplog.latest())
    published = finish_last(pond, tree)
    committed = _committed(pond)
    completed: list[int] = []
    failed: list[str] = []
    running: list[str] = []
    records: list[Record] = []
    now = pond.clock.now()
    for txn_id, record in sorted(_incomplete(pond).items()):
        seq = committed.get(txn_id)
        if seq is not None:
            completed.append(seq)
            records += [
                Record(record_type=kind, txn_seq=seq, txn_id=txn_id,
                       transaction_type=record["transaction_type"])
                for kind in (("completed",) if record["record_type"] == "data_committed"
                             else ("data_committed", "completed"))
            ]  # fmt: skip
        elif (now - record["timestamp"]).total_seconds() < patience_s:
            running.append(txn_id)
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
            found[txn_id] = row
    return found


def _committed(pond: Pond) -> dict[str, int]:
    """The number of each transaction that the OpLog has, by its id."""
    found: dict[str, int] = {}
    for entry in pond.oplog.log.table().history():
        said = entry.get("millpond") or {}
        if "txn_id" in said:
            found[said["txn_id"]] = said["txn_seq"]
    return found

"""What a crash left: transactions that were not published, and records that were not written.

Who goes on from a transaction publishes it first, so only the last one can be unpublished. That is
looked at whenever a pond is opened; `recover` also looks through the control table.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.base.errors import DeltaError, IntegrityError, StoreError, TableNotFoundError
from millpond.fs.oplog.persistence import state_of
from millpond.steward.committing.postcommit import KIND, followers, resume
from millpond.steward.control.process import is_at_work
from millpond.steward.control.settings import IDENTITY
from millpond.steward.control.table import Record

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.control.records import Transaction
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
    followed: tuple[str, ...] = ()
    """Nodes that had to run after a commit, and now have, or are known to have failed."""
    control_made: bool = False
    """Whether the control table was not there, or did not know whose it is."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing had to be done."""
        done = self.published or self.completed or self.failed or self.followed
        return not (done or self.control_made)


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
    control_made = _make_control(pond)
    opened = sorted(pond.control.incomplete(), key=lambda found: found.txn_id)
    dead = [found for found in opened if not _is_running(pond, found, patience_s)]
    running = tuple(found.txn_id for found in opened if found not in dead)
    committed = _committed(pond) if dead else {}
    completed: list[int] = []
    failed: list[str] = []
    followed: list[str] = []
    for found in dead:
        seq = committed.get(found.txn_id)
        if found.state.startswith(KIND):
            continue
        if seq is None:
            failed.append(found.txn_id)
            said = "it ended before it was committed; nothing of it was kept"
            ending = _record("failed", found, error_message=said)
            pond.control.append([ending])
            continue
        completed.append(seq)
        if found.state == "begin":  # nothing has run after it yet
            for follower in followers(pond, str(found.kind), tree, seq):
                follower.run()
                followed.append(follower.path)
        pond.control.append(_ending(found, seq))
    for found in dead:
        if found.state.startswith(KIND):
            resume(pond, found)
            followed.append(str(found.config_path))
    return Recovery(
        published,
        tuple(sorted(completed)),
        tuple(failed),
        running,
        tuple(followed),
        control_made,
    )


def _make_control(pond: Pond) -> bool:
    """A process may have died when it made the pond; whether the control table was not finished."""
    from millpond.steward.control.rebuild import rebuild

    try:
        pond.control.newest_version()
    except TableNotFoundError:
        rebuild(pond)
        return True
    if any(key.startswith(IDENTITY) for key in pond.control.metadata()):
        return False
    pond.control.note(dict(pond.oplog.identity()))
    return True


def _ending(found: Transaction, seq: int) -> list[Record]:
    """The records that are missing of a transaction that was committed."""
    missing = ("data_committed", "completed")
    kinds = missing[1:] if found.state == missing[0] else missing
    return [_record(kind, found, txn_seq=seq) for kind in kinds]


def _record(kind: str, found: Transaction, **facts: Any) -> Record:
    return Record(record_type=kind, txn_id=found.txn_id, transaction_type=found.kind, **facts)


def _is_running(pond: Pond, found: Transaction, patience_s: float) -> bool:
    known = is_at_work(found.txn_id, found.environment.get("process", {}))
    if known is not None:
        return known
    return bool((pond.clock.now() - found.begun).total_seconds() < patience_s)


def _committed(pond: Pond) -> dict[str, int]:
    """The number of each transaction that the OpLog has, by its id."""
    found: dict[str, int] = {}
    for entry in pond.oplog.log.table().history():
        said = entry.get("millpond") or {}
        if "txn_id" in said:
            found[said["txn_id"]] = said["txn_seq"]
    return found

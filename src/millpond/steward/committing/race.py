"""Steps 3 and 4 of a commit: tables are staged, and the OpLog commit is put behind those of others.

Who is overtaken waits for its turn, goes behind what has come, node by node, and tries again.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CommitError,
    ConflictError,
    IntegrityError,
    SchemaError,
    WriteConflictError,
)
from millpond.fs.oplog.persistence import state_of
from millpond.fs.persistence import Commit
from millpond.fs.rebase import rebase
from millpond.steward.committing.steps import step
from millpond.steward.committing.turn import Turn
from millpond.steward.tables.writing import append_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.tree import Tree
    from millpond.fs.working import Draft
    from millpond.kernel.table import DeltaTable
    from millpond.steward.tables.pending import PendingTable
    from millpond.steward.write import WriteScope

MOST_ATTEMPTS: Final = 500
LONGEST_WAIT: Final = 1.0
LONGEST_QUEUE: Final = 4
"""So many attempts of one's own are waited for at most."""
_log = logging.getLogger("millpond.steward")


class Race:
    """One transaction on its way to the moment."""

    def __init__(self, scope: WriteScope) -> None:
        self.scope = scope
        self.turn = Turn(scope.pond.location)
        self.attempts = 0
        self.trying: Tree | None = None
        """The tree behind which a put has begun whose answer is not there yet."""
        self.made: Tree | None = None
        """The tree with the transaction: the moment has passed."""

    def stage(self) -> None:
        """Stage the commits of tables, and note them in the rows of their nodes."""
        scope = self.scope
        used = {node_id for _, node_id in scope.work.drafts}
        for node_id in [node_id for node_id in scope.pending if node_id not in used]:
            scope.pending.pop(node_id).rollback()  # it was made and removed again
        for pending in scope.pending.values():
            with step("stage_table"):
                pending.stage()
        for key in [key for key in scope.work.drafts if key[1] in scope.pending]:
            self._note(key)

    def staged(self) -> list[dict[str, Any]]:
        """What is staged, for whoever publishes it."""
        return [
            {
                "node_id": node_id,
                "version": pending.table.version,
                "paths": [staged.path for staged in pending.staged],
            }
            for node_id, pending in self.scope.pending.items()
            if pending.staged
        ]

    def run(self, info: Mapping[str, Any]) -> None:
        """Put the OpLog commit; who comes second goes behind, or is in the way."""
        tree = self.scope.work.base
        for self.attempts in range(1, MOST_ATTEMPTS + 1):
            begun = time.monotonic()
            self._publish(tree)
            stranger = self._stranger()
            if stranger is None and self._put(tree, info):
                return
            if not self.turn.take():
                self._wait(time.monotonic() - begun)
            newer = self.scope.pond.oplog.refresh(tree)
            if stranger is not None and newer is tree:
                raise _went_round(stranger)
            tree = newer
            self._publish(tree)
            self._rebase(tree)
            if not self.scope.work.drafts:  # others have made all of it
                return
        raise WriteConflictError(
            f"the pond is busy: {MOST_ATTEMPTS} attempts to commit were overtaken",
            path="/",
            hint="try again",
        )

    def _publish(self, tree: Tree) -> None:
        """Whoever goes on from a transaction sees to it that it is published."""
        try:
            self.scope.pond.tables.publish(state_of(tree).last.get("staged", ()))
        except (IntegrityError, ConflictError) as error:
            # One table is damaged, and waiting would not mend it; other nodes can be written.
            _log.error("transaction %d can't be published: %s", tree.txn_seq, error)

    def _put(self, tree: Tree, info: Mapping[str, Any]) -> bool:
        scope, staged = self.scope, self.staged()
        if scope.pond.oplog.is_overtaken(tree):
            return False
        rows = [draft.row for draft in scope.work.drafts.values()]
        said = {**info, **({"staged": staged} if staged else {})}
        self.trying = tree
        self.made = scope.pond.oplog.commit(tree, rows, Commit(scope.txn_id, said))
        if self.made is None:
            self.trying = None
        return self.made is not None

    def _wait(self, spent: float) -> None:
        """Make room for others: the more of them there are, the longer an attempt takes."""
        time.sleep(random.uniform(0, min(LONGEST_WAIT, spent * min(self.attempts, LONGEST_QUEUE))))

    def _stranger(self) -> PendingTable | None:
        """A table whose next version is there: by another transaction, or by who knows whom."""
        for node_id, pending in self.scope.pending.items():
            if pending.staged and self.scope.pond.tables.has(node_id, pending.staged[0].version):
                return pending
        return None

    def _rebase(self, onto: Tree) -> None:
        scope = self.scope
        older = scope.work
        scope.work = scope.tree = rebase(older, onto)
        joined = {row.node_id: node_id for node_id, row in scope.work.joined.items()}
        for key, draft in list(scope.work.drafts.items()):
            before, mine = older.drafts.get(key), joined.get(key[1], key[1])
            pending = scope.pending.get(mine)
            if pending is None or draft.base is None or (before and draft.base == before.base):
                continue
            try:
                newer = scope.pond.tables.open(draft.base)
                if mine == key[1]:
                    pending.restage(newer)
                else:
                    self._append(mine, draft, newer)
            except (SchemaError, CommitError) as error:
                raise WriteConflictError(
                    f"{draft.path} was changed meanwhile: {error.message}",
                    path=draft.path,
                    txn_seq=draft.base.txn_seq,
                    hint="look at what is there now, and try again",
                ) from error
            for each in [each for each in scope.work.drafts if each[1] == key[1]]:
                self._note(each)  # also where it was moved to

    def _append(self, node_id: str, draft: Draft, newer: DeltaTable) -> None:
        """Append the rows of a table that this transaction has made to one that others made."""
        scope, base = self.scope, draft.base
        assert base is not None
        joined = append_to(newer, scope.pending[node_id], (base.version, draft.row.version))
        scope.pending[base.node_id] = joined
        scope.pending.pop(node_id).rollback()
        row = replace(draft.row, size=sum(add["size"] for add in joined.adds))
        scope.work.note(replace(draft, row=row))

    def _note(self, key: tuple[str, str]) -> None:
        """Have the row of a node name what is staged for it."""
        drafts = self.scope.work.drafts
        draft, pending = drafts[key], self.scope.pending[key[1]]
        paths = " ".join(staged.path for staged in pending.staged)
        row = replace(draft.row, delta_version=pending.table.version, staged_commit=paths)
        drafts[key] = replace(draft, row=row)


def _went_round(pending: PendingTable) -> WriteConflictError:
    """Once such a commit were ratified, it could never be published."""
    version = pending.staged[0].version
    return WriteConflictError(
        f"{pending.path} can't be written: somebody who went round the pond has put a version "
        f"{version} into its table",
        path=pending.path,
        hint=f"take what you need out of {pending.table.location}, then remove version {version} "
        "and all later ones from its _delta_log",
    )

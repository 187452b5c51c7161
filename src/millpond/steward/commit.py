"""The commit of a transaction, step by step; `design/0007` says why in this order.

1 begin · 2 write · 3 stage · 4 oplog, the moment · 5 publish · 6 data_committed · 7 post_commit ·
8 completed. Before 4 a crash leaves only garbage; after 4 anyone can finish the rest.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import MillpondError, WriteConflictError
from millpond.fs.oplog.persistence import state_of
from millpond.fs.persistence import Commit
from millpond.fs.rebase import rebase
from millpond.steward.control import Record, as_json
from millpond.steward.steps import step

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

MOST_ATTEMPTS: Final = 500
LONGEST_WAIT: Final = 0.25
_log = logging.getLogger("millpond.steward")


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a transaction."""

    txn_seq: int
    version: int
    """Of the OpLog."""
    attempts: int = 1
    is_empty: bool = False


class Committing:
    """One transaction on its way through the steps."""

    def __init__(self, scope: WriteScope, info: dict[str, Any], *, kind: str) -> None:
        self.scope = scope
        self.info = info
        self.kind = kind
        self._began = False
        self._start = time.monotonic()

    @property
    def pond(self) -> Pond:
        """The pond."""
        return self.scope.pond

    def begin(self) -> None:
        """Step 1, once, before anything is put."""
        if self._began:
            return
        self._began = True
        with step("begin"):
            self.pond.control.record(self._record("begin"))

    def run(self) -> Committed:
        """Steps 3 to 8."""
        scope = self.scope
        if not scope.work.drafts:
            self.take_back(None)
            tree = scope.work.base
            return Committed(tree.txn_seq, tree.version, is_empty=True)
        self.begin()
        try:
            with step("stage"):
                self._stage()
            tree, attempts = self._race()
        except BaseException as error:
            self.take_back(error)
            raise
        return self.finish(tree, attempts)

    # Steps 3 and 4

    def _stage(self) -> None:
        """Stage the commits of tables, and note them in the rows of their nodes."""
        scope = self.scope
        for key, draft in list(scope.work.drafts.items()):
            pending = scope.pending.get(key[1])
            if pending is None or draft.row.removed:
                continue
            table = pending.stage()
            row = replace(
                draft.row,
                delta_version=table.version,
                staged_commit=" ".join(staged.path for staged in pending.staged) or None,
            )
            scope.work.drafts[key] = replace(draft, row=row)

    def _race(self) -> tuple[Tree, int]:
        """Put the OpLog commit; who comes second goes behind, or is in the way."""
        scope, oplog = self.scope, self.pond.oplog
        tree = scope.work.base
        with step("oplog"):
            for attempt in range(1, MOST_ATTEMPTS + 1):
                # Whoever goes on from a transaction sees to it that it is published.
                self.pond.tables.publish(state_of(tree).last.get("staged", ()))
                rows = [draft.row for draft in scope.work.drafts.values()]
                made = oplog.commit(tree, rows, Commit(scope.txn_id, self._info()))
                if made is not None:
                    return made, attempt
                time.sleep(random.uniform(0, min(LONGEST_WAIT, 0.004 * attempt)))
                tree = oplog.refresh(tree)
                self.pond.tables.publish(state_of(tree).last.get("staged", ()))
                self._rebase(tree)
        raise WriteConflictError(
            f"the pond is busy: {MOST_ATTEMPTS} attempts to commit were overtaken",
            path="/",
            hint="try again",
        )

    def _rebase(self, onto: Tree) -> None:
        scope = self.scope
        older = scope.work
        scope.work = scope.tree = rebase(older, onto)
        for key, draft in list(scope.work.drafts.items()):
            pending = scope.pending.get(key[1])
            before = older.drafts[key]
            if pending is None or draft.base == before.base or draft.base is None:
                continue
            newer = self.pond.tables.open(draft.base)
            try:
                pending.restage(newer, self.pond.settings)
            except MillpondError as error:
                raise WriteConflictError(
                    f"{draft.path} was changed meanwhile: {error.message}",
                    path=draft.path,
                    txn_seq=draft.base.txn_seq,
                    hint="look at what is there now, and try again",
                ) from error
            row = replace(
                draft.row,
                delta_version=pending.table.version,
                staged_commit=" ".join(staged.path for staged in pending.staged) or None,
            )
            scope.work.drafts[key] = replace(draft, row=row)

    def _info(self) -> dict[str, Any]:
        """What the OpLog commit says of itself: whoever finds it can finish the transaction."""
        staged = [
            {
                "node_id": draft.row.node_id,
                "version": draft.row.delta_version,
                "paths": draft.row.staged_commit.split(),
            }
            for draft in self.scope.work.drafts.values()
            if draft.row.staged_commit and draft.row.node_id in self.scope.pending
        ]
        return {**self.info, "kind": self.kind, **({"staged": staged} if staged else {})}

    # Steps 5 to 8

    def finish(self, tree: Tree, attempts: int) -> Committed:
        """What follows the moment: the data is safe, whatever happens from here on."""
        pond = self.pond
        staged = state_of(tree).last.get("staged", ())
        with step("publish"):
            pond.tables.publish(staged)
        for node_id, pending in self.scope.pending.items():
            pond.tables.keep(node_id, pending.published())
        pond.moved_on(tree)
        self._look_after(tree, staged)
        with step("data_committed"):
            committed = self._record("data_committed", tree)
            followers = pond.post_commit(self.kind, tree)
            if followers:
                pond.control.record(committed)
        with step("post_commit"):
            for follower in followers:
                follower.run(tree.txn_seq)
        with step("completed"):
            done = self._record("completed", tree)
            pond.control.record(*([done] if followers else [committed, done]))
        return Committed(tree.txn_seq, tree.version, attempts)

    def _look_after(self, tree: Tree, staged: Any) -> None:
        try:
            self.pond.tables.look_after(staged)
            self.pond.oplog.log.look_after(tree.version)
        except (MillpondError, OSError) as error:
            _log.warning("the upkeep after transaction %d failed: %s", tree.txn_seq, error)

    # When it fails

    def take_back(self, error: BaseException | None) -> None:
        """Remove what was put, and say why."""
        for pending in self.scope.pending.values():
            pending.rollback()
        if self._began:
            said = "rolled back" if error is None else f"{type(error).__name__}: {error}"
            self.pond.control.record(replace(self._record("failed"), error_message=said))

    def _record(self, kind: str, tree: Tree | None = None) -> Record:
        base = self.scope.work.base
        spent = int((time.monotonic() - self._start) * 1000)
        return Record(
            record_type=kind,
            txn_seq=tree.txn_seq if tree is not None else None,
            txn_id=self.scope.txn_id,
            based_on_seq=base.txn_seq if tree is None else tree.txn_seq - 1,
            transaction_type=self.kind,
            cli_args=as_json(self.info.get("args", self.info.get("message"))),
            environment=as_json(self.info.get("environment", {})) if kind == "begin" else None,
            data_fs_version=tree.version if tree is not None else None,
            duration_ms=None if kind == "begin" else spent,
            parent_txn_seq=self.info.get("parent_txn_seq"),
            execution_seq=self.info.get("execution_seq"),
            factory_name=self.info.get("factory_name"),
            config_path=self.info.get("config_path"),
        )

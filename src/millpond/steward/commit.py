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

import pyarrow as pa

from millpond.base.errors import MillpondError, WriteConflictError
from millpond.fs.oplog.persistence import state_of
from millpond.fs.persistence import Commit
from millpond.fs.rebase import rebase
from millpond.kernel.write.commit import fate_of
from millpond.steward.control import Record, as_json
from millpond.steward.process import OPEN, this_process
from millpond.steward.steps import step

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.pending import PendingTable
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
        self._attempts = 0
        self._trying: Tree | None = None
        """The tree behind which a put has begun whose answer is not there yet."""
        self._made: Tree | None = None

    @property
    def pond(self) -> Pond:
        """The pond."""
        return self.scope.pond

    def begin(self) -> None:
        """Step 1, once, before anything is put."""
        if self._began:
            return
        self._began = True
        OPEN[self.scope.txn_id] = self.scope
        with step("begin"):
            self.pond.control.record(self._record("begin"))

    def run(self) -> Committed:
        """Steps 3 to 8."""
        scope = self.scope
        if not scope.work.drafts:
            self.take_back(None)
            tree = scope.work.base
            return Committed(tree.txn_seq, tree.version, is_empty=True)
        try:
            self.begin()
            with step("stage"):
                self._stage()
            with step("oplog"):
                self._race()
        except BaseException as error:
            self._settle(error)
            if self._made is None or not isinstance(error, Exception):
                raise
        return self._finish()

    # Steps 3 and 4

    def _stage(self) -> None:
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

    def _note(self, key: tuple[str, str]) -> None:
        """Have the row of a node name what is staged for it."""
        drafts = self.scope.work.drafts
        draft, pending = drafts[key], self.scope.pending[key[1]]
        paths = " ".join(staged.path for staged in pending.staged)
        row = replace(draft.row, delta_version=pending.table.version, staged_commit=paths)
        drafts[key] = replace(draft, row=row)

    def _race(self) -> None:
        """Put the OpLog commit; who comes second goes behind, or is in the way."""
        scope, oplog, tables = self.scope, self.pond.oplog, self.pond.tables
        tree = scope.work.base
        for self._attempts in range(1, MOST_ATTEMPTS + 1):
            # Whoever goes on from a transaction sees to it that it is published.
            tables.publish(state_of(tree).last.get("staged", ()))
            stranger = self._stranger()
            if stranger is None:
                rows = [draft.row for draft in scope.work.drafts.values()]
                self._trying = tree
                self._made = oplog.commit(tree, rows, Commit(scope.txn_id, self._info()))
                if self._made is not None:
                    return
                self._trying = None
                time.sleep(random.uniform(0, min(LONGEST_WAIT, 0.004 * self._attempts)))
            newer = oplog.refresh(tree)
            if stranger is not None and newer is tree:
                raise _went_round(stranger)
            tree = newer
            tables.publish(state_of(tree).last.get("staged", ()))
            self._rebase(tree)
        raise WriteConflictError(
            f"the pond is busy: {MOST_ATTEMPTS} attempts to commit were overtaken",
            path="/",
            hint="try again",
        )

    def _stranger(self) -> PendingTable | None:
        """A table whose next version is there: by another transaction, or by who knows whom."""
        for node_id, pending in self.scope.pending.items():
            if pending.staged and self.pond.tables.has(node_id, pending.staged[0].version):
                return pending
        return None

    def _rebase(self, onto: Tree) -> None:
        scope = self.scope
        older = scope.work
        scope.work = scope.tree = rebase(older, onto)
        for key, draft in list(scope.work.drafts.items()):
            pending = scope.pending.get(key[1])
            if pending is None or draft.base == older.drafts[key].base or draft.base is None:
                continue
            try:
                pending.restage(self.pond.tables.open(draft.base))
            except MillpondError as error:
                raise WriteConflictError(
                    f"{draft.path} was changed meanwhile: {error.message}",
                    path=draft.path,
                    txn_seq=draft.base.txn_seq,
                    hint="look at what is there now, and try again",
                ) from error
            self._note(key)

    def _info(self) -> dict[str, Any]:
        """What the OpLog commit says of itself: whoever finds it can finish the transaction."""
        staged = self._staged()
        return {**self.info, "kind": self.kind, **({"staged": staged} if staged else {})}

    def _staged(self) -> list[dict[str, Any]]:
        return [
            {
                "node_id": node_id,
                "version": pending.table.version,
                "paths": [staged.path for staged in pending.staged],
            }
            for node_id, pending in self.scope.pending.items()
            if pending.staged
        ]

    def _settle(self, error: BaseException) -> None:
        """After a failure: if the moment has not passed, everything goes back."""
        tree, fate = self._trying, None
        if self._made is None and tree is not None:
            store, mine = self.pond.oplog.log.store, self.scope.txn_id
            fate = fate_of(store, tree.version + 1, mine, error)
            self._made = self.pond.oplog.refresh(tree) if fate else None
        if self._made is not None:
            self._passed(self._made)
        elif tree is None or fate is False:
            self.take_back(error)
        # Otherwise nobody can know yet, and nothing is touched.

    # Steps 5 to 8

    def _passed(self, tree: Tree) -> Committed:
        """The data is safe, whatever happens from here on."""
        base = self.scope.work.base
        done = Committed(base.txn_seq + 1, base.version + 1, max(self._attempts, 1))
        self.scope.result = done
        self.pond.leave(self.scope)  # what follows a commit may be transactions of their own
        self.pond.moved_on(tree)
        return done

    def _finish(self) -> Committed:
        """What follows the moment: what fails here is left to `recover`, or to who comes next."""
        assert self._made is not None
        done = self._passed(self._made)
        try:
            self._follow(self._made, done)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning(
                "transaction %d is committed, but what follows was left undone: %s",
                done.txn_seq,
                error,
            )
        return done

    def _follow(self, tree: Tree, done: Committed) -> None:
        pond, staged = self.pond, self._staged()
        with step("publish"):
            pond.tables.publish(staged)
        for node_id, pending in self.scope.pending.items():
            pond.tables.keep(node_id, pending.published())
        self._look_after(done, staged)
        with step("data_committed"):
            committed = self._record("data_committed", done)
            followers = pond.post_commit(self.kind, tree, done.txn_seq)
            if followers:
                pond.control.record(committed, *(each.record("pending") for each in followers))
        with step("post_commit"):
            for follower in followers:
                follower.run()
        with step("completed"):
            last = self._record("completed", done)
            pond.control.record(*([last] if followers else [committed, last]))

    def _look_after(self, done: Committed, staged: list[dict[str, Any]]) -> None:
        try:
            self.pond.tables.look_after(staged)
            self.pond.oplog.log.look_after(done.version)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the upkeep after transaction %d failed: %s", done.txn_seq, error)

    # When it fails

    def take_back(self, error: BaseException | None) -> None:
        """Remove what was put, and say why."""
        for pending in self.scope.pending.values():
            pending.rollback()
        if self._began:
            said = "rolled back" if error is None else f"{type(error).__name__}: {error}"
            self.pond.control.record(replace(self._record("failed"), error_message=said))

    def _record(self, kind: str, done: Committed | None = None) -> Record:
        spent = int((time.monotonic() - self._start) * 1000)
        environment = {**self.info.get("environment", {}), "process": this_process()}
        return Record(
            record_type=kind,
            txn_seq=None if done is None else done.txn_seq,
            txn_id=self.scope.txn_id,
            based_on_seq=self.scope.work.base.txn_seq,
            transaction_type=self.kind,
            cli_args=as_json(self.info.get("args", self.info.get("message"))),
            environment=as_json(environment) if kind == "begin" else None,
            data_fs_version=None if done is None else done.version,
            duration_ms=None if kind == "begin" else spent,
            parent_txn_seq=self.info.get("parent_txn_seq"),
            execution_seq=self.info.get("execution_seq"),
            factory_name=self.info.get("factory_name"),
            config_path=self.info.get("config_path"),
        )


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

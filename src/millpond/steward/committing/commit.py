"""The commit of a transaction, step by step; `design/0007` says why in this order.

1 begin · 2 write · 3 stage · 4 oplog, the moment · 5 publish · 6 data_committed · 7 post_commit ·
8 completed. Before 4 a crash leaves only garbage; after 4 anyone can finish the rest.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.kernel.write.commit import fate_of
from millpond.steward.committing.postcommit import run_followers
from millpond.steward.committing.race import Race
from millpond.steward.committing.steps import step
from millpond.steward.control.process import OPEN, this_process
from millpond.steward.control.table import Record, as_json

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

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
        self._race = Race(scope)

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
        if not self.scope.work.drafts:
            return self._nothing()
        try:
            tree = self._pass()
            return self._nothing() if tree is None else self._finish(tree)
        finally:
            self._race.turn.give()

    def _nothing(self) -> Committed:
        """End a transaction that has nothing to commit."""
        base = self.scope.work.base
        self.take_back(None)
        return Committed(base.txn_seq, base.version, is_empty=True)

    def _pass(self) -> Tree | None:
        """Steps 3 and 4: the tree with the transaction; None if others have made all of it."""
        race = self._race
        try:
            self.begin()
            with step("stage"):
                race.stage()
            with step("oplog"):
                race.run({**self.info, "kind": self.kind})
        except BaseException as error:
            self._settle(error)
            if race.made is None or not isinstance(error, Exception):
                raise
        return race.made

    def _settle(self, error: BaseException) -> None:
        """After a failure: if the moment has not passed, everything goes back."""
        race, oplog = self._race, self.pond.oplog
        tree, fate = race.trying, None
        if race.made is None and tree is not None:
            fate = fate_of(oplog.log.store, tree.version + 1, self.scope.txn_id, error)
            race.made = oplog.refresh(tree) if fate else None
        if race.made is not None:
            self._passed(race.made)
        elif tree is None or fate is False:
            self.take_back(error)
        # Otherwise nobody can know yet, and nothing is touched.

    # Steps 5 to 8

    def _passed(self, tree: Tree) -> Committed:
        """The data is safe, whatever happens from here on."""
        base = self.scope.work.base
        done = Committed(base.txn_seq + 1, base.version + 1, max(self._race.attempts, 1))
        self.scope.result = done
        self.pond.leave(self.scope)  # what follows a commit may be transactions of their own
        self.pond.moved_on(tree)
        return done

    def _finish(self, tree: Tree) -> Committed:
        """What follows the moment: what fails here is left to `recover`, or to who comes next."""
        done = self._passed(tree)
        try:
            self._publish()
            self._follow(tree, done)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning(
                "transaction %d is committed, but what follows was left undone: %s",
                done.txn_seq,
                error,
            )
        return done

    def _publish(self) -> None:
        tables = self.pond.tables
        with step("publish"):
            tables.publish(self._race.staged())
        self._race.turn.give()
        for node_id, pending in self.scope.pending.items():
            tables.keep(node_id, pending.published())

    def _follow(self, tree: Tree, done: Committed) -> None:
        pond = self.pond
        self._look_after(done)
        with step("data_committed"):
            committed = self._record("data_committed", done)
            followers = pond.post_commit(self.kind, tree, done.txn_seq)
            if followers:
                pond.control.record(committed, *(each.record("pending") for each in followers))
        with step("post_commit"):
            run_followers(pond, followers)
        with step("completed"):
            last = self._record("completed", done)
            pond.control.record(*([last] if followers else [committed, last]))

    def _look_after(self, done: Committed) -> None:
        try:
            self.pond.tables.look_after(self._race.staged())
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

"""What runs after a write: the executable nodes under `/etc/system.d`, in the order of their paths.

Each is a transaction of its own in the control table, linked to the one that it follows. A failure
is recorded; it neither undoes data nor stops the next. What a follower writes has no followers.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import MillpondError
from millpond.base.ids import TxnId
from millpond.fs.entry import EntryType
from millpond.fs.factory import OFF, command_of, executable
from millpond.fs.paths import child
from millpond.fs.resolve import try_resolve
from millpond.steward.control.process import OPEN, this_process
from millpond.steward.control.settings import mode_key
from millpond.steward.control.table import Record, as_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millpond.fs.command import NodeCommand
    from millpond.fs.entry import Row
    from millpond.fs.tree import TreeLike
    from millpond.steward.control.records import Transaction
    from millpond.steward.pond import Pond
    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope

PLACE: Final = "/etc/system.d"
KIND: Final = "post_commit"
_log = logging.getLogger("millpond.steward")


def followers(pond: Pond, kind: str, tree: TreeLike, parent_seq: int) -> list[Follower]:
    """What is to run after a transaction of a kind."""
    if kind != "write":
        return []
    found = [(path, row) for path, row in nodes(tree) if _mode(pond, row) != OFF]
    return [
        Follower(pond, path, row.factory or "", row.config or "{}", parent_seq, number)
        for number, (path, row) in enumerate(found, 1)
    ]


def run_followers(pond: Pond, followers: Sequence[Follower]) -> None:
    """Run nodes in the order of their paths; one that settles again where a later one has written.

    A node may read what a later one writes. As many rounds as there are nodes settle any chain.
    """
    well: dict[str, bool] = {}
    seen: dict[str, int] = {}
    for follower in followers:
        well[follower.path] = follower.run()
        seen[follower.path] = pond.read(fresh=False).txn_seq
    for _ in followers:
        newest = pond.read(fresh=False).txn_seq
        again = [each for each in followers if seen[each.path] < newest and each.settles]
        for follower in again:
            well[follower.path] = follower.run_again(was_well=well[follower.path])
            seen[follower.path] = pond.read(fresh=False).txn_seq
        if not again:
            return


def nodes(tree: TreeLike) -> Iterator[tuple[str, Row]]:
    """The executable nodes, by path; links to such nodes count, too."""
    top = try_resolve(tree, PLACE)
    todo = [] if top is None or not top.entry_type.is_directory else [(PLACE, top.node_id)]
    found: dict[str, Row] = {}
    while todo:
        place, node_id = todo.pop()
        for name, row in tree.children(node_id).items():
            path = child(place, name)
            if row.entry_type is EntryType.DIRECTORY:
                todo.append((path, row.node_id))
                continue
            at = try_resolve(tree, path) if row.entry_type is EntryType.SYMLINK else None
            real = at.row if at is not None else row
            if real is not None and real.entry_type is EntryType.EXECUTABLE:
                found[path] = real
    yield from sorted(found.items())


def _mode(pond: Pond, row: Row) -> str | None:
    return pond.control.text(mode_key(row.factory or ""))


@dataclass(eq=False)
class Follower:
    """One node that is to run after one transaction."""

    pond: Pond
    path: str
    factory: str
    config: str
    parent_seq: int
    execution_seq: int
    txn_id: str = field(default_factory=lambda: str(TxnId.new()))

    def record(self, state: str, **facts: Any) -> Record:
        """A record of its lifecycle."""
        is_first = state == "pending"
        return Record(
            record_type=f"{KIND}_{state}",
            txn_id=self.txn_id,
            based_on_seq=self.parent_seq,
            transaction_type=KIND,
            environment=as_json({"process": this_process()}) if is_first else None,
            parent_txn_seq=self.parent_seq,
            execution_seq=self.execution_seq,
            factory_name=self.factory,
            config_path=self.path,
            **facts,
        )

    def run(self) -> bool:
        """Run, and record how it went; whether that was well."""
        OPEN[self.txn_id] = self
        control, start = self.pond.control, time.monotonic()
        control.record(self.record("started"))
        try:
            self._run()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
            _log.warning("%s failed after transaction %d: %s", self.path, self.parent_seq, said)
            spent = _millis(start)
            control.record(self.record("failed", error_message=said, duration_ms=spent))
            if not isinstance(error, Exception):
                raise
            return False
        finally:
            OPEN.pop(self.txn_id, None)
        control.record(self.record("completed", duration_ms=_millis(start)))
        return True

    def run_again(self, *, was_well: bool) -> bool:
        """Run once more; it is recorded where it goes otherwise than before."""
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - it undoes no data, whatever it is
            _log.warning("%s failed after transaction %d: %s", self.path, self.parent_seq, error)
            if was_well:
                said = f"{type(error).__name__}: {error}"
                self.pond.control.record(self.record("failed", error_message=said))
            return False
        if not was_well:
            self.pond.control.record(self.record("completed"))
        return True

    @property
    def settles(self) -> bool:
        """Whether it writes nothing where nothing has changed."""
        try:
            return self._command().settles
        except MillpondError:  # it has failed already, and will again
            return False

    def _command(self) -> NodeCommand:
        return command_of(self.factory, self.pond.control.text(mode_key(self.factory)))

    def _run(self) -> None:
        command = self._command()
        run = PostCommitRun(self, json.loads(self.config), command.name, command.values({}))
        executable(self.factory).run(run)


@dataclass(frozen=True, slots=True)
class PostCommitRun:
    """What a factory is given: `millpond.fs.factory.Run`."""

    follower: Follower
    config: Mapping[str, Any]
    command: str
    options: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The node."""
        return self.follower.path

    @property
    def parent_txn_seq(self) -> int:
        """The transaction after which it runs."""
        return self.follower.parent_seq

    @property
    def variables(self) -> Mapping[str, str]:
        """What `-v key=value` says."""
        return self.follower.pond.variables

    def tell(self, message: str) -> None:
        """Say what was done."""
        _log.info("%s: %s", self.path, message)

    def read(self) -> ReadScope:
        """A scope that reads the pond, with that transaction in it."""
        return self.follower.pond.read()

    def write(self, message: str | None = None) -> WriteScope:
        """A transaction of its own; nothing runs after it."""
        by = self.follower
        info = {
            "message": message or f"{by.factory} after transaction {by.parent_seq}",
            "parent_txn_seq": by.parent_seq,
            "execution_seq": by.execution_seq,
            "factory_name": by.factory,
            "config_path": by.path,
        }
        return by.pond.begin(info, kind=KIND)


def resume(pond: Pond, found: Transaction) -> bool:
    """Bring a follower to its end whose process has died; whether it ran well.

    One that had not been started runs now. What another one has done nobody knows: it has failed.
    """
    assert found.parent_txn_seq is not None
    assert found.execution_seq is not None
    row = dict(nodes(pond.read().tree)).get(found.config_path or "")
    made = Follower(
        pond,
        found.config_path or "",
        found.factory_name or "",
        (row.config if row is not None else None) or "{}",
        found.parent_txn_seq,
        found.execution_seq,
        found.txn_id,
    )
    if found.state == f"{KIND}_pending" and row is not None:
        return made.run()
    said = "its process died while it ran" if row is not None else "its node is gone"
    pond.control.record(made.record("failed", error_message=said))
    return False


def _millis(start: float) -> int:
    return int((time.monotonic() - start) * 1000)

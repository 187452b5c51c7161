"""`Pond`: where everything begins. `open_pond` and `create_pond` are `millpond.open` and `.create`.

A pond is a directory or an object-store URL. It can be opened as often as one likes, by as many
processes as one likes.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import (
    CommitError,
    ConfigError,
    PondExistsError,
    PondNotFoundError,
    ScopeError,
)
from millpond.base.ids import PondId
from millpond.base.redact import safe_info, storable
from millpond.base.settings import Settings
from millpond.base.store import open_store
from millpond.fs.blobs import INLINE_BYTES, Blobs
from millpond.fs.entry import to_micros
from millpond.fs.oplog.persistence import OpLog
from millpond.kernel.engines import plan_engine, row_engine
from millpond.kernel.paths import table_location
from millpond.steward.committing.recover import Recovery, finish_last, recover
from millpond.steward.control.settings import INLINE, RECORD_READS
from millpond.steward.control.table import Control
from millpond.steward.index.tree import Index
from millpond.steward.index.writing import note
from millpond.steward.read import ReadScope
from millpond.steward.tables.node_tables import NodeTables
from millpond.steward.temporal.times import in_utc
from millpond.steward.write import WriteScope, owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from millpond.fs.tree import Tree
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan
    from millpond.steward.committing.postcommit import Follower
    from millpond.steward.control.rebuild import Rebuilt, Synced
    from millpond.steward.handle import Handle
    from millpond.steward.keeping.fsck import Report
    from millpond.steward.keeping.maintain import Maintenance

VARIABLE: Final = "POND"
"""The environment variable that says where the pond is."""


def create_pond(
    location: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Pond:
    """Make a pond; where there is one already, that is an error, and nothing changes.

    >>> create_pond("example").read().txn_seq
    0
    """
    place = table_location(location)
    identity = _identity(clock or SystemClock())
    try:
        OpLog(place, settings=settings, clock=clock).latest()
    except PondNotFoundError:
        pass
    else:
        raise _exists(place)
    try:
        OpLog.create(place, {"pond": identity}, settings=settings, clock=clock)
    except CommitError as error:  # another process was faster
        raise _exists(place) from error
    pond = Pond(place, settings=settings, clock=clock)
    pond.control.create()
    pond.control.note(identity)
    return pond


def open_pond(
    location: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Pond:
    """Open a pond; without a location, the one that the variable POND names.

    What a crashed writer left unfinished is finished here.

    >>> _ = create_pond("example")
    >>> [handle.path for handle in open_pond("example")["/"]]
    []
    """
    given = os.environ.get(VARIABLE) if location is None else location
    if not given:
        raise ConfigError(
            "it is not said which pond is meant",
            hint="set the variable POND, or give a location (--pond)",
        )
    pond = Pond(table_location(given), settings=settings, clock=clock)
    pond.refresh()
    return pond


class Pond:
    """A pond in the hand: `millpond.open(location)`.

    `pond[path]` is a `Handle`, `pond.read()` a `ReadScope`, `pond.write()` a `WriteScope`.

    >>> with create_pond("example") as pond:
    ...     with pond.write("a first note") as tx:
    ...         _ = tx.write_bytes("/note", b"hello")
    ...         committed = tx.commit()
    ...     pond["/note"].read_text(), committed.txn_seq
    ('hello', 1)
    """

    def __init__(
        self, location: str, *, settings: Settings | None = None, clock: Clock | None = None
    ) -> None:
        self.location = location
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.store = open_store(location, settings=settings)
        self.oplog = OpLog(location, settings=settings, clock=self.clock)
        self.blobs = Blobs(self.store, inline_bytes=INLINE_BYTES)
        self.tables = NodeTables(location, settings=settings)
        self.control = Control(location, settings=settings, clock=self.clock)
        self.index = Index.at(location)
        if self.index is not None:
            self.oplog.on_commit = partial(note, self.index)
        self.variables: Mapping[str, str] = {}
        """What `{{ name }}` in configurations of factories stands for."""
        self.caller: Mapping[str, Any] = {}
        """What is recorded of reads: `args`, `environment`."""
        self._scope: ReadScope | None = None
        # Who forgets a transaction without ending it can begin another one.
        self._writing: WeakValueDictionary[object, WriteScope] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"Pond({self.location!r})"

    def __enter__(self) -> Pond:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    @property
    def engine(self) -> str | Executor:
        """The engine for stored rows: as the settings say, else the Arrow engine."""
        if self.settings is not None:
            return row_engine("auto", self.settings)
        chosen = Settings.load().engine
        return "arrow" if chosen == "auto" else chosen

    def engine_for(self, plan: Plan) -> str | Executor:
        """The engine for any rows: the same, but Spark for what only Spark can run."""
        return plan_engine(plan, self.settings)

    # Reading

    def read(self, *, as_of: int | datetime | None = None, fresh: bool = True) -> ReadScope:
        """The pond pinned at its newest state, or as it was after a transaction or at a time.

        A scope never changes. A time without a zone is UTC. Without `fresh`, nobody asks whether
        there is something newer.

        >>> pond = create_pond("example")
        >>> for text in (b"one", b"two"):
        ...     with pond.write() as tx:
        ...         _ = tx.write_bytes("/note", text)
        ...         _ = tx.commit()
        >>> pond.read(as_of=1)["/note"].read_bytes(), pond.read()["/note"].read_bytes()
        (b'one', b'two')
        """
        self.check_open()
        if as_of is None and not fresh and self._scope is not None:
            return self._scope
        if as_of is None:
            scope = self.refresh()
        elif isinstance(as_of, int):
            scope = ReadScope(self, self.oplog.as_of(txn_seq=as_of))
        else:
            scope = ReadScope(self, self.oplog.as_of(micros=to_micros(in_utc(as_of))))
        if self.control.setting(RECORD_READS):
            self.control.record_read(scope.txn_seq, self.caller)
        return scope

    def refresh(self) -> ReadScope:
        """Go on to the newest state; scopes and handles from before go on seeing what they saw."""
        self.check_open()
        if self._scope is None:
            tree = self.oplog.latest()
            finish_last(self, tree)
        else:
            tree = self.oplog.refresh(self._scope.tree)
        known = self._scope
        # Another thread may have seen a newer one meanwhile.
        if known is None or known.tree.version < tree.version:
            self._scope = known = ReadScope(self, tree)
        return known

    def __getitem__(self, path: str) -> Handle:
        return self.read(fresh=False)[path]

    def sql(self, text: str) -> Plan:
        """A query over paths of the newest state, as a plan: see `ReadScope.sql`."""
        return self.read().sql(text)

    # Writing

    def write(self, message: str | None = None, **info: Any) -> WriteScope:
        """Begin a transaction: `with pond.write("why") as tx: ...; tx.commit()`.

        Nobody else sees anything of it before `commit()`, and then all of it at once. The message
        and whatever else is given is kept with the transaction.

        >>> pond = create_pond("example")
        >>> with pond.write("two files", job=17) as tx:
        ...     _ = tx.write_bytes("/a", b"1")
        ...     _ = tx.write_bytes("/b", b"2")
        ...     seen = pond.read().exists("/a"), tx.exists("/a")
        ...     _ = tx.commit()
        >>> seen, pond.read().exists("/b")
        ((False, True), True)
        """
        return self.begin({**({"message": message} if message else {}), **info}, kind="write")

    def begin(self, info: Mapping[str, Any], *, kind: str) -> WriteScope:
        """Begin a transaction of any kind."""
        self.check_open()
        key = owner()
        with self._lock:
            if key in self._writing:
                raise ScopeError(
                    "a transaction of this pond is open in the same task",
                    hint="pass the open one on, or end it first",
                )
            self.blobs.inline_bytes = self.control.setting(INLINE)
            scope = WriteScope(self, self.refresh().tree, safe_info(info), kind=kind)
            self._writing[key] = scope
        return scope

    def leave(self, scope: WriteScope) -> None:
        """A transaction has ended."""
        with self._lock:
            for key, known in list(self._writing.items()):
                if known is scope:
                    del self._writing[key]

    def moved_on(self, tree: Tree) -> None:
        """A transaction of this process has made a new state."""
        known = self._scope
        if known is None or known.tree.version < tree.version:
            self._scope = ReadScope(self, tree)

    def post_commit(self, kind: str, tree: Tree, txn_seq: int) -> list[Follower]:
        """What is to run after a transaction; what runs after commits has no followers itself."""
        from millpond.steward.committing.postcommit import followers

        return followers(self, kind, tree, txn_seq)

    # The pond itself

    def recover(self, *, patience_s: float = 0.0) -> Recovery:
        """Finish what a crash left."""
        self.check_open()
        found = recover(self, patience_s=patience_s)
        self.refresh()
        return found

    def sync(self) -> Synced:
        """Have the control table know all that the OpLog knows."""
        from millpond.steward.control.rebuild import sync

        self.check_open()
        return sync(self)

    def rebuild_control(self) -> Rebuilt:
        """Make the control table anew, from the OpLog and what is left of the old one."""
        from millpond.steward.control.rebuild import rebuild

        self.check_open()
        return rebuild(self)

    def maintain(
        self,
        *,
        dry_run: bool = True,
        retention: timedelta | None = None,
        compact: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> Maintenance:
        """Compact, write checkpoints, and tell what nothing needs; without `dry_run`, delete it.

        `retention` is how long what is not needed any more is kept, by default what the setting
        `maintain.retention_days` says: readers of other processes may still be at it.
        """
        from millpond.steward.keeping.maintain import maintain

        self.check_open()
        return maintain(
            self, dry_run=dry_run, retention=retention, compact=compact, progress=progress
        )

    def fsck(self) -> Report:
        """Check every object of the pond against what was noted when it was written."""
        from millpond.steward.keeping.fsck import fsck

        self.check_open()
        return fsck(self)

    def identity(self) -> dict[str, str]:
        """Who the pond is: id, birth, host, user."""
        return {k: v for k, v in self.control.metadata().items() if k.startswith("pond.")}

    def close(self) -> None:
        """Refuse new work; scopes and handles that are there are left alone."""
        self._is_closed = True
        self.control.flush()

    def check_open(self) -> None:
        """Raise if the pond was closed."""
        if self._is_closed:
            raise ScopeError("this pond is closed", hint="open it again: millpond.open(location)")


def _identity(clock: Clock) -> dict[str, str]:
    return {
        "pond.id": str(PondId.new()),
        "pond.born": clock.now().isoformat(),
        "pond.host": socket.gethostname(),
        "pond.user": _user(),
    }


def _user() -> str:
    try:
        return storable(getpass.getuser())
    except (OSError, KeyError):  # a container without a name for its user
        return str(os.getuid())


def _exists(place: str) -> PondExistsError:
    return PondExistsError(
        f"there is a pond at {place} already",
        location=place,
        hint="use it, or choose another place",
    )

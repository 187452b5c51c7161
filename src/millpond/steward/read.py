"""`ReadScope`: a pond pinned at one version. It never changes and may be shared and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from millpond.base.errors import ScopeError
from millpond.steward.keeping import alive
from millpond.steward.scope import Scope

if TYPE_CHECKING:
    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond


class ReadScope(Scope):
    """A pond as it was at one moment, for ever: `pond.read()`.

    `scope[path]` is a `Handle`. A plan with `stored(path, columns)` is bound to a scope when it is
    run, on either engine.

    >>> import millpond as mp
    >>> pond = mp.create("example")
    >>> with pond.write() as tx:
    ...     _ = tx.write_table("/levels", [{"site": "Weir", "level": 2.9}])
    ...     _ = tx.commit()
    >>> scope = pond.read()
    >>> levels = mp.stored("/levels", {"site": "string", "level": "double"})
    >>> levels.filter(mp.col("level") > 2).to_pylist(scope=scope)
    [{'site': 'Weir', 'level': 2.9}]
    >>> with pond.write() as tx:
    ...     tx.remove("/levels")
    ...     _ = tx.commit()
    >>> scope.exists("/levels"), scope.refresh().exists("/levels")
    (True, False)
    """

    tree: Tree

    def __init__(self, pond: Pond, tree: Tree) -> None:
        self.pond = pond
        self.tree = tree
        alive.note(self)

    def __repr__(self) -> str:
        return f"ReadScope({self.pond.location!r}, txn_seq={self.txn_seq})"

    def __enter__(self) -> ReadScope:
        return self

    def __exit__(self, *args: object) -> None:
        """Nothing has to be given back."""

    @property
    def txn_seq(self) -> int:
        """The last transaction that it sees."""
        return self.tree.txn_seq

    @property
    def version(self) -> int:
        """The version of the OpLog."""
        return self.tree.version

    def refresh(self) -> ReadScope:
        """A new scope with what has come since; this one stays as it is."""
        self.pond.check_open()
        newer = self.pond.oplog.refresh(self.tree)
        return self if newer is self.tree else ReadScope(self.pond, newer)

    # What only a transaction can do

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        """A scope that reads can't be written to."""
        del given, named
        raise ScopeError(
            "this scope only reads",
            hint="with pond.write() as tx: ...; tx.commit()",
        )

    append_series = change = commit = make_directory = make_link = move = remove = _refuse
    restore = rollback = write_bytes = write_file = write_same = write_table = _refuse

"""`pond://`: a pond as a filesystem of fsspec, so that whatever reads and writes files can use it.

    fsspec.open("pond:///a/b.csv", pond="/data/pond")
    pandas.read_csv("pond:///a/b.csv", storage_options={"pond": "/data/pond"})

Each operation is one transaction, however many files it is about; `with fs.transaction:` makes one
of several. Reading sees the newest state, or, in a transaction, its own. `files.py` has the files.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from glob import has_magic
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.spec import AbstractFileSystem
from fsspec.transaction import Transaction
from fsspec.utils import stringify_path

from millpond.base.errors import (
    DirectoryError,
    NoDirectoryError,
    PathError,
    PathExistsError,
    PathTypeError,
    ScopeError,
)
from millpond.fs.entry import EntryType
from millpond.fs.paths import child, parts
from millpond.steward.copying.within import copy_node
from millpond.steward.pond import VARIABLE, open_pond
from millpond.steward.temporal import in_utc
from millpond.surfaces.files import NewFile, open_to_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millpond.steward.scope import Scope, Stat
    from millpond.steward.write import WriteScope

MODES = ("rb", "wb", "ab", "xb")


class _Environment:
    """What the variable POND says, as an attribute of a class."""

    def __get__(self, instance: object, owner: type) -> str | None:
        return os.environ.get(VARIABLE)


class PondTransaction(Transaction):  # type: ignore[misc]
    """`with fs.transaction:` is one transaction of the pond."""

    fs: PondFileSystem

    def start(self) -> None:
        """Begin; a second one inside is an error."""
        self.fs.begin()
        super().start()

    def complete(self, commit: bool = True) -> None:
        """Commit everything at once, or nothing."""
        fs, is_good = self.fs, False
        try:
            super().complete(commit)
            is_good = commit
        finally:
            fs.end(commit=is_good)


def _pinned(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, which sees one version of the pond from its beginning to its end."""

    @wraps(method)
    def pinned(self: PondFileSystem, *args: Any, **how: Any) -> Any:
        with self.pin():
            return method(self, *args, **how)

    return pinned


def _as_one(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method in one transaction, whatever it does."""

    @wraps(method)
    def as_one(self: PondFileSystem, *args: Any, **how: Any) -> Any:
        with self.writing(method.__name__):
            return method(self, *args, **how)

    return as_one


class PondFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A pond as a filesystem.

    `pond` is its location, or the variable POND says it. With `as_of`, a transaction's number or a
    time, it is the pond as it was, and can't be written. `auto_mkdir` makes directories for files.

    >>> import fsspec, millpond
    >>> _ = millpond.create("example")
    >>> fs = fsspec.filesystem("pond", pond="example")
    >>> with fs.transaction:
    ...     fs.mkdir("/notes")
    ...     _ = fs.pipe("/notes/a", b"hello")
    >>> fs.cat("/notes/a"), fs.info("/notes/a")["version"]
    (b'hello', 1)
    """

    protocol = "pond"
    root_marker = "/"
    transaction_type = PondTransaction
    default_pond = _Environment()
    # Instances are kept by their options; this one is not among them.
    _extra_tokenize_attributes = ("default_pond",)

    def __init__(
        self,
        pond: str | os.PathLike[str] | None = None,
        *,
        as_of: int | str | datetime | None = None,
        auto_mkdir: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.pond = open_pond(pond)
        self.auto_mkdir = auto_mkdir
        self._past = None if as_of is None else self.pond.read(as_of=_moment(as_of))
        self._begun: WriteScope | None = None
        self._local = threading.local()

    # Scopes and transactions

    @property
    def fsid(self) -> str:
        """Which pond it is."""
        return f"pond:{self.pond.location}"

    def scope(self) -> Scope:
        """Where the next operation reads."""
        inner: Scope | None = getattr(self._local, "scope", None)
        return self._begun or inner or self._past or self.pond.read()

    @contextmanager
    def pin(self) -> Iterator[Scope]:
        """See one version of the pond within a block."""
        with self._within(self.scope()) as scope:
            yield scope

    @contextmanager
    def writing(self, what: str) -> Iterator[WriteScope]:
        """The open transaction, or one that is committed at the end of the block."""
        open_: WriteScope | None = self._begun or getattr(self._local, "tx", None)
        if open_ is not None:
            yield open_
            return
        with self._write(f"fsspec: {what}") as tx:
            self._local.tx = tx
            try:
                with self._within(tx):
                    yield tx
            finally:
                self._local.tx = None
            tx.commit()

    @contextmanager
    def _within(self, scope: Scope) -> Iterator[Scope]:
        before = getattr(self._local, "scope", None)
        self._local.scope = scope
        try:
            yield scope
        finally:
            self._local.scope = before

    def _write(self, message: str) -> WriteScope:
        if self._past is not None:
            raise ScopeError(
                "this filesystem shows the pond as it was, and can't be written",
                hint="open it without as_of",
            )
        return self.pond.write(message)

    def begin(self) -> None:
        """Begin a transaction of several operations."""
        self._begun = self._write("fsspec: transaction")

    def end(self, *, commit: bool) -> None:
        """End it."""
        tx, self._begun = self._begun, None
        if tx is None:
            return
        if commit:
            tx.commit()
        else:
            tx.rollback()

    def start_transaction(self) -> PondTransaction:
        """Begin a transaction without a `with` block; `end_transaction()` commits it."""
        transaction: PondTransaction = self.transaction_type(self)
        transaction.start()
        self._transaction = transaction
        return transaction

    # Names

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = stringify_path(path)
        return "/" + text.removeprefix("pond://").removeprefix("pond:").strip("/")

    # Looking

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """What is known of a path; a link is what it leads to."""
        del kwargs
        plain, scope = self._strip_protocol(path), self.scope()
        stat = scope.stat(plain)
        target = scope.stat(plain, follow=False).target if "@v" not in plain else None
        return _info(scope, plain, stat, target)

    def ls(
        self, path: str, detail: bool = True, scope: Scope | None = None, **kwargs: Any
    ) -> list[Any]:
        """What is in a directory; of anything else, itself."""
        del kwargs
        plain, scope = self._strip_protocol(path), scope or self.scope()
        stat = scope.stat(plain)
        if not stat.is_directory:
            return [_info(scope, plain, stat) if detail else plain]
        inside = {child(plain, name): stat for name, stat in scope.children(plain).items()}
        if not detail:
            return list(inside)
        return [_entry(scope, name, stat) for name, stat in inside.items()]

    def walk(self, path: str, *args: Any, **how: Any) -> Iterator[Any]:
        """Go through all directories, of one version of the pond."""
        how.setdefault("scope", self.scope())
        yield from super().walk(path, *args, **how)

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Whether something is at a path."""
        del kwargs
        return self._type(path) is not None

    def isdir(self, path: str) -> bool:
        """Whether a path is a directory, or leads to one."""
        return self._type(path) == "directory"

    def isfile(self, path: str) -> bool:
        """Whether a path is anything else."""
        return self._type(path) == "file"

    def _type(self, path: str) -> str | None:
        try:
            found: str = self.info(path)["type"]
        except PathError:
            return None
        return found

    def created(self, path: str) -> datetime:
        """When it was written for the first time."""
        plain = self._strip_protocol(path)
        rows = self.scope().versions(plain)
        if not rows:
            raise PathTypeError("the root was never written", path=plain, hint="name what is in it")
        return rows[0].time

    def modified(self, path: str) -> datetime:
        """When something last happened to it."""
        plain = self._strip_protocol(path)
        found = self.scope().stat(plain).modified
        if found is None:
            raise PathTypeError("the root was never written", path=plain, hint="name what is in it")
        return found

    def du(self, path: str, total: bool = True, **how: Any) -> Any:
        """The sizes of files, as far as they are known: those of tables are not."""
        with self.pin():
            sizes = super().du(path, total=False, **how)
        return sum(size or 0 for size in sizes.values()) if total else sizes

    find = _pinned(AbstractFileSystem.find)
    glob = _pinned(AbstractFileSystem.glob)
    expand_path = _pinned(AbstractFileSystem.expand_path)
    cat = _pinned(AbstractFileSystem.cat)
    cat_ranges = _pinned(AbstractFileSystem.cat_ranges)
    get = _pinned(AbstractFileSystem.get)
    tree = _pinned(AbstractFileSystem.tree)

    # Reading and writing

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> IO[bytes] | NewFile:
        del autocommit, cache_options, kwargs  # the pond's own transactions decide
        if mode not in MODES:
            raise PathTypeError(
                f"{path} can't be opened with the mode {mode!r}",
                path=path,
                hint=f"known are {', '.join(MODES)}: a version is written as a whole",
            )
        if mode == "rb":
            return open_to_read(self.scope(), path, block_size)
        return NewFile(self, path, mode)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        """The bytes of a file, or some of them; all together are checked against their hash."""
        del kwargs
        with open_to_read(self.scope(), self._strip_protocol(path), None) as file:
            size = file.seek(0, os.SEEK_END)
            first, last, _ = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(0, last - first))

    def keep(
        self, path: str, data: bytes | Iterable[bytes], kind: EntryType, *, is_new: bool = False
    ) -> None:
        """Write a version of a file."""
        with self.writing("write") as tx:
            if is_new and tx.exists(path):
                raise PathExistsError(f"there is something at {path} by now", path=path)
            self._make_parent(tx, path)
            tx.write_bytes(path, data, series=kind is EntryType.DATA_SERIES)

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write a version of a file, or, with the mode `create`, a file that must be new."""
        del kwargs
        with self.open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)

    def put_file(
        self,
        lpath: str,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> None:
        """Write a version of a file, with the bytes of a file of this machine."""
        del kwargs
        path = self._strip_protocol(rpath)
        if Path(lpath).is_dir():
            self.makedirs(path, exist_ok=True)
            return
        size = Path(lpath).stat().st_size
        callback.set_size(size)
        with self.writing("put") as tx:
            if mode == "create" and tx.exists(path):
                raise PathExistsError(f"there is something at {path} already", path=path)
            tx.make_directory(self._parent(path), parents=True)
            tx.write_file(path, lpath)
        callback.relative_update(size)

    pipe = _as_one(AbstractFileSystem.pipe)
    put = _as_one(AbstractFileSystem.put)
    copy = _as_one(AbstractFileSystem.copy)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Copy one node, as what it is: a table becomes a table."""
        del kwargs
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        with self.writing("copy") as tx:
            if tx.stat(source).is_directory:
                self.makedirs(target, exist_ok=True)
                return
            row = tx.row(source)
            if row.entry_type.is_appended and tx.exists(target):
                raise PathExistsError(
                    f"{target} is there, and a {row.entry_type} would be added to it",
                    path=target,
                    hint="remove it first, or copy to another path",
                )
            self._make_parent(tx, target)
            copy_node(tx, source, row, target)

    # Directories, names

    def _make_parent(self, tx: WriteScope, path: str) -> None:
        if self.auto_mkdir:
            tx.make_directory(self._parent(path), parents=True)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Make a directory; it must not be there."""
        del kwargs
        self._make_directory(path, parents=create_parents, exist_ok=False)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, and those above it."""
        self._make_directory(path, parents=True, exist_ok=exist_ok)

    def _make_directory(self, path: str, *, parents: bool, exist_ok: bool) -> None:
        plain = self._strip_protocol(path)
        with self.writing("mkdir") as tx:
            if tx.exists(plain) and not exist_ok:
                raise PathExistsError(
                    f"there is a {tx.stat(plain).entry_type} at {plain} already", path=plain
                )
            tx.make_directory(plain, parents=parents, exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        """Remove a directory that is empty."""
        plain = self._strip_protocol(path)
        with self.writing("rmdir") as tx:
            if not tx.stat(plain, follow=False).is_directory:
                raise NoDirectoryError(f"{plain} is no directory", path=plain, hint="use rm")
            tx.remove(plain)

    def rm_file(self, path: str) -> None:
        """Remove anything but a directory; it can be restored."""
        plain = self._strip_protocol(path)
        with self.writing("rm") as tx:
            if tx.stat(plain, follow=False).is_directory:
                raise DirectoryError(
                    f"{plain} is a directory", path=plain, hint="pass recursive=True, or use rmdir"
                )
            tx.remove(plain)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove nodes, with all that is in them if `recursive`; they can be restored."""
        with self.writing("rm") as tx:
            if maxdepth is not None:
                self._rm_below(tx, self.expand_path(path, recursive=recursive, maxdepth=maxdepth))
                return
            gone: list[str] = []
            for name in self.expand_path(path):
                if any(name.startswith(f"{above}/") for above in gone):
                    continue
                if recursive:
                    tx.remove(name, recursive=True)
                    gone.append(name)
                else:
                    self.rm_file(name)

    def _rm_below(self, tx: WriteScope, names: list[str]) -> None:
        for name in reversed(names):
            is_directory = tx.stat(name, follow=False).is_directory
            if not (is_directory and tx.children(name)):
                tx.remove(name)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Give a node another name or directory. A file that is there gets a new version."""
        del kwargs
        with self.writing("mv") as tx:
            if not self._is_one(path1, path2) or maxdepth is not None:
                super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth)
                return
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if path2.endswith("/") and self.auto_mkdir:
                tx.make_directory(target, parents=True)
            if self.isdir(target):
                target = child(target, parts(source)[-1])
            if source == target:
                return
            if tx.exists(target):
                self.cp_file(source, target)
                self.rm_file(source)
            else:
                self._make_parent(tx, target)
                tx.move(source, target)

    def _is_one(self, path1: Any, path2: Any) -> bool:
        """Whether one node is to be moved: no pattern, no list, not what is in a directory."""
        if not isinstance(path1, str) or not isinstance(path2, str):
            return False
        is_inside = path1.endswith("/") and self.isdir(path2)
        return not is_inside and (self.exists(path1) or not has_magic(path1))


def _moment(given: int | str | datetime) -> int | datetime:
    if isinstance(given, int):
        return given
    return in_utc(datetime.fromisoformat(given) if isinstance(given, str) else given)


def _entry(scope: Scope, name: str, stat: Stat) -> dict[str, Any]:
    """What stands in a directory. A link to a directory is a link: nobody walks in circles."""
    if stat.target is None:
        return _info(scope, name, stat)
    try:
        found = scope.stat(name)
    except PathError:
        found = stat
    entry = _info(scope, name, found, stat.target)
    return entry if entry["type"] == "file" and found is not stat else {**entry, "type": "link"}


def _info(scope: Scope, name: str, stat: Stat, target: str | None = None) -> dict[str, Any]:
    modified = stat.modified
    return {
        "name": name,
        "size": _size(scope, name, stat),
        "type": "directory" if stat.is_directory else "file",
        "mtime": None if modified is None else modified.timestamp(),
        "entry_type": str(stat.entry_type),
        "version": stat.version,
        "node_id": stat.node_id,
        "txn_seq": stat.txn_seq,
        "blake3": stat.blake3,
        "islink": target is not None,
        **({} if target is None else {"destination": target}),
    }


def _size(scope: Scope, name: str, stat: Stat) -> int | None:
    """Of a file's bytes; how large the rows of a table are as a file is known when it is read."""
    if stat.is_directory:
        return 0
    if stat.entry_type is EntryType.DATA_SERIES:
        return sum(row.size or 0 for row in scope.byte_rows(name))
    return stat.size if stat.entry_type.is_bytes else None


__all__ = ["PondFileSystem", "PondTransaction"]

"""`pond://`: a pond as a filesystem of fsspec, so that whatever reads and writes files can use it.

    fsspec.open("pond:///a/b.csv", location="/data/pond")
    pandas.read_csv("pond:///a/b.csv", storage_options={"location": "/data/pond"})

Each operation is one transaction, however many files it is about; `with fs.transaction:` makes one
of several. Reading sees the newest state, or, in a transaction, its own. `session.py` has the
transactions, `files.py` the files.
"""

from __future__ import annotations

import os
from datetime import datetime
from functools import wraps
from glob import has_magic
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

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
)
from millpond.base.settings import Settings
from millpond.fs.entry import EntryType
from millpond.fs.paths import child, parts
from millpond.steward.copying.within import copy_node
from millpond.steward.pond import VARIABLE, open_pond
from millpond.steward.temporal.times import in_utc
from millpond.surfaces.files import NewFile, open_to_read
from millpond.surfaces.info import entry_of, info_of
from millpond.surfaces.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millpond.steward.scope import Scope

MODES: Final = ("rb", "wb", "ab", "xb")


class _Surroundings:
    """What else decides which pond is meant: the variable POND, and where relative paths begin."""

    def __get__(self, instance: object, owner: type) -> tuple[str | None, str | None]:
        try:
            here: str | None = str(Path.cwd())
        except OSError:  # it was removed
            here = None
        return os.environ.get(VARIABLE), here


class PondTransaction(Transaction):  # type: ignore[misc]
    """`with fs.transaction:` is one transaction of the pond."""

    fs: PondFileSystem

    def start(self) -> None:
        """Begin; a second one inside is an error."""
        self.fs.session.begin()
        super().start()

    def complete(self, commit: bool = True) -> None:
        """Commit everything at once, or nothing."""
        fs, is_good = self.fs, False
        try:
            super().complete(commit)
            is_good = commit
        finally:
            fs.session.end(commit=is_good)


def _pinned(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, which sees one version of the pond from its beginning to its end."""

    @wraps(method)
    def pinned(self: PondFileSystem, *args: Any, **how: Any) -> Any:
        with self.session.pin():
            return method(self, *args, **how)

    return pinned


def _as_one(method: Callable[..., None]) -> Callable[..., None]:
    """The same method in one transaction, whatever it does.

    If another writer was in its way, it is done anew on what is there now.
    """

    @wraps(method)
    def as_one(self: PondFileSystem, *args: Any, **how: Any) -> None:
        self.session.run(method.__name__, lambda: method(self, *args, **how))

    return as_one


class PondFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A pond as a filesystem.

    `location` is the pond's, or the variable POND says it. With `as_of`, a transaction's number or
    a time, it is the pond as it was, and can't be written. With `auto_mkdir`, directories are made
    for files that are written.

    >>> import fsspec, millpond
    >>> _ = millpond.create("example")
    >>> fs = fsspec.filesystem("pond", location="example")
    >>> with fs.transaction:
    ...     fs.mkdir("/notes")
    ...     _ = fs.pipe("/notes/a", b"hello")
    >>> fs.cat("/notes/a"), fs.info("/notes/a")["version"]
    (b'hello', 1)
    """

    protocol = "pond"
    root_marker = "/"
    transaction_type = PondTransaction
    surroundings = _Surroundings()
    # Instances are kept by their options; these are not among them.
    _extra_tokenize_attributes = ("surroundings",)

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        *,
        as_of: int | str | datetime | None = None,
        auto_mkdir: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.auto_mkdir = auto_mkdir
        pond = open_pond(location, settings=Settings.load())  # as the variables say now
        self.session = Session(pond, None if as_of is None else _moment(as_of))

    @property
    def fsid(self) -> str:
        """Which pond it is."""
        return f"pond:{self.session.pond.location}"

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
        return info_of(self.session.scope(), self._strip_protocol(path))

    def ls(
        self, path: str, detail: bool = True, scope: Scope | None = None, **kwargs: Any
    ) -> list[Any]:
        """What is in a directory; of anything else, itself."""
        del kwargs
        plain, scope = self._strip_protocol(path), scope or self.session.scope()
        stat = scope.stat(plain)
        if not stat.is_directory:
            return [info_of(scope, plain) if detail else plain]
        inside = {child(plain, name): stat for name, stat in scope.children(plain).items()}
        if not detail:
            return list(inside)
        return [entry_of(scope, name, stat) for name, stat in inside.items()]

    def walk(self, path: str, *args: Any, **how: Any) -> Iterator[Any]:
        """Go through all directories, of one version of the pond."""
        how.setdefault("scope", self.session.scope())
        yield from super().walk(path, *args, **how)

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Whether something is at a path."""
        del kwargs
        return self._type(path) not in (None, "link")

    def lexists(self, path: str, **kwargs: Any) -> bool:
        """Whether something is at a path, be it a link that leads nowhere."""
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
        rows = self.session.scope().versions(plain)
        if not rows:
            raise PathTypeError("the root was never written", path=plain, hint="name what is in it")
        return rows[0].time

    def modified(self, path: str) -> datetime:
        """When something last happened to it."""
        plain = self._strip_protocol(path)
        found = self.session.scope().stat(plain).modified
        if found is None:
            raise PathTypeError("the root was never written", path=plain, hint="name what is in it")
        return found

    def du(self, path: str, total: bool = True, **how: Any) -> Any:
        """The sizes of files, as far as they are known: those of tables are not."""
        with self.session.pin():
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
            return open_to_read(self.session.scope(), path, block_size)
        return NewFile(self, path, mode)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        """The bytes of a file, or some of them; all together are checked against their hash."""
        del kwargs
        with open_to_read(self.session.scope(), self._strip_protocol(path), None) as file:
            size = file.seek(0, os.SEEK_END)
            first, last, _ = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(0, last - first))

    @_as_one
    def keep(self, file: NewFile) -> None:
        """Make a version of a file that was written."""
        file.check_place(self.session.tx)
        self._make_parent(file.path)
        is_series = file.kind is EntryType.DATA_SERIES
        self.session.tx.write_bytes(file.path, file.chunks(), series=is_series)

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write a version of a file, or, with the mode `create`, a file that must be new."""
        del kwargs
        with self.open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)

    @_as_one
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
        if mode == "create" and self.session.tx.exists(path):
            raise PathExistsError(f"there is something at {path} already", path=path)
        size = Path(lpath).stat().st_size
        callback.set_size(size)
        self.session.tx.make_directory(self._parent(path), parents=True)
        self.session.tx.write_file(path, lpath)
        callback.relative_update(size)

    pipe = _as_one(AbstractFileSystem.pipe)
    put = _as_one(AbstractFileSystem.put)
    copy = _as_one(AbstractFileSystem.copy)

    @_as_one
    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Copy one node, as what it is: a table becomes a table."""
        del kwargs
        tx, source, target = (
            self.session.tx,
            self._strip_protocol(path1),
            self._strip_protocol(path2),
        )
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
        self._make_parent(target)
        copy_node(tx, source, row, target)

    # Directories, names

    def _make_parent(self, path: str) -> None:
        if self.auto_mkdir:
            self.session.tx.make_directory(self._parent(path), parents=True)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Make a directory; it must not be there."""
        del kwargs
        self._make_directory(path, parents=create_parents, exist_ok=False)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, and those above it."""
        self._make_directory(path, parents=True, exist_ok=exist_ok)

    @_as_one
    def _make_directory(self, path: str, *, parents: bool, exist_ok: bool) -> None:
        tx, plain = self.session.tx, self._strip_protocol(path)
        if tx.exists(plain) and not exist_ok:
            kind = tx.stat(plain).entry_type
            raise PathExistsError(f"there is a {kind} at {plain} already", path=plain)
        tx.make_directory(plain, parents=parents, exist_ok=exist_ok)

    @_as_one
    def rmdir(self, path: str) -> None:
        """Remove a directory that is empty."""
        plain = self._strip_protocol(path)
        if not self.session.tx.stat(plain, follow=False).is_directory:
            raise NoDirectoryError(f"{plain} is no directory", path=plain, hint="use rm")
        self.session.tx.remove(plain)

    @_as_one
    def rm_file(self, path: str) -> None:
        """Remove anything but a directory; it can be restored."""
        plain = self._strip_protocol(path)
        if self.session.tx.stat(plain, follow=False).is_directory:
            raise DirectoryError(
                f"{plain} is a directory", path=plain, hint="pass recursive=True, or use rmdir"
            )
        self.session.tx.remove(plain)

    @_as_one
    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove nodes, with all that is in them if `recursive`; they can be restored."""
        if maxdepth is not None:
            self._rm_below(self.expand_path(path, recursive=recursive, maxdepth=maxdepth))
            return
        gone: list[str] = []
        for name in self.expand_path(path):
            if any(name.startswith(f"{above}/") for above in gone):
                continue
            if recursive:
                self.session.tx.remove(name, recursive=True)
                gone.append(name)
            else:
                self.rm_file(name)

    def _rm_below(self, names: list[str]) -> None:
        """From the bottom up; a directory that keeps something stays."""
        for name in reversed(names):
            is_directory = self.session.tx.stat(name, follow=False).is_directory
            if not (is_directory and self.session.tx.children(name)):
                self.session.tx.remove(name)

    @_as_one
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
        if not self._is_one(path1, path2) or maxdepth is not None:
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth)
            return
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if path2.endswith("/") and self.auto_mkdir:
            self.session.tx.make_directory(target, parents=True)
        if self.isdir(target):
            target = child(target, parts(source)[-1])
        if source == target:
            return
        if self.session.tx.exists(target):
            self.cp_file(source, target)
            self.rm_file(source)
        else:
            self._make_parent(target)
            self.session.tx.move(source, target)

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


__all__ = ["PondFileSystem", "PondTransaction"]

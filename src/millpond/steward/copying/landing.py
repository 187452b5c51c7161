"""Where copies go in a pond: into a directory under their own names, or to the very path named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millpond.base.errors import (
    NoDirectoryError,
    PathExistsError,
    PathNotFoundError,
    PathTypeError,
)
from millpond.fs.entry import EntryType
from millpond.fs.paths import check_name, child, join, parts, split, split_version
from millpond.fs.resolve import try_resolve

if TYPE_CHECKING:
    from millpond.steward.write import WriteScope


@dataclass
class Landing:
    """A target, and what is to be made there."""

    tx: WriteScope
    base: str
    """What stands in front of names."""
    is_exact: bool
    """Whether the one thing that is copied gets the path of the target itself."""
    new_directories: dict[str, None] = field(default_factory=dict)
    _taken: dict[str, str] = field(default_factory=dict)

    def path_of(self, names: tuple[str, ...]) -> str:
        """The path for something, by its names from the top down."""
        below = names[1:] if self.is_exact else names
        found = self.base
        for name in below:
            found = child(found, check_name(name, path=child(found, name)))
        return found

    def add_directory(self, path: str) -> None:
        """A directory that has to be there."""
        there = try_resolve(self.tx.tree, path)
        if there is None:
            self.new_directories[path] = None
        elif not there.entry_type.is_directory:
            raise PathTypeError(
                f"{path} is a {there.entry_type} and can't become a directory",
                path=path,
                hint="remove it first, or copy to another path",
            )

    def add_file(self, path: str, kind: EntryType, *, source: str) -> EntryType:
        """A file or table that is to be written; what it will be."""
        other = self._taken.setdefault(path, source)
        if other != source:
            raise PathExistsError(
                f"{other} and {source} would both become {path}",
                path=path,
                hint="copy them one by one, to different paths",
            )
        if path in self.new_directories:
            raise PathTypeError(
                f"{path} would be a directory and a file",
                path=path,
                hint="copy them one by one, to different paths",
            )
        there = try_resolve(self.tx.tree, path)
        if there is None:
            return kind
        found = there.entry_type
        if found is EntryType.DATA_SERIES and kind is EntryType.DATA:
            return found  # what is there stays what it is: the bytes are added
        if found is kind:
            return kind
        if found.is_directory:
            raise PathTypeError(
                f"{path} is a directory", path=path, hint=f"copy into it: {path.rstrip('/')}/"
            )
        hint = "remove it first, or copy to another path"
        if found in (EntryType.TABLE, EntryType.SERIES) and kind is EntryType.DATA:
            hint = f"its rows can be added or replaced: host+{found}:// for Parquet, +csv for CSV"
        raise PathTypeError(
            f"{path} is a {found}, and {source} would make it a {kind}", path=path, hint=hint
        )

    def make_directories(self) -> None:
        """Make what is missing."""
        for path in self.new_directories:
            self.tx.make_directory(path, exist_ok=True)


def landing(tx: WriteScope, target: str, *, count: int, make_parents: bool) -> Landing:
    """Where so many things go that are copied to a target."""
    if split_version(target).version is not None:
        raise PathTypeError(
            f"{target} names a version, and versions are never written again",
            path=target,
            hint=f"copy to {split_version(target).path}: that makes a new version",
        )
    plain = join(*parts(target))
    there = try_resolve(tx.tree, plain)
    is_directory = there is not None and there.entry_type.is_directory
    is_exact = not (is_directory or target.endswith("/") or count > 1)
    found = Landing(tx, plain, is_exact)
    needed = split(plain)[0] if is_exact else plain
    if not is_exact and there is not None and not is_directory:
        raise NoDirectoryError(
            f"{plain} is no directory but a {there.entry_type}",
            path=plain,
            hint="several things are copied into a directory" if count > 1 else "leave the / away",
        )
    _check_parents(found, needed, make_parents=make_parents)
    return found


def _check_parents(found: Landing, needed: str, *, make_parents: bool) -> None:
    names = parts(needed)
    for depth in range(1, len(names) + 1):
        path = join(*names[:depth])
        if make_parents:
            found.add_directory(path)
        elif try_resolve(found.tx.tree, path) is None:
            raise PathNotFoundError(
                f"there is no directory {needed}",
                path=needed,
                hint=f"make it first: pond mkdir -p {needed}; or pass -p",
            )

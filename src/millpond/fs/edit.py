"""What can be done to nodes: each function notes rows in a `Working`, and nothing else happens.

Contents arrive here as `Stored`: bytes have been hashed, and large ones put away, by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from millpond.base.errors import (
    DirectoryError,
    NotEmptyError,
    PathExistsError,
    PathNotFoundError,
    PathSyntaxError,
    PathTypeError,
)
from millpond.base.ids import NodeId
from millpond.fs.entry import MOVED_FROM, MOVED_TO, ROOT, EntryType, Row
from millpond.fs.paths import check_name, child, is_text, join, parts, split
from millpond.fs.resolve import Located, not_found, resolve, try_resolve

if TYPE_CHECKING:
    from millpond.fs.working import Working


@dataclass(frozen=True, slots=True)
class Stored:
    """Content that is safe: in the row itself, or in a blob by its hash."""

    size: int
    blake3: str
    content: bytes | None = None


def make_directory(
    work: Working, path: str, *, parents: bool = False, exist_ok: bool = False
) -> Located:
    """Make a directory; `parents` makes those above it, too."""
    found = try_resolve(work, path)
    if found is not None:
        if not (exist_ok or parents) or not found.entry_type.is_directory:
            raise _exists(path, found.entry_type)
        return found
    if not parents:
        where, name = _place(work, path, hint="make it first, or pass parents (-p)")
        row = _new_row(where, name, EntryType.DIRECTORY)
        return _note(work, row, where, path, is_append=exist_ok)
    names = parts(path)
    depth = len(names) - 1
    while (above := try_resolve(work, join(*names[:depth]))) is None:
        depth -= 1
    for name in names[depth:]:
        if name != "..":
            check_name(name, path=path)
    for name in names[depth:]:
        above = _directory_in(work, above, name, path)
    return Located(join(*names), above.chain)


def _directory_in(work: Working, where: Located, name: str, path: str) -> Located:
    """A directory in another, which is made if it is not there."""
    if name == "..":
        return parent_of(where)
    there = work.child(where.node_id, name)
    if there is not None:
        found = resolve(work, child(where.real_path, name))
        if not found.entry_type.is_directory:
            raise _exists(found.path, found.entry_type)
        return found
    _check_open(where, path)
    row = _new_row(where, name, EntryType.DIRECTORY)
    return _note(work, row, where, child(where.path, name), is_append=True)


def make_link(work: Working, path: str, target: str) -> Located:
    """Make a symbolic link; its target need not be there."""
    if not target or "\0" in target or not is_text(target):
        raise PathSyntaxError(
            f"{target!r} can't be the target of a link", path=path, hint="name a path"
        )
    where, name = _place(work, path)
    content = target.encode()
    row = replace(_new_row(where, name, EntryType.SYMLINK), size=len(content), content=content)
    return _note(work, row, where, path)


def write(
    work: Working, path: str, entry_type: EntryType, stored: Stored | None = None, **fields: Any
) -> Located:
    """A new version of a node, or a new node. What it was before, it stays."""
    found = try_resolve(work, path)
    if found is None:
        where, name = _place(work, path)
        row = _new_row(where, name, entry_type)
    else:
        if found.entry_type is not entry_type:
            refuse_other(path, found.entry_type, entry_type)
        where, row = parent_of(found), next_version(work, found)
    if stored is not None:
        row = replace(row, size=stored.size, blake3=stored.blake3, content=stored.content)
    row = replace(row, **fields)
    return _note(work, row, where, path, is_append=entry_type.is_appended)


def next_version(work: Working, found: Located) -> Row:
    """The row of a node's next version: what is written in one transaction is one version."""
    row = found.row
    assert row is not None
    return row if has_written(work, row) else replace(row, version=row.version + 1)


def has_written(work: Working, row: Row) -> bool:
    """Whether the version of a row was made by this transaction."""
    draft = work.drafts.get((row.part_id, row.node_id))
    if draft is None:
        return False
    if draft.base is not None and not draft.base.removed:
        return row.version > draft.base.version
    # It was moved or brought back here by this transaction, so its versions may be elsewhere.
    return all(old.version < row.version for old in work.written(row.part_id, row.node_id))


def change(work: Working, path: str, **fields: Any) -> Located:
    """Other facts about a node, its content as it is; this makes no version."""
    found = resolve(work, path)
    if found.row is None:
        raise PathTypeError(
            "the root has nothing that could be changed", path=path, hint="name something in it"
        )
    row = replace(found.row, content=work.content(found.row), **fields)
    return _note(work, row, parent_of(found), path)


def remove(work: Working, path: str, *, recursive: bool = False) -> Located:
    """Remove a node; a directory that has something in it only if `recursive`."""
    found = resolve(work, path, follow=False)
    row = found.row
    if row is None:
        raise PathTypeError("the root can't be removed", path=path, hint="name something in it")
    if row.entry_type is EntryType.DIRECTORY and work.children(row.node_id) and not recursive:
        raise NotEmptyError(
            f"{path} is a directory with something in it",
            path=path,
            hint="remove what is in it, or pass recursive (-r)",
        )
    gone = replace(row, removed=True, content=work.content(row))
    return _note(work, gone, parent_of(found), path)


def move(work: Working, source: str, target: str) -> Located:
    """Give a node another name, or another directory; whatever is in it comes along."""
    found = resolve(work, source, follow=False)
    row = found.row
    if row is None:
        raise PathTypeError("the root can't be moved", path=source, hint="name something in it")
    same = try_resolve(work, target, follow=False)
    if same is not None and same.node_id == row.node_id and not row.entry_type.is_directory:
        return found
    into = try_resolve(work, target)
    if into is not None and into.entry_type.is_directory:
        target = child(target, row.name)
    elif into is None and target.endswith("/"):
        raise not_found(work, target)
    there = try_resolve(work, target, follow=False)
    if there is not None:
        if there.node_id == row.node_id:
            return found
        raise _exists(target, there.entry_type)
    where, name = _place(work, target)
    if any(above.node_id == row.node_id for above in where.chain):
        raise PathSyntaxError(
            f"{source} can't be moved into itself, to {target}",
            path=target,
            hint="move it somewhere else",
        )
    moved = replace(row, part_id=where.node_id, name=name, content=work.content(row))
    if where.node_id == row.part_id:
        return _note(work, moved, where, target)
    ids = "/".join(above.node_id for above in where.chain)
    gone = replace(row, removed=True, content=None).with_attributes(**{MOVED_TO: ids})
    _note(work, gone, parent_of(found), source)
    # What this transaction made has no rows where it was.
    origin = row.part_id if (row.part_id, row.node_id) in work.drafts else None
    moved = moved.with_attributes(**{MOVED_FROM: origin, MOVED_TO: None})
    return _note(work, moved, where, target)


def removed_at(work: Working, path: str) -> tuple[Row, Located] | None:
    """What was last removed at a path, and its directory; None if nothing ever was."""
    directory, name = split(path)
    where = try_resolve(work, directory)
    if where is None or not where.entry_type.is_directory:
        return None
    rows = [
        row
        for row in work.removed(where.node_id)
        if row.name == name and MOVED_TO not in row.attributes
    ]
    return (rows[-1], where) if rows else None


def restore_removed(work: Working, path: str) -> Located:
    """Bring back what was last removed at a path, with all that was in it."""
    if try_resolve(work, path, follow=False) is not None:
        raise PathExistsError(
            f"{path} is there", path=path, hint=f"name a version of it: {path}@v1"
        )
    found = removed_at(work, path)
    if found is None:
        error = not_found(work, path)
        raise PathNotFoundError(
            f"there was never anything at {path} that could be restored", path=path, hint=error.hint
        )
    row, where = found
    back = replace(row, removed=False, content=work.content(row))
    return _note(work, back, where, path)


# What all of them need


def check_place(work: Working, path: str) -> None:
    """Raise unless something new can be put at a path."""
    _place(work, path)


def refuse_other(path: str, found: EntryType, wanted: EntryType) -> NoReturn:
    """A node stays what it is."""
    if found.is_directory:
        raise DirectoryError(f"{path} is a directory", path=path, hint=f"write {path}/NAME")
    raise PathTypeError(
        f"{path} is a {found} and can't become a {wanted}",
        path=path,
        hint="remove it first, or choose another path",
    )


def parent_of(found: Located) -> Located:
    """The directory that lists a node."""
    return Located(join(*(row.name for row in found.parents)), found.parents)


def _place(work: Working, path: str, *, hint: str | None = None) -> tuple[Located, str]:
    """The directory and the name for something new."""
    directory, name = split(path)
    check_name(name, path=path)
    where = try_resolve(work, directory)
    if where is None:
        error = not_found(work, directory)
        error.message = f"there is no directory {directory} for {name}"
        error.hint = hint or f"make it first: pond mkdir -p {directory}"
        raise error
    _check_open(where, path)
    there = work.child(where.node_id, name)
    if there is not None:
        raise _exists(path, there.entry_type)
    return where, name


def _check_open(where: Located, path: str) -> None:
    if where.entry_type is not EntryType.DIRECTORY:
        raise PathTypeError(
            f"{where.path} is a {where.entry_type}: nothing can be put into it",
            path=path,
            hint="choose another directory",
        )


def _new_row(where: Located, name: str, entry_type: EntryType) -> Row:
    return Row(where.node_id, str(NodeId.new()), name, entry_type)


def _note(
    work: Working, row: Row, where: Located, path: str, *, is_append: bool = False
) -> Located:
    row = work.put(row, parents=where.chain, path=path, is_append=is_append)
    return Located(join(*parts(path)), (*where.chain, row))


def _exists(path: str, entry_type: EntryType) -> PathExistsError:
    return PathExistsError(
        f"there is a {entry_type} at {path} already", path=path, hint="choose another name"
    )


__all__ = [
    "ROOT",
    "Stored",
    "change",
    "check_place",
    "has_written",
    "make_directory",
    "make_link",
    "move",
    "next_version",
    "parent_of",
    "refuse_other",
    "remove",
    "removed_at",
    "restore_removed",
    "write",
]

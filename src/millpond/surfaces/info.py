"""What fsspec is told of a node: dictionaries with `name`, `size`, `type` and what we know more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import PathError
from millpond.fs.entry import EntryType
from millpond.fs.paths import split_version

if TYPE_CHECKING:
    from millpond.steward.scope import Scope, Stat


def info_of(scope: Scope, path: str) -> dict[str, Any]:
    """What is at a path; a link is what it leads to, unless that is not there."""
    if split_version(path).version is not None:
        return _info(scope, path, scope.stat(path))
    return _followed(scope, path, scope.stat(path, follow=False))


def entry_of(scope: Scope, path: str, stat: Stat) -> dict[str, Any]:
    """What stands in a directory. A link to a directory is a link: nobody walks in circles."""
    found = _followed(scope, path, stat)
    return {**found, "type": "link"} if found["islink"] and found["type"] != "file" else found


def _followed(scope: Scope, path: str, stat: Stat) -> dict[str, Any]:
    if stat.target is None:
        return _info(scope, path, stat)
    link = {"islink": True, "destination": stat.target}
    try:
        return {**_info(scope, path, scope.stat(path)), **link}
    except PathError:  # it leads nowhere
        return {**_info(scope, path, stat), "size": 0, "type": "link", **link}


def _info(scope: Scope, path: str, stat: Stat) -> dict[str, Any]:
    modified = stat.modified
    return {
        "name": path,
        "size": _size(scope, path, stat),
        "type": "directory" if stat.is_directory else "file",
        "mtime": None if modified is None else modified.timestamp(),
        "entry_type": str(stat.entry_type),
        "version": stat.version,
        "node_id": stat.node_id,
        "txn_seq": stat.txn_seq,
        "blake3": stat.blake3,
        "islink": False,
    }


def _size(scope: Scope, path: str, stat: Stat) -> int | None:
    """Of a file's bytes; how large the rows of a table are as a file is known when it is read."""
    if stat.is_directory:
        return 0
    if stat.entry_type is EntryType.DATA_SERIES:
        return sum(row.size or 0 for row in scope.byte_rows(path))
    return stat.size if stat.entry_type.is_bytes else None

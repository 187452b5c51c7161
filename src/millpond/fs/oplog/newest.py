"""The newest files of a log on a local disk, found by their names.

There, to list a directory is to read all of its names, however many commits have gathered; a log
of ours has a checkpoint every few commits, and from there on a look or two per commit will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import ObjectNotFoundError
from millpond.base.textseals import parse_sealed
from millpond.kernel.names import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    checkpoint_name,
    checksum_name,
    commit_name,
    parse_name,
)
from millpond.kernel.segment import LogFile

if TYPE_CHECKING:
    from millpond.base.store import Store

MOST: Final = 100
"""Who finds more commits than this behind the checkpoint had better list them."""


def newest_files(store: Store, location: str) -> list[LogFile]:
    """The last checkpoint, its commit, and all commits behind it; nothing if a listing is due."""
    if store.capabilities.has_flat_names:  # there, a listing begins where one likes
        return []
    try:
        hint = parse_sealed(store.get(f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"))
    except ObjectNotFoundError:
        return []
    version = (hint or {}).get("version")
    if type(version) is not int or version < 1:
        return []
    known = [_file(store, location, name(version)) for name in (checkpoint_name, commit_name)]
    found = [file for file in known if file is not None]
    if len(found) < len(known):  # not as we write it, or cleaned away
        return []
    for number in range(version + 1, version + MOST):
        commit = _file(store, location, commit_name(number))
        if commit is None:
            checksum = _file(store, location, checksum_name(number - 1))
            return [*found, *([checksum] if checksum else [])]
        found.append(commit)
    return []


def _file(store: Store, location: str, name: str) -> LogFile | None:
    parsed = parse_name(name)
    assert parsed is not None
    try:
        meta = store.head(f"{LOG_DIRECTORY}/{name}")
    except ObjectNotFoundError:
        return None
    path = f"{location}/{LOG_DIRECTORY}/{name}"
    return LogFile(path, parsed, meta.size, int(meta.modified.timestamp() * 1000))

"""Commits: conditional puts of numbered files, staged ones for a catalog, and their publishing."""

from __future__ import annotations

import json
import random
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CommitError,
    ConflictError,
    CorruptLogError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from millpond.kernel.actions import json_line
from millpond.kernel.names import LOG_DIRECTORY, commit_name, staged_name
from millpond.kernel.segment import LogFile
from millpond.kernel.write.conflicts import Winner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millpond.base.store import Store

FIRST_WAIT: Final = 0.01
LONGEST_WAIT: Final = 1.0


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """A commit that waits for its catalog: the file is there, but no reader looks at it."""

    table: str
    version: int
    path: str
    """Relative to the table."""
    size: int
    modified: int

    def ratified(self) -> LogFile:
        """The commit for a snapshot's log tail, once the catalog has ratified it."""
        from millpond.kernel.names import file_name, parse_staged_name

        name = parse_staged_name(file_name(self.path))
        assert name is not None
        return LogFile(f"{self.table}/{self.path}", name, self.size, self.modified)


def encode_commit(actions: Iterable[tuple[str, Mapping[str, Any]]]) -> bytes:
    """The lines of a commit."""
    return b"".join(json_line(kind, action) for kind, action in actions)


def log_path(name: str) -> str:
    """A file of the log, relative to the table."""
    return f"{LOG_DIRECTORY}/{name}"


def put_commit(store: Store, version: int, content: bytes, txn_id: str) -> bool:
    """Put a commit if its version is free; False if another writer was faster.

    A store may lose the answer to a put that has won: then the file holds our own transaction id.
    """
    try:
        store.put(log_path(commit_name(version)), content)
    except ObjectExistsError:
        return _is_ours(store, version, txn_id)
    return True


def _is_ours(store: Store, version: int, txn_id: str) -> bool:
    try:
        found = store.get(log_path(commit_name(version)))
    except ObjectNotFoundError:
        return False
    return txn_id.encode() in found


def read_winner(store: Store, version: int, table: str) -> Winner:
    """The actions of a commit that came between."""
    actions: dict[str, list[dict[str, Any]]] = {}
    text = store.get(log_path(commit_name(version)))
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            action = json.loads(line)
            ((kind, body),) = ((k, v) for k, v in action.items() if v is not None)
        except (ValueError, AttributeError) as error:
            raise CorruptLogError(
                f"line {number} of the commit {version} of {table} is no action",
                table=table,
                path=commit_name(version),
            ) from error
        actions.setdefault(kind, []).append(body)
    return Winner(version, actions)


def stage_commit(store: Store, table: str, version: int, content: bytes) -> StagedCommit:
    """Put a commit where only its catalog looks."""
    path = log_path(staged_name(version, str(uuid.uuid4())))
    meta = store.put(path, content)
    modified = int(meta.modified.timestamp() * 1000)
    return StagedCommit(table, version, path, len(content), modified)


def publish_commit(store: Store, staged: StagedCommit) -> None:
    """Give a ratified commit its place in the log; doing so twice is harmless."""
    content = store.get(staged.path)
    target = log_path(commit_name(staged.version))
    try:
        store.put(target, content)
    except ObjectExistsError:
        if store.get(target) != content:
            raise ConflictError(
                f"version {staged.version} of {staged.table} holds another commit "
                f"than the ratified {staged.path}",
                table=staged.table,
                version=staged.version,
                hint="a writer went round the catalog: the table has to be repaired by hand",
            ) from None


class Waiter:
    """Waits a little longer after each lost race, by a random part of it."""

    def __init__(self, *, retries: int, table: str, version: int) -> None:
        self._left = retries
        self._retries = retries
        self._table = table
        self._version = version
        self._wait = FIRST_WAIT

    def again(self) -> None:
        """Wait before the next attempt; too many are an error."""
        if self._left <= 0:
            raise CommitError(
                f"{self._table} is busy: {self._retries + 1} attempts to commit were overtaken",
                table=self._table,
                hint="try again, or raise max_retries",
            )
        self._left -= 1
        time.sleep(random.uniform(0, self._wait))
        self._wait = min(LONGEST_WAIT, self._wait * 2)

"""Commits: conditional puts of numbered files, staged ones for a catalog, and their publishing."""

from __future__ import annotations

import random
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CommitError,
    ConflictError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreAccessError,
    StoreError,
    UnknownOutcomeError,
)
from millpond.base.textseals import (
    SEAL,
    UNSEALED,
    TextSealError,
    check_commit,
    seal_commit,
    seal_of,
)
from millpond.kernel.actions import json_line
from millpond.kernel.commits import PREVIOUS, damaged_commit
from millpond.kernel.names import (
    LOG_DIRECTORY,
    LogName,
    commit_name,
    file_name,
    parse_name,
    parse_staged_name,
    staged_name,
    version_prefix,
)
from millpond.kernel.segment import LogFile

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
        name = parse_staged_name(file_name(self.path))
        assert name is not None
        return LogFile(f"{self.table}/{self.path}", name, self.size, self.modified)

    def published(self) -> LogFile:
        """The commit in its place in the log, once it is published."""
        name = LogName("commit", self.version, self.version)
        path = f"{self.table}/{log_path(commit_name(self.version))}"
        return LogFile(path, name, self.size, self.modified)


def encode_commit(
    actions: Iterable[tuple[str, Mapping[str, Any]]], version: int, *, previous: str | None = None
) -> bytes:
    """Encode the lines of a commit; commitInfo, which comes first, ends with the seal of them all.

    `previous` is the seal of the commit before, where that is known.
    """
    lines = (json_line(*_chained(*action, previous)) for action in actions)
    return seal_commit(b"".join(lines), version)


def _chained(
    kind: str, action: Mapping[str, Any], previous: str | None
) -> tuple[str, Mapping[str, Any]]:
    if kind != "commitInfo":
        return kind, action
    own = {name: value for name, value in action.items() if name not in (PREVIOUS, SEAL)}
    return kind, own | ({PREVIOUS: previous} if previous else {}) | {SEAL: UNSEALED}


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
        return is_ours(store, version, txn_id)
    except StoreError:
        with suppress(StoreError):
            if is_ours(store, version, txn_id):
                return True
        raise
    return True


def is_ours(store: Store, version: int, txn_id: str) -> bool:
    """Whether a version was written by the transaction of this id."""
    try:
        found = store.get(log_path(commit_name(version)))
    except ObjectNotFoundError:
        return False
    return txn_id.encode() in found


def is_final(store: Store, error: BaseException) -> bool:
    """Whether a put that failed can't take effect any more.

    A request to another machine may still be on its way when this one stops to wait for it.
    """
    if not isinstance(error, StoreError) or isinstance(error, StoreAccessError):
        return True
    return not store.capabilities.has_flat_names


def fate_of(store: Store, version: int, txn_id: str, error: BaseException) -> bool | None:
    """Whether a put that failed took effect after all; None if nobody can know yet."""
    try:
        if is_ours(store, version, txn_id):
            return True
    except StoreError:
        return None
    # Who interrupts the waiting does not interrupt the request.
    is_open = not isinstance(error, Exception) and store.capabilities.has_flat_names
    is_open |= isinstance(error, UnknownOutcomeError)
    return False if is_final(store, error) and not is_open else None


def check_not_cleaned(store: Store, base: int, table: str) -> None:
    """Refuse to go on from a version so old that commits after it have left the log.

    Their numbers would be free again, and a commit put there would be lost behind a checkpoint. Or
    the whole log is gone, or another one in its place that does not reach so far.
    """
    try:
        store.head(log_path(commit_name(base)))
    except ObjectNotFoundError:
        after = log_path(version_prefix(base))
        names = (
            parse_name(file_name(m.path))
            for m in store.list(f"{LOG_DIRECTORY}/", start_after=after)
        )
        found = {(n.kind, n.version) for n in names if n and n.kind in ("commit", "checkpoint")}
        what = None
        if not found:
            what = "no longer reaches"
        elif ("commit", base + 1) not in found and found != {("checkpoint", base)}:
            what = "has been cleaned up beyond"
        if what is not None:
            raise CommitError(
                f"the log of {table} {what} version {base}, on which this transaction is based",
                table=table,
                hint="open the table anew and try again",
            ) from None


def stage_commit(store: Store, table: str, version: int, content: bytes) -> StagedCommit:
    """Put a commit where only its catalog looks."""
    path = log_path(staged_name(version, unique_name(content)))
    try:
        meta = store.put(path, content)
    except ObjectExistsError:  # no other transaction has this content
        meta = store.head(path)
    modified = int(meta.modified.timestamp() * 1000)
    return StagedCommit(table, version, path, len(content), modified)


def unique_name(content: bytes) -> str:
    """A UUID that is made of a commit's seal: whoever knows the name knows the content."""
    seal = seal_of(content)
    return str(uuid.uuid4() if seal is None else uuid.UUID(hex=seal[:32]))


def is_staged_as(path: str, seal: str | None) -> bool:
    """Whether a commit with this seal may be the one that was staged under a name."""
    name = parse_staged_name(file_name(path))
    return seal is None or name is None or name.unique == str(uuid.UUID(hex=seal[:32]))


def publish_commit(store: Store, staged: StagedCommit) -> None:
    """Give a ratified commit its place in the log, the older ones first; twice is harmless."""
    content = store.get(staged.path)
    _check_staged(staged, content)
    target = log_path(commit_name(staged.version))
    _check_order(store, staged)
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


def _check_staged(staged: StagedCommit, content: bytes) -> None:
    """Refuse to publish what is not what was staged: then no reader could tell."""
    try:
        check_commit(content, staged.path)
    except TextSealError as error:
        raise damaged_commit(staged.table, staged.path, str(error)) from error


def _check_order(store: Store, staged: StagedCommit) -> None:
    """Refuse a commit whose predecessor is not published: the log would have a gap meanwhile."""
    before = staged.version - 1
    if before < 0:
        return
    # Of a log that was cleaned, what is left of that version or after it tells as much.
    for meta in store.list(log_path(""), start_after=log_path(f"{before:020}")):
        found = parse_name(file_name(meta.path))
        if found is not None and found.kind in ("commit", "checkpoint"):
            return
    raise CommitError(
        f"version {before} of {staged.table} is not published yet",
        table=staged.table,
        hint="publish the older commits first",
    )


class Waiter:
    """Waits a little longer after each lost race, by a random part of it."""

    def __init__(self, *, retries: int, table: str) -> None:
        self._left = self._retries = retries
        self._table = table
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

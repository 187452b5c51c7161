"""The reader of single commits: whoever looks at actions one by one reads them here.

A commit of Millpond's is compared with its seal before anything of it is believed, and with the
seal that the next one knows of it. A commit of another writer has to hold actions, whole lines of
JSON; what they are called is up to the protocol. Plans over many commits (`scan_log`) read the
same files through an engine, which checks the same seals.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CorruptLogError, ObjectNotFoundError
from millpond.base.textseals import TextSealError, check_commit, seal_of
from millpond.kernel.names import LOG_DIRECTORY, commit_name, file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millpond.base.store import Store

PREVIOUS: Final = "millpondPrevious"
"""The member of commitInfo with the seal of the commit before, where the writer knew it."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by its actions."""

    version: int
    actions: Mapping[str, Sequence[Mapping[str, Any]]]
    seal: str | None = None
    """Its hash, if it is one of Millpond's."""

    @property
    def info(self) -> Mapping[str, Any]:
        """The commit's commitInfo."""
        found = self.actions.get("commitInfo") or ({},)
        return found[0]

    @property
    def is_blind_append(self) -> bool:
        """Whether it says that it only appended without reading."""
        return self.info.get("isBlindAppend") is True

    def follows(self, previous: Commit) -> bool:
        """Whether the commit before it is the one on which it was put, as far as it knows."""
        known = self.info.get(PREVIOUS)
        return not isinstance(known, str) or known == previous.seal


def read_commit(store: Store, version: int, table: str, path: str | None = None) -> Commit:
    """Read a commit of a table, or a staged one at a path; raise if it is damaged."""
    place = path or f"{LOG_DIRECTORY}/{commit_name(version)}"
    return parse_commit(store.get(place), version, table, place)


def commits_since(store: Store, version: int, table: str) -> Iterator[Commit]:
    """Read the commits from a version on, as far as the log goes without a gap."""
    before: Commit | None = None
    while True:
        try:
            commit = read_commit(store, version, table)
        except ObjectNotFoundError:
            return
        if before is not None:
            check_chain(before, commit, table)
        yield commit
        before, version = commit, version + 1


def check_chain(before: Commit, commit: Commit, table: str) -> None:
    """Refuse a commit in whose place another one was when the next one was put."""
    if not commit.follows(before):
        raise damaged_commit(
            table,
            f"{LOG_DIRECTORY}/{commit_name(before.version)}",
            f"version {commit.version} was put on top of another commit",
        )


def parse_commit(text: bytes, version: int, table: str, path: str) -> Commit:
    """Read the text of a commit; raise if it is damaged."""
    try:
        check_commit(text, path)
        seal = seal_of(text)
    except TextSealError as error:
        raise damaged_commit(table, path, str(error)) from error
    actions: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            action = json.loads(line)
            found = [(kind, body) for kind, body in action.items() if isinstance(body, dict)]
        except (ValueError, AttributeError, RecursionError) as error:
            raise damaged_commit(table, path, f"line {number} is not an action") from error
        for kind, body in found:
            actions.setdefault(kind, []).append(body)
    if not actions:
        raise damaged_commit(table, path, "it holds no action")
    return Commit(version, actions, seal)


def read_info(store: Store, version: int, table: str) -> Commit:
    """Read what a commit says of itself, without its other actions where they need no look."""
    place = f"{LOG_DIRECTORY}/{commit_name(version)}"
    text = store.get(place)
    try:
        check_commit(text, place)
        seal = seal_of(text)
    except TextSealError as error:
        raise damaged_commit(table, place, str(error)) from error
    if seal is None:
        return parse_commit(text, version, table, place)
    info = json.loads(text[: text.find(b"\n")])["commitInfo"]
    return Commit(version, {"commitInfo": [info]}, seal)


def damaged_commit(table: str, path: str, problem: str) -> CorruptLogError:
    """Return the error for a commit that is damaged."""
    return CorruptLogError(
        f"the commit {file_name(path)} of {table} is damaged: {problem}",
        table=table,
        path=path,
        hint="pond fsck lists what else is damaged; restore the file from a backup",
    )

"""A table's history as plain Python, and what a reader must see of it: the naive replay.

A commit is the list of its actions, as they stand in the log. Everything is computed from version 0
on, in the simplest way there is: this is what the kernel is held against.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Action: TypeAlias = dict[str, Any]
"""One line of a commit: `{"add": {...}}`."""

Key: TypeAlias = tuple[str, str | None]
"""What identifies a live file: its path and its deletion vector's id."""

Row: TypeAlias = dict[str, Any]

CHANGE_TYPE: Final = "_change_type"


@dataclass(slots=True)
class State:
    """What the log says up to a version."""

    version: int = -1
    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    live: dict[Key, dict[str, Any]] = field(default_factory=dict)
    tombstones: dict[Key, dict[str, Any]] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action]) -> None:
        """Take in the next commit; within it, order means nothing."""
        self.version += 1
        ordered = sorted(actions, key=lambda action: action.get("remove") is None)
        for kind, content in (pair for action in ordered for pair in action.items()):
            if content is None:
                continue
            if kind == "remove":
                self.live.pop(key_of(content), None)
                self.tombstones[key_of(content)] = content
            elif kind == "add":
                self.live[key_of(content)] = content
                self.tombstones.pop(key_of(content), None)
            elif kind == "protocol":
                self.protocol = content
            elif kind == "metaData":
                self.metadata = content
            elif kind == "txn":
                self.transactions[content["appId"]] = content
            elif kind == "domainMetadata":
                self.domains[content["domain"]] = content

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The columns of the schema."""
        return list(_fields(self.metadata["schemaString"]))

    def stored_names(self) -> dict[str, str]:
        """What columns are called in files, statistics and partition values."""
        mode = self.metadata["configuration"].get("delta.columnMapping.mode", "none")
        if mode not in ("none", "name"):
            raise ValueError(f"no mode of column mapping: {mode}")
        return _stored_names(self.metadata["schemaString"], mode == "name")

    def partition_values(self, add: Mapping[str, Any]) -> Row:
        """A file's partition values by column, typed."""
        types = {one["name"]: one["type"] for one in self.fields}
        stored = self.stored_names()
        values = add["partitionValues"]
        return {
            name: typed(values.get(stored[name]), types[name])
            for name in self.metadata["partitionColumns"]
        }

    def live_domains(self) -> dict[str, str]:
        """The configuration of domains that were not removed."""
        return {k: v["configuration"] for k, v in self.domains.items() if not v["removed"]}


@dataclass(frozen=True, slots=True)
class History:
    """Commits, and what their files and deletion vectors hold.

    `contents` has every row of a file by its path as the log spells it, under the names that files
    have for columns and without partition columns; rows of change files have `_change_type` too.
    `vectors` has deleted positions by a vector's id. `files` has the bytes of data files, change
    files and files of deletion vectors by their names on the disk; `types` are the types of the
    names in files.
    """

    commits: tuple[tuple[Action, ...], ...]
    contents: Mapping[str, tuple[Row, ...]]
    vectors: Mapping[str, frozenset[int]]
    files: Mapping[str, bytes]
    types: Mapping[str, str]

    @property
    def latest(self) -> int:
        """The newest version."""
        return len(self.commits) - 1

    def state(self, version: int) -> State:
        """What the log says at a version."""
        found = State()
        for actions in self.commits[: version + 1]:
            found.apply(actions)
        return found

    def rows(self, version: int) -> list[Row]:
        """The table's rows at a version, in no order that means anything."""
        state = self.state(version)
        return [row for add in state.live.values() for row in self._rows_of(add, state)]

    def changes(self, start: int, end: int) -> list[Row]:
        """The change feed from one version to another, both included."""
        state = self.state(end)  # its schema is the feed's
        found = []
        for version in range(start, end + 1):
            for change, row in self._changes_at(version, state):
                found.append({**row, CHANGE_TYPE: change, "_commit_version": version})
        return found

    def _changes_at(self, version: int, state: State) -> list[tuple[str, Row]]:
        actions = self.commits[version]
        if any("cdc" in action for action in actions):
            return [
                (row[CHANGE_TYPE], self._row(row, action["cdc"], state))
                for action in actions
                if "cdc" in action
                for row in self.contents[action["cdc"]["path"]]
            ]
        files: dict[str, dict[str, dict[str, Any]]] = {}
        for action in actions:
            for kind in ("add", "remove"):
                if kind in action and action[kind]["dataChange"]:
                    files.setdefault(action[kind]["path"], {})[kind] = action[kind]
        found: list[tuple[str, Row]] = []
        for pair in files.values():
            before = self._positions(pair["remove"]) if "remove" in pair else set()
            after = self._positions(pair["add"]) if "add" in pair else set()
            about = pair.get("add", pair.get("remove", {}))
            content = self.contents[about["path"]]
            for change, positions in (("delete", before - after), ("insert", after - before)):
                found += [(change, self._row(content[i], about, state)) for i in sorted(positions)]
        return found

    def _rows_of(self, add: Mapping[str, Any], state: State) -> list[Row]:
        content = self.contents[add["path"]]
        return [self._row(content[i], add, state) for i in sorted(self._positions(add))]

    def _positions(self, file: Mapping[str, Any]) -> set[int]:
        vector = vector_id(file)
        deleted = frozenset() if vector is None else self.vectors[vector]
        return set(range(len(self.contents[file["path"]]))) - deleted

    def _row(self, content: Row, file: Mapping[str, Any], state: State) -> Row:
        values = {name: content.get(stored) for name, stored in state.stored_names().items()}
        return {**values, **state.partition_values(file)}


@lru_cache
def _fields(schema: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema)["fields"]
    return found


@lru_cache
def _stored_names(schema: str, mapped: bool) -> dict[str, str]:
    name = "delta.columnMapping.physicalName"
    return {
        one["name"]: one["metadata"][name] if mapped else one["name"] for one in _fields(schema)
    }


def key_of(file: Mapping[str, Any]) -> Key:
    """What identifies an add or a remove."""
    return file["path"], vector_id(file)


def vector_id(file: Mapping[str, Any]) -> str | None:
    """The id of a file's deletion vector, if it has one."""
    vector = file.get("deletionVector")
    if vector is None:
        return None
    place = f"@{vector['offset']}" if vector.get("offset") is not None else ""
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{place}"


def typed(text: str | None, type_: str) -> Any:
    """A partition value out of its text."""
    if text is None or (not text and type_ != "string"):
        return None
    return int(text) if type_ == "integer" else text


def reconciled(commits: Iterable[Iterable[Action]]) -> list[Action]:
    """What consecutive commits come to: the newest of everything, tombstones included."""
    state = State()
    for actions in commits:
        state.apply(actions)
    found: list[Action] = [{"add": add} for add in state.live.values()]
    found += [{"remove": remove} for remove in state.tombstones.values()]
    found += [{"txn": one} for one in state.transactions.values()]
    found += [{"domainMetadata": one} for one in state.domains.values()]
    found += [{"protocol": state.protocol}] if state.protocol else []
    found += [{"metaData": state.metadata}] if state.metadata else []
    return found

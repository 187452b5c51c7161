"""What a transaction is about to commit, and the objects that it has put for that."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.kernel.age import age_at, aged
from millpond.kernel.dv import DeletionVector
from millpond.kernel.paths import resolve
from millpond.kernel.write.conflicts import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millpond.kernel.replay import Key
    from millpond.kernel.write.files import WrittenFile

_OF_REMOVED: Final = (
    *("partitionValues", "size", "stats", "tags", "deletionVector", "baseRowId"),
    "defaultRowCommitVersion",
)


@dataclass(slots=True)
class Pending:
    """Actions by file, so that a later change of one transaction sees its earlier ones."""

    adds: dict[Key, dict[str, Any]] = field(default_factory=dict)
    removes: dict[Key, dict[str, Any]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    """Change data: where there is any, readers of changes look at nothing else."""
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    put: list[str] = field(default_factory=list)
    """Everything that was put into the store, or begun to be."""
    rewritten: set[Key] = field(default_factory=set)
    """Adds whose rows were in the table before."""
    told: set[Key] = field(default_factory=set)
    """Removes of which change data tells."""
    written: dict[Key, int] = field(default_factory=dict)
    """How many rows new files have."""
    is_counted: bool = True
    """Whether adds are surely new files, so that the table's can be counted on."""

    def copy(self) -> Pending:
        """The same as it is now, whatever becomes of this one."""
        return replace(self, **{name: copy(getattr(self, name)) for name in self.__slots__})

    @property
    def has_files(self) -> bool:
        """Whether it changes what files the table has."""
        return bool(self.adds or self.removes)

    @property
    def output_rows(self) -> int:
        """How many rows were written."""
        return sum(rows for key, rows in self.written.items() if key in self.adds)

    @property
    def changes_data(self) -> bool:
        """Whether it does more than rearrange files."""
        actions = (*self.adds.values(), *self.removes.values())
        return any(action.get("dataChange") is not False for action in actions)

    def add(self, action: Mapping[str, Any]) -> None:
        """Make a file live; to remove it and add it again is to describe it anew."""
        key = key_of(action)
        self.removes.pop(key, None)
        self.adds[key] = _without_nulls(action)

    def add_written(self, files: Iterable[WrittenFile], *, rewritten: bool = False) -> None:
        """Make new files live; `rewritten` rows are not new."""
        for file in files:
            action = file.to_add()
            self.add(action)
            self.written[key_of(action)] = file.rows
            if rewritten:
                self.rewritten.add(key_of(action))

    def remove(self, add: Mapping[str, Any], *, data_change: bool = True) -> None:
        """Make a live file not live: one of the table's, or one that was added just now."""
        key = key_of(add)
        if self.adds.pop(key, None) is not None:
            return
        known = {name: add[name] for name in _OF_REMOVED if add.get(name) is not None}
        self.removes[key] = {
            "path": add["path"],
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": data_change,
            "extendedFileMetadata": True,
            **_without_nulls(known),
        }

    def actions(self, version: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield all actions of a version but commitInfo, protocol and metadata."""
        now = int(time.time() * 1000)
        for app, number in self.transactions.items():
            yield "txn", {"appId": app, "version": number, "lastUpdated": now}
        for domain in self.domains.values():
            yield "domainMetadata", domain
        for remove in self.removes.values():
            yield "remove", remove
        for number, add in enumerate(self.adds.values()):
            yield "add", aged(add, age_at(version, number))
        for change in self.changes:
            yield "cdc", change

    def unused(self, table: str) -> list[str]:
        """Objects that an earlier step put and a later one made superfluous."""
        used = {resolve(table, a["path"]) for a in (*self.adds.values(), *self.changes)}
        for add in self.adds.values():
            if add.get("deletionVector"):
                vector = DeletionVector.from_dict(add["deletionVector"], table=table)
                used.add(vector.location(table) or "")
        return [path for path in self.put if f"{table}/{path}" not in used]


def _without_nulls(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action without members that are null; a partition value that is null stays."""
    found = {name: value for name, value in action.items() if value is not None}
    vector = found.get("deletionVector")
    if vector is not None:
        found["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
    return found

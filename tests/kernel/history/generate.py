"""Random histories: any sequence of commits that a writer of Delta tables may have made.

A seed gives a history, and with fewer commits the beginning of it: so a failure shrinks by its
number of commits (`strategies.py`).
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from tests.kernel.history import vectors
from tests.kernel.history.files import parquet_bytes
from tests.kernel.history.model import CHANGE_TYPE, Action, History, Row, State, key_of
from tests.kernel.history.stats import statistics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

MILLIS: Final = 1_700_000_000_000
TABLE_ID: Final = "0d9f1f5e-5f0c-4b7c-9a53-3d8f1f1b7a10"
PARTITION_TEXTS: Final = (
    *("a", "b", "a b", "a=b", "a/b", "100%", "%41", "ü€", "x+y", 'say "hi"', "a#b?c", "new\nline"),
    None,
)
PARTITION_NUMBERS: Final = ("0", "-3", "2147483647", None)
NAMES: Final = (None, "", "a", "aardvark", "zebra", "Zoë", "long " * 12, "\U0001f40b", 'q"\\')
VALUES: Final = (None, 0.0, -0.0, 1.5, -2.25, 1e300, float("nan"), float("inf"))
FOLDERS: Final = ("", "sub/", "odd %20 name/", "ü+#/", "p=1/")
APPS: Final = ("app", "other app")
DOMAINS: Final = ("millpond.tests", "delta.clustering", "x")
BASE_TYPES: Final = {"id": "long", "name": "string", "val": "double"}
PARTITION_TYPES: Final = {"p": "string", "q": "integer"}
LEGACY: Final = {"minReaderVersion": 1, "minWriterVersion": 2}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a history may have in it."""

    features: bool = True
    mapped: bool = False
    partitions: tuple[str, ...] = ("p",)
    change_feed: bool = False
    plain: bool = False
    """Whether paths are simple and all actions are known ones."""

    @classmethod
    def any(cls, rng: Random) -> Shape:
        """One of all shapes."""
        features = rng.random() < 0.75
        return cls(
            features=features,
            mapped=features and rng.random() < 0.25,
            partitions=rng.choice([(), ("p",), ("p", "q")]),
            change_feed=rng.random() < 0.3,
        )


def random_history(rng: Random, *, commits: int, shape: Shape | None = None) -> History:
    """A history of so many commits."""
    return _Writer(rng, shape or Shape.any(rng)).history(commits)


class _Writer:
    """Makes commits, one after the other, out of operations that fit the table's state."""

    def __init__(self, rng: Random, shape: Shape) -> None:
        self._rng = rng
        self._shape = shape
        self._state = State()
        self._contents: dict[str, tuple[Row, ...]] = {}
        self._files: dict[str, bytes] = {}
        self._known: dict[str, Action] = {}
        self._vectors: dict[str, frozenset[int]] = {}
        self._types: dict[str, str] = {}
        self._next_id = 0
        self._touched: set[str] = set()

    def history(self, commits: int) -> History:
        """All commits, the first of which makes the table."""
        made = [self._commit(self._create())]
        made += [self._commit(self._any_actions()) for _ in range(commits - 1)]
        return History(tuple(made), self._contents, self._vectors, self._files, self._types)

    def _commit(self, actions: list[Action]) -> tuple[Action, ...]:
        if self._rng.random() < 0.9 or not actions:
            about = {"timestamp": MILLIS + self._state.version, "operation": "TEST"}
            actions = [{"commitInfo": {**about, "operationParameters": {}}}, *actions]
        else:
            self._rng.shuffle(actions)
        if self._rng.random() < 0.05 and not self._shape.plain:
            actions.append({"actionOfTheFuture": {"path": "ignored"}})
        self._state.apply(actions)
        self._touched.clear()
        return tuple(actions)

    def _any_actions(self) -> list[Action]:
        """A few operations, each on files that the others leave alone."""
        if self._shape.change_feed and self._rng.random() < 0.2:
            return self._update_with_changes()
        actions: list[Action] = []
        kinds = self._rng.sample(self._operations(), self._rng.choice([0, 1, 1, 2, 2, 3]))
        for operation in kinds:
            actions += operation()
        return actions

    def _operations(self) -> list[Any]:
        always = [
            *(self._append, self._append, self._remove, self._overwrite, self._compact),
            *(self._add_again, self._restate, self._set_metadata, self._set_transaction),
        ]
        return [*always, self._delete_rows, self._set_domain] if self._shape.features else always

    # What makes a table

    def _create(self) -> list[Action]:
        actions = [{"protocol": self._protocol()}, {"metaData": self._metadata()}]
        self._state.metadata = actions[1]["metaData"]
        return actions + (self._append() if self._rng.random() < 0.5 else [])

    def _protocol(self) -> Action:
        if not self._shape.features:
            return dict(LEGACY)
        mapped = ["columnMapping"] if self._shape.mapped else []
        reader = ["deletionVectors", "v2Checkpoint", *mapped]
        writer = [*reader, "domainMetadata", "appendOnly", "invariants"]
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": reader,
            "writerFeatures": writer,
        }

    def _metadata(self) -> Action:
        types = BASE_TYPES | {name: PARTITION_TYPES[name] for name in self._shape.partitions}
        settings = {"delta.columnMapping.mode": "name"} if self._shape.mapped else {}
        if self._shape.change_feed:
            settings["delta.enableChangeDataFeed"] = "true"
        fields = [self._field(name, type_, i) for i, (name, type_) in enumerate(types.items(), 1)]
        if self._shape.mapped:
            settings["delta.columnMapping.maxColumnId"] = str(len(fields))
        return {
            "id": TABLE_ID,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(self._shape.partitions),
            "configuration": settings,
            "createdTime": MILLIS,
        }

    def _field(self, name: str, type_: str, number: int) -> Action:
        stored = f"c {name}.{number}" if self._shape.mapped else name
        self._types[stored] = type_
        metadata = (
            {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": stored}
            if self._shape.mapped
            else {}
        )
        return {"name": name, "type": type_, "nullable": True, "metadata": metadata}

    # Operations

    def _append(self) -> list[Action]:
        return [{"add": self._new_file()} for _ in range(self._rng.randint(1, 3))]

    def _remove(self) -> list[Action]:
        return [{"remove": self._removed(add)} for add in self._some_live(2)]

    def _overwrite(self) -> list[Action]:
        gone = [{"remove": self._removed(add)} for add in self._some_live(None)]
        return gone + self._append()

    def _compact(self) -> list[Action]:
        """Two files of one partition become one; no row changes."""
        first = self._some_live(1)
        if not first:
            return []
        values = first[0]["partitionValues"]
        others = [add for add in self._some_live(None) if add["partitionValues"] == values]
        together = first + others[:1]
        rows = [row for add in together for row in self._live_rows(add)]
        new = self._new_file(rows=rows, values=values, data_change=False)
        return [
            *({"remove": self._removed(add, data_change=False)} for add in together),
            {"add": new},
        ]

    def _add_again(self) -> list[Action]:
        """A file that was removed comes back under its old name."""
        live = {path for path, _ in self._state.live}
        gone = [k for k in self._state.tombstones if k[0] not in live | self._touched]
        if not gone:
            return []
        key = self._rng.choice(gone)
        removed = self._state.tombstones[key]
        self._touched.add(key[0])
        return [{"add": self._add_of(key[0], vector=removed.get("deletionVector"))}]

    def _restate(self) -> list[Action]:
        """A live file is added once more, with other statistics."""
        found = []
        for add in self._some_live(1):
            vector = add.get("deletionVector")
            found.append({"add": self._add_of(add["path"], vector=vector, data_change=False)})
        return found

    def _delete_rows(self) -> list[Action]:
        """Rows of a file are deleted, or deleted rows come back, by another deletion vector."""
        found: list[Action] = []
        for add in self._some_live(1):
            count = len(self._contents[add["path"]])
            deleted = frozenset(i for i in range(count) if self._rng.random() < 0.4)
            vector = self._new_vector(deleted) if deleted else None
            again = self._add_of(add["path"], vector=vector)
            if key_of(again) != key_of(add):
                found += [{"remove": self._removed(add)}, {"add": again}]
        return found

    def _update_with_changes(self) -> list[Action]:
        """One row of a file gets another name, and the commit says so in a change file."""
        for add in self._some_live(1):
            rows = self._live_rows(add)
            name = next(s for s in self._types if s in ("name", "c name.2"))
            if rows:
                chosen = self._rng.randrange(len(rows))
                changed = {**rows[chosen], name: "changed"}
                new = [*rows[:chosen], changed, *rows[chosen + 1 :]]
                feed = (
                    {**rows[chosen], CHANGE_TYPE: "update_preimage"},
                    {**changed, CHANGE_TYPE: "update_postimage"},
                )
                path = quote(f"_change_data/cdc-{self._uuid()}.parquet")
                self._keep(path, feed)
                values = add["partitionValues"]
                size = len(self._files[path])
                cdc = {"path": path, "partitionValues": values, "size": size, "dataChange": False}
                return [
                    {"remove": self._removed(add)},
                    {"add": self._new_file(rows=new, values=values)},
                    {"cdc": cdc},
                ]
        return []

    def _set_metadata(self) -> list[Action]:
        if "metaData" in self._touched:
            return []
        self._touched.add("metaData")
        metadata = dict(self._state.metadata)
        if self._rng.random() < 0.5:
            fields = self._state.fields
            number = len(fields) + 1
            fields.append(self._field(f"more{number}", "long", number))
            metadata["schemaString"] = json.dumps({"type": "struct", "fields": fields})
        else:
            settings = {**metadata["configuration"], "note": self._rng.choice("abc")}
            metadata |= {"configuration": settings, "description": self._rng.choice(["x", "ü"])}
        return [{"metaData": metadata}]

    def _set_transaction(self) -> list[Action]:
        app = self._rng.choice(APPS)
        found = {"appId": app, "version": self._state.version + self._rng.randint(0, 3)}
        if self._rng.random() < 0.5:
            found["lastUpdated"] = MILLIS + self._state.version
        return [{"txn": found}]

    def _set_domain(self) -> list[Action]:
        domain = self._rng.choice(DOMAINS)
        removed = domain in self._state.live_domains() and self._rng.random() < 0.5
        text = json.dumps({"n": self._rng.randint(0, 9), "text": 'a "b"'})
        return [{"domainMetadata": {"domain": domain, "configuration": text, "removed": removed}}]

    # Parts

    def _some_live(self, most: int | None) -> list[Action]:
        """Live files that this commit has not touched yet; from now on it has."""
        free = [add for add in self._state.live.values() if add["path"] not in self._touched]
        count = len(free) if most is None else min(len(free), self._rng.randint(0, most))
        chosen = self._rng.sample(free, count)
        self._touched.update(add["path"] for add in chosen)
        return chosen

    def _new_file(
        self,
        *,
        rows: list[Row] | None = None,
        values: dict[str, Any] | None = None,
        data_change: bool = True,
    ) -> Action:
        folder = "" if self._shape.plain else self._rng.choice(FOLDERS)
        path = quote(f"{folder}part-{len(self._contents):05}-{self._uuid()}.parquet", safe="/=+")
        self._keep(path, self._new_rows() if rows is None else rows)
        self._touched.add(path)
        self._known[path] = {
            "partitionValues": self._partition_values() if values is None else values,
            "size": len(self._files[unquote(path)]),
        }
        return self._add_of(path, data_change=data_change)

    def _keep(self, path: str, rows: Iterable[Row]) -> None:
        """Remember a file's rows, and its bytes under the name that it has on the disk."""
        self._contents[path] = tuple(rows)
        extra = [CHANGE_TYPE] if path.startswith("_change_data") else []
        types = {name: self._types.get(name, "string") for name in [*self._stored(), *extra]}
        self._files[unquote(path)] = parquet_bytes(self._contents[path], types)

    def _add_of(
        self, path: str, *, vector: Action | None = None, data_change: bool = True
    ) -> Action:
        """An add of a file that is there."""
        found: Action = {
            "path": path,
            **self._known[path],
            "modificationTime": MILLIS + self._state.version,
            "dataChange": data_change,
        }
        if vector is not None:
            found["deletionVector"] = vector
        if self._rng.random() < 0.2:
            found["tags"] = {"made": "by hand"}
        return found | self._stats_of(path, vector)

    def _removed(self, add: Action, *, data_change: bool = True) -> Action:
        found: Action = {
            "path": add["path"],
            "deletionTimestamp": MILLIS + self._state.version,
            "dataChange": data_change,
        }
        # A feed of changes needs to know where the rows were that went.
        if self._shape.change_feed or self._rng.random() < 0.6:
            found |= {"extendedFileMetadata": True, **self._known[add["path"]]}
        if "deletionVector" in add:
            found["deletionVector"] = add["deletionVector"]
        return found

    def _stats_of(self, path: str, vector: Action | None) -> Action:
        text = statistics(self._rng, self._contents[path], self._types, deleted=vector is not None)
        return {} if text is None else {"stats": text}

    def _live_rows(self, add: Action) -> list[Row]:
        key = key_of(add)
        deleted = frozenset() if key[1] is None else self._vectors[key[1]]
        return [row for i, row in enumerate(self._contents[add["path"]]) if i not in deleted]

    def _new_rows(self) -> list[Row]:
        count = self._rng.choice([0, 1, 2, 3, 6])
        return [{name: self._value(name) for name in self._stored()} for _ in range(count)]

    def _value(self, stored: str) -> Any:
        kind = self._types[stored]
        if kind == "string":
            return self._rng.choice(NAMES)
        if kind == "double":
            return self._rng.choice(VALUES)
        self._next_id += 1
        return self._next_id

    def _stored(self) -> list[str]:
        stored = self._state.stored_names()
        return [stored[name] for name in stored if name not in self._shape.partitions]

    def _partition_values(self) -> dict[str, Any]:
        pools = {"p": PARTITION_TEXTS, "q": PARTITION_NUMBERS}
        stored = self._state.stored_names()
        return {stored[name]: self._rng.choice(pools[name]) for name in self._shape.partitions}

    def _new_vector(self, deleted: frozenset[int]) -> Action:
        if self._rng.random() < 0.7:
            about = vectors.inline(deleted)
        else:
            name = self._uuid()
            about, content = vectors.in_file(deleted, name)
            self._files[f"deletion_vector_{name}.bin"] = content
        key = key_of({"path": "", "deletionVector": about})[1]
        if key is not None:
            self._vectors[key] = deleted
        return about

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._rng.getrandbits(128), version=4)

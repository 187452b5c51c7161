"""What a reader may make of a log with a fault: an error, the true rows, or what it says now.

A flipped bit can leave a log that is as good as any other and says something else; no reader can
know. So the file with the fault is read once more, by plain and strict code. Where that finds
anything wrong, a reader must fail, or get the true rows from the files that are whole.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.kernel.history import vectors
from tests.kernel.history.compare import bag
from tests.kernel.history.faults import CHECKPOINT, COMMIT, COMPACTION
from tests.kernel.history.model import reconciled, vector_id

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable
    from pathlib import Path

    from tests.kernel.history.faults import Fault
    from tests.kernel.history.model import Action, History

    Commit = tuple[Action, ...]

KNOWN: Final = {"metaData", "protocol"}
Types = dict[str, type | tuple[type, ...]]
FILE: Final[Types] = {"path": str, "dataChange": bool}
REQUIRED: Final[dict[str, Types]] = {
    "add": FILE | {"partitionValues": dict, "size": int, "modificationTime": int},
    "remove": FILE,
    "metaData": {
        "id": str,
        "format": dict,
        "schemaString": str,
        "partitionColumns": list,
        "configuration": dict,
    },
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
    "txn": {"appId": str, "version": int},
    "domainMetadata": {"domain": str, "configuration": str, "removed": bool},
    "cdc": FILE | {"partitionValues": dict, "size": int},
}
VECTOR: Final[Types] = {
    "storageType": str,
    "pathOrInlineDv": str,
    "sizeInBytes": int,
    "cardinality": int,
}
OPTIONAL: Final[Types] = {
    "stats": str,
    "tags": dict,
    "deletionVector": dict,
    "deletionTimestamp": int,
    "partitionValues": dict,
    "size": int,
    "lastUpdated": int,
    "readerFeatures": list,
    "writerFeatures": list,
}


class MalformedError(ValueError):
    """A log that no reader may take for a good one."""


def readings(history: History, log: Path, fault: Fault) -> list[Counter[str]]:
    """The rows of the newest version that may be read, the true ones first.

    A reader looks at some files and not at others. So each file with a fault may have been seen or
    not, and protocol and metadata up to some version may come from a checksum that is whole.
    """
    found = [bag(history.rows(history.latest))]
    names = [name for name in (fault.file, fault.swapped) if name is not None]
    checked = [int(file.name[:20]) for file in log.glob("[0-9]*.crc")]
    for seen in (names[:1], names[1:], names):
        for version in (None, history.latest, *checked):
            rows = _said(history, log, seen, fault, checked=version)
            found += [] if rows is None else [rows]
    return found


def _said(
    history: History, log: Path, names: list[str], fault: Fault, *, checked: int | None
) -> Counter[str] | None:
    """The rows that some files tell of; None if there is something wrong with them."""
    if fault.kind in ("empty", "remove"):  # a commit says something, be it only about itself
        return None
    commits = list(history.commits)
    try:
        for name in names:
            commits = _changed(commits, log, name)
        if checked is not None:
            state = history.state(checked)
            known = ({"metaData": state.metadata}, {"protocol": state.protocol})
            commits[checked] = (*(a for a in commits[checked] if not a.keys() & KNOWN), *known)
        return bag(_rows(replace(history, commits=tuple(commits))))
    except (MalformedError, LookupError, ValueError, TypeError, OSError, pa.ArrowException):
        return None


def _changed(commits: list[Commit], log: Path, name: str) -> list[Commit]:
    """The commits as a file tells them that stands for some of them."""
    if COMMIT.fullmatch(name):
        version = int(name[:20])
        return [*commits[:version], tuple(_lines(log / name)), *commits[version + 1 :]]
    if COMPACTION.fullmatch(name):
        low, high = int(name[:20]), int(name[21:41])
        return [
            *commits[:low],
            *[()] * (high - low),
            tuple(_lines(log / name)),
            *commits[high + 1 :],
        ]
    if CHECKPOINT.fullmatch(name):
        version = int(name[:20])
        return [*[()] * version, tuple(_checkpoint(log, name)), *commits[version + 1 :]]
    if name.startswith("_sidecars/"):
        return _changed(commits, log, _owner(log, name.removeprefix("_sidecars/")))
    if name.endswith(".crc"):
        version = int(name[:20])
        (about,) = _parsed(log / name)
        actions: Commit = ({"metaData": about["metadata"]}, {"protocol": about["protocol"]})
        check(actions)
        return [*commits[:version], (*commits[version], *actions), *commits[version + 1 :]]
    return commits


def _rows(history: History) -> list[dict[str, Any]]:
    state = history.state(history.latest)
    known = dict(history.vectors)
    for add in state.live.values():
        vector = vector_id(add)
        if vector is not None and vector not in known:
            positions = vectors.decoded(add["deletionVector"])
            if positions is None:
                raise MalformedError("a deletion vector that can't be read")
            known[vector] = positions
    return replace(history, vectors=known).rows(history.latest)


def _owner(log: Path, sidecar: str) -> str:
    """The checkpoint that a sidecar belongs to."""
    for file in sorted(log.glob("*.checkpoint.*-*-*")):
        if file.stat().st_size and sidecar in str(_raw(file)):
            return file.name
    raise MalformedError("a sidecar of no checkpoint")


def _checkpoint(log: Path, name: str) -> list[Action]:
    """All actions of the checkpoint that a file is of."""
    version, _, rest = name.partition(".checkpoint.")
    files = [log / name]
    if rest.count(".") == 2:  # part, parts, suffix
        files = sorted(log.glob(f"{version}.checkpoint.*.{rest.split('.')[1]}.parquet"))
    actions = [action for file in files for action in _raw(file)]
    for action in [*actions]:
        if "sidecar" in action:
            actions += _raw(log / "_sidecars" / action["sidecar"]["path"])
        if "checkpointMetadata" in action and action["checkpointMetadata"]["version"] != int(
            version
        ):
            raise MalformedError("a checkpoint of another version")
    check(actions)
    return reconciled([actions])


def _raw(file: Path) -> list[Action]:
    if file.suffix == ".json":
        return _parsed(file)
    rows = pq.ParquetFile(file).read().to_pylist(maps_as_pydicts="strict")
    return [_without_nulls(row) for row in rows]


def _without_nulls(row: Action) -> Action:
    found: Action = {}
    for kind, content in row.items():
        if content is not None:
            found[kind] = {name: value for name, value in content.items() if value is not None}
    return found


def _lines(file: Path) -> list[Action]:
    actions = _parsed(file)
    check(actions)
    return actions


def _parsed(file: Path) -> list[Action]:
    text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    return [
        json.loads(line, parse_constant=_no_constant) for line in text.split("\n") if line.strip()
    ]


def _no_constant(name: str) -> None:
    raise MalformedError(f"{name} is no number in JSON")


def check(actions: Iterable[Action]) -> None:
    """Refuse actions that lack something or hold something else than they should."""
    for action in actions:
        if not isinstance(action, dict):
            raise MalformedError("a line that is no action")
        for kind, content in action.items():
            if kind not in REQUIRED or content is None:
                continue
            if not isinstance(content, dict):
                raise MalformedError(f"{kind} is no object")
            _check_fields(content, REQUIRED[kind], required=True)
            _check_fields(content, OPTIONAL, required=False)
            if content.get("deletionVector"):
                _check_fields(content["deletionVector"], VECTOR, required=True)
            for value in (content.get("partitionValues") or {}).values():
                if not isinstance(value, str | None):
                    raise MalformedError("a partition value that is no text")


def _check_fields(content: dict[str, Any], types: Types, *, required: bool) -> None:
    for name, type_ in types.items():
        value = content.get(name)
        if value is None and not required:
            continue
        if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
            raise MalformedError(f"{name} is {value!r}")

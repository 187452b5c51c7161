"""Writing a history to a directory, in a given layout, with nothing but JSON, pyarrow and files."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any

from tests.kernel.history.checkpoints import write_checkpoint
from tests.kernel.history.generate import MILLIS
from tests.kernel.history.layout import Layout
from tests.kernel.history.model import reconciled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.kernel.history.layout import Checksum, Decoy
    from tests.kernel.history.model import Action, History, State


def write_history(history: History, directory: Path, layout: Layout | None = None) -> Path:
    """Write the table; returns the directory."""
    layout = layout or Layout()
    log = directory / "_delta_log"
    log.mkdir(parents=True)
    for name, content in history.files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for version in range(layout.first, history.latest + 1):
        _write_lines(log / f"{version:020}.json", history.commits[version], version=version)
    for checkpoint in layout.checkpoints:
        write_checkpoint(log, history, checkpoint)
    for low, high in layout.compactions:
        actions = reconciled(history.commits[low : high + 1])
        _write_lines(log / f"{low:020}.{high:020}.compacted.json", actions, version=high)
    for version, checksum in layout.checksums:
        _write_checksum(log / f"{version:020}.crc", history.state(version), checksum)
    for version, decoy in layout.decoys:
        _write_decoy(log, version, decoy)
    _write_hint(log, layout)
    return directory


def time_of(version: int) -> int:
    """The time of a commit's file, in milliseconds."""
    return MILLIS + version * 60_000


def _write_lines(path: Path, actions: Iterable[Action], *, version: int) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(time_of(version) * 10**6, time_of(version) * 10**6))


def _write_checksum(path: Path, state: State, kind: Checksum) -> None:
    if kind != "right":
        path.write_text('{"numFiles": 1, "metadata"' if kind == "garbage" else "", encoding="utf-8")
        return
    found: dict[str, Any] = {
        "txnId": str(uuid.UUID(int=state.version)),
        "tableSizeBytes": sum(add["size"] for add in state.live.values()),
        "numFiles": len(state.live),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": state.metadata,
        "protocol": state.protocol,
        "setTransactions": list(state.transactions.values()),
        "domainMetadata": [one for one in state.domains.values() if not one["removed"]],
    }
    path.write_text(json.dumps(found), encoding="utf-8")


def _write_decoy(log: Path, version: int, kind: Decoy) -> None:
    """Files that look like a part of the log and must not be taken for one."""
    start = f"{version:020}"
    if kind == "missing part":  # the second of nine
        (log / f"{start}.checkpoint.{2:010}.{9:010}.parquet").write_bytes(b"PAR1 of one part")
    elif kind == "empty checkpoint":
        name = f"{start}.checkpoint.{uuid.UUID(int=version)}.parquet"
        (log / name).write_bytes(b"")
    elif kind == "empty compaction":
        (log / f"{start}.{version + 1:020}.compacted.json").write_bytes(b"")
    else:
        for name in (
            f"{version}.json",
            f".{start}.json.crc",
            f"{start}.json.tmp",
            f"{start}.notes",
        ):
            (log / name).write_bytes(b'{"add": {}}')


def _write_hint(log: Path, layout: Layout) -> None:
    path = log / "_last_checkpoint"
    if layout.hint in ("garbage", "empty"):
        path.write_text('{"version": ' if layout.hint == "garbage" else "", encoding="utf-8")
    elif layout.hint != "missing":
        ordered = sorted(layout.checkpoints, key=lambda one: one.version)
        chosen = ordered[0] if layout.hint == "older" else ordered[-1]
        about: dict[str, Any] = {"version": chosen.version, "size": 1}
        if chosen.kind == "multi":
            about["parts"] = chosen.files
        if layout.hint == "elsewhere":  # says more than is true, about a checkpoint that is there
            about |= {"parts": 77, "checkpointSchema": {"type": "struct", "fields": []}}
        path.write_text(json.dumps(about), encoding="utf-8")

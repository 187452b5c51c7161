"""The newest files of a log by name: the same state as by a listing, and no listing."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from millpond.base.clock import ManualClock
from millpond.base.store.memory import MemoryStore
from millpond.fs.oplog.log import CHECKPOINT_EVERY
from millpond.fs.oplog.newest import MOST, newest_files
from millpond.fs.oplog.persistence import OpLog
from millpond.kernel.names import checkpoint_name, checksum_name, commit_name, file_name
from millpond.testing.fs import commit, names, new_row

if TYPE_CHECKING:
    from pathlib import Path

LAST = CHECKPOINT_EVERY + 3


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The directory of a log with a checkpoint and three commits behind it."""
    oplog = OpLog.create(str(tmp_path), {}, clock=ManualClock(datetime(2024, 2, 29, tzinfo=UTC)))
    tree = oplog.latest()
    for number in range(LAST):
        tree = commit(oplog, new_row(f"f{number}"), base=tree)
        oplog.log.look_after(tree.version)
    return tmp_path / "data" / "_delta_log"


def again(log: Path) -> OpLog:
    return OpLog(str(log.parent.parent))


def found(log: Path) -> list[str]:
    store = again(log).log.store
    return [file_name(file.path) for file in newest_files(store, str(log.parent))]


def test_they_are_found_without_a_listing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = range(CHECKPOINT_EVERY, LAST + 1)
    wanted = [checkpoint_name(CHECKPOINT_EVERY), *map(commit_name, versions)]
    assert found(log) in (wanted, [*wanted, checksum_name(LAST)])
    listed: list[object] = []
    monkeypatch.setattr(os, "listdir", listed.append)
    monkeypatch.setattr(os, "scandir", listed.append)
    tree = again(log).latest()
    assert (tree.version, len(names(tree))) == (LAST, LAST)
    assert listed == []


@pytest.mark.parametrize(
    "hint",
    [None, b"", b"{", b"[]", b"{}", b'{"version": "7"}', b'{"version": 0}', b'{"version": 7}'],
)
def test_a_hint_that_leads_nowhere(log: Path, hint: bytes | None) -> None:
    place = log / "_last_checkpoint"
    if hint is None:
        place.unlink()
    else:
        place.write_bytes(hint)
    assert found(log) == []
    assert again(log).latest().version == LAST


@pytest.mark.parametrize("name", [checkpoint_name, commit_name])
def test_what_is_not_as_we_write_it(log: Path, name: object) -> None:
    assert callable(name)
    (log / name(CHECKPOINT_EVERY)).unlink()
    assert found(log) == []


def test_far_behind_the_checkpoint(log: Path) -> None:
    for version in range(LAST + 1, CHECKPOINT_EVERY + MOST):
        (log / commit_name(version)).write_text("{}\n")
    assert found(log) == []


def test_an_object_store_lists_from_where_one_likes() -> None:
    store = MemoryStore()
    store.put("_delta_log/_last_checkpoint", json.dumps({"version": 3}).encode())
    assert newest_files(store, "s3://x") == []

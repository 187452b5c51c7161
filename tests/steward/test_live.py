"""Notes of what is live in stored tables: only commits behind a note are read, and no false one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.provider.ponds import append, at

import millpond as mp
from millpond.kernel.commits import read_commit
from millpond.steward.dynamic import live, shortlog

if TYPE_CHECKING:
    from millpond.provider.rows import Piece
    from millpond.steward.pond import Pond

MANY = shortlog.MOST_COMMITS + 4


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    for hour in range(MANY):
        append(made, "/s", [{"timestamp": at(hour), "x": hour}])
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions whose commits were read line by line."""
    seen: list[int] = []

    def counted(store: object, version: int, table: str) -> object:
        seen.append(version)
        return read_commit(store, version, table)  # type: ignore[arg-type]

    monkeypatch.setattr(shortlog, "read_commit", counted)
    return seen


def pieces(pond: Pond, path: str = "/s") -> list[Piece]:
    return list(pond.read().derivation.rows(path).pieces())


def test_after_an_append_a_few_commits_are_read(pond: Pond, read: list[int]) -> None:
    assert len(pieces(pond)) == MANY
    assert read == [], "a log this long is left to the kernel"
    for more in range(1, 6):
        append(pond, "/s", [{"timestamp": at(MANY + more), "x": more}])
        read.clear()
        assert len(pieces(mp.open(pond.location))) == MANY + more
        assert 1 <= len(read) <= live.FEW_COMMITS, "those behind the note"
    found = pond.read().derivation.rows("/s")
    assert found.plan_of(found.pieces()[-2:]).to_pylist() == [
        {"timestamp": at(MANY + more), "x": more} for more in (4, 5)
    ]


def test_what_was_is_not_what_is_noted(pond: Pond) -> None:
    before = pond.read().txn_seq
    old = pieces(pond)
    append(pond, "/s", [{"timestamp": at(MANY), "x": 0}])
    assert len(pieces(pond)) == MANY + 1
    assert list(pond.read(as_of=before).derivation.rows("/s").pieces()) == old
    assert len(pieces(pond)) == MANY + 1


def test_an_old_state_that_was_put_back_is_not_mixed_up(pond: Pond, tmp_path: Path) -> None:
    place = Path(pond.location)
    shutil.copytree(place, tmp_path / "backup")
    append(pond, "/s", [{"timestamp": at(500), "x": 500}])
    lost = pieces(pond)[-1]
    shutil.rmtree(tmp_path / "backup" / "cache", ignore_errors=True)
    shutil.copytree(place / "cache", tmp_path / "backup" / "cache")
    other = mp.open(tmp_path / "backup")
    assert lost not in pieces(other)
    for more in range(3):
        append(other, "/s", [{"timestamp": at(600 + more), "x": more}])
        assert lost not in pieces(other)
        assert len(pieces(other)) == MANY + 1 + more


def test_a_transaction_reads_what_it_has_written_and_notes_nothing(pond: Pond) -> None:
    pieces(pond)
    notes = sorted(Path(pond.location).glob("cache/facts/**/*.json"))
    with pond.write() as tx:
        tx.append_series("/s", [{"timestamp": at(900), "x": 9}])
        assert len(tx.derivation.rows("/s").pieces()) == MANY + 1
        tx.rollback()
    assert sorted(Path(pond.location).glob("cache/facts/**/*.json")) == notes
    assert len(pieces(pond)) == MANY


def test_a_few_commits_need_no_note(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "small")
    append(pond, "/s", [{"timestamp": at(0)}])
    assert pond.read().row("/s").delta_version in range(live.FEW_COMMITS + 1)
    assert len(pieces(pond)) == 1
    assert not list(Path(pond.location).glob("cache/facts/**/*.json"))

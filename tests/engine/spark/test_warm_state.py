"""Where the warm engine's state is, without an engine: who may read it, and what if it is odd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import EngineError
from millpond.base.settings import Settings
from millpond.engine.spark.warm import client, control, state
from millpond.plan.attendant import attend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Attendant:
    def __init__(self) -> None:
        self.told: list[tuple[str, str | None]] = []
        self.on_progress = None

    def tell(self, message: str, *, hint: str | None = None) -> None:
        self.told.append((message, hint))


@pytest.fixture
def attendant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Attendant]:
    monkeypatch.setattr("millpond.engine.spark.session.has_session", lambda: False)
    found = Attendant()
    attend(found)
    yield found
    attend(None)


def test_who_looks_for_one_makes_nothing(tmp_path: Path, attendant: Attendant) -> None:
    assert client.found(Settings.load(env={})) is None
    assert control.status() is None
    assert [hint for _, hint in attendant.told] == [None]
    assert not (tmp_path / "state").exists()


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "state" / "millpond").mkdir(parents=True, mode=0o777)
    written = state.State(1, 2, "a token", {"a": "b"})
    state.write(written)
    assert state.read() == written
    assert state.state_file().stat().st_mode & 0o777 == 0o600
    assert state.state_file().parent.stat().st_mode & 0o777 == 0o700
    assert "a token" not in repr(written)
    state.remove(state.State(3, 2, "another", {}))
    assert state.read() == written
    state.remove(written)
    assert state.read() is None


def test_one_life_at_a_time() -> None:
    first, second = state.Life(), state.Life()
    assert first.begin()
    assert not second.begin()
    assert state.is_alive()
    first.end()
    assert not state.is_alive()


def test_a_file_that_makes_no_sense_is_named(attendant: Attendant) -> None:
    state.directory()
    state.state_file().write_text('{"pid": 1}')
    with pytest.raises(EngineError, match="can't be read") as caught:
        state.read()
    assert caught.value.hint is not None
    assert client.found(Settings.load(env={})) is None
    assert "can't be read" in attendant.told[0][0]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, attendant: Attendant) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(EngineError, match="can't be used") as caught:
        state.directory()
    assert "XDG_STATE_HOME" in str(caught.value.hint)
    assert client.found(Settings.load(env={})) is None
    assert "can't be used" in attendant.told[0][0]


def test_nothing_answers_where_the_file_says(attendant: Attendant) -> None:
    settings = Settings.load(env={})
    there = state.State(1, 1, "a token", state.parts(settings, "a token"))
    state.write(there)
    assert client.found(settings) is None
    said, hint = attendant.told[0]
    assert said == "the warm engine is gone, so Spark starts here"
    assert hint == "pond engine start"
    assert control.stop() is False
    assert state.read() is None

"""`cli` runs the command line in this process, `real` in one of its own; both over a new pond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.calls import Cli, Real

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the pond is to be; the variable POND says so."""
    place = tmp_path / "pond"
    monkeypatch.setenv("POND", str(place))
    monkeypatch.chdir(tmp_path)
    return place


@pytest.fixture
def cli(place: Path) -> Cli:
    """The command line over a new pond."""
    found = Cli()
    found.ok("init")
    return found


@pytest.fixture
def real(place: Path) -> Real:
    """The command line in a process of its own; no pond is there unless `cli` made it."""
    return Real(place.parent)

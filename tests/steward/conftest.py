"""Fixtures of the tests of ponds: one that is prepared once and copied."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.steward.deeds import prepare

from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pond with a bit of everything, which nobody changes."""
    path = tmp_path_factory.mktemp("prepared") / "pond"
    prepare(str(path))
    return path


@pytest.fixture
def place(prepared: Path, tmp_path: Path) -> Iterator[str]:
    """Where a copy of it is; whatever observes the steps of a commit ends with the test."""
    path = tmp_path / "pond"
    shutil.copytree(prepared, path)
    yield str(path)
    steps.observe(None)

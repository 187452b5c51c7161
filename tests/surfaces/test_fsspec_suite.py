"""fsspec's own suite of tests, on a pond.

All of its classes apply, without exceptions. `fsspec.tests.abstract.mv` is no class to apply: its
two tests are about the local filesystem. Directories are made as files need them (`auto_mkdir`),
as the suite expects.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import fsspec
import fsspec.tests.abstract as abstract
import pytest

import millpond as mp
from millpond.surfaces.fsspec import PondFileSystem

if TYPE_CHECKING:
    from pathlib import Path


def _in_one_transaction(name: str) -> Any:
    """What the suite makes before each test; on the pond in one go, which is much faster."""

    def made(self: Any, some_fs: Any, some_join: Any, some_path: Any) -> Any:
        is_pond = isinstance(some_fs, PondFileSystem)
        with some_fs.transaction if is_pond else nullcontext():
            make = getattr(abstract.AbstractFixtures, name)
            return make(self, some_fs, some_join, some_path)

    return made


class PondFixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture
    def fs(self, tmp_path: Path) -> Any:
        mp.create(tmp_path / "pond")
        return fsspec.filesystem("pond", location=str(tmp_path / "pond"), auto_mkdir=True)

    @pytest.fixture
    def fs_path(self) -> str:
        return "/here"

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(parts)

    _glob_edge_cases_files = _in_one_transaction("_glob_edge_cases_files")
    _bulk_operations_scenario_0 = _in_one_transaction("_bulk_operations_scenario_0")
    _dir_and_file_with_same_name_prefix = _in_one_transaction("_dir_and_file_with_same_name_prefix")
    _10_files_with_hashed_names = _in_one_transaction("_10_files_with_hashed_names")


class TestCopy(abstract.AbstractCopyTests, PondFixtures):  # type: ignore[misc]
    pass


class TestGet(abstract.AbstractGetTests, PondFixtures):  # type: ignore[misc]
    pass


class TestPut(abstract.AbstractPutTests, PondFixtures):  # type: ignore[misc]
    pass


class TestOpen(abstract.AbstractOpenTests, PondFixtures):  # type: ignore[misc]
    pass


class TestPipe(abstract.AbstractPipeTests, PondFixtures):  # type: ignore[misc]
    pass

"""From a URL to a store."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import ConfigError
from millpond.base.settings import Settings
from millpond.base.store import open_store
from millpond.base.store.local import LocalStore
from millpond.base.store.memory import MemoryStore
from millpond.base.store.object import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cases: list[tuple[str | Path, Path]] = [
        (tmp_path / "a", tmp_path / "a"),
        ("a", tmp_path / "a"),
        ("./a b", tmp_path / "a b"),
        ("~/a", tmp_path / "home/a"),
        (f"file://{tmp_path}/a%20b", tmp_path / "a b"),
        (f"file://localhost{tmp_path}", tmp_path),
    ]
    for location, root in cases:
        store = open_store(location)
        assert isinstance(store, LocalStore)
        assert store.root == root
    assert list(tmp_path.iterdir()) == []


def test_memory() -> None:
    assert open_store("memory://m") is open_store("memory://m")
    assert isinstance(open_store("memory://"), MemoryStore)
    assert open_store("memory://") is not open_store("memory://")


def test_s3() -> None:
    store = open_store(
        "s3a://bucket/a/b/", settings=Settings.load(env={}, store_region="eu-west-1")
    )
    assert isinstance(store, ObjectStore)
    assert store.url == "s3://bucket/a/b"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "empty"),
        ("ftp://x/y", "there is no store for 'ftp://'"),
        ("https://x/y", "there is no store for 'https://'"),
        ("file://host/path", "another machine"),
        ("file://path", "another machine"),
        ("s3://", "needs a bucket"),
        ("s3://key:hunter2@bucket/p", "must not carry credentials"),
        ("s3://bucket/p?secret=hunter2", "must not carry credentials"),
        ("abfss://container:hunter2@account/p", "must not carry credentials"),
    ],
)
def test_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        open_store(url, settings=Settings())
    assert "hunter2" not in str(caught.value)


def test_heavy_packages_are_imported_only_where_used(tmp_path: Path) -> None:
    script = """
import sys
import millpond.base.settings, millpond.base.registry, millpond.base.ids, millpond.base.clock
from millpond.base.store import open_store
light = ("obstore", "pyarrow", "blake3", "tomllib", "importlib.metadata", "difflib", "uuid")
assert not {*light} & {*sys.modules}, {*light} & {*sys.modules}
store = open_store(sys.argv[1])
store.put("a", b"1")
assert not {*light} & {*sys.modules}, {*light} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)

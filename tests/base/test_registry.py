"""The registry over real entry points, from a package that a test writes to disk."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import PluginError
from millpond.base.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

METADATA = """\
Metadata-Version: 2.1
Name: Frog.Plugins
Version: 1
Requires-Dist: always
Requires-Dist: grpcio>=1.67; extra == 'remote'
Requires-Dist: no_such-package<3,>=2; extra == "spark"
Provides-Extra: spark
"""
ENTRIES = """\
[millpond.test_frogs]
green = frog_plugins:GREEN
broken = frog_plugins:NOTHING
raises = frog_plugins.raises:X
needs = frog_plugins.needs:X
needs-grpc = frog_plugins.needs_grpc:X
needs-unknown = frog_plugins.needs_unknown:X
older = frog_plugins.older:X
misspelt = frog_plugins.nosuch:X
"""


@pytest.fixture
def frogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[str]:
    package = tmp_path / "frog_plugins"
    package.mkdir()
    (package / "__init__.py").write_text("GREEN = 'kermit'\nLOADED = []\n")
    (package / "raises.py").write_text("1 / 0\n")
    (package / "needs.py").write_text("import no_such_package.deep\n")
    (package / "needs_grpc.py").write_text("raise ModuleNotFoundError('x', name='grpc.aio')\n")
    (package / "needs_unknown.py").write_text("import quite_unknown\n")
    (package / "older.py").write_text("import millpond.kernel.gone\n")
    monkeypatch.setitem(sys.modules, "grpc", None)  # it is not installed
    write_metadata(tmp_path, "Frog.Plugins", METADATA, ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("frog_plugins")]:
        monkeypatch.delitem(sys.modules, name)
    return Registry(group="millpond.test_frogs")


def write_metadata(root: Path, name: str, metadata: str, entries: str) -> None:
    info = root / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(entries)


def test_names_import_nothing_and_get_imports_once(frogs: Registry[str]) -> None:
    assert "green" in frogs.names()
    assert list(frogs.names()) == sorted(frogs.names())
    assert "frog_plugins" not in sys.modules
    assert frogs.get("green") == "kermit"
    del sys.modules["frog_plugins"]
    assert frogs.get("green") is frogs.get("green")
    assert "frog_plugins" not in sys.modules


def test_unknown_names(frogs: Registry[str]) -> None:
    with pytest.raises(PluginError) as caught:
        frogs.get("gren")
    known = "broken, green, misspelt, needs, needs-grpc, needs-unknown, older, raises"
    assert f"known: {known}" in caught.value.message
    assert caught.value.hint == "did you mean 'green'?"
    assert (caught.value.group, caught.value.name) == ("millpond.test_frogs", "gren")
    with pytest.raises(PluginError, match="install the package that offers it"):
        frogs.get("zzz")
    with pytest.raises(PluginError, match="known: none"):
        Registry[str](group="millpond.test_nothing").get("x")


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("needs", "needs the package 'no_such_package'", "pip install 'Frog.Plugins[spark]'"),
        ("needs-grpc", "needs the package 'grpc'", "pip install 'Frog.Plugins[remote]'"),
        ("needs-unknown", "needs the package 'quite_unknown'", "pip install quite_unknown"),
        ("raises", "ZeroDivisionError: division by zero", "the plugin is broken"),
        ("broken", "AttributeError", "the plugin is broken"),
        ("older", "No module named 'millpond.kernel.gone'", "does not fit this version"),
        ("misspelt", "No module named 'frog_plugins.nosuch'", "the plugin is broken"),
    ],
)
def test_what_can_not_be_loaded(frogs: Registry[str], name: str, message: str, hint: str) -> None:
    with pytest.raises(PluginError) as caught:
        frogs.get(name)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)
    assert caught.value.__cause__ is not None


def test_names_are_given_once(frogs: Registry[str]) -> None:
    frogs.register("blue", "frogger")
    assert frogs.get("blue") == "frogger"
    assert "blue" in frogs.names()
    for name in ("blue", "green"):
        with pytest.raises(PluginError, match="is already in"):
            frogs.register(name, "x")


def test_two_packages_that_offer_one_name(frogs: Registry[str], tmp_path: Path) -> None:
    entries = "[millpond.test_frogs]\ngreen = toads:GREEN\n"
    write_metadata(tmp_path, "toads", "Metadata-Version: 2.1\nName: toads\nVersion: 1\n", entries)
    with pytest.raises(PluginError, match="more than once: frog_plugins:GREEN, toads:GREEN"):
        Registry[str](group="millpond.test_frogs").get("green")


def test_importing_it_is_cheap() -> None:
    script = (
        "import sys, millpond.base.registry as r\n"
        "r.Registry(group='g')\n"
        "assert 'importlib.metadata' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

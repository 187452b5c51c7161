"""The public API is what `__all__` says: sorted, complete, importable, documented."""

from __future__ import annotations

import tomllib
from pathlib import Path

import millpond


def test_all_is_sorted_and_every_name_is_there() -> None:
    assert millpond.__all__ == sorted(millpond.__all__)
    for name in millpond.__all__:
        assert getattr(millpond, name).__doc__, f"{name} has no docstring"
    assert set(millpond._HOMES) == set(millpond.__all__)
    assert set(millpond.__all__) <= set(dir(millpond))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(millpond, "swim")


def test_version_is_the_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["project"]["version"] == millpond.__version__

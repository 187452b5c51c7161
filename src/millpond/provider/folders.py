"""Computed nodes by their paths as directories in directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import FactoryConfigError
from millpond.fs.entry import EntryType
from millpond.provider.factory import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping


def folders(leaves: Mapping[str, Entry], *, factory: str, identity: str) -> dict[str, Entry]:
    """The first level; `a/b` is `b` in a directory `a`."""
    found: dict[str, Entry] = {}
    deeper: dict[str, dict[str, Entry]] = {}
    for path, leaf in leaves.items():
        name, slash, rest = path.partition("/")
        if slash:
            deeper.setdefault(name, {})[rest] = leaf
        else:
            found[name] = leaf
    for name, inside in deeper.items():
        if name in found:
            raise FactoryConfigError(
                f"{name!r} would be a directory and something else, too",
                hint="change out_pattern",
            )
        found[name] = _folder(inside, factory=factory, identity=f"{identity} {name}")
    return found


def _folder(inside: Mapping[str, Entry], *, factory: str, identity: str) -> Entry:
    return Entry(
        EntryType.DYNAMIC_DIRECTORY,
        factory,
        identity,
        entries=lambda: folders(inside, factory=factory, identity=identity),
    )

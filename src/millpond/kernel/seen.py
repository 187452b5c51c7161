"""The files that actions of some commits were about, of which there may be millions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernel.paths import spellings

Name = str | tuple[str, str]
"""A file: its canonical path, with its deletion vector's unique id if it has one."""


class Keys(NamedTuple):
    """Files as columns: canonical paths, and unique ids of vectors if there are any."""

    paths: pa.Array
    vectors: pa.Array | None = None

    def names(self) -> list[Name]:
        """The same as Python objects."""
        paths: list[str] = self.paths.to_pylist()
        if self.vectors is None:
            return [*paths]
        both = zip(paths, self.vectors.to_pylist(), strict=True)
        return [path if vector is None else (path, vector) for path, vector in both]

    def texts(self) -> pa.Array:
        """A text for each file: the same for the same file."""
        if self.vectors is None:
            return self.paths
        both = pc.binary_join_element_wise(self.paths, self.vectors, "\n")
        return pc.coalesce(both, self.paths)  # as it is where none has a vector


class SeenFiles(Collection[Name]):
    """Files, each once: as names, or as columns where nobody had to look at them one by one."""

    def __init__(self, names: Collection[Name], columns: list[Keys]) -> None:
        self._names = names
        self._columns = columns

    def __len__(self) -> int:
        return len(self._names) + sum(len(keys.paths) for keys in self._columns)

    def __iter__(self) -> Iterator[Name]:
        return chain(self._names, chain.from_iterable(keys.names() for keys in self._columns))

    def __contains__(self, name: object) -> bool:
        return name in self._names or any(name in keys.names() for keys in self._columns)

    def spelled(self) -> pa.Table:
        """Path and deletion vector of each, in every way to spell the path."""
        parts = [*map(_spelled, self._columns), _by_name(self._names)]
        return pa.concat_tables(parts)


def _spelled(keys: Keys) -> pa.Table:
    if pc.any(pc.starts_with(keys.paths, "/")).as_py():
        return _by_name(keys.names())
    vectors = pa.nulls(len(keys.paths), pa.string()) if keys.vectors is None else keys.vectors
    return _table(keys.paths, vectors)


def _by_name(names: Collection[Name]) -> pa.Table:
    paths: list[str] = []
    vectors: list[str | None] = []
    for name in names:
        path, vector = (name, None) if isinstance(name, str) else name
        for spelling in spellings(path):
            paths.append(spelling)
            vectors.append(vector)
    return _table(pa.array(paths, pa.string()), pa.array(vectors, pa.string()))


def _table(*columns: Any) -> pa.Table:
    return pa.table(list(columns), names=["path", "dv"])

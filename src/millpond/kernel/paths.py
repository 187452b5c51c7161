"""Paths in a log as places to read: relative to the table, absolute, or URLs; percent-encoded once.

>>> resolve("/data/t", "p=a%20b/x.parquet")
'/data/t/p=a b/x.parquet'
>>> resolve("/data/t", "file:///other/y.parquet")
'/other/y.parquet'
>>> resolve("s3://lake/t", "s3://other/y%23.parquet")
's3://other/y#.parquet'
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from millpond.base.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_SAFE: Final = "/!$&'()*+,;=@~-._"
_PLAIN: Final = r"^[^%/:][^%:]*$"


def table_location(location: str | os.PathLike[str]) -> str:
    """A table's place in one spelling: an absolute local path or a URL, without a last slash."""
    from pathlib import Path

    given: object = location
    if not isinstance(given, str | os.PathLike) or not str(given) or "\0" in str(given):
        raise ConfigError(
            f"{location!r} is no place of a table", hint="give a path or a URL such as s3://…"
        )
    text = os.fspath(location)
    match = _SCHEME.match(text)
    if match is not None and match[1].lower() != "file":
        return text.rstrip("/")
    local = _local(text) if match is not None else text
    try:
        return str(Path(local).expanduser().absolute()).rstrip("/") or "/"
    except RuntimeError as error:  # a home that there is not
        raise ConfigError(f"{local} has no home directory", hint="write it out") from error


def resolve(table: str, path: str) -> str:
    """Where the file of this path is."""
    match = _SCHEME.match(path)
    if match is not None:
        if match[1].lower() == "file":
            return _local(path)
        return unquote(path)
    if path.startswith("/"):
        root = _SCHEME.match(table)
        if root is None:
            return unquote(path)
        scheme, _, rest = table.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{unquote(path)}"
    return f"{table}/{unquote(path)}"


def resolve_all(table: str, paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Where the files of many paths are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.all(pc.match_substring_regex(paths, _PLAIN)).as_py()
    if plain is not False:
        found = pc.binary_join_element_wise(pa.scalar(f"{table}/"), paths, "")
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return pa.array([None if p is None else resolve(table, p) for p in paths.to_pylist()])


def encode(path: str) -> str:
    """A relative path as it stands in a log."""
    return quote(path, safe=_SAFE)


def canonical(path: str) -> str:
    """One spelling for each local absolute path: `file:/x`, `file:///x` and `/x` are one file."""
    return _local(path, decode=False) if path.startswith(("file:", "FILE:")) else path


def spellings(path: str) -> tuple[str, ...]:
    """All ways to spell a canonical path."""
    if not path.startswith("/"):
        return (path,)
    return (path, f"file:{path}", f"file://{path}")


def _local(url: str, *, decode: bool = True) -> str:
    path = url[len("file:") :]
    if path.startswith("//"):
        rest = path[2:]
        path = rest if rest.startswith("/") else "/" + rest.partition("/")[2]
    path = "/" + path.lstrip("/")
    return unquote(path) if decode else path

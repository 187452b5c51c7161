"""The bytes that formats read: versions of raw files of a pond, and files of this machine."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from millpond.base.errors import UrlError
from millpond.fs.blobs import blob_path
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern
from millpond.fs.paths import split_version
from millpond.provider.formats.reader import Raw
from millpond.provider.reading import Match
from millpond.provider.rows import key_of
from millpond.steward.bytefile import ByteFile

if TYPE_CHECKING:
    from typing import IO

    from millpond.fs.entry import Row
    from millpond.provider.url import DataUrl
    from millpond.steward.scope import Scope

BYTES: Final = (EntryType.DATA, EntryType.DATA_SERIES, EntryType.DYNAMIC_FILE)
"""What has bytes to be read."""


def pond_raws(scope: Scope, path: str) -> list[Raw]:
    """The bytes of a path: of a series, those of each version."""
    plain = split_version(path).path
    if scope.row(path).entry_type is EntryType.DYNAMIC_FILE:
        content = scope.derivation.content(path)
        digest = blake3(content).hexdigest()
        return [Raw(path, digest, len(content), partial(io.BytesIO, content), file_name=plain)]
    rows = scope.byte_rows(path)
    is_one = len(rows) == 1
    return [_raw(scope, path if is_one else f"{plain}@v{row.version}", plain, row) for row in rows]


def _raw(scope: Scope, name: str, plain: str, row: Row) -> Raw:
    is_inline = row.blake3 is None or scope.tree.content(row) is not None
    opened = partial(_opened, scope, name, row)
    if is_inline:
        return Raw(name, row.blake3 or "", row.size or 0, opened, None, plain)
    location = f"{scope.pond.location}/{blob_path(row.blake3 or '')}"
    check = partial(scope.pond.blobs.check, row, path=name)
    return Raw(name, row.blake3 or "", row.size or 0, opened, location, plain, check)


def _opened(scope: Scope, name: str, row: Row) -> IO[bytes]:
    return io.BufferedReader(ByteFile(scope, name, [row]), 1 << 20)


def host_raw(path: str) -> Raw:
    """A file of this machine; when it was changed is taken for what is in it."""
    from millpond.steward.copying.host import translated

    with translated(path):
        found = Path(path).stat()
    key = key_of("host", path, found.st_size, found.st_mtime_ns)
    return Raw(path, key, found.st_size, partial(_opened_host, path), path)


def _opened_host(path: str) -> IO[bytes]:
    from millpond.steward.copying.host import translated

    with translated(path):
        return Path(path).open("rb")


def host_matches(asked: DataUrl) -> list[Match]:
    """The files of this machine that a URL names; there may be none."""
    from millpond.steward.rows.host import find_files

    if asked.scheme is not None and not asked.is_format:
        raise UrlError(
            f"{asked} is no file with rows", url=str(asked), hint="host+csv:///path, or the like"
        )
    pattern = Pattern.parse(asked.path)
    files = [asked.path] if asked.scheme == "delta" else find_files(asked.path)
    return [Match(file, pattern.match(file) or (), EntryType.DATA) for file in files]

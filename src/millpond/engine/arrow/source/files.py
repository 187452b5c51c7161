"""Opening the files that a plan names: plain paths and `file://` directly, other URLs by store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from millpond.base.errors import DamagedFileError, MillpondError, SourceError, StoreError
from millpond.engine.arrow.source.unused import Unused

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.base.settings import Settings
    from millpond.base.store import Store

ENGINE = "arrow"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def local_path(path: str) -> str | None:
    """The path in the local file system, or None for what lives in another store.

    >>> local_path("file:///data/a%20b.parquet"), local_path("data/x.csv"), local_path("s3://b/x")
    ('/data/a b.parquet', 'data/x.csv', None)
    """
    if path.startswith("/"):  # as most do
        return path
    match = _URL.match(path)
    if match is None:
        return path
    if match[1].lower() != "file":
        return None
    return unquote("/" + path[match.end() :].partition("/")[2])


def split_url(url: str) -> tuple[str, str]:
    """The store's address and the name within it.

    >>> split_url("s3://bucket/a/b.parquet")
    ('s3://bucket', 'a/b.parquet')
    """
    match = _URL.match(url)
    assert match is not None
    host, _, name = url[match.end() :].partition("/")
    return url[: match.end()] + host, name


class Files:
    """The files and stores that one run has open."""

    def __init__(self, settings: Settings | None = None, unused: Unused | None = None) -> None:
        self.unused = unused or Unused()
        self._settings = settings
        self._stores: dict[str, Store] = {}
        self._open: dict[int, pa.NativeFile] = {}

    def store(self, address: str) -> Store:
        """The store at this address, opened once."""
        found = self._stores.get(address)
        if found is None:
            from millpond.base.store import open_store

            found = self._stores[address] = open_store(address, settings=self._settings)
        return found

    def open(self, path: str) -> pa.NativeFile:
        """A file to read at any position; one that can't be opened is an error that names it."""
        import pyarrow as pa

        local = local_path(path)
        try:
            if local is not None:
                opened = pa.OSFile(local)
            else:
                from millpond.engine.arrow.source.storefile import StoreFile

                address, name = split_url(path)
                opened = pa.PythonFile(StoreFile(self.store(address), name), mode="r")
        except (OSError, ValueError, MillpondError) as error:  # ValueError: a name with a NUL
            raise unreadable(path, error) from error
        self._open[id(opened)] = opened
        return opened

    def release(self, file: pa.NativeFile) -> None:
        """Close one file."""
        self._open.pop(id(file), None)
        file.close()

    def close(self) -> None:
        """Close all that is still open."""
        while self._open:
            self._open.popitem()[1].close()


def unreadable(path: str, error: BaseException, *, hint: str | None = None) -> SourceError:
    """The error for a file that can't be opened or read."""
    if isinstance(error, FileNotFoundError):
        where = "check the path; a relative one starts in the working directory"
        said = f"there is no file {path}"
        return SourceError(said, engine=ENGINE, path=path, missing=True, hint=where)
    reason = error.message if isinstance(error, MillpondError) else str(error)
    if isinstance(error, StoreError) and error.hint:
        hint = error.hint
    elif isinstance(error, PermissionError):
        hint = "check who may read it"
    return SourceError(
        f"{path} can't be read: {reason}",
        engine=ENGINE,
        path=path,
        hint=hint or "check that it is a file, complete and of the right format",
    )


def unfit(path: str, column: str, message: str) -> SourceError:
    """The error for a column of a file that is not what the plan says."""
    return SourceError(
        f"column {column} of {path} {message}",
        engine=ENGINE,
        path=path,
        hint="correct the schema that it is read by, or leave the column out",
    )


def not_as_written(path: str, what: str) -> DamagedFileError:
    """Return the error for a file whose seal does not fit it."""
    return DamagedFileError(
        f"{path} is damaged: {what}",
        engine=ENGINE,
        path=path,
        hint="restore the file from a backup, or write its rows again; pond fsck finds all damage",
    )


def damaged(path: str, message: str) -> SourceError:
    """The error for a file that holds what no writer would have written."""
    hint = "the file is damaged: write it anew, or restore it"
    return SourceError(message, engine=ENGINE, path=path, hint=hint)

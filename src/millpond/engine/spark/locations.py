"""Where a scan's files are, as Spark wants to be told; none may vanish without an error.

Spark skips files whose names start with `_` or `.`, and reads an empty file or a directory as no
rows, even when it is asked for that very file. All are caught here.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from millpond.base.errors import SourceError
from millpond.engine.spark.api import is_classic

if TYPE_CHECKING:
    from millpond.engine.spark.context import Context

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_PATTERN = re.compile(r"[*?\[\]{}\\]")
# What `java.net.URI` leaves alone in a path; it also leaves alone what is not ASCII.
_URI_SAFE = "/_-!.~'()*,;:$&+=@"


def spark_path(path: str, context: Context, *, may_be_empty: bool) -> str:
    """The path or URL of a file as a text for Spark's readers."""
    if not is_classic(context.session) and _PATTERN.search(path):
        raise SourceError(
            f"Spark Connect takes {path!r} for a pattern, not for the name of one file",
            engine="spark",
            path=path,
            hint="use the arrow engine for it, or a name without * ? [ ] { } and backslashes",
        )
    found = _SCHEME.match(path)
    scheme = found[1].lower() if found else "file"
    if scheme != "file":
        return _remote(path, scheme)
    local = os.path.abspath(_local(path))  # noqa: PTH100 - `resolve` would follow links
    local = f"/{local.lstrip('/')}"  # two slashes would stay, and name a host to Hadoop
    _check(local, may_be_empty=may_be_empty)
    name = local.rpartition("/")[2]
    # Hadoop looks for a checksum beside the file, and can't spell its name with a colon.
    return f"file:{_link(local, context) if _is_skipped(name) or ':' in name else local}"


def as_names(paths: list[str]) -> list[str]:
    """Paths that `spark_path` gave, so that Spark takes none of them for a pattern.

    Its option not to look for patterns won't do: with it, each path that looks like one stands for
    all paths of the scan.

    >>> print(*as_names(["file:/pond/a.parquet", "file:/pond/[b]?.parquet"]))
    file:/pond/a.parquet file:/pond/\\[b\\]\\?.parquet
    """
    return [_PATTERN.sub(r"\\\g<0>", path) for path in paths]


def file_uri(path: str) -> str:
    """How Spark's `_metadata.file_path` writes a path that `spark_path` gave.

    >>> file_uri("file:/pond/a b%20[ü].parquet")
    'file:/pond/a%20b%2520%5Bü%5D.parquet'
    """
    return "".join(quote(c, safe=_URI_SAFE) if c.isascii() else c for c in path)


def _remote(path: str, scheme: str) -> str:
    if scheme == "memory":
        raise SourceError(
            f"Spark can't read {path}: it lives in this Python process alone",
            engine="spark",
            path=path,
            hint="use the arrow engine, or a directory",
        )
    if _is_skipped(path.rpartition("/")[2]):
        raise SourceError(
            f"Spark skips files with names like {path.rpartition('/')[2]!r}",
            engine="spark",
            path=path,
            hint="use the arrow engine for this file",
        )
    # Hadoop's connector for S3 answers to s3a alone.
    return "s3a" + path[2:] if scheme == "s3" else path


def _local(path: str) -> str:
    if path.startswith("file://"):
        return unquote("/" + path.removeprefix("file://").partition("/")[2])
    return unquote(path.removeprefix("file:")) if path.startswith("file:") else path


def _check(local: str, *, may_be_empty: bool) -> None:
    """Refuse what Spark would read as no rows: a directory, and an empty file that can't be one."""
    try:
        found = os.stat(local)  # noqa: PTH116 - may be called for thousands of files
    except OSError:
        return  # Spark says what is wrong with it
    if stat.S_ISDIR(found.st_mode):
        reason = "is a directory"
    elif found.st_size == 0 and not may_be_empty:
        reason = "is empty"
    else:
        return
    raise SourceError(
        f"{local} {reason}",
        engine="spark",
        path=local,
        hint="the file can't be read: check that it is complete and of the right format",
    )


def _is_skipped(name: str) -> bool:
    """Spark's own rule (`HadoopFSUtils.shouldFilterOutPathName`)."""
    skipped = (name.startswith("_") and "=" not in name) or name.startswith(".")
    return (skipped or name.endswith("._COPYING_")) and not name.startswith(
        ("_common_metadata", "_metadata")
    )


def _link(local: str, context: Context) -> str:
    """Another name for a file that Spark would skip, or could not open."""
    folder = context.resources.enter_context(tempfile.TemporaryDirectory(prefix="millpond-link-"))
    link = Path(folder) / "file"
    link.symlink_to(local)
    return str(link)

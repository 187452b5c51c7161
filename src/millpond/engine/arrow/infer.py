"""`scan(paths)`: a plan over files, with the schema and the statistics that the files bring."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import PlanError, SourceError
from millpond.engine.arrow.source.files import ENGINE, Files, local_path, split_url
from millpond.plan.sources import FORMATS, File, Format, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.sources import CsvOptions
    from millpond.plan.types import Struct

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")


def scan(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: Format | None = None,  # noqa: A002 - the word that users expect
    schema: Struct | None = None,
    columns: Sequence[str] | None = None,
    csv: CsvOptions | None = None,
) -> Plan:
    """The rows of files: one, many, those of a directory, or those that a pattern matches.

    Files of a directory or pattern are taken in the order of their names; names that begin with
    `_` or `.` are left out. The format follows from the end of the names unless it is given.
    Without a schema, Parquet footers tell it (of all files: columns are united by name, narrower
    types widened); for JSON and CSV it is inferred from the first megabyte of the first file.
    `columns` chooses some.
    """
    from millpond.engine.arrow.footers import parquet_schema, parquet_stats
    from millpond.engine.arrow.guess import guess_schema

    files = Files()
    try:
        found = _expand(paths, files)
        if format is not None and format not in FORMATS:
            raise PlanError(f"unknown format {format!r}", hint=f"one of {', '.join(FORMATS)}")
        kind = format or _format_of(found)
        if kind == "parquet":
            footers, known = parquet_schema(found, files)
            wanted = known if schema is None else schema
            wanted = wanted if columns is None else wanted.select(columns)
            described = tuple(File(f.path, f.size, f.rows) for f in footers)
            return Scan(kind, described, wanted, stats=parquet_stats(footers, wanted))
        wanted = guess_schema(found[0], kind, csv, files) if schema is None else schema
        wanted = wanted if columns is None else wanted.select(columns)
        sized = tuple(File(path, _size(path, files)) for path in found)
        return Scan(kind, sized, wanted, csv=csv)
    finally:
        files.close()


def _expand(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], files: Files
) -> list[str]:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise PlanError("there is no file to scan: the list is empty")
    found = []
    for item in given:
        found += _expand_one(os.fspath(item), files)
    return found


def _expand_one(path: str, files: Files) -> list[str]:
    local = local_path(path)
    if local is None:
        found = _expand_url(path, files)
    elif Path(local).is_dir():
        found = [
            entry.path for entry in os.scandir(local) if entry.is_file() and _shown(entry.path)
        ]
    elif glob.has_magic(local) and not Path(local).exists():
        matches = glob.glob(local, recursive=True)  # noqa: PTH207 - the pattern may be absolute
        found = [name for name in matches if Path(name).is_file()]
        found = [name for name in found if _shown(name)]
    elif Path(local).exists():
        return [local]
    else:
        raise SourceError(f"there is no file {path}", engine=ENGINE, path=path)
    if not found:
        raise SourceError(f"no file matches {path}", engine=ENGINE, path=path)
    return sorted(found)


def _expand_url(url: str, files: Files) -> list[str]:
    """A URL that ends in `/` stands for the objects right below it."""
    if not url.endswith("/"):
        return [url]
    address, prefix = split_url(url)
    metas = files.store(address).list(prefix)
    names = [meta.path for meta in metas if "/" not in meta.path[len(prefix) :]]
    return [f"{address}/{name}" for name in names if _shown(name)]


def _shown(path: str) -> bool:
    return not path.rstrip("/").rpartition("/")[2].startswith(("_", "."))


def _format_of(paths: list[str]) -> Format:
    kinds: dict[Format, str] = {}
    for path in paths:
        name = path.lower()
        for suffix in _PACKED:
            name = name.removesuffix(suffix)
        kind = _FORMATS.get(os.path.splitext(name)[1])  # noqa: PTH122 - URLs are no file paths
        if kind is None:
            raise PlanError(
                f"the format of {path} is not known by its name",
                hint="give format='parquet', 'json' or 'csv'",
            )
        kinds.setdefault(kind, path)
    if len(kinds) > 1:
        shown = " and ".join(f"{path} ({kind})" for kind, path in kinds.items())
        raise PlanError(f"the files have different formats: {shown}", hint="scan them apart")
    return next(iter(kinds))


def _size(path: str, files: Files) -> int:
    local = local_path(path)
    if local is not None:
        return Path(local).stat().st_size
    address, name = split_url(path)
    return files.store(address).head(name).size

"""`scan(paths)`: a plan over files, with the schema and the statistics that the files bring."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.base.errors import PlanError, SourceError
from millpond.engine.arrow.source.files import ENGINE, Files, local_path, split_url, unreadable
from millpond.plan.arguments import items_of, path_of, schema_of, wrong
from millpond.plan.sources import CONTENT, FORMATS, CsvOptions, File, Format, OnError, Scan
from millpond.plan.types import BINARY, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.arguments import AnySchema
    from millpond.plan.node import Plan

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")


def scan(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: Format | None = None,  # noqa: A002 - the word that users expect
    schema: AnySchema | None = None,
    columns: str | Sequence[str] | None = None,
    csv: CsvOptions | Mapping[str, Any] | None = None,
    infer_rows: int | None = None,
    on_error: OnError = "error",
) -> Plan:
    """Scan files: one, many, those of a directory, or those that a pattern matches.

    Files of a directory or pattern are taken in the order of their names; names that begin with
    `_` or `.` are left out. The format follows from the end of the names unless it is given.
    Without a schema, Parquet footers tell it, of all files: columns are united by name, narrower
    types widened. For JSON it is guessed from all lines, for CSV from the first `infer_rows` rows
    of each file (100,000; 0 is all), and what does not fit later is an error. `schema` may be a
    struct, types by name, or an Arrow schema; with `on_error="null"` a value of a text file that
    does not fit it is null instead of an error. `columns` chooses some columns. `csv` says how CSV
    files are written; fields of `.tsv` files are parted by tabs unless it says otherwise.
    """
    from millpond.engine.arrow.footers import parquet_schema, parquet_stats

    given = None if schema is None else schema_of(schema, "scan(schema=...)")
    names = None if columns is None else items_of(columns, "scan(columns=...)", "columns' names")
    options = _csv_options(csv)
    files = Files()
    try:
        found = _expand(paths, files)
        if format is not None and format not in FORMATS:
            raise PlanError(f"unknown format {format!r}", hint=f"one of {', '.join(FORMATS)}")
        kind = format or _format_of(found)
        if options is None and format is None and _is_tsv(found[0]):
            options = CsvOptions(delimiter="\t")
        if kind == "parquet":
            needed = names if given is None else ()
            footers, known = parquet_schema(found, files, needed)
            wanted = known if given is None else given
            wanted = wanted if names is None else wanted.select(names)
            described = tuple(File(f.path, f.size, f.rows) for f in footers)
            stats = parquet_stats(footers, wanted)
            return Scan(kind, described, wanted, csv=options, stats=stats)
        if given is None and kind == "bytes":
            given = Struct.of(**{CONTENT: BINARY})
        if given is None and on_error != "error":
            raise PlanError(
                f"on_error={on_error!r} needs a schema: guessed types fit", hint="give schema="
            )
        # Of JSON all values were looked at: none of them fits only after a conversion.
        strict = given is None and kind == "csv"
        wanted = given or _guessed(found, kind, options, infer_rows, files)
        wanted = wanted if names is None else wanted.select(names)
        sized = tuple(File(path, _size(path, files)) for path in found)
        return Scan(kind, sized, wanted, csv=options, strict=strict, on_error=on_error)
    finally:
        files.close()


def _guessed(
    paths: list[str], kind: Format, csv: CsvOptions | None, infer_rows: int | None, files: Files
) -> Struct:
    from millpond.engine.arrow.guess.csv import INFER_ROWS
    from millpond.engine.arrow.guess.files import guess_files

    if infer_rows is not None and kind != "csv":
        raise PlanError(
            f"infer_rows does not fit a {kind} scan",
            hint="leave it out: all lines of JSON files are looked at",
        )
    if infer_rows is not None and (isinstance(infer_rows, bool) or infer_rows < 0):
        raise PlanError(f"infer_rows is a number of rows, not {infer_rows!r}", hint="0 is all rows")
    return guess_files(paths, kind, csv, INFER_ROWS if infer_rows is None else infer_rows, files)


def _csv_options(given: object) -> CsvOptions | None:
    if given is None or isinstance(given, CsvOptions):
        return given
    known = tuple(CsvOptions.__dataclass_fields__)
    if not isinstance(given, Mapping):
        hint = f"CsvOptions({', '.join(f'{name}=…' for name in known)})"
        raise wrong("scan(csv=...)", "CsvOptions or a dictionary of them", given, hint=hint)
    for name in given:
        if name not in known:
            raise PlanError(f"unknown CSV option {name!r}", hint=f"one of {', '.join(known)}")
    return CsvOptions(**given)


def _expand(paths: object, files: Files) -> list[str]:
    if not isinstance(paths, str | os.PathLike | Iterable) or isinstance(paths, bytes | Mapping):
        raise wrong("scan()", "a path, a URL, a pattern or a list of them", paths)
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise PlanError("there is no file to scan: the list is empty", hint="give a path")
    found = []
    for item in given:
        path = path_of(item, "scan()")
        try:
            found += _expand_one(path, files)
        except OSError as error:
            raise unreadable(path, error) from error
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
        raise FileNotFoundError(path)
    if not found:
        raise SourceError(
            f"no file matches {path}",
            engine=ENGINE,
            path=path,
            hint="check the path; files whose names begin with _ or . are left out",
        )
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
    kinds: dict[str, str] = {}
    for path in paths:
        kind = _FORMATS.get(_suffix(path))
        if kind is None:
            raise PlanError(
                f"the format of {path} is not known by its name",
                hint=f"give format=, one of {', '.join(FORMATS)}",
            )
        # Tabs are another format than commas, though they are read alike.
        kinds.setdefault("tsv" if _is_tsv(path) else kind, path)
    if len(kinds) > 1:
        shown = " and ".join(f"{path} ({kind})" for kind, path in kinds.items())
        raise PlanError(f"the files have different formats: {shown}", hint="scan them apart")
    return _FORMATS[_suffix(paths[0])]


def _suffix(path: str) -> str:
    name = path.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return os.path.splitext(name)[1]  # noqa: PTH122 - URLs are no file paths


def _is_tsv(path: str) -> bool:
    return _suffix(path) == ".tsv"


def _size(path: str, files: Files) -> int:
    local = local_path(path)
    if local is not None:
        try:
            return Path(local).stat().st_size
        except OSError as error:
            raise unreadable(path, error) from error
    address, name = split_url(path)
    return files.store(address).head(name).size

"""Rows of files of this machine: Parquet, CSV, JSON lines, Delta tables. No pond is needed."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import ObjectNotFoundError, PathTypeError, SourceError, StoreAccessError
from millpond.plan.types import Struct
from millpond.steward.places import host_url

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from millpond.base.settings import Settings
    from millpond.plan.node import Plan
    from millpond.plan.sources import CsvOptions
    from millpond.steward.places import Place

_MAGIC: Final = b"PAR1"


def host_plan(
    place: Place,
    *,
    version: int | None = None,
    as_of: int | datetime | None = None,
    settings: Settings | None = None,
) -> Plan:
    """The rows that a place of this machine names: a file, a directory of files, a pattern."""
    path = place.path.rstrip("/") or "/"
    if place.format == "delta":
        return _delta(path, place, version, as_of, settings)
    if version is not None or as_of is not None:
        raise PathTypeError(
            f"{place.text} is a file of this machine and has no versions",
            path=path,
            hint="only paths of a pond and host+delta:// have them",
        )
    return plan_of_files(host_files(path), place)


def plan_of_files(files: Sequence[str], place: Place) -> Plan:
    """The rows of files that are there, in the format that a place names."""
    from millpond.engine.arrow.infer import scan

    if place.format == "parquet":
        for file in files:
            check_parquet(file, place)
        # Columns that have no nulls here may have some in what comes later.
        columns = nullable(scan(files, format="parquet").schema)
        return scan(files, format="parquet", schema=columns)
    if place.format == "csv":
        return _texts(files, place, _csv_options(files, place))
    if place.format == "json":
        return _texts(files, place, None)
    raise PathTypeError(
        f"{place.text} names bytes, not rows",
        path=place.path,
        hint=f"say how they are to be read: {_reading(files[0])}",
    )


def nullable(schema: Struct) -> Struct:
    """The same columns, each of which may be null."""
    return Struct(tuple(replace(field, nullable=True) for field in schema))


def _texts(files: Sequence[str], place: Place, options: CsvOptions | None) -> Plan:
    """Files of text: what is guessed of each holds for all, so that columns are united by name."""
    from millpond.engine.arrow.infer import scan
    from millpond.plan.unite import united_schema

    format_ = "csv" if place.format == "csv" else "json"
    full = [file for file in files if Path(file).stat().st_size]
    if not full:
        raise SourceError(
            f"{files[0]} is empty: it shows no columns",
            engine="arrow",
            path=files[0],
            hint="a CSV file begins with a line of names; JSON lines have one object at least",
        )
    plans = {file: scan(file, format=format_, csv=options) for file in full}  # type: ignore[arg-type]
    if len(plans) == 1:
        return next(iter(plans.values()))
    schema = united_schema({file: plan.schema for file, plan in plans.items()}, texts=True)
    return scan(full, format=format_, schema=schema, csv=options)  # type: ignore[arg-type]


def _csv_options(files: Sequence[str], place: Place) -> CsvOptions | None:
    from millpond.plan.sources import CsvOptions

    if place.csv is None and all(".tsv" in Path(file).suffixes for file in files):
        return CsvOptions(delimiter="\t")
    return place.csv


def _delta(
    path: str,
    place: Place,
    version: int | None,
    as_of: int | datetime | None,
    settings: Settings | None,
) -> Plan:
    from millpond.kernel.table import delta_table

    if isinstance(as_of, int):
        raise PathTypeError(
            f"{place.text} is a Delta table and has no transactions of a pond",
            path=path,
            hint=f"give a time, or a version of the table: --version {as_of}",
        )
    return delta_table(path, version, as_of, settings=settings).scan().plan()


def host_files(path: str) -> list[str]:
    """The files that a path or pattern names, in the order of their names."""
    place = Path(path)
    if place.is_dir():
        found = [
            e.path for e in os.scandir(place) if e.is_file() and not e.name.startswith(("_", "."))
        ]
        said = f"there is no file in {path}"
    elif place.exists() or not glob.has_magic(path):
        found, said = ([path] if place.exists() else []), f"there is no file {path}"
    else:
        names = glob.glob(path, recursive=True)  # noqa: PTH207 - the pattern is absolute
        found = [name for name in names if Path(name).is_file()]
        said = f"no file of this machine matches {path}"
    if not found:
        raise ObjectNotFoundError(said, path=path, hint=nearby(path))
    return sorted(found)


def check_parquet(file: str, place: Place) -> None:
    """Raise unless a file is Parquet, by its first and last bytes."""
    try:
        with Path(file).open("rb") as source:
            head = source.read(4)
            size = source.seek(0, os.SEEK_END)
            source.seek(max(0, size - 4))
            tail = source.read(4)
    except PermissionError as error:
        raise no_access(file) from error
    except OSError as error:
        raise SourceError(
            f"{file} can't be read: {error.strerror}",
            engine="arrow",
            path=file,
            hint="check that it is a file, and that its disk is well",
        ) from error
    if head == tail == _MAGIC and size > 8:
        return
    what = "it is empty" if not size else f"it begins with {head!r} and ends with {tail!r}"
    if head == _MAGIC and size > 8:
        what = "its end is missing, so it may not have been written to the end"
    raise SourceError(
        f"{file} is not Parquet: {what}",
        engine="arrow",
        path=file,
        hint=_other_reading(file, place),
    )


def _other_reading(file: str, place: Place) -> str:
    name = file.lower()
    becomes = f"+{place.becomes}" if place.becomes else ""
    if ".csv" in name or ".tsv" in name:
        return f"CSV is read by {host_url(f'host+csv{becomes}', file)}"
    if ".json" in name or ".ndjson" in name:
        return f"JSON lines are read by {host_url(f'host+json{becomes}', file)}"
    return f"its bytes are {host_url('host', file)}; CSV is read by host+csv{becomes}://"


def _reading(file: str) -> str:
    name = file.lower()
    known = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv",
             ".json": "json", ".jsonl": "json", ".ndjson": "json"}  # fmt: skip
    found = next((kind for end, kind in known.items() if end in name), None)
    return host_url(f"host+{found}", file) if found else "host+csv://, +json, +parquet or +delta"


def no_access(path: str) -> StoreAccessError:
    """The error for a file that this user may not read or write."""
    return StoreAccessError(
        f"no access to {path}",
        path=path,
        hint="check the owner and the mode of the file and its directories",
    )


def nearby(path: str) -> str:
    """A hint for a path of this machine that is not there: what is."""
    from difflib import get_close_matches

    missing = Path(path)
    while not missing.parent.exists() and missing.parent != missing:
        missing = missing.parent
    try:
        names = sorted(entry.name for entry in os.scandir(missing.parent))
    except OSError:
        return f"{missing.parent} can't be listed"
    close = get_close_matches(missing.name, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(str(missing.parent / name) for name in close)}?"
    if not names:
        return f"{missing.parent} is empty"
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"{missing.parent} has {shown}"

"""Rows of files of this machine, in any format. No pond is needed.

What engines read by themselves (Parquet, CSV, JSON lines, Delta tables) they scan where it is; all
else is parsed into a directory that goes when the process ends.
"""

from __future__ import annotations

import glob
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import ObjectNotFoundError, PathTypeError, SourceError, StoreAccessError
from millpond.fs.glob import is_pattern
from millpond.plan.types import Field, Struct
from millpond.steward.places import host_url

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from millpond.base.settings import Settings
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.provider.formats.reader import Raw, Reader
    from millpond.provider.images import Images
    from millpond.steward.places import Place

_ENDINGS: Final = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json",
    ".jsonl": "json", ".ndjson": "json", ".arrow": "arrow", ".htm": "excelhtml", ".log": "weblog",
}  # fmt: skip


def host_plan(
    place: Place,
    *,
    version: int | None = None,
    as_of: int | datetime | None = None,
    settings: Settings | None = None,
) -> Plan:
    """The rows that a place of this machine names: a file, a directory of files, a pattern."""
    path = place.path.rstrip("/") or "/"
    if place.reader is not None and place.reader.format.is_table:
        table = host_table(place, version=version, as_of=as_of, settings=settings)
        return table.scan().plan()
    if version is not None or as_of is not None:
        raise PathTypeError(
            f"{place.text} is a file of this machine and has no versions",
            path=path,
            hint="only paths of a pond and host+delta:// have them",
        )
    return plan_of_files(host_files(path), place)


def plan_of_files(files: Sequence[str], place: Place) -> Plan:
    """The rows of files that are there, in the format that a place names."""
    from millpond.provider.formats.rows import FormatRows
    from millpond.steward.dynamic.raws import host_raw

    if place.reader is None:
        raise PathTypeError(
            f"{place.text} names bytes, not rows",
            path=place.path,
            hint=f"say how they are to be read: {reading_url(files[0])}",
        )
    raws = [host_raw(file) for file in files]
    scanned = _scanned(raws, place.reader, place)
    return scanned or FormatRows(place.path, raws, place.reader, _images()).plan()


def _scanned(raws: Sequence[Raw], reader: Reader, place: Place) -> Plan | None:
    """A scan of the files as they are, where engines read them by themselves."""
    from millpond.engine.arrow.infer import scan
    from millpond.plan.unite import may_round, united_schema

    if reader.format.is_image and not any(map(reader.compression_of, raws)):
        for raw in raws:
            check_parquet(raw.name, place)
        # Columns that have no nulls here may have some in what comes later.
        paths = [raw.name for raw in raws]
        columns = nullable(scan(paths, format="parquet").schema)
        return scan(paths, format="parquet", schema=columns)
    full = [raw for raw in raws if raw.size]
    options = {reader.options_of(raw) for raw in full}
    if len(options) != 1 or not all(_unpacks(raw, reader) for raw in full):
        return None
    found: dict[str, Struct] = {}
    for raw in full:
        mine = reader.columns(raw)
        if mine is None:
            return None
        found[raw.name] = mine
    united = united_schema(found, texts=True)
    pairs = ((mine.type, united.field(mine.name).type) for each in found.values() for mine in each)
    if any(may_round(mine, wanted) for mine, wanted in pairs):
        return None  # what was parsed shows whether they stay exact
    files = [(raw.name, raw.size) for raw in full]
    return reader.format.scan(files, united, options.pop())


def _unpacks(raw: Raw, reader: Reader) -> bool:
    """Whether engines see by the name of a file how it is packed."""
    from millpond.provider.formats.packed import ENDINGS

    by_name = next((kind for end, kind in ENDINGS.items() if raw.name.endswith(end)), None)
    return reader.compression_of(raw) == by_name and not raw.name.endswith(".lz4")


@cache
def _images() -> Images:
    """What was parsed in this process."""
    import atexit

    from millpond.base.scratch import make_scratch, remove_scratch
    from millpond.base.settings import Settings
    from millpond.base.store import open_store
    from millpond.provider.images import KIND, Images
    from millpond.provider.kept import Kept, Places

    directory = make_scratch()
    atexit.register(remove_scratch, directory)
    place = str(directory)
    kept = Kept(Places(open_store(place, durable=False), place), KIND)
    return Images(kept, settings=Settings.load().with_overrides(engine="arrow"))


def nullable(schema: Struct) -> Struct:
    """The same columns, each of which may be null."""
    return Struct(tuple(Field(field.name, field.type) for field in schema))


def host_table(
    place: Place,
    *,
    version: int | None = None,
    as_of: int | datetime | None = None,
    settings: Settings | None = None,
) -> DeltaTable:
    """The Delta table that a place of this machine names."""
    path = place.path.rstrip("/") or "/"
    if isinstance(as_of, int):
        raise PathTypeError(
            f"{place.text} is a Delta table and has no transactions of a pond",
            path=path,
            hint=f"give a time, or a version of the table: --version {as_of}",
        )
    assert place.reader is not None
    format_: Any = place.reader.format
    given = {"version": version, "as_of": as_of}
    said = {name: value for name, value in given.items() if value is not None}
    options = place.reader.options.model_copy(update=said)
    table: DeltaTable = format_.table(path, options, settings=settings)
    return table


def host_files(path: str) -> list[str]:
    """The files that a path or pattern names, in the order of their names; one at least."""
    try:
        found = find_files(path)
    except PermissionError as error:
        raise no_access(path) from error
    if found:
        return found
    if Path(path).is_dir():
        said = f"there is no file in {path}"
    elif is_pattern(path):
        said = f"no file of this machine matches {path}"
    else:
        said = f"there is no file {path}"
    raise ObjectNotFoundError(said, path=path, hint=nearby(path))


def find_files(path: str) -> list[str]:
    """The same; there may be none."""
    place = Path(path)
    if place.is_dir():
        found = [
            e.path for e in os.scandir(place) if e.is_file() and not e.name.startswith(("_", "."))
        ]
    elif place.exists():
        found = [path]
    else:
        names = glob.glob(path, recursive=True)  # noqa: PTH207 - the pattern is absolute
        found = [name for name in names if Path(name).is_file()]
    return sorted(found)


def check_parquet(file: str, place: Place) -> None:
    """Raise unless a file is Parquet, by its first and last bytes."""
    from millpond.provider.formats import parquet

    try:
        with Path(file).open("rb") as source:
            parquet.check_parquet(file, source)
    except SourceError as error:
        error.hint = _other_reading(file, place)
        raise
    except PermissionError as error:
        raise no_access(file) from error
    except OSError as error:
        raise SourceError(
            f"{file} can't be read: {error.strerror}",
            engine="arrow",
            path=file,
            hint="check that it is a file, and that its disk is well",
        ) from error


def _other_reading(file: str, place: Place) -> str:
    name = file.lower()
    becomes = f"+{place.becomes}" if place.becomes else ""
    if ".csv" in name or ".tsv" in name:
        return f"CSV is read by {host_url(f'host+csv{becomes}', file)}"
    if ".json" in name or ".ndjson" in name:
        return f"JSON lines are read by {host_url(f'host+json{becomes}', file)}"
    return f"its bytes are {host_url('host', file)}; CSV is read by host+csv{becomes}://"


def reading_url(file: str, *, is_host: bool = True) -> str:
    """The URL by which a file might be read: what its name says, or CSV.

    >>> reading_url("/raw/a.jsonl.gz", is_host=False)
    'json:///raw/a.jsonl.gz'
    """
    name = file.lower()
    found = next((kind for end, kind in _ENDINGS.items() if end in name), "csv")
    return host_url(f"host+{found}" if is_host else found, file)


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

"""Export: rows and files of a pond as files below a directory of this machine, the tree kept.

Series can be cut by time into Hive folders. What is rendered comes last, and sees where everything
else is. Everything is looked at before anything is written; each file is there whole or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import ObjectExistsError, PathTypeError, SchemaError
from millpond.fs.entry import EntryType
from millpond.fs.glob import is_pattern
from millpond.fs.paths import parts, split_version
from millpond.provider.reading import Exported
from millpond.provider.times import time_column
from millpond.steward.copying.host import check_outside, translated
from millpond.steward.copying.out import (
    below,
    check_free,
    has_bytes,
    has_rows,
    named,
    names_below,
    new_file,
)
from millpond.steward.rows.files import FileFormat, write_batches
from millpond.steward.rows.selection import matches
from millpond.steward.temporal.hive import cut, folder_of, older_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from millpond.provider.reading import Match
    from millpond.provider.rows import Rows
    from millpond.steward.places import Place
    from millpond.steward.scope import Scope
    from millpond.steward.temporal.hive import Unit


@dataclass(frozen=True, slots=True)
class Asked:
    """How an export is to be."""

    directory: str
    format: FileFormat = "parquet"
    temporal: tuple[Unit, ...] = ()
    strip_prefix: str | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A path that was exported."""

    path: str
    format: str
    """Of rows; `data` for bytes."""
    files: tuple[str, ...]
    """Below the directory."""
    rows: int | None
    size: int


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    place: str
    """Below the directory; that of a folder ends with a slash."""
    is_rendered: bool = False
    rows: Rows | None = None
    time: str | None = None
    """By which column it is cut."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be exported, all of it looked at."""

    scope: Scope
    asked: Asked
    items: tuple[_Item, ...]
    skipped: tuple[str, ...] = ()
    """What a pattern or a directory has that has neither rows nor bytes."""

    def run(self, watch: Callable[[int], None]) -> list[Written]:
        """Write file by file; `watch` is told of each path."""
        written: dict[str, Written] = {}
        base = self.asked.directory
        with translated(base):
            Path(base).mkdir(parents=True, exist_ok=True)
        rendered = [item for item in self.items if item.is_rendered]
        for item in (each for each in self.items if not each.is_rendered):
            written[item.path] = self._write(item)
            watch(1)
        places = {item.path: item.place for item in self.items}
        exported = {path: Exported(places[path], made.files) for path, made in written.items()}
        exported |= {item.path: Exported(item.place, (item.place,)) for item in rendered}
        derivation = self.scope.derivation
        derivation.exported = {item.path: exported[item.path] for item in self.items}
        try:
            for item in rendered:
                written[item.path] = self._write(item)
                watch(1)
        finally:
            derivation.exported = {}
        return [written[item.path] for item in self.items]

    def _write(self, item: _Item) -> Written:
        if item.rows is None:
            return self._write_bytes(item)
        writing = _Rows(self.asked, item)
        plan = item.rows.plan()
        if item.time is not None:
            plan = plan.sort(item.time)
        run = plan.execute(engine=self.scope.pond.engine_for(plan))
        if item.time is None:
            writing.write(item.place, run.schema, run)
        else:
            name = named(parts(f"/{item.place}")[-1], self.asked.format)
            for folder, batches in groupby(cut(run, item.time, self.asked.temporal), folder_of):
                place = f"{item.place}{folder}/{name}"
                writing.write(place, run.schema, (batch for _, batch in batches))
            writing.tidy(name)
        return Written(
            item.path, self.asked.format, tuple(writing.files), writing.rows, writing.size
        )

    def _write_bytes(self, item: _Item) -> Written:
        target = Path(self.asked.directory, item.place)
        _make_directory(target)
        size = 0
        with new_file(str(target), overwrite=self.asked.overwrite) as sink:
            for chunk in self.scope.read_chunks(item.path):
                size += sink.write(chunk)
        return Written(item.path, "data", (item.place,), None, size)


@dataclass(slots=True)
class _Rows:
    """The files of one path with rows."""

    asked: Asked
    item: _Item
    files: list[str] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def write(self, place: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """One file."""
        target = Path(self.asked.directory, place)
        _make_directory(target)
        with new_file(str(target), overwrite=self.asked.overwrite) as sink:
            self.rows += write_batches(self.asked.format, sink, schema, batches)
        self.files.append(place)
        self.size += target.stat().st_size

    def tidy(self, name: str) -> None:
        """Of an earlier export nothing stays that would be read together with this one."""
        base = Path(self.asked.directory)
        written = {base / file for file in self.files}
        for file in older_files(base / self.item.place, name):
            if file not in written:
                with translated(str(file)):
                    file.unlink()


def _make_directory(target: Path) -> None:
    with translated(str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)


# Looking at what there is


def export(scope: Scope, places: Sequence[Place], asked: Asked) -> Export:
    """Look at what is to be exported, and where it goes."""
    base = asked.directory
    check_outside(base, scope.pond.location)
    if Path(base).exists() and not Path(base).is_dir():
        raise ObjectExistsError(
            f"{base} is a file, and a directory is needed there",
            path=base,
            hint="choose another directory",
        )
    found: dict[str, _Item] = {}
    skipped: list[str] = []
    for place in places:
        for item in _items(scope, place, asked, skipped):
            found.setdefault(item.path, item)
    taken: dict[str, str] = {}
    for item in found.values():
        _check(item, taken, asked)
        taken[item.place.rstrip("/")] = item.path
    return Export(scope, asked, tuple(found.values()), tuple(dict.fromkeys(skipped)))


def _items(scope: Scope, place: Place, asked: Asked, skipped: list[str]) -> Iterator[_Item]:
    if place.reader is not None:
        for match in matches(scope, place):
            yield _with_rows(_format_rows(scope, place, match), match.path, asked, is_format=True)
        return
    if place.url is not None:
        paths = [match.path for match in matches(scope, place)]
    else:
        paths = [path for path, is_directory in below(scope, place.path) if not is_directory]
    is_named = place.url is None and not is_pattern(place.path) and paths == [place.path]
    for path in paths:
        kind = scope.stat(path).entry_type
        if has_rows(kind):
            yield _with_rows(scope.derivation.rows(path), path, asked)
        elif has_bytes(kind):
            names = _names(path, asked)
            yield _Item(path, "/".join(names), is_rendered=kind is EntryType.DYNAMIC_FILE)
        elif is_named:
            raise PathTypeError(
                f"{path} is a {kind}: it has neither bytes nor rows",
                path=path,
                hint="run it: pond run" if kind is EntryType.EXECUTABLE else "name another path",
            )
        else:
            skipped.append(path)


def _format_rows(scope: Scope, place: Place, match: Match) -> Rows:
    assert place.url is not None
    return scope.derivation.reading("/").rows(place.url, match)


def _with_rows(rows: Rows, path: str, asked: Asked, *, is_format: bool = False) -> _Item:
    names = _names(path, asked)
    file = "/".join((*names[:-1], named(names[-1], asked.format)))
    time = _time(rows, path, is_format=is_format) if asked.temporal else None
    if time is None:
        return _Item(path, file, rows=rows)
    for unit in asked.temporal:
        if unit in rows.schema.names:
            raise SchemaError(
                f"{path} has a column {unit!r}, and a folder of --temporal would be named so, too",
                hint="rename it by a transform, or leave --temporal away",
            )
    return _Item(path, str(Path(file).with_suffix("")) + "/", rows=rows, time=time)


def _time(rows: Rows, path: str, *, is_format: bool) -> str | None:
    """The column that is the time; of raw files, one that is named so."""
    if not is_format:
        return rows.time_column
    try:
        return rows.time_column or time_column(rows.schema, None, path=path)
    except SchemaError:
        return None


def _names(path: str, asked: Asked) -> tuple[str, ...]:
    """The names below the directory; what is stripped as a whole keeps its own name."""
    return names_below(path, asked.strip_prefix) or parts(split_version(path).path)[-1:]


def _check(item: _Item, taken: dict[str, str], asked: Asked) -> None:
    made = str(Path(asked.directory, item.place))
    other = taken.get(item.place.rstrip("/"))
    if not item.place.endswith("/"):
        check_free(made, item.path, other, overwrite=asked.overwrite)
        return
    with translated(made):
        is_free = not Path(made).exists() or (Path(made).is_dir() and asked.overwrite)
    if other is not None or not is_free:
        said = f"{other} and {item.path} would both become {made}" if other else None
        raise ObjectExistsError(
            said or f"{made} is there already",
            path=made,
            hint="pass --overwrite to exchange files in it, or choose another directory"
            if other is None
            else "export them one by one, to different directories",
        )

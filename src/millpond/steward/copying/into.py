"""Into a pond: files and whole directories of this machine, as bytes or as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import PathTypeError, SchemaError
from millpond.fs.entry import EntryType
from millpond.steward.copying import Copied
from millpond.steward.copying.host import HostItem, check_outside, find_items, translated
from millpond.steward.copying.landing import Landing, landing
from millpond.steward.rows.host import check_parquet, host_plan, plan_of_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millpond.plan.node import Plan
    from millpond.steward.places import Place
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class _File:
    item: HostItem
    place: Place
    target: str
    kind: EntryType


@dataclass(frozen=True, slots=True)
class CopyIn:
    """What is to be copied, all of it looked at."""

    tx: WriteScope
    files: tuple[_File, ...]
    where: Landing
    time_column: str | None

    @property
    def size(self) -> int:
        """How many bytes are to be read: bytes twice, first for their hash."""
        return sum(2 * file.item.size for file in self.files)

    def run(self, watch: Callable[[int], None]) -> list[Copied]:
        """Copy; nobody sees it before the transaction is committed."""
        self.where.make_directories()
        found = []
        for file in self.files:
            seen = _Seen(watch)
            self._copy(file, seen)
            watch(2 * file.item.size - seen.count)
            stat = self.tx.stat(file.target)
            kind = str(stat.entry_type)
            found.append(Copied(file.item.path, file.target, kind, stat.version, stat.size))
        return found

    def _copy(self, file: _File, watch: Callable[[int], None]) -> None:
        if file.place.format is None:
            with translated(file.item.path):
                is_series = file.kind is EntryType.DATA_SERIES
                self.tx.write_file(file.target, file.item.path, series=is_series, watch=watch)
            return
        try:
            rows = _plan(file)
            if file.kind is EntryType.SERIES:
                self.tx.append_series(file.target, rows, time_column=self.time_column)
            else:
                self.tx.write_table(file.target, rows)
        except SchemaError as error:
            raise _explained(error, file) from error


class _Seen:
    """Counts what it passes on."""

    def __init__(self, watch: Callable[[int], None]) -> None:
        self.count = 0
        self._watch = watch

    def __call__(self, count: int) -> None:
        self.count += count
        self._watch(count)


def copy_in(
    tx: WriteScope,
    places: Sequence[Place],
    target: str,
    *,
    make_parents: bool = False,
    time_column: str | None = None,
) -> CopyIn:
    """Look at what is to be copied into a pond, and where it goes."""
    found = [(place, item) for place in places for item in _items(place)]
    tops = sum(len(item.names) == 1 for _, item in found)
    where = landing(tx, target, count=tops, make_parents=make_parents)
    files = []
    for place, item in found:
        check_outside(item.path, tx.pond.location)
        path = where.path_of(item.names)
        if item.is_directory:
            where.add_directory(path)
            continue
        if place.format == "parquet" and place.reader and not place.reader.compression:
            check_parquet(item.path, place)
        kind = where.add_file(path, _kind(place), source=item.path)
        files.append(_File(item, place, path, kind))
    if time_column is not None and not any(f.kind is EntryType.SERIES for f in files):
        raise PathTypeError(
            "nothing of it becomes a series, so there is no time column",
            path=target,
            hint="host+series:// and host+csv+series:// make series",
        )
    return CopyIn(tx, tuple(files), where, time_column)


def _items(place: Place) -> list[HostItem]:
    if place.format != "delta":
        return find_items(place.path)
    path = place.path.rstrip("/")
    return [HostItem(path, (path.rpartition("/")[2],), 0, is_directory=False)]


def _kind(place: Place) -> EntryType:
    if place.becomes is None:
        rest = f"+{{}}{place.text[place.text.index(':') :]}"
        raise PathTypeError(
            f"it is not said what {place.text} is to become",
            path=place.path,
            hint=f"a table: host+{place.format}{rest.format('table')}; "
            f"a series: +series; its bytes: host://{place.path}",
        )
    return place.becomes


def _plan(file: _File) -> Plan:
    if file.place.format == "delta":
        return host_plan(file.place)
    return plan_of_files([file.item.path], file.place)


def _explained(error: SchemaError, file: _File) -> SchemaError:
    """The same error, with the file's name and what can be done about it here."""
    hint = error.hint
    if hint is not None and "time_column=" in hint:
        hint = "say which one it is: --time-column NAME"
    elif file.kind is EntryType.SERIES and hint is not None and "add a timestamp" in hint:
        hint = f"copy it as a table: {file.place.text.replace('series:', 'table:', 1)}"
    said = error.message
    where = said if file.item.path in said else f"{file.item.path}: {said}"
    return SchemaError(where, hint=hint)

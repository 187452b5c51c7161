"""Within a pond: raw files become tables or series, `csv+table:///raw/*`, each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import PathTypeError, SchemaError
from millpond.fs.entry import EntryType
from millpond.fs.paths import parts, split_version
from millpond.steward.copying import Copied
from millpond.steward.copying.landing import Landing, landing
from millpond.steward.rows.selection import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millpond.provider.reading import Match
    from millpond.steward.places import Place
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class _File:
    match: Match
    place: Place
    target: str
    kind: EntryType
    size: int


@dataclass(frozen=True, slots=True)
class CopyConverted:
    """What is to be read, all of it looked at."""

    tx: WriteScope
    files: tuple[_File, ...]
    where: Landing
    time_column: str | None

    @property
    def size(self) -> int:
        """How many bytes are to be read."""
        return sum(file.size for file in self.files)

    def run(self, watch: Callable[[int], None]) -> list[Copied]:
        """Copy; nobody sees it before the transaction is committed."""
        self.where.make_directories()
        found = []
        for file in self.files:
            self._copy(file)
            watch(file.size)
            stat = self.tx.stat(file.target)
            kind = str(stat.entry_type)
            found.append(Copied(file.match.path, file.target, kind, stat.version, stat.size))
        return found

    def _copy(self, file: _File) -> None:
        reading = self.tx.derivation.reading("/")
        rows = reading.united(file.place.url or "", [file.match]).plan()
        try:
            if file.kind is EntryType.SERIES:
                self.tx.append_series(file.target, rows, time_column=self.time_column)
            else:
                self.tx.write_table(file.target, rows)
        except SchemaError as error:
            hint = error.hint
            if hint is not None and "time_column=" in hint:
                hint = "say which one it is: --time-column NAME"
            raise SchemaError(f"{file.match.path}: {error.message}", hint=hint) from error


def copy_converted(
    tx: WriteScope,
    places: Sequence[Place],
    target: str,
    *,
    make_parents: bool = False,
    time_column: str | None = None,
) -> CopyConverted:
    """Look at what is to be read, and where its rows go."""
    kinds = {place.text: _kind(place) for place in places}
    found = [(place, match) for place in places for match in matches(tx, place)]
    where = landing(tx, target, count=len(found), make_parents=make_parents)
    files = []
    for place, match in found:
        path = where.path_of(parts(split_version(match.path).path)[-1:])
        kind = where.add_file(path, kinds[place.text], source=match.path)
        files.append(_File(match, place, path, kind, tx.stat(match.path).size or 0))
    return CopyConverted(tx, tuple(files), where, time_column)


def _kind(place: Place) -> EntryType:
    if place.reader is None:
        raise PathTypeError(
            f"{place.text} is no file that is to be read, as the others are",
            path=place.path,
            hint="copy them one after the other",
        )
    if place.becomes is None:
        scheme, _, rest = place.text.partition(":")
        raise PathTypeError(
            f"it is not said what {place.text} is to become",
            path=place.path,
            hint=f"a table: {scheme}+table:{rest}; a series: +series; its bytes: {place.path}",
        )
    return place.becomes

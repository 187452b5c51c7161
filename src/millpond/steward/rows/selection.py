"""What several places together hold: bytes, one behind the other, or rows, united by name.

This is what `cat` reads. Paths of a pond need a scope; files of this machine do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from millpond.base.errors import DirectoryError, MillpondError, PathNotFoundError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern, expand, is_pattern
from millpond.fs.paths import split_version
from millpond.fs.resolve import not_found, try_resolve
from millpond.plan.unite import union_by_name
from millpond.provider.times import in_range, time_column
from millpond.steward.rows.host import host_files, host_plan, reading_url
from millpond.steward.temporal.times import asked_between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from millpond.base.settings import Settings
    from millpond.plan.node import Plan
    from millpond.provider.reading import Match
    from millpond.provider.rows import Rows
    from millpond.steward.places import Place
    from millpond.steward.scope import Scope

Keeping: TypeAlias = "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]"
Opened: TypeAlias = "Callable[[], Scope]"
"""Opens the pond when a path of it is named, and not before."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Which:
    """Which version, moment and times of the places are wanted."""

    version: int | None = None
    as_of: int | datetime | None = None
    """For Delta tables of this machine; the scope says it for the pond."""
    time_start: datetime | None = None
    time_end: datetime | None = None

    @property
    def suffix(self) -> str:
        """What names the version behind a path."""
        return "" if self.version is None else f"@v{self.version}"

    @property
    def has_times(self) -> bool:
        """Whether a range of times is given."""
        return self.time_start is not None or self.time_end is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """Bytes or rows: exactly one of them is there."""

    names: tuple[str, ...]
    chunks: Iterator[bytes] | None = None
    plan: Plan | None = None
    keeping: Keeping | None = None
    """All rows pass through it as they are read, if it is of use to keep them."""
    read_as: str = ""
    """The URL by which the first bytes might be read as rows."""


def select(
    places: Sequence[Place], scope: Opened, which: Which, *, settings: Settings | None = None
) -> Selection:
    """Find what places name; bytes and rows can't be mixed."""
    rows: dict[str, Plan] = {}
    files: dict[str, Iterator[bytes]] = {}
    for place in places:
        if place.is_host and place.format is not None:
            plan = host_plan(place, version=which.version, as_of=which.as_of, settings=settings)
            rows[place.text] = _in_time(plan, place.text, which)
        elif place.is_host:
            files |= {name: _host_chunks(name) for name in host_files(place.path)}
        elif place.reader is not None:
            rows[place.text] = _format_plan(scope(), place, which)
        elif place.url is not None:
            for match in matches(scope(), place):
                _take(scope(), match.path + which.suffix, which, rows, files)
        else:
            for path in matching(scope(), place.path, version=which.version):
                _take(scope(), path, which, rows, files)
    if rows and files:
        raise PathTypeError(
            f"{next(iter(rows))} has rows and {next(iter(files))} has bytes",
            path=next(iter(files)),
            hint="read them apart",
        )
    if files:
        return _bytes(files, which, is_host=places[0].is_host)
    keeping = None
    if len(rows) == 1 and not which.has_times and not places[0].is_host and places[0].url is None:
        keeping = partial(scope().keeping, next(iter(rows)))
    return Selection(tuple(rows), plan=union_by_name(rows), keeping=keeping)


def _bytes(files: dict[str, Iterator[bytes]], which: Which, *, is_host: bool) -> Selection:
    if which.has_times:
        name = next(iter(files))
        raise PathTypeError(
            f"{name} has bytes, and bytes have no time",
            path=name,
            hint="a range of times is for series",
        )
    chunks = (chunk for chunks in files.values() for chunk in chunks)
    return Selection(tuple(files), chunks, read_as=reading_url(next(iter(files)), is_host=is_host))


def _take(
    scope: Scope,
    path: str,
    which: Which,
    rows: dict[str, Plan],
    files: dict[str, Iterator[bytes]],
) -> None:
    kind = scope.stat(path).entry_type
    if kind.is_directory:
        raise DirectoryError(
            f"{path} is a directory",
            path=path,
            hint=f"list it: pond list {path}; or name what is in it: {path.rstrip('/')}/*",
        )
    if kind.is_bytes or kind is EntryType.DYNAMIC_FILE:
        files[path] = scope.read_chunks(path)
    else:
        rows[path] = scope.plan(path, time_start=which.time_start, time_end=which.time_end)


def format_rows(scope: Scope, place: Place, found: Sequence[Match]) -> Rows:
    """The rows of raw files of the pond, as a format reads them."""
    assert place.url is not None
    return scope.derivation.reading("/").united(place.url, found)


def _format_plan(scope: Scope, place: Place, which: Which) -> Plan:
    assert place.reader is not None
    if which.version is not None and place.reader.format.is_table:
        raise PathTypeError(
            f"{place.text} is a table with versions of its own",
            path=place.path,
            hint=f"name one of them: ?version={which.version}",
        )
    found = [replace(match, path=match.path + which.suffix) for match in matches(scope, place)]
    return _in_time(format_rows(scope, place, found).plan(), place.text, which)


def plain_paths(scope: Scope, place: Place) -> list[str]:
    """The paths of the pond that a place names, for those who take them as they are."""
    if place.reader is not None:
        raise PathTypeError(
            f"{place.text} says how bytes are read, and here they are copied as they are",
            path=place.path,
            hint=f"name the path alone: {place.path}; or write rows: "
            f"pond cat '{place.text}' --format parquet > FILE",
        )
    if place.url is None:
        return [place.path]
    return [match.path for match in matches(scope, place)]


def matches(scope: Scope, place: Place) -> list[Match]:
    """The paths of the pond that a URL names; one at least."""
    scope.check()
    found = scope.derivation.reading("/").match(place.url or "")
    if not found:
        kind = place.format or (place.url or "").partition(":")[0]
        is_there = try_resolve(scope.view, split_version(place.path).path)
        if is_there is not None:
            raise PathTypeError(
                f"{place.path} is a {is_there.entry_type}, which {kind}:// does not name",
                path=place.path,
                hint=_other_url(place.path, is_there.entry_type),
            )
        raise (
            _no_match(scope, place.path)
            if is_pattern(place.path)
            else not_found(scope.view, place.path)
        )
    return found


def _other_url(path: str, kind: EntryType) -> str:
    """Return how a path is named by what it is."""
    if kind.is_bytes:
        return f"its rows: {reading_url(path, is_host=False)}; its bytes: {path}"
    if kind.is_directory:
        return f"name what is in it: {path.rstrip('/')}/*"
    return f"its rows: {path}"


def matching(scope: Scope, path: str, *, version: int | None = None) -> list[str]:
    """The paths that a path or a pattern names; what is in it is not a match if it is a directory.

    With a version, each of them at that version.
    """
    plain, named = split_version(path)
    if version is not None and named not in (None, version):
        raise PathTypeError(
            f"{path} is to be read at version {version}", path=path, hint="name one version alone"
        )
    scope.check()
    suffix = "" if version is None else f"@v{version}"
    if not is_pattern(path) or try_resolve(scope.view, plain) is not None:
        return [path if named is not None else path + suffix]
    found = [
        match.located.path
        for match in expand(scope.view, Pattern.parse(path), follow=True)
        if not match.located.entry_type.is_directory
    ]
    if not found:
        raise _no_match(scope, path)
    return [one + suffix for one in found]


def _no_match(scope: Scope, path: str) -> MillpondError:
    prefix = Pattern.parse(path).prefix
    said = f"nothing matches {path}"
    above = try_resolve(scope.view, prefix)
    if above is None:
        return PathNotFoundError(said, path=path, hint=not_found(scope.view, prefix).message)
    names = list(scope.view.children(above.node_id))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    hint = f"{prefix} has {', '.join(names[:_SHOWN])}{more}" if names else f"{prefix} is empty"
    return PathNotFoundError(said, path=path, hint=hint)


def _in_time(plan: Plan, name: str, which: Which) -> Plan:
    """The rows of a range of times; both ends belong to it."""
    if not which.has_times:
        return plan
    time = time_column(plan.schema, None, path=name)
    return in_range(plan, time, asked_between(which.time_start, which.time_end))


def _host_chunks(path: str) -> Iterator[bytes]:
    from millpond.steward.copying.host import read_chunks

    return read_chunks(path)

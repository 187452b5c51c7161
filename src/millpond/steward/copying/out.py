"""Out of a pond: files and whole trees become files of this machine; rows in a format of theirs.

A file appears under its name when it is complete, and not before.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, get_args

from millpond.base.errors import (
    LinkLoopError,
    ObjectExistsError,
    PathTypeError,
)
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern, expand, is_pattern
from millpond.fs.paths import join, parts, split_version
from millpond.fs.resolve import not_found, try_resolve
from millpond.fs.walk import walk
from millpond.steward.copying import Copied
from millpond.steward.copying.host import check_outside, translated
from millpond.steward.rows.files import FileFormat, write_rows
from millpond.steward.rows.selection import matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millpond.fs.resolve import Located
    from millpond.steward.places import Place
    from millpond.steward.scope import Scope, Stat

ENDINGS: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
}
"""The formats of rows, by how files are named."""
_DEFAULT: Final[dict[FileFormat, str]] = {
    "parquet": ".parquet", "csv": ".csv", "json": ".jsonl", "arrow": ".arrow"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    stat: Stat
    target: str
    format: FileFormat | None
    """None for bytes."""


@dataclass(frozen=True, slots=True)
class CopyOut:
    """What is to be copied, all of it looked at."""

    scope: Scope
    directories: tuple[str, ...]
    files: tuple[_File, ...]
    overwrite: bool

    @property
    def size(self) -> int:
        """How many bytes are to be read, about."""
        return sum(file.stat.size or 0 for file in self.files)

    def run(self, watch: Callable[[int], None]) -> list[Copied]:
        """Copy, file by file."""
        for directory in self.directories:
            with translated(directory):
                Path(directory).mkdir(parents=True, exist_ok=True)
        found = []
        for file in self.files:
            with new_file(file.target, overwrite=self.overwrite) as sink:
                self._write(file, sink, watch)
            size = Path(file.target).stat().st_size
            found.append(Copied(file.path, file.target, file.format or "data", None, size))
        return found

    def _write(self, file: _File, sink: IO[bytes], watch: Callable[[int], None]) -> None:
        if file.format is not None:
            plan = self.scope.plan(file.path)
            run = plan.execute(engine=self.scope.pond.engine_for(plan))
            write_rows(file.format, sink, run)
            watch(file.stat.size or 0)
            return
        for chunk in self.scope.read_chunks(file.path):
            sink.write(chunk)
            watch(len(chunk))


def copy_out(
    scope: Scope,
    sources: Sequence[str],
    target: Place,
    *,
    strip_prefix: str | None = None,
    overwrite: bool = False,
) -> CopyOut:
    """Look at what is to be copied out of a pond, and where it goes."""
    format_ = _wanted_format(target)
    found = dict(item for source in sources for item in below(scope, source))
    only = next(iter(found)) if len(found) == 1 else None
    is_tree = (
        only is None
        or found[only]
        or target.is_inside
        or strip_prefix is not None
        or Path(target.path).is_dir()
    )
    base = target.path.rstrip("/") or "/"
    check_outside(base, scope.pond.location)
    if is_tree and Path(base).exists() and not Path(base).is_dir():
        raise ObjectExistsError(
            f"{base} is a file, and a directory is needed there",
            path=base,
            hint="choose another target",
        )
    directories: dict[str, None] = {}
    files: dict[str, _File] = {}
    for path, is_directory in found.items():
        names = names_below(path, strip_prefix) if is_tree else ()
        if is_directory:
            directories[str(Path(base, *names))] = None
            continue
        names = names or parts(split_version(path).path)[-1:]
        stat = scope.stat(path)
        kind = _format(stat, base if only == path and not is_tree else None, names, format_)
        made = Path(base, *names[:-1], named(names[-1], kind)) if is_tree else Path(base)
        other = files.get(str(made))
        check_free(str(made), path, other.path if other else None, overwrite=overwrite)
        directories[str(made.parent)] = None
        files[str(made)] = _File(path, stat, str(made), kind)
    return CopyOut(scope, tuple(directories), tuple(files.values()), overwrite)


def has_bytes(kind: EntryType) -> bool:
    """Whether a node has bytes, stored or computed."""
    return kind.is_bytes or kind is EntryType.DYNAMIC_FILE


def has_rows(kind: EntryType) -> bool:
    """Whether a node has rows, stored or computed."""
    return kind.is_table or kind in (EntryType.DYNAMIC_TABLE, EntryType.DYNAMIC_SERIES)


def _wanted_format(target: Place) -> FileFormat | None:
    wanted = next((name for name in get_args(FileFormat) if name == target.format), None)
    is_known = target.format is None or wanted is not None
    if target.becomes not in (None, EntryType.DATA) or not is_known:
        raise PathTypeError(
            f"{target.text} can't be copied to",
            path=target.path,
            hint="host:// keeps the form; host+parquet://, host+csv://, host+json:// and "
            "host+arrow:// convert",
        )
    if target.reader is not None and (target.reader.compression or target.reader.options_given):
        raise PathTypeError(
            f"{target.text} says how a file is to be read, not how it is written",
            path=target.path,
            hint=f"write host+{wanted}://{target.path}",
        )
    return wanted


def below(scope: Scope, source: str) -> Iterator[tuple[str, bool]]:
    """The paths that a source names, directories with all below, and whether each is one."""
    if is_pattern(source) and try_resolve(scope.view, split_version(source).path) is None:
        matches = expand(scope.view, Pattern.parse(source), follow=True)
        tops = [match.located.path for match in matches] or matching(scope, source)
    else:
        tops = [source]
    for top in tops:
        located = scope.locate(top)
        if not located.entry_type.is_directory:
            yield top, False
            continue
        yield located.path, True
        seen = {located.path: located.node_id}
        for found in walk(scope.view, located.path, follow=True):
            _check_link(scope, found, seen)
            yield found.path, found.entry_type.is_directory


def _check_link(scope: Scope, found: Located, seen: dict[str, str]) -> None:
    if found.entry_type is EntryType.SYMLINK:  # it leads nowhere
        scope.locate(found.path)
        raise not_found(scope.view, found.path)
    if not found.entry_type.is_directory:
        return
    names = parts(found.path)
    above = (join(*names[:depth]) for depth in range(len(names)))
    if any(seen.get(path) == found.node_id for path in above):
        raise LinkLoopError(
            f"{found.path} is a symbolic link to a directory above it",
            path=found.path,
            hint="remove the link, or copy the directories one by one",
        )
    seen[found.path] = found.node_id


def names_below(path: str, strip_prefix: str | None) -> tuple[str, ...]:
    """The names below the target, which are those of the path, but for what is stripped."""
    names = parts(split_version(path).path)
    if strip_prefix is None:
        return names
    front = parts(strip_prefix if strip_prefix.startswith("/") else f"/{strip_prefix}")
    if names[: len(front)] != front:
        raise PathTypeError(
            f"{path} does not begin with {join(*front)}, which is to be stripped",
            path=path,
            hint="strip a prefix that all of them have, or none",
        )
    return names[len(front) :]


def _format(
    stat: Stat, exact: str | None, names: tuple[str, ...], wanted: FileFormat | None
) -> FileFormat | None:
    """The format that rows are written in: as the scheme says, or the name, or else Parquet."""
    if has_bytes(stat.entry_type):
        if wanted is not None:
            raise PathTypeError(
                f"{stat.path} is {stat.entry_type}: it has no rows that could be written as "
                f"{wanted}",
                path=stat.path,
                hint="host:// copies its bytes",
            )
        return None
    if not has_rows(stat.entry_type):
        raise PathTypeError(
            f"{stat.path} is a {stat.entry_type}: it has neither bytes nor rows",
            path=stat.path,
            hint="leave it out: name the others one by one",
        )
    if wanted is not None:
        return wanted
    if exact is None:
        return ENDINGS.get(Path(names[-1]).suffix.lower(), "parquet")
    found = ENDINGS.get(Path(exact).suffix.lower())
    if found is None:
        raise PathTypeError(
            f"the name of {exact} does not say in which format the rows of {stat.path} are to be "
            "written",
            path=stat.path,
            hint="end it with .parquet, .csv or .jsonl, or say host+parquet://, host+csv:// …",
        )
    return found


def named(name: str, format_: FileFormat | None) -> str:
    """The name of a file, with the ending of its format."""
    ending = Path(name).suffix
    if format_ is None or ENDINGS.get(ending.lower()) == format_:
        return name
    stem = name.removesuffix(ending) if ending.lower() in ENDINGS else name
    return stem + _DEFAULT[format_]


def check_free(made: str, path: str, other: str | None, *, overwrite: bool) -> None:
    """Raise unless a path can become a file; `other` is a path that is to become the same one."""
    if other is not None:
        raise ObjectExistsError(
            f"{other} and {path} would both become {made}",
            path=made,
            hint="copy them one by one, to different files",
        )
    with translated(made):
        if Path(made).is_dir():
            raise ObjectExistsError(
                f"{made} is a directory, and {path} would become a file there",
                path=made,
                hint="remove it first, or choose another target",
            )
        if not overwrite and os.path.lexists(made):
            raise ObjectExistsError(
                f"{made} is there already",
                path=made,
                hint="pass --overwrite to exchange it, or choose another target",
            )


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file to write that gets its name when all went well; otherwise nothing is left."""
    directory, name = os.path.split(path)
    # A name of bounded length: the one it will have may be as long as a name can be.
    part = os.path.join(directory, f".{secrets.token_hex(8)}.part")  # noqa: PTH118
    with translated(path):
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as sink, translated(path):
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        with translated(path):
            if not overwrite and os.path.lexists(path):
                raise ObjectExistsError(
                    f"{name} came to be in {directory} meanwhile",
                    path=path,
                    hint="pass --overwrite to exchange it",
                )
            os.replace(part, path)  # noqa: PTH105
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise

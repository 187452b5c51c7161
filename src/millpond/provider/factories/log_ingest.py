"""`log-ingest`: what is new in rotating log files of this machine is appended to the pond.

    factory: log-ingest
    config:
      archived_pattern: /var/log/app/app.log.*
      active_pattern: /var/log/app/app.log
      pond_path: /logs

Each active file, with all that it was rotated to, is one `data:series` below `pond_path`, and each
run is one version of it. What the pond has of which file is noted with the version itself, so
a run that is killed has either happened or not. See `provider.logs`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import field_validator

from millpond.base.errors import FactoryConfigError, PathExistsError, PathSyntaxError
from millpond.fs.command import CommandOption, NodeCommand
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern
from millpond.fs.paths import join, parts
from millpond.provider.factory import Config, ConfiguredFactory, Creates
from millpond.provider.logs.files import LogFile, find, new_bytes
from millpond.provider.logs.news import Known, News, news

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.fs.factory import Run

NAME: Final = "log-ingest"
KEY: Final = "log-ingest"
"""The extended attribute in which a version says what it has of which file."""


class LogIngestConfig(Config):
    """Where log files are, and where they go; wildcards of the active pattern come first."""

    active_pattern: str
    archived_pattern: str | None = None
    pond_path: str

    @field_validator("active_pattern", "archived_pattern", "pond_path")
    @classmethod
    def _is_absolute(cls, text: str | None) -> str | None:
        try:
            if text is not None:
                Pattern.parse(text)
        except PathSyntaxError as error:
            raise ValueError(error.message) from None
        return text

    @field_validator("active_pattern")
    @classmethod
    def _captures(cls, text: str) -> str:
        if "?" in text or "[" in text:
            raise ValueError("use * alone: it tells which archived file belongs to which active")
        return text


@dataclass(slots=True)
class Stream:
    """An active file, or where it would be, and the archived ones that belong to it."""

    path: str
    """The node."""
    active: LogFile | None = None
    archived: list[LogFile] = field(default_factory=list)


class LogIngest(ConfiguredFactory[LogIngestConfig]):
    """The factory."""

    name = NAME
    creates: ClassVar[Creates] = "executable"
    model = LogIngestConfig
    summary = "appends what is new in rotating log files, when it is run"
    commands: ClassVar[tuple[NodeCommand, ...]] = (
        NodeCommand(
            "ingest",
            "Append what is new, in one transaction.",
            options=(
                CommandOption(
                    "dry-run", "Show what would be appended, and write nothing.", kind="flag"
                ),
            ),
        ),
        NodeCommand(
            "status",
            "Show what the pond has of each active file, and what is new.",
            reports=True,
        ),
    )

    def run(self, run: Run) -> object:
        """Append what is new, in one transaction; where nothing is, nothing happens."""
        config = self.parse(run.config, run.variables)
        if run.command == "status":
            return _status(run.read(), config)
        if run.options["dry_run"]:
            for stream in _streams(config):
                _tell(run, stream, _news(run.read(), stream))
            return None
        with run.write(f"log-ingest {run.path}") as tx:
            for stream in _streams(config):
                found = _news(tx, stream)
                _tell(run, stream, found)
                if found.takes:
                    _append(tx, stream.path, found)
            tx.commit()
        return None


def _news(scope: Any, stream: Stream) -> News:
    return news(_known(scope, stream.path), stream.archived, stream.active)


def _status(scope: Any, config: LogIngestConfig) -> list[dict[str, Any]]:
    """Return what the pond has of each stream, and what is new in its files."""
    rows = []
    for stream in _streams(config):
        found = _news(scope, stream)
        versions = scope.versions(stream.path) if scope.exists(stream.path) else []
        rows.append(
            {
                "path": stream.path,
                "active": None if stream.active is None else stream.active.path,
                "archived": len(stream.archived),
                "versions": len(versions),
                "stored": sum(row.size or 0 for row in versions),
                "new": sum(take.size for take in found.takes),
                "skipped": ", ".join(sorted(found.skipped)) or None,
            }
        )
    return rows


def _streams(config: LogIngestConfig) -> Iterator[Stream]:
    archived = [] if config.archived_pattern is None else find(config.archived_pattern)
    # `app.log*` may be meant to name what `app.log` was rotated to.
    archived = [file for file in archived if file.path != config.active_pattern]
    rotated = {file.path for file in archived}
    found: dict[tuple[str, ...], Stream] = {}
    for file in find(config.active_pattern, is_active=True):
        if file.path not in rotated:
            found[file.captures] = Stream(_node(config, file.path), file)
    count = Pattern.parse(config.active_pattern).capture_count
    for file in archived:
        key = file.captures[:count]
        if key not in found:
            found[key] = Stream(_node(config, _filled(config, key, file)))
        found[key].archived.append(file)
    return iter(sorted(found.values(), key=lambda stream: stream.path))


def _node(config: LogIngestConfig, path: str) -> str:
    """Where a file goes: below `pond_path` it is named as below the directory without wildcards."""
    above = parts(Pattern.parse(config.active_pattern).prefix)
    names = parts(path)
    return join(*parts(config.pond_path), *names[min(len(above), len(names) - 1) :])


def _filled(config: LogIngestConfig, captures: tuple[str, ...], file: LogFile) -> str:
    """The path that the active file of an archived one has, while there is none."""
    pieces = config.active_pattern.replace("**", "*").split("*")
    path = "".join(chain.from_iterable(zip(pieces, (*captures, ""), strict=False)))
    if len(captures) < len(pieces) - 1 or Pattern.parse(config.active_pattern).match(path) is None:
        raise FactoryConfigError(
            f"{file.path} was rotated, and it can't be told from which active file",
            place=("archived_pattern",),
            hint="begin archived_pattern with the wildcards of active_pattern",
        )
    return path


def _known(tx: Any, path: str) -> Known:
    """What the pond has of a stream."""
    if not tx.exists(path):
        return Known()
    notes = [row.attributes.get(KEY) for row in tx.versions(path)]
    if tx.row(path).entry_type is not EntryType.DATA_SERIES or notes[0] is None:
        raise PathExistsError(
            f"{path} was not made by log-ingest, and log files would go there",
            path=path,
            hint="move it, or choose another pond_path",
        )
    return Known.of(note for note in notes if note is not None)


def _append(tx: Any, path: str, found: News) -> None:
    above = join(*parts(path)[:-1])
    if not tx.exists(above):
        tx.make_directory(above, parents=True)
    data = chain.from_iterable(new_bytes(take.look) for take in found.takes)
    row = tx.write_bytes(path, data, series=True).row
    # Noted as a change, it is in the way of who appends the same meanwhile.
    noted = row.with_attributes(**{KEY: found.note})
    tx.change(path, extended_attributes=noted.extended_attributes)


def _tell(run: Run, stream: Stream, found: News) -> None:
    for take in found.takes:
        size = f"{take.size:,} byte{'' if take.size == 1 else 's'}"
        run.tell(f"{stream.path}: {size} of {take.look.file.path} ({take.kind})")
    for path, why in found.skipped.items():
        run.tell(f"{stream.path}: {path} is left for the next time: {why}")

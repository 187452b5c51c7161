"""The names of a Delta log's files: what a name says, and how a name is made.

A name of the wrong width is no file of the log, and so is one with a suffix that is not known.

>>> parse_name("00000000000000000010.checkpoint.parquet")
LogName(kind='checkpoint', version=10, end=10, part=None, parts=None, unique=None)
>>> parse_name("10.json") is None
True
>>> commit_name(3)
'00000000000000000003.json'
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

LOG_DIRECTORY: Final = "_delta_log"
LAST_CHECKPOINT: Final = "_last_checkpoint"
SIDECARS: Final = "_sidecars"
STAGED_COMMITS: Final = "_staged_commits"
MAX_VERSION: Final = (1 << 63) - 1

Kind: TypeAlias = Literal["commit", "checksum", "checkpoint", "compaction"]

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_DIGITS: Final = 20
_NAME = re.compile(
    rf"""(?P<version>\d{{20}})\.(?:
        (?P<checksum>crc)
      | checkpoint\.(?P<classic>parquet)
      | checkpoint\.(?P<unique>{_UUID})\.(?:json|parquet)
      | checkpoint\.(?P<part>\d{{10}})\.(?P<parts>\d{{10}})\.parquet
      | (?P<end>\d{{20}})\.compacted\.json
    )""",
    re.VERBOSE | re.ASCII,
)
_STAGED = re.compile(rf"(?P<version>\d{{20}})\.(?P<unique>{_UUID})\.json", re.ASCII)


class LogName(NamedTuple):
    """What a file's name says. `end` is the last version that it covers."""

    kind: Kind
    version: int
    end: int
    part: int | None = None
    parts: int | None = None
    unique: str | None = None


def parse_name(name: str) -> LogName | None:
    """What the name of a file in `_delta_log` says; None if it is no file of the log."""
    if name[_DIGITS:] == ".json" and name[:_DIGITS].isdigit() and name.isascii():  # as most are
        version = int(name[:_DIGITS])
        return LogName("commit", version, version) if version <= MAX_VERSION else None
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if version > MAX_VERSION:
        return None
    if match["checksum"]:
        return LogName("checksum", version, version)
    if match["end"]:
        end = int(match["end"])
        return LogName("compaction", version, end) if version < end <= MAX_VERSION else None
    if match["parts"]:
        part, parts = int(match["part"]), int(match["parts"])
        if not 1 <= part <= parts:
            return None
        return LogName("checkpoint", version, version, part, parts)
    return LogName("checkpoint", version, version, unique=match["unique"])


def parse_staged_name(name: str) -> LogName | None:
    """What the name of a file in `_staged_commits` says."""
    match = _STAGED.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    return LogName("commit", version, version, unique=match["unique"])


def file_name(path: str) -> str:
    """The last part of a path or URL."""
    return path[path.rfind("/") + 1 :]


def version_prefix(version: int) -> str:
    """The first 20 characters of every name of a version."""
    return f"{version:020d}"


def commit_name(version: int) -> str:
    """`<version>.json`."""
    return f"{version:020d}.json"


def checksum_name(version: int) -> str:
    """`<version>.crc`."""
    return f"{version:020d}.crc"


def checkpoint_name(version: int) -> str:
    """The one file of a classic checkpoint."""
    return f"{version:020d}.checkpoint.parquet"


def unique_checkpoint_name(version: int, unique: str, suffix: str = "parquet") -> str:
    """The manifest of a V2 checkpoint."""
    return f"{version:020d}.checkpoint.{unique}.{suffix}"


def part_name(version: int, part: int, parts: int) -> str:
    """One file of a checkpoint in parts, counted from 1."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def compaction_name(start: int, end: int) -> str:
    """The commits of two versions and all between, in one file."""
    return f"{start:020d}.{end:020d}.compacted.json"


def staged_name(version: int, unique: str) -> str:
    """A commit that a catalog has yet to ratify, below `_delta_log`."""
    return f"{STAGED_COMMITS}/{version:020d}.{unique}.json"

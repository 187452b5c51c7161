"""The cases, with their targets, and where their tables come from."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING, Final

from bench.kernel import logs, tables
from bench.kernel.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.options import Options

ADDS: Final = 1_000_000
ROWS: Final = 20_000_000
GIVEN_LOG: Final = "given"

CASES: Final = (
    Case("open_1m", "open", "classic", 0.02),
    Case("paths_1m", "paths", "classic", 0.06),
    Case("paths_5m", "paths", "multi_part", 0.06),
    Case("paths_v2", "paths", "v2", 0.06),
    Case("plan_json_stats", "plan", "classic", 0.35),
    Case("plan_parsed_stats", "plan", "parsed", 0.05),
    Case("refresh", "refresh", "classic", 0.02),
    Case("small_commits", "paths", "commits", 0.2),
    Case("log_300k", "paths", GIVEN_LOG, 0.2),
    Case("read_numeric", "read", "numeric", 1.0),
    Case("read_strings", "read", "strings", 1.3),
    Case("read_deletions", "read", "deletions", 1.3),
    Case("write_checkpoint", "checkpoint", "classic", 0.4),
)
FLAT: Final = ("paths_1m", "paths_5m", 1.1)
"""Live paths take the same memory for five times as many adds: at most this much more."""


def table_of(case: Case, options: Options) -> Path | None:
    """The case's table, made if need be; none if it is one that has to be given and is not."""
    if case.table == GIVEN_LOG:
        return None if options.log is None else _unpacked(options.log, directory=options.data)
    if case.table in tables.CONTENTS:
        return tables.table(case.table, options.rows or ROWS, directory=options.data)
    return _LOGS[case.table](size_of(options), options.data)


def size_of(options: Options) -> int:
    """How many adds a checkpoint has."""
    return options.adds or ADDS


def _unpacked(archive: Path, *, directory: Path) -> Path:
    """The table in an archive (`.tar.zst`) that holds one directory."""
    import zstandard

    def write(path: Path) -> None:
        with archive.open("rb") as packed:
            plain = zstandard.ZstdDecompressor().stream_reader(packed)
            with tarfile.open(fileobj=plain, mode="r|") as files:
                files.extractall(path, filter="data")

    where = logs.kept(archive.name, archive.stat().st_size, write, directory=directory)
    return next(log.parent for log in where.rglob("_delta_log"))


_LOGS: Final[dict[str, Callable[[int, Path], Path]]] = {
    "commits": lambda size, where: logs.commits(size, directory=where),
    "classic": lambda size, where: logs.classic(size, directory=where),
    "parsed": lambda size, where: logs.classic(size, directory=where, parsed=True),
    "multi_part": lambda size, where: logs.multi_part(size, directory=where),
    "v2": lambda size, where: logs.v2(size, directory=where),
}

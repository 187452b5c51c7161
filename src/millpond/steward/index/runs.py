"""`Run`: a file of the index. It has the last rows of all nodes that some versions touched.

Nothing here imports Arrow. A file whose checksum or shape is wrong is as good as none.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from millpond.fs.entry import EntryType, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_MAGIC: Final = b"pondidx1"
_SHAPE: Final = zlib.crc32(" ".join([*(each.name for each in fields(Row)), *EntryType]).encode())
"""Rows of another shape were written by another program, and are not read."""
_NAME: Final = re.compile(r"(\d{20})-(\d{20})\.run")


class BadRunError(Exception):
    """A file of the index that can't be believed."""


class Run(msgspec.Struct, array_like=True, frozen=True):
    """The last row of each node that versions `first` to `last` touched, by directory."""

    shape: int
    first: int
    last: int
    txn_seq: int
    """The last transaction in it."""
    base_id: str | None
    """The txnId of the commit before `first`; None if there is no such commit."""
    txn_id: str
    """The txnId of the commit `last`."""
    parts: dict[str, msgspec.Raw]
    """Lists of rows; contents are left out, but for the targets of links."""

    def rows(self, part_id: str) -> list[Row]:
        """What it knows of a directory, also what was removed from it."""
        found = self.parts.get(part_id)
        return [] if found is None else _ROWS.decode(found)


_ROWS: Final = msgspec.msgpack.Decoder(list[Row])
_RUN: Final = msgspec.msgpack.Decoder(Run)
_ENCODER: Final = msgspec.msgpack.Encoder()


class RunFile(NamedTuple):
    """A run that is stored; its name says which versions it has."""

    first: int
    last: int
    path: Path
    size: int


def make_run(
    first: int,
    last: int,
    parts: Mapping[str, Iterable[Row]],
    *,
    txn_seq: int,
    base_id: str | None,
    txn_id: str,
) -> Run:
    """A run of rows, by directory."""
    encoded = {
        part: msgspec.Raw(_ENCODER.encode([_light(row) for row in rows]))
        for part, rows in parts.items()
    }
    return Run(_SHAPE, first, last, txn_seq, base_id, txn_id, encoded)


def _light(row: Row) -> Row:
    if row.content is None or row.entry_type is EntryType.SYMLINK:
        return row
    return replace(row, content=None)


def joined(runs: Sequence[Run]) -> Run:
    """Runs that follow one another as one."""
    first, last = runs[0], runs[-1]
    parts: dict[str, msgspec.Raw] = {}
    for part in {part: None for run in runs for part in run.parts}:
        having = [run for run in runs if part in run.parts]
        if len(having) == 1:
            parts[part] = having[0].parts[part]
            continue
        rows = {row.node_id: row for run in having for row in run.rows(part)}
        # Below the first version nothing is left that a removal would have to hide.
        kept = [row for row in rows.values() if first.first > 0 or not row.removed]
        parts[part] = msgspec.Raw(_ENCODER.encode(kept))
    return Run(_SHAPE, first.first, last.last, last.txn_seq, first.base_id, last.txn_id, parts)


def list_runs(directory: Path) -> list[RunFile]:
    """The runs that are stored, by their names."""
    try:
        with os.scandir(directory) as found:
            entries = [(_NAME.fullmatch(entry.name), entry) for entry in found]
            runs = [
                RunFile(int(match[1]), int(match[2]), directory / entry.name, entry.stat().st_size)
                for match, entry in entries
                if match is not None
            ]
    except FileNotFoundError:
        return []
    return sorted(runs)


def read_run(file: RunFile) -> Run:
    """A stored run; BadRunError if it is not what was written."""
    data = file.path.read_bytes()
    head = len(_MAGIC) + 4
    if data[: len(_MAGIC)] != _MAGIC or zlib.crc32(memoryview(data)[head:]) != int.from_bytes(
        data[len(_MAGIC) : head], "little"
    ):
        raise BadRunError(f"{file.path} is damaged")
    try:
        run = _RUN.decode(memoryview(data)[head:])
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRunError(f"{file.path} can't be read: {error}") from error
    if (run.shape, run.first, run.last) != (_SHAPE, file.first, file.last):
        raise BadRunError(f"{file.path} is of another program, or another place")
    return run


def write_run(directory: Path, run: Run) -> RunFile:
    """Store a run. It is not synced: what a crash leaves of it has a wrong checksum."""
    payload = _ENCODER.encode(run)
    name = f"{run.first:020d}-{run.last:020d}.run"
    directory.mkdir(parents=True, exist_ok=True)
    temp = directory / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with temp.open("xb") as file:
            file.write(_MAGIC + zlib.crc32(payload).to_bytes(4, "little"))
            file.write(payload)
        temp.replace(directory / name)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    return RunFile(run.first, run.last, directory / name, len(_MAGIC) + 4 + len(payload))

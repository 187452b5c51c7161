"""What the operators of one run share: settings, counters, observations and temporary files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from millpond.base.machine import cores
from millpond.base.scratch import make_scratch, remove_scratch
from millpond.engine.arrow.native.library import library
from millpond.plan import types as t

if TYPE_CHECKING:
    from ctypes import CDLL
    from pathlib import Path

    from millpond.base.settings import ArrowSettings
    from millpond.engine.arrow.source.files import Files
    from millpond.plan.counters import Counters

SPILLING_SHARE = 64
"""What can spill takes a 64th of the machine's memory: spilling costs little, memory much."""
HOLDING_SHARE = 8
"""What can't spill may take an eighth."""
_FEWEST_ROWS = 65_536
_MOST_THREADS = 8
"""More take memory for what they hold ready, unless they are asked for."""


@dataclass(slots=True)
class Seen:
    """What was seen of a plan node so far."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Context:
    """One run's surroundings; `close` removes what it left on disk."""

    settings: ArrowSettings
    counters: Counters
    files: Files
    max_group_keys: int | None = None
    seen: dict[int, Seen] = field(default_factory=dict)
    is_cancelled: bool = False
    """Set from any thread; looked at before each step of an operator."""
    stops_early: bool = False
    """Whether the plan may have enough before all is read: then nothing is read ahead."""
    _directory: Path | None = None
    _noting: Lock = field(default_factory=Lock)

    @property
    def library(self) -> CDLL | None:
        """The compiled functions that decode pages; None if there are none, or by setting."""
        return library() if self.settings.native == "auto" else None

    @property
    def batch_rows(self) -> int:
        """The most rows that a batch has when it leaves the engine."""
        return self.settings.batch_rows

    @property
    def threads(self) -> int:
        """How many files are decoded at a time."""
        if self.stops_early:
            return 1
        return self.settings.threads or min(cores(), _MOST_THREADS)

    def note(self, node: int | None, rows: int) -> None:
        """Rows that a node gave, where another operator does its work along with its own."""
        if node is not None:
            with self._noting:
                seen = self.seen.setdefault(node, Seen())
                seen.rows += rows
                seen.batches += 1

    def buffer_rows(self, schema: t.Struct, *, share: int = SPILLING_SHARE) -> int:
        """How many rows of this schema an operator may hold in memory."""
        if self.settings.max_buffer_rows is not None:
            return self.settings.max_buffer_rows
        return max(_FEWEST_ROWS, _memory_bytes() // share // row_bytes(schema))

    def temporary(self, name: str) -> Path:
        """A path for a temporary file, in a directory that lives as long as this run."""
        if self._directory is None:
            self._directory = make_scratch()
        return self._directory / name

    def close(self) -> None:
        """Close files and remove temporary ones."""
        self.files.close()
        if self._directory is not None:
            remove_scratch(self._directory)
            self._directory = None


def row_bytes(type_: t.DataType) -> int:
    """About how many bytes a value of this type takes in memory."""
    if isinstance(type_, t.Struct):
        return sum((row_bytes(field.type) for field in type_), start=1)
    if isinstance(type_, t.List):
        return 4 + 4 * row_bytes(type_.element)
    if isinstance(type_, t.Map):
        return 4 + 4 * (row_bytes(type_.key) + row_bytes(type_.value))
    if type_ in (t.STRING, t.BINARY, t.VARIANT):
        return 24
    return 16 if isinstance(type_, t.Decimal) else 8


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

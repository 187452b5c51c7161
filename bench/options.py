"""What a person may ask of every suite."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, as a value; what is not given, each suite has its own default for."""

    rows: int | None = None
    adds: int | None = None
    log: Path | None = None
    repeat: int | None = None
    only: str | None = None
    contenders: tuple[str, ...] | None = None
    data: Path = Path(__file__).resolve().parent / "data"

    def wants(self, work: str) -> bool:
        """Whether this work was asked for."""
        return self.only is None or fnmatchcase(work, self.only)

    def wants_contender(self, name: str) -> bool:
        """Whether this contender was asked for."""
        return self.contenders is None or name in self.contenders

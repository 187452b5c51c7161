"""Damage to the files of a pond: a flipped bit, a cut, an emptied file, two files exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

AREAS: Final = ("data", "tables", "blobs", "control", "cache")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done to which file of a pond; it can be done again to a copy of the pond."""

    kind: str
    """`flip`, `cut`, `empty`, `remove` or `swap`."""
    file: str
    """Below the pond's directory."""
    at: int = 0
    """The bit that is flipped, or the byte at which the file ends."""
    other: str = ""
    """The file that it is exchanged with."""

    def __str__(self) -> str:
        where = f" at {self.at}" if self.kind in ("flip", "cut") else ""
        return f"{self.kind} {self.file}{where}{f' with {self.other}' if self.other else ''}"

    @property
    def area(self) -> str:
        """The kind of file: logs and data files of the OpLog and of tables are told apart."""
        area = self.file.split("/", 1)[0]
        if area in ("data", "tables", "control"):
            return f"{area} log" if "/_delta_log/" in self.file else f"{area} files"
        return area

    def apply(self, pond: Path) -> None:
        """Do the damage."""
        file = pond / self.file
        if self.kind == "flip":
            content = bytearray(file.read_bytes())
            content[self.at // 8] ^= 1 << self.at % 8
            file.write_bytes(content)
        elif self.kind == "swap":
            one, other = file.read_bytes(), (pond / self.other).read_bytes()
            file.write_bytes(other)
            (pond / self.other).write_bytes(one)
        elif self.kind == "remove":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: self.at])


def flips(pond: Path, rng: Random, count: int) -> list[Fault]:
    """Flipped bits: every file gets one before any gets a second, so small files count as well."""
    chosen: list[Fault] = []
    files = _files(pond)
    while len(chosen) < count:
        rng.shuffle(files)
        for name in files[: count - len(chosen)]:
            size = (pond / name).stat().st_size
            chosen.append(Fault("flip", name, rng.randrange(size * 8)))
    return chosen


def others(pond: Path, rng: Random, count: int) -> list[Fault]:
    """Cut, emptied, removed and exchanged files, one kind after the other."""
    files = _files(pond)
    chosen: list[Fault] = []
    for number in range(count):
        name = rng.choice(files)
        kind = ("cut", "empty", "swap", "cut", "remove")[number % 5]
        if kind == "swap":
            alike = [other for other in files if _is_alike(name, other)]
            kind = "swap" if alike else "cut"
        if kind == "swap":
            chosen.append(Fault("swap", name, other=rng.choice(alike)))
        elif kind == "cut":
            chosen.append(Fault("cut", name, rng.randrange((pond / name).stat().st_size)))
        else:
            chosen.append(Fault(kind, name))
    return chosen


def _files(pond: Path) -> list[str]:
    return sorted(
        str(file.relative_to(pond))
        for area in AREAS
        for file in (pond / area).rglob("*")
        if file.is_file() and file.stat().st_size
    )


def _is_alike(one: str, other: str) -> bool:
    """Files that a program could take for each other."""
    return one != other and Path(one).suffix == Path(other).suffix and one[:4] == other[:4]

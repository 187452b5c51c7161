"""The ponds that are measured; they are made once and kept in the data directory."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import millpond as mp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODES = 10_000
TRANSACTIONS = 10_000
DEPTH = 10


def kept(name: str, make: Callable[[Path], None], *, directory: Path) -> Path:
    """A pond that is there, or is made now; one that was half made is made again."""
    path, done = directory / "ponds" / name, directory / "ponds" / f"{name}.done"
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        done.touch()
    return path


def with_nodes(directory: Path, nodes: int = NODES) -> Path:
    """A pond of many small files in a hundred directories, written by a hundred transactions."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        for number in range(100):
            with pond.write() as tx:
                tx.make_directory(f"/site-{number:03}")
                for node in range(nodes // 100 - 1):
                    tx.write_bytes(f"/site-{number:03}/reading-{node:04}.txt", b"level 2.1\n")
                tx.commit()

    return kept(f"nodes-{nodes}", make, directory=directory)


def with_transactions(directory: Path, count: int = TRANSACTIONS) -> Path:
    """A pond that was written to so many times, a small file each time, and never maintained."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        for number in range(count):
            with pond.write() as tx:
                tx.make_directory(f"/{number % 100:02}", exist_ok=True)
                tx.write_bytes(f"/{number % 100:02}/file-{number % 1000:03}", b"%d" % number)
                tx.commit()

    return kept(f"transactions-{count}", make, directory=directory)


def maintained(path: Path, *, directory: Path) -> Path:
    """A copy of a pond after maintenance."""

    def make(target: Path) -> None:
        shutil.copytree(path, target)
        mp.open(target).maintain(dry_run=False)

    return kept(f"{path.name}-maintained", make, directory=directory)


def deep(directory: Path, others: int) -> Path:
    """A pond with one path of some depth among many other directories."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        with pond.write() as tx:
            tx.make_directory(deep_path(), parents=True)
            tx.commit()
        for start in range(0, others, 500):
            with pond.write() as tx:
                for number in range(start, min(start + 500, others)):
                    tx.make_directory(f"/other/{number // 100}/{number}", parents=True)
                tx.commit()

    return kept(f"deep-{others}", make, directory=directory)


def deep_path() -> str:
    """The path that is looked up."""
    return "".join(f"/level-{number}" for number in range(DEPTH))

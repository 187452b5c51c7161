"""What is measured, each in a process of its own: `python -m bench.pond.works NAME JSON`.

A work prints one JSON object: seconds of wall time of us and of the peer, peak memory.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.processes import peak_megabytes

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 41
SERIES = 50
ROWS = 100


def write_small(directory: str) -> dict[str, Any]:
    """A transaction with one small file, and one append of three rows by deltalake, by turns."""
    import pyarrow as pa
    from deltalake import write_deltalake

    import millpond as mp

    with tempfile.TemporaryDirectory(dir=directory) as place:
        pond = mp.create(f"{place}/pond")
        rows = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})

        def ours(number: int) -> None:
            with pond.write() as tx:
                tx.write_bytes(f"/file-{number}", b"hello")
                tx.commit()

        return _by_turns(ours, lambda _: write_deltalake(f"{place}/t", rows, mode="append"))


def append_series(directory: str) -> dict[str, Any]:
    """A transaction that appends to 50 series, and 50 appends by deltalake, by turns."""
    import pyarrow as pa
    from deltalake import write_deltalake

    import millpond as mp

    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=number) for number in range(ROWS)]
    rows = pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "level": [float(number) for number in range(ROWS)],
        }
    )
    with tempfile.TemporaryDirectory(dir=directory) as place:
        pond = mp.create(f"{place}/pond")

        def ours(_: int) -> None:
            with pond.write() as tx:
                for number in range(SERIES):
                    tx.append_series(f"/series-{number}", rows)
                tx.commit()

        def peer(_: int) -> None:
            for number in range(SERIES):
                write_deltalake(f"{place}/tables/{number}", rows, mode="append")

        return _by_turns(ours, peer, rounds=7)


def open_pond(pond: str, other: str) -> dict[str, Any]:
    """Opening one pond and another one, by turns."""
    import millpond as mp

    return _by_turns(lambda _: _opened(mp, pond), lambda _: _opened(mp, other))


def _opened(mp: Any, place: str) -> None:
    assert mp.open(place).read().txn_seq


def look_up(pond: str, other: str, path: str) -> dict[str, Any]:
    """Finding a path in one pond and in another one, each just opened, by turns."""
    import millpond as mp

    def find(place: str) -> float:
        scope = mp.open(place).read()
        begin = time.perf_counter()
        assert scope.stat(path).is_directory
        return time.perf_counter() - begin

    pairs = [(find(pond), find(other)) for _ in range(ROUNDS)]
    return {"ours": median(p[0] for p in pairs), "peer": median(p[1] for p in pairs)}


def copy_large(directory: str, size: int) -> dict[str, Any]:
    """A large file into a pond and out again; the peak memory of all that."""
    import millpond as mp

    with tempfile.TemporaryDirectory(dir=directory) as place:
        source, target = Path(place, "large"), Path(place, "copy")
        block = bytes(range(256)) * 4096
        with source.open("wb") as file:
            for number in range(size // len(block)):
                file.write(number.to_bytes(8, "big") + block[8:])
        pond = mp.create(f"{place}/pond")
        begin = time.perf_counter()
        with pond.write() as tx:
            tx.write_file("/large", source)
            tx.commit()
        with target.open("wb") as file:
            for chunk in pond["/large"].read_chunks():
                file.write(chunk)
        seconds = time.perf_counter() - begin
        assert target.stat().st_size == source.stat().st_size
    # Not ru_maxrss: that begins with what the process was that started this one.
    return {"ours": seconds, "peak_mb": peak_megabytes(os.getpid())}


def _by_turns(
    ours: Callable[[int], None], peer: Callable[[int], None], *, rounds: int = ROUNDS
) -> dict[str, Any]:
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(-2, rounds):  # the first two warm up
        for kept, run in zip(seconds, (ours, peer), strict=True):
            begin = time.perf_counter()
            run(number)
            if number >= 0:
                kept.append(time.perf_counter() - begin)
    return {"ours": median(seconds[0]), "peer": median(seconds[1])}


WORKS: dict[str, Callable[..., dict[str, Any]]] = {
    "write_small": write_small,
    "append_series": append_series,
    "open_pond": open_pond,
    "look_up": look_up,
    "copy_large": copy_large,
}

if __name__ == "__main__":
    print(json.dumps(WORKS[sys.argv[1]](**json.loads(sys.argv[2]))))

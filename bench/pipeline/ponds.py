"""The ponds that are measured; they are made once and kept in the data directory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import millpond as mp
from bench.pond.ponds import kept

if TYPE_CHECKING:
    from pathlib import Path

START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
SECOND = 1_000_000
SERIES = 5
FILES = 1000
VERSIONS = 5000


def rows(first: int, count: int, seed: int) -> pa.Table:
    """Readings, one a second."""
    rng = np.random.default_rng(seed)
    times = START + SECOND * np.arange(first, first + count, dtype=np.int64)
    return pa.table(
        {
            "timestamp": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "level": rng.normal(2, 0.5, count),
            "flow": rng.integers(0, 1000, count),
        }
    )


def with_one_series(directory: Path, count: int) -> Path:
    """A pond with one series of so many rows, in ten files."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        part = count // 10
        for number in range(10):
            with pond.write() as tx:
                tx.append_series("/s0", rows(number * part, part, 0))
                tx.commit()

    return kept(f"pipeline-one-{count}", make, directory=directory)


def with_series(directory: Path, count: int) -> Path:
    """A pond with five series of so many rows each, in ten files, and one in long form."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        part = count // 10
        for number in range(10):
            with pond.write() as tx:
                for series in range(SERIES):
                    tx.append_series(f"/s{series}", rows(number * part, part, series))
                tx.commit()
            sensors = pa.array([f"sensor {n % 20}" for n in range(part)])
            long = rows(number * part, part, 9).append_column("sensor", sensors)
            with pond.write() as tx:
                tx.append_series("/long", long)
                tx.commit()

    return kept(f"pipeline-{count}", make, directory=directory)


def with_files(directory: Path, count: int = FILES) -> Path:
    """A pond with many small series."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        for start in range(0, count, 100):
            with pond.write() as tx:
                for number in range(start, start + 100):
                    tx.append_series(f"/f{number:04}", rows(number * 60, 60, number))
                tx.commit()

    return kept(f"pipeline-files-{count}", make, directory=directory)


def with_versions(directory: Path, count: int = VERSIONS) -> Path:
    """A pond with one series that was appended to so often, maintained; and its rows at once."""

    def make(path: Path) -> None:
        pond = mp.create(path)
        for number in range(count):
            with pond.write() as tx:
                tx.append_series("/many", rows(number * 200, 200, number))
                tx.commit()
        with pond.write() as tx:
            tx.append_series("/one", pond["/many"].to_arrow())
            tx.commit()
        pond.maintain()

    return kept(f"pipeline-versions-{count}", make, directory=directory)

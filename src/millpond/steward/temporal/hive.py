"""Rows cut by time into folders as Hive names them: `year=2024/month=05`, in UTC."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

Unit: TypeAlias = Literal["year", "month", "day", "hour"]
UNITS: Final[tuple[Unit, ...]] = ("year", "month", "day", "hour")
_NO_TIME: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Hive calls the folder of rows without a value."""


def folder_of(stretch: tuple[str, pa.RecordBatch]) -> str:
    """The folder of a stretch, to group by."""
    return stretch[0]


def cut(
    batches: Iterable[pa.RecordBatch], column: str, units: Sequence[Unit]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows that come in the order of time, each stretch of one folder with its name."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        times = batch.column(batch.schema.get_field_index(column))
        floors = pc.floor_temporal(times, unit=units[-1]).cast(pa.int64())
        values = pc.fill_null(floors, np.iinfo(np.int64).min).to_numpy()
        starts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for start, end in pairwise(starts):
            if end > start:
                yield _folder(times[start], units), batch.slice(start, end - start)


def _folder(time: pa.Scalar, units: Sequence[Unit]) -> str:
    """`year=2024/month=05`."""
    import pyarrow.compute as pc

    if not time.is_valid:
        return "/".join(f"{unit}={_NO_TIME}" for unit in units)
    widths: dict[Unit, int] = {"year": 4, "month": 2, "day": 2, "hour": 2}
    return "/".join(f"{u}={getattr(pc, u)(time).as_py():0{widths[u]}d}" for u in units)


def older_files(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name in folders of times, cut in whatever way."""
    for depth in range(1, len(UNITS) + 1):
        pattern = "/".join(f"{unit}=*" for unit in UNITS[:depth])
        yield from (each / name for each in folder.glob(pattern) if (each / name).is_file())

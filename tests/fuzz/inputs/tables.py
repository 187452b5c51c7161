"""Arrow tables with columns of many types, for files of Arrow and Parquet."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
_VALUES: Final[dict[pa.DataType, Callable[[Random], Any]]] = {
    pa.int32(): lambda rng: rng.randint(-(2**31), 2**31 - 1),
    pa.int64(): lambda rng: rng.choice([0, 1, -(2**63), 2**63 - 1, rng.randint(0, 9)]),
    pa.float64(): lambda rng: rng.choice([0.0, -0.5, 1e300, rng.random()]),
    pa.string(): lambda rng: rng.choice(["", "weir", "ü", "long " * 20, str(rng.random())]),
    pa.binary(): lambda rng: rng.randbytes(rng.randint(0, 9)),
    pa.bool_(): lambda rng: rng.random() < 0.5,
    pa.date32(): lambda rng: date(2026, 1, 1) + timedelta(days=rng.randint(-9999, 9999)),
    pa.timestamp("us", "UTC"): lambda rng: START + timedelta(microseconds=rng.randint(0, 10**12)),
    pa.decimal128(20, 3): lambda rng: Decimal(rng.randint(-(10**12), 10**12)) / 1000,
    pa.list_(pa.int64()): lambda rng: [
        rng.choice([None, 1, 2**40]) for _ in range(rng.randint(0, 4))
    ],
    pa.struct([("x", pa.int64()), ("y", pa.string())]): lambda rng: {
        "x": rng.choice([None, 7]),
        "y": rng.choice([None, "", "z"]),
    },
}


def table(rng: Random) -> pa.Table:
    """A table of one to six columns and up to a few hundred rows."""
    count = rng.choice([0, 1, 2, 5, 20, 20, 100, 300])
    nulls = rng.choice([0, 0, 0.2, 1])
    arrays = []
    for kind in rng.sample(list(_VALUES), rng.randint(1, 6)):
        value = _VALUES[kind]
        cells = [None if rng.random() < nulls else value(rng) for _ in range(count)]
        arrays.append(pa.array(cells, kind))
    return pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])

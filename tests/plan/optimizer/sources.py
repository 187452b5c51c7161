"""Small data for optimizer cases: rows in memory, and the same kind of rows as Parquet files."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.plan.arrow import to_arrow_schema
from millpond.plan.make import values
from millpond.plan.sources import ColumnStats, File, Scan
from millpond.plan.types import DOUBLE, LONG, STRING, TIMESTAMP, List, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.node import Plan

ITEM = Struct.of(sku=STRING, price=LONG, note=STRING)
ORDERS = Struct.of(
    id=LONG,
    site=STRING,
    at=TIMESTAMP,
    level=DOUBLE,
    items=List(ITEM),
    owner=Struct.of(name=STRING, age=LONG),
    text=STRING,
)
SITES = [
    {"site": "a", "name": "Alder", "factor": 2},
    {"site": "b", "name": "Birch", "factor": 0},
    {"site": "x", "name": "Xenia", "factor": 5},
]


def _order(n: int) -> dict[str, Any]:
    items = [{"sku": f"s{k}", "price": n * k, "note": "n"} for k in range(n % 4)]
    return {
        "id": n,
        "site": None if n % 11 == 7 else "abc"[n % 3],
        "at": dt.datetime(2024, 5, 31, tzinfo=dt.UTC) + dt.timedelta(minutes=37 * n),
        "level": [0.0, -0.0, 1.5, float("nan"), None, -2.25, 9.75][n % 7],
        "items": None if n % 9 == 5 else items,
        "owner": None if n % 5 == 4 else {"name": f"o{n % 6}", "age": n % 8 or None},
        "text": f'{{"k": {n}, "w": "v{n % 3}"}}' if n % 4 else None,
    }


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the cases' plans begin. Files are written below `folder`."""

    folder: Path

    def orders(self) -> Plan:
        """40 orders in memory."""
        return values([_order(n) for n in range(40)], ORDERS)

    def sites(self) -> Plan:
        """Three sites; one has no orders, and one site of the orders is missing."""
        return values(SITES)

    def numbers(self) -> Plan:
        """Pairs of small numbers, nulls and zeros among them."""
        rows = [{"a": n % 5 if n % 6 else None, "b": n % 3, "c": -n} for n in range(20)]
        return values(rows, Struct.of(a=LONG, b=LONG, c=LONG))

    def named_files(self) -> Plan:
        """The rows of the same files, which the rows of a table name."""
        scan = self.scan()
        assert isinstance(scan, Scan)
        rows = [
            {"path": f.path, "part": f.constants[0], "gone": [n]} for n, f in enumerate(scan.files)
        ]
        listing = values(rows, Struct.of(path=STRING, part=STRING, gone=List(LONG)))
        return listing.dynamic_scan(scan.columns, constants=["part"], deleted="gone")

    def scan(self, *, with_stats: bool = False) -> Plan:
        """The orders in two Parquet files of two row groups each, each with a constant."""
        files = []
        for part in range(2):
            path = self.folder / f"orders-{part}.parquet"
            if not path.exists():
                rows = [_order(n) for n in range(20 * part, 20 * part + 20)]
                table = pa.Table.from_pylist(rows, schema=to_arrow_schema(ORDERS))
                pq.write_table(table, path, row_group_size=10)
            files.append(File(str(path), path.stat().st_size, 20, (f"p{part}",)))
        columns = Struct((*ORDERS.fields, *Struct.of(part=STRING).fields))
        stats = (ColumnStats("id", min=0, max=39, distinct=40),) if with_stats else ()
        return Scan("parquet", tuple(files), columns, ("part",), stats=stats)

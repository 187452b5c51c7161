"""The demo behind `make demo`: a small data set, one plan, both engines, the same rows.

A water utility's sensors report every ten minutes for a month; each reading is a nested event. The
demo writes them as Parquet, asks which pumps worked hardest during alarms, and shows how each
engine answers.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import millpond as mp

SITES = ("Weir", "Mill Lane", "Upper Pond", "Sluice 3", "Intake")
FILES = 4


def write_readings(folder: Path) -> int:
    """A month of readings, one file a week, nested as the loggers send them."""
    random.seed(7)
    start = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    total = 0
    for week in range(FILES):
        rows = []
        for step in range(7 * 24 * 6):
            at = start + dt.timedelta(minutes=10 * (week * 7 * 24 * 6 + step))
            for number, site in enumerate(SITES):
                level = 2 + math.sin(step / 70 + number) + random.gauss(0, 0.1)
                alarms = [{"code": "HIGH", "level": level}] if level > 2.9 else []
                rows.append(
                    {
                        "at": at,
                        "site": {"name": site, "number": number},
                        "level": level if random.random() > 0.01 else None,
                        "pump": {"on": level > 2.5, "watts": max(0.0, (level - 2.5) * 900)},
                        "alarms": alarms,
                    }
                )
        pq.write_table(
            pa.Table.from_pylist(rows), folder / f"week-{week}.parquet", row_group_size=1000
        )
        total += len(rows)
    return total


def question(folder: Path) -> mp.Plan:
    """Which sites' pumps worked hardest while an alarm was up, in the second half of March?"""
    return (
        mp.scan(folder)
        .filter(mp.col("at") >= "2026-03-15")
        .filter(mp.col("alarms").any(mp.path("code") == "HIGH"))
        .aggregate(
            mp.path("site.name").alias("site"),
            readings=mp.agg.count(),
            mean_watts=mp.agg.mean(mp.path("pump.watts")),
            highest=mp.agg.max("level"),
        )
        .sort(mp.col("mean_watts").desc())
        .head(3)
    )


def heading(text: str) -> None:
    """A line between the parts."""
    print(f"\n── {text} " + "─" * max(0, 76 - len(text)))


def main() -> int:
    """Run the demo; exit with 1 if the engines disagree."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="millpond-demo-") as name:
        folder = Path(name)
        count = write_readings(folder)
        print(f"{count:,} readings of {len(SITES)} sites in {FILES} Parquet files")

        plan = question(folder)
        heading("the plan, and what is made of it (nothing is read for this)")
        print(plan.explain(costs=True))

        tables = {}
        for engine in ("arrow", "spark"):
            heading(f"explain_analyze on {engine}")
            print(plan.explain_analyze(engine=engine))
            tables[engine] = plan.to_arrow(engine=engine)

        heading("the rows")
        for row in tables["arrow"].to_pylist():
            print(
                f"  {row['site']:<12} {row['readings']:>5} readings   "
                f"{row['mean_watts']:8.1f} W   highest {row['highest']:.3f} m"
            )
        same = same_rows(tables["arrow"], tables["spark"])
        print(f"\nArrow and Spark give the same rows: {'yes' if same else 'NO'}")
        print(f"done in {time.perf_counter() - begun:.0f} s")
    return 0 if same else 1


def same_rows(left: pa.Table, right: pa.Table) -> bool:
    """Equal, but for the last bits of a mean."""
    from millpond.testing.engine import assert_same_rows

    try:
        assert_same_rows(left, right)
    except AssertionError as difference:
        print(difference)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

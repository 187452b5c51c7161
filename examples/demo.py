"""The demo behind `make demo`: a pond from its first day to a question that Spark answers.

A water utility keeps the readings of its sensors. The demo makes a pond, copies files in, shows
versions and time travel, kills a writer in the middle of its commit, lets two writers meet, and
asks which pumps worked hardest, on both engines. `pipeline.py` goes on from there.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from examples.pipeline import show_pipeline

import millpond as mp
from millpond.base.errors import WriteConflictError

SITES = ("Weir", "Mill Lane", "Upper Pond", "Sluice 3", "Intake")
WEEKS = 4
STEPS = 7 * 24 * 6
START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)

CRASH = """
import os, signal, sys
import millpond as mp
from millpond.steward.committing.steps import observe

def die(place):
    if place == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

pond = mp.open(sys.argv[1])
observe(die)
with pond.write("a writer that dies") as tx:
    tx.write_bytes("/notes/crash.txt", sys.argv[2].encode())
    tx.append_series("/sensors/readings", pond["/sensors/readings"].plan().head(1))
    tx.commit()
"""


def week(number: int) -> pa.Table:
    """A week of readings, nested as the loggers send them."""
    rows = []
    for step in range(STEPS):
        at = START + dt.timedelta(minutes=10 * (number * STEPS + step))
        for index, site in enumerate(SITES):
            level = 2 + math.sin(step / 70 + index) + random.gauss(0, 0.1)
            rows.append(
                {
                    "timestamp": at,
                    "site": {"name": site, "number": index},
                    "level": level if random.random() > 0.01 else None,
                    "pump": {"on": level > 2.5, "watts": max(0.0, (level - 2.5) * 900)},
                    "alarms": [{"code": "HIGH", "level": level}] if level > 2.9 else [],
                }
            )
    return pa.Table.from_pylist(rows)


def fill(pond: mp.Pond, folder: Path) -> None:
    """Files of all kinds: one transaction for what is copied, one for each week of readings."""
    with pond.write("copy files in") as tx:
        tx.make_directory("/docs")
        tx.make_directory("/notes")
        tx.make_directory("/sensors")
        for file in sorted(Path(__file__).resolve().parents[1].glob("*.md")):
            tx.write_file(f"/docs/{file.name}", file)
        tx.write_table("/sensors/sites", [{"number": n, "site": s} for n, s in enumerate(SITES)])
        tx.make_link("/latest", "sensors/readings")
        tx.commit()
    for number in range(WEEKS):
        file = folder / f"week-{number}.parquet"
        pq.write_table(week(number), file, row_group_size=1000)
        with pond.write(f"week {number}") as tx:
            tx.append_series("/sensors/readings", mp.scan(file))
            tx.commit()


def show_tree(pond: mp.Pond) -> None:
    """What is in the pond."""
    for name in ("/", "/docs", "/sensors"):
        for stat in pond.read().children(name).values():
            size = "" if stat.size is None else f"{stat.size:,}"
            print(f"  {stat.entry_type:<10} v{stat.version:<2} {size:>9}  {stat.path}")


def show_versions(pond: mp.Pond) -> None:
    """Every write is a version; the pond can be read as it was."""
    with pond.write("correct a name") as tx:
        tx.write_table("/sensors/sites", [{"number": 0, "site": "Weir (new)"}])
        tx.commit()
    for stat in pond["/sensors/sites"].versions():
        rows = pond[stat.path].to_arrow().num_rows
        print(f"  {stat.path:<20} transaction {stat.txn_seq}, {rows} rows")
    old = pond.read(as_of=3)["/sensors/readings"].to_arrow().num_rows
    new = pond["/sensors/readings"].to_arrow().num_rows
    print(f"  /sensors/readings has {new:,} rows; after transaction 3 it had {old:,}")
    with pond.write("take it back") as tx:
        tx.restore("/sensors/sites@v1")
        tx.commit()
    print(f"  restored: {pond['/sensors/sites'].to_arrow().num_rows} rows")


def show_crash(pond: mp.Pond) -> bool:
    """A process is killed on either side of the moment that counts."""
    fine = True
    for place, there in (("before:oplog", False), ("after:oplog", True)):
        command = [sys.executable, "-c", CRASH, pond.location, place]
        killed = subprocess.run(command, check=False).returncode == -signal.SIGKILL
        found = mp.open(pond.location).recover()
        pond.refresh()
        said = "everything of it is there" if there else "nothing of it is there"
        fine &= killed and pond["/notes/crash.txt"].exists() is there
        print(f"  killed {place}: {said}; {found}")
    return fine


def show_conflict(pond: mp.Pond) -> bool:
    """Two writers: appends to one series both win, two texts for one file don't."""
    one, two = mp.open(pond.location).write("one"), mp.open(pond.location).write("two")
    rows = pond["/sensors/readings"].plan().head(2)
    for tx in (one, two):
        tx.append_series("/sensors/readings", rows)
    print(f"  both append: transactions {one.commit().txn_seq} and {two.commit().txn_seq}")
    one, two = mp.open(pond.location).write("one"), mp.open(pond.location).write("two")
    one.write_bytes("/notes/today.txt", b"fine weather")
    two.write_bytes("/notes/today.txt", b"rain")
    one.commit()
    try:
        two.commit()
    except WriteConflictError as error:
        print(f"  both write one file: {error.message}")
        pond.refresh()
        return pond["/notes/today.txt"].read_text() == "fine weather"
    return False


QUESTION = """
SELECT site.name AS site, count(*) AS readings, avg(pump.watts) AS mean_watts,
       max(level) AS highest
FROM source
WHERE timestamp >= TIMESTAMP '2026-03-15 00:00:00' AND size(alarms) > 0
GROUP BY site.name ORDER BY mean_watts DESC LIMIT 3
"""


def ask(pond: mp.Pond) -> bool:
    """Which sites' pumps worked hardest while an alarm was up, in the second half of March?"""
    source = pond["/sensors/readings"].plan()
    plan = (
        source.filter(mp.col("timestamp") >= "2026-03-15")
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
    heading("a question as a plan, on the Arrow engine")
    print(plan.explain_analyze(engine="arrow"))
    here = plan.to_arrow(engine="arrow")
    heading("the same question as SQL, on Spark")
    there = mp.sql(QUESTION, source=source).to_arrow(engine="spark")
    for row in there.to_pylist():
        print(
            f"  {row['site']:<12} {row['readings']:>5} readings   "
            f"{row['mean_watts']:8.1f} W   highest {row['highest']:.3f} m"
        )
    same = same_rows(here, there)
    print(f"\nArrow and Spark give the same rows: {'yes' if same else 'NO'}")
    return same


def same_rows(left: pa.Table, right: pa.Table) -> bool:
    """Equal, but for the last bits of a mean."""
    from millpond.testing.engine import assert_same_rows

    try:
        assert_same_rows(left, right)
    except AssertionError as difference:
        print(difference)
        return False
    return True


def heading(text: str) -> None:
    """A line between the parts."""
    print(f"\n── {text} " + "─" * max(0, 76 - len(text)))


def main() -> int:
    """Run the demo; exit with 1 if something is not as it should be."""
    begun = time.perf_counter()
    random.seed(7)
    with tempfile.TemporaryDirectory(prefix="millpond-demo-") as name:
        pond = mp.create(Path(name) / "pond")
        heading("a new pond, with files, a table and a series")
        fill(pond, Path(name))
        show_tree(pond)
        heading("versions and time travel")
        show_versions(pond)
        heading("a crash in the middle of a commit")
        fine = show_crash(pond)
        heading("two writers")
        fine &= show_conflict(pond)
        fine &= ask(pond)
        heading("a pipeline: raw files, a join, averages, a page; and a day later")
        fine &= show_pipeline(pond)
        print(f"done in {time.perf_counter() - begun:.0f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

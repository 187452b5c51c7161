"""Scans of files that rows name: the same rows and the same savings as scans of given files."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.plan import aggregates as agg
from millpond.plan.expr import col, path
from millpond.plan.make import list_files, values
from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named
from millpond.plan.sources import File, Scan
from millpond.plan.types import DOUBLE, LONG, STRING, List, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

ROWS = 60
FILES = 6
COLUMNS = Struct.of(p=LONG, v=LONG, s=Struct.of(x=DOUBLE, t=STRING), w=STRING)
NAMED = Struct.of(path=STRING, p=LONG, gone=List(LONG))


@pytest.fixture
def files(tmp_path: Path) -> list[File]:
    """Files of several row groups with values that grow, and a constant each."""
    made = []
    for number in range(FILES):
        start = number * ROWS
        ids = list(range(start, start + ROWS))
        inner = [{"x": i / 2, "t": f"t{i % 7}"} for i in ids]
        table = pa.table({"v": ids, "s": inner, "w": [f"w{i % 3}" for i in ids]})
        target = tmp_path / f"{number}.parquet"
        pq.write_table(table, target, row_group_size=10)
        made.append(File(str(target), constants=(number % 3,)))
    return made


def named(files: list[File], gone: dict[int, list[int]] | None = None) -> Plan:
    listed = [
        {"path": file.path, "p": file.constants[0], "gone": (gone or {}).get(number)}
        for number, file in enumerate(files)
    ]
    rows = values(listed, NAMED)
    deleted = None if gone is None else "gone"
    return rows.dynamic_scan(COLUMNS, constants=["p"], deleted=deleted)


def given(files: list[File]) -> Plan:
    return Scan("parquet", tuple(files), COLUMNS, ("p",))


def run(plan: Plan, engine: Executor) -> tuple[list[dict[str, Any]], dict[str, int]]:
    execution = engine.execute(plan)
    table = pa.Table.from_batches(list(execution), schema=execution.schema)
    return table.to_pylist(), execution.counters.to_dict()


STEPS: dict[str, Callable[[Plan], Plan]] = {
    "all": lambda scan: scan,
    "columns": lambda scan: scan.select("v", t=path("s.t")),
    "filter": lambda scan: scan.filter(col("v").isin([3, 200]) & (path("s.x") < 120)).select("w"),
    "filter nested": lambda scan: scan.filter(path("s.x") == 50.5).select("v"),
    "constant": lambda scan: scan.filter(col("p") == 1).select("v"),
    "constant or value": lambda scan: scan.filter((col("p") == 1) | (col("v") == 7)).select("v"),
    "head": lambda scan: scan.head(13),
    "filtered head": lambda scan: scan.filter(col("v") > 100).head(3),
    "tail": lambda scan: scan.tail(7),
    "take": lambda scan: scan.take([200, 3, 350]),
    "top": lambda scan: scan.top_k(5, col("v").desc()).select("v", "p"),
    "top of some": lambda scan: scan.filter(col("w") == "w1").top_k(4, path("s.t"), "v"),
    "groups": lambda scan: scan.aggregate("w", n=agg.count(), m=agg.sum("v")).sort("w"),
    "groups of some": lambda scan: (
        scan.filter(col("p") != 1).aggregate(["w", "p"], n=agg.count()).sort("p", "w")
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_same_rows_as_of_given_files(engine: Executor, files: list[File], step: str) -> None:
    make = STEPS[step]
    expected, _ = run(make(given(files)), engine_named("arrow"))
    assert run(make(named(files)), engine)[0] == expected
    assert run(optimize(make(named(files))), engine)[0] == expected


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_decoded_that_a_scan_would_not_decode(files: list[File], step: str) -> None:
    make, arrow = STEPS[step], engine_named("arrow")
    _, known = run(optimize(make(given(files))), arrow)
    _, seen = run(optimize(make(named(files))), arrow)
    # How many files are left is only known where they are known beforehand.
    known.pop("early_exit_batches_skipped")
    seen.pop("early_exit_batches_skipped")
    assert seen == known


def test_deleted_rows_under_every_step(engine: Executor, files: list[File]) -> None:
    chance = random.Random(7)
    gone = {n: sorted(chance.sample(range(ROWS), 25)) for n in (0, 2, 5)} | {3: []}
    plan = named(files, gone)
    left = [
        n * ROWS + row for n in range(FILES) for row in range(ROWS) if row not in gone.get(n, [])
    ]
    assert [row["v"] for row in run(plan.select("v"), engine)[0]] == left
    assert [row["v"] for row in run(plan.tail(40).select("v"), engine)[0]] == left[-40:]
    positions = [len(left) - 1, 0, 70]
    assert [row["v"] for row in run(plan.take(positions).select("v"), engine)[0]] == [
        left[at] for at in positions
    ]
    top = optimize(plan.top_k(3, col("v").desc()).select("v"))
    assert [row["v"] for row in run(top, engine)[0]] == left[:-4:-1]
    few = optimize(plan.filter((col("p") == 2) & (col("v") > 340)).select("v"))
    assert [row["v"] for row in run(few, engine)[0]] == [v for v in left if v > 340]


def test_files_that_are_named_twice_or_not_at_all(engine: Executor, files: list[File]) -> None:
    twice = [files[1], files[0], files[1]]
    expected = [*range(ROWS, 2 * ROWS), *range(ROWS), *range(ROWS, 2 * ROWS)]
    assert [row["v"] for row in run(named(twice).select("v"), engine)[0]] == expected
    unnamed = values([{"path": None, "p": 1, "gone": None}], NAMED)
    plan = unnamed.dynamic_scan(COLUMNS, constants=["p"])
    with pytest.raises(SourceError, match="null"):
        run(plan, engine)


def test_files_are_pruned_before_they_are_opened(files: list[File]) -> None:
    arrow = engine_named("arrow")
    (lost,) = (file for file in files if file.path.endswith("0.parquet"))
    gone = [File(lost.path + ".gone", constants=(0,)), *files[1:]]
    for plan in (named(gone), given(gone)):
        rows, seen = run(optimize(plan.filter(col("p") == 2).select("v")), arrow)
        assert len(rows) == 2 * ROWS
        assert (seen["files_opened"], seen["files_pruned"]) == (2, 4)
        either = (col("p") == 2) | ((col("p") == 1) & (col("v") < 0))
        rows, seen = run(optimize(plan.filter(either).select("v")), arrow)
        assert len(rows) == 2 * ROWS
        assert (seen["files_opened"], seen["files_pruned"]) == (4, 4)


@pytest.mark.parametrize("format_", ["json", "csv", "bytes"])
def test_text_files_are_pruned_by_their_constants(tmp_path: Path, format_: Any) -> None:
    (tmp_path / "a").write_text('{"content": "x"}' if format_ == "json" else "content\nx\n")
    columns = Struct.of(p=LONG) if format_ == "bytes" else Struct.of(p=LONG, content=STRING)
    listed = [File(str(tmp_path / "a"), constants=(1,)), File("/not/there", constants=(2,))]
    plan = Scan(format_, tuple(listed), columns, ("p",)).filter(col("p") == 1)
    rows, seen = run(optimize(plan), engine_named("arrow"))
    assert [row["p"] for row in rows] == [1]
    assert seen["files_pruned"] == 1


def test_early_exit_leaves_names_alone(files: list[File]) -> None:
    """A hundred thousand names cost nothing where the first file is enough."""
    many = pa.table({"path": [files[0].path] + ["/not/there"] * 100_000})
    plan = values(many).dynamic_scan(Struct.of(v=LONG)).head(5)
    rows, seen = run(optimize(plan), engine_named("arrow"))
    assert [row["v"] for row in rows] == [0, 1, 2, 3, 4]
    assert seen["files_opened"] == 1


def test_a_member_of_a_constant_is_there_beside_a_condition_on_another(
    engine: Executor, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"x": [0, 1, 2]}), tmp_path / "a.parquet")
    kind = Struct.of(n=LONG, m=LONG)
    rows = [{"path": str(tmp_path / "a.parquet"), "k": {"n": 1, "m": 7}}]
    named = values(rows, Struct.of(path=STRING, k=kind))
    plan = named.dynamic_scan(Struct.of(x=LONG, k=kind), constants=["k"])
    found = plan.filter((path("k.n") == 1) | (col("x") == 99)).to_pylist(engine=engine)
    assert found == [{"x": x, "k": {"n": 1, "m": 7}} for x in range(3)]


@pytest.mark.parametrize("names", ["v,v\n", "v,w\n"])
def test_rows_of_csv_files_are_counted_whatever_they_hold(
    engine: Executor, tmp_path: Path, names: str
) -> None:
    """More than a block of numbers, and then a text."""
    count = 300_000
    lines = "".join(f"{number},1\n" for number in range(count))
    (tmp_path / "a.csv").write_text(names + lines + "n/a,n/a\n")
    columns = Struct.of(w=STRING, path=STRING)
    plan = list_files(str(tmp_path)).dynamic_scan(columns, format="csv", constants=["path"])
    found = plan.aggregate("path", n=agg.count()).to_pylist(engine=engine)
    assert [row["n"] for row in found] == [count + 1]

"""The benchmark's parts on a small file: every case gives the same rows on Arrow and DuckDB."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from bench.__main__ import main
from bench.digest import Digest
from bench.engine import contenders
from bench.engine.cases import CASES
from bench.engine.generate import events
from bench.measure import Job, compare, measure
from bench.processes import cpu_seconds, peak_megabytes, tree
from bench.result import Goal, Report, Result
from bench.table import as_markdown, as_text
from bench.worker import median_interval

if TYPE_CHECKING:
    from pathlib import Path

    from bench.engine.case import Case

ROWS = 2_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(events(ROWS, directory=tmp_path_factory.mktemp("data")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_arrow_and_duckdb_do_the_same_work(case: Case, path: str) -> None:
    pytest.importorskip("duckdb")
    peer = contenders.duckdb(case.name, path).digest()
    ours = contenders.arrow(case.name, path).digest()

    assert peer.rows > 0, "a case without rows measures nothing"
    assert ours.difference(peer, ordered=case.order == "sorted") is None


def test_events_are_the_same_every_time(path: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    again = events(ROWS, directory=tmp_path)

    assert pq.read_table(again).equals(pq.read_table(path))
    assert pq.ParquetFile(again).metadata.num_columns == 24
    assert [file.name for file in tmp_path.iterdir()] == [again.name]


def test_digest_sees_values_order_and_columns() -> None:
    import pyarrow as pa

    def digest(**columns: list[object]) -> Digest:
        return Digest.of(pa.table(columns).to_batches())

    one = digest(id=[1, 2, 3], tags=[["a"], None, ["bb", "c"]])
    assert (
        one.difference(digest(id=[1, 2, 3], tags=[["a"], None, ["bb", "c"]]), ordered=True) is None
    )
    swapped = digest(id=[2, 1, 3], tags=[["a"], None, ["bb", "c"]])
    assert one.difference(swapped, ordered=False) is None
    assert one.difference(swapped, ordered=True) == "the same rows in another order"
    assert one.difference(digest(id=[1, 2, 3], tags=[["a"], None, ["bb"]]), ordered=False)
    assert one.difference(digest(id=[1, 2, 3]), ordered=False)
    assert one.difference(digest(id=[1, 2], tags=[["a"], None]), ordered=False)
    assert Digest.from_dict(one.to_dict()) == one


def test_a_failure_is_reported_with_its_reason() -> None:
    pytest.importorskip("duckdb")
    found = measure(Job("bench.engine.contenders:duckdb", {"case": "group", "path": "nowhere"}))

    assert found.cpu is None
    assert found.error is not None
    assert "nowhere" in found.error


def test_measured_figures_are_there(path: str) -> None:
    pytest.importorskip("duckdb")
    job = Job("bench.engine.contenders:duckdb", {"case": "group", "path": path}, repeat=1)
    found = measure(job)

    assert found.error is None
    assert found.digest is not None
    assert found.digest.difference(contenders.duckdb("group", path).digest(), ordered=False) is None
    assert found.cpu is not None
    assert found.cpu > 0
    assert found.peak_mb is not None
    assert found.peak_mb > 10


def test_jobs_in_turns_have_a_ratio_and_its_range(path: str) -> None:
    pytest.importorskip("duckdb")
    arguments = {"case": "group", "path": path}
    job = Job("bench.engine.contenders:duckdb", arguments)
    found = compare(job, job, rounds=2)

    assert found.error is None
    assert found.ratio is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low <= found.ratio <= found.high
    assert min(*found.cpu, *found.wall) > 0


def test_a_median_interval_leaves_out_the_ends() -> None:
    assert median_interval([1, 2]) == (1, 2)
    assert median_interval(range(1, 13)) == (3, 10)
    assert median_interval(range(1, 101)) == (41, 60)


def test_a_tree_counts_its_children() -> None:
    import subprocess
    import sys

    before = cpu_seconds(os.getpid())
    command = [sys.executable, "-c", "sum(range(3_000_000)); print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in tree(os.getpid())
        assert cpu_seconds(os.getpid()) - before >= cpu_seconds(child.pid) > 0
        assert peak_megabytes(os.getpid()) > peak_megabytes(child.pid) > 0
        child.communicate(b"\n")
    assert child.pid not in tree(os.getpid())


def test_a_table_shows_ratios_failures_and_missed_targets() -> None:
    results = (
        Result("sort", "arrow", cpu=3.0, wall=1.0, peak_mb=50, rows=7, peer="duckdb"),
        Result("sort", "duckdb", cpu=2.0, wall=1.0, peak_mb=50, rows=7),
        Result("group", "arrow", peer="duckdb", error="ValueError: odd"),
    )
    goals = (
        Goal("arrow on sort", 1.5, 1.3),
        Goal("arrow on group", None, 1.3),
        Goal("spark on sort", 1.1, 1.05, range=(0.9, 1.2)),
        Goal("spark on group", 1.0, 1.05, range=(0.9, 1.0)),
    )
    report = Report("engine", results, goals)

    for text in (as_text(report), as_markdown(report)):
        assert "1.50" in text
        assert "failed: group, arrow: ValueError: odd" in text
        assert "targets: 1 of 4 met" in text
        assert "missed: arrow on sort: 1.50×, at most 1.3×" in text
        assert "missed: arrow on group: no figure, at most 1.3×" in text
        assert "missed: spark on sort: 1.10×, at most 1.05× (within the noise)" in text
    assert report.has_errors


def test_nothing_to_measure_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engine", "--only", "sorrt", "--rows", "100", "--data", str(tmp_path)]) == 2
    assert "--only or --contenders name nothing" in capsys.readouterr().err


def test_a_wrong_suite_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["enigne"])

    said = capsys.readouterr().err
    assert "no suite 'enigne': choose from engine, kernel, pipeline, pond, startup" in said

"""The kernel's benchmark on tiny tables: both contenders do the same work on each of them."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
import zstandard
from bench.kernel import contenders, logs, on_spark, tables
from bench.kernel.cases import CASES, GIVEN_LOG, table_of
from bench.kernel.copies import LogCopy
from bench.kernel.suite import run
from bench.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from bench.kernel.case import Case
    from pyspark.sql import SparkSession

ADDS, ROWS = 2_000, 4_000
LIVE = {
    "classic": ADDS + 100 * 5,
    "parsed": ADDS + 100 * 5,
    "multi_part": 5 * ADDS + 20 * 5,
    "v2": ADDS + 100 * 5,
    "commits": 2 * 10 - 5,
}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    directory = tmp_path_factory.mktemp("data")
    table = logs.commits(ADDS, directory=directory / "source")
    packed = directory / "few.tar.zst"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        archive.add(table, "few")
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.getvalue()))
    return Options(rows=ROWS, adds=ADDS, data=directory, log=packed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contenders_do_the_same_work(case: Case, options: Options) -> None:
    path = str(table_of(case, options))
    peer = contenders.deltalake(case.action, path, ADDS).digest()
    ours = contenders.millpond(case.action, path, ADDS).digest()

    assert peer.rows > 0, "a case without rows measures nothing"
    assert ours.difference(peer, ordered=False) is None


@pytest.mark.spark
@pytest.mark.parametrize("name", tables.CONTENTS)
def test_spark_reads_the_same_rows(name: str, options: Options, spark: SparkSession) -> None:
    path = str(tables.table(name, ROWS, directory=options.data))
    ours, raw = on_spark.spark(path).digest(), on_spark.spark_raw(path).digest()

    assert ours.difference(contenders.deltalake("read", path, ADDS).digest(), ordered=False) is None
    assert ours.rows <= raw.rows == ROWS
    assert (ours.rows < raw.rows) is (name == "deletions")
    if name == "deletions":
        live = on_spark.spark_raw_live(path).digest()
        spark.catalog.clearCache()  # other tests count what is held
        assert ours.difference(live, ordered=False) is None


@pytest.mark.parametrize("name", LIVE)
def test_logs_have_the_live_files_that_their_commits_leave(name: str, options: Options) -> None:
    case = next(case for case in CASES if case.table == name)
    path = str(table_of(case, options))

    assert contenders.deltalake("paths", path, ADDS).digest().rows == LIVE[name]


def test_deleted_rows_are_two_in_a_hundred(options: Options) -> None:
    case = next(case for case in CASES if case.table == "deletions")
    rows = contenders.deltalake("read", str(table_of(case, options)), ADDS).digest().rows

    assert 0.96 * ROWS < rows < ROWS


def test_tables_are_the_same_every_time(options: Options, tmp_path: Path) -> None:
    for name, make in (("classic", logs.classic), ("v2", logs.v2)):
        here = make(ADDS, directory=options.data)
        again = make(ADDS, directory=tmp_path)
        files = [file for file in here.rglob("*") if file.is_file()]
        assert files, name
        for file in files:
            assert (again / file.relative_to(here)).read_bytes() == file.read_bytes(), file


def test_a_copy_can_be_written_to_and_restored(options: Options) -> None:
    source = logs.classic(ADDS, directory=options.data)
    before = {file: file.read_bytes() for file in source.rglob("*") if file.is_file()}
    copy = LogCopy(str(source))
    hint = copy.path / "_delta_log" / "_last_checkpoint"

    copy.commit(111)
    hint.write_text("{}", encoding="utf-8")
    copy.restore()

    assert not (copy.path / "_delta_log" / f"{111:020}.json").exists()
    assert hint.read_bytes() == before[source / "_delta_log" / "_last_checkpoint"]
    assert {file: file.read_bytes() for file in source.rglob("*") if file.is_file()} == before


def test_the_suite_has_ratios_and_goals(options: Options) -> None:
    chosen = Options(rows=ROWS, adds=ADDS, data=options.data, repeat=1, only="paths_[15]m")
    report = run(chosen, progress=lambda text: None)

    assert not report.has_errors, report.results
    assert [r.contender for r in report.results] == ["millpond", "deltalake"] * 2
    assert [goal.text for goal in report.goals] == [
        "millpond on paths_1m",
        "millpond on paths_5m",
        "memory of paths_5m over paths_1m",
    ]
    assert all(goal.actual is not None for goal in report.goals)


def test_a_log_that_is_not_given_is_said_to_be_left_out(options: Options) -> None:
    given = next(case.name for case in CASES if case.table == GIVEN_LOG)
    chosen = Options(rows=ROWS, adds=ADDS, data=options.data, repeat=1, only=given)
    report = run(chosen, progress=lambda text: None)

    assert report.results == ()
    assert f"left out: {given}" in report.notes[0]

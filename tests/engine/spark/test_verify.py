"""Damaged files on Spark: what its reader checks, and what this process does before."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.test_damaged_files import answer, regions, table_of, the_file

from millpond.base.errors import DamagedFileError
from millpond.base.settings import Settings
from millpond.engine.spark.engine import SparkEngine
from millpond.engine.spark.verify import check

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def flipped(content: bytes, bit: int) -> bytes:
    broken = bytearray(content)
    broken[bit // 8] ^= 1 << bit % 8
    return bytes(broken)


def test_damaged_pages_footers_and_indexes_are_found(tmp_path: Path, spark: Any) -> None:
    del spark
    table = table_of(tmp_path, 3_000)
    truth = answer(table, "all", "spark")
    file = the_file(tmp_path)
    content = file.read_bytes()
    parts = regions(content)
    assert answer(table, "all", "spark") == truth
    for name in ("body of chunk 2", "page index", "seal", "footer", "trailer"):
        start, end = parts[name]
        file.write_bytes(flipped(content, 8 * Random(name).randrange(start, end)))
        with pytest.raises(DamagedFileError) as caught:
            answer(table, "all", "spark")
        assert caught.value.path.endswith(file.name), name
        assert "damaged" in caught.value.message
    file.write_bytes(content)
    assert answer(table, "all", "spark") == truth


def test_full_verification_covers_each_byte(tmp_path: Path, spark: Any) -> None:
    table = table_of(tmp_path, 900)
    settings = Settings.load()
    engine = SparkEngine(spark, replace(settings, spark=replace(settings.spark, verify="full")))
    file = the_file(tmp_path)
    content = file.read_bytes()
    plan = table.scan().plan()
    start, _ = regions(content)["header of chunk 0"]
    file.write_bytes(flipped(content, 8 * start))
    with pytest.raises(DamagedFileError, match="is damaged: its bytes"):
        list(engine.execute(plan))
    file.write_bytes(content)
    assert sum(batch.num_rows for batch in engine.execute(plan)) == 900
    for place in range(0, len(content), 9):
        file.write_bytes(flipped(content, 8 * place + place % 8))
        with pytest.raises(DamagedFileError, match="is damaged"):
            check([f"file:{file}"], "full")
        check([f"file:{file}"], "none")

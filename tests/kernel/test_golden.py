"""Tables that Spark and others wrote, with the rows that they should have, on both engines.

They are not part of the project: `TEST_GOLDEN` says where they are, beside the repository if not.
"""

from __future__ import annotations

import collections
import datetime as dt
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import delta_table
from millpond.base import errors

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden"
GOLDEN = Path(os.environ.get("TEST_GOLDEN", _BESIDE))

pytestmark = pytest.mark.skipif(
    not (GOLDEN / "tables").is_dir(), reason="the golden tables are not here (TEST_GOLDEN)"
)

BROKEN: dict[str, type[errors.DeltaError]] = {
    "deltalog-invalid-protocol-version": errors.UnsupportedFeatureError,
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": errors.MissingActionError,
    "deltalog-state-reconstruction-without-metadata": errors.MissingActionError,
    "deltalog-state-reconstruction-without-protocol": errors.MissingActionError,
    "no-delta-log-folder": errors.TableNotFoundError,
    "versions-not-contiguous": errors.LogGapError,
}
LIVE_FILES = {
    "canonicalized-paths-normal-a": [],
    "canonicalized-paths-normal-b": [],
    "checkpoint": ["15"],
    "delete-re-add-same-file-different-transactions": ["bar", "foo"],
}


def _names() -> list[str]:
    tables = GOLDEN / "tables"
    return sorted(p.name for p in tables.iterdir()) if tables.is_dir() else []


def _expected(name: str) -> list[Path]:
    return sorted((GOLDEN / "tables" / name / "expected").glob("**/*.parquet"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return tuple((name, _plain(member)) for name, member in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def _rows(table: pa.Table) -> collections.Counter[Any]:
    rows = table.to_pylist()
    return collections.Counter(tuple(sorted((k, _plain(v)) for k, v in r.items())) for r in rows)


@pytest.mark.parametrize("engine", ["arrow", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("name", [n for n in _names() if _expected(n)])
def test_the_rows_are_as_expected(name: str, engine: str) -> None:
    found = delta_table(GOLDEN / "tables" / name / "delta").scan().to_arrow(engine=engine)
    files = [pq.ParquetFile(path).read() for path in _expected(name)]
    expected = pa.concat_tables(files, promote_options="permissive")
    assert _rows(found) == _rows(expected)


@pytest.mark.parametrize("name", list(BROKEN))
def test_what_is_broken_is_a_clear_error(name: str) -> None:
    with pytest.raises(BROKEN[name]) as caught:
        delta_table(GOLDEN / "tables" / name / "delta")
    assert caught.value.hint


@pytest.mark.parametrize("name", list(LIVE_FILES))
def test_the_live_files_are_right_where_the_data_is_absent(name: str) -> None:
    found = delta_table(GOLDEN / "tables" / name / "delta").files(columns=["path"])
    assert sorted(found["path"].to_pylist()) == LIVE_FILES[name]


def test_every_table_is_looked_at() -> None:
    judged = {n for n in _names() if _expected(n)} | set(BROKEN) | set(LIVE_FILES)
    assert judged == set(_names())

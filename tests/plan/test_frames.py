"""Frames of pandas and Polars: each is stored exactly, or refused with what to do."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import millpond as mp
from millpond.base.errors import MillpondError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TIMES = pd.date_range("2026-01-01", periods=2, freq="h", tz="UTC")


def frame(index: Any = None, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns, index=index)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> list[Callable[[Any], pa.Table]]:
    """Plans, tables of ponds, series of ponds, and Delta tables: all take the same."""
    pond = mp.create(tmp_path_factory.mktemp("frames") / "pond")

    def table(rows: Any) -> pa.Table:
        path = f"/{uuid.uuid4()}"
        with pond.write() as tx:
            tx.write_table(path, rows)
            tx.commit()
        return pond[path].to_arrow()

    return [lambda rows: mp.values(rows).to_arrow(engine="arrow"), table]


STORED: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "a group's key": (
        frame(r=["a", "b", "a"], v=[1, 2, 3]).groupby("r").sum(),
        [{"r": "a", "v": 4}, {"r": "b", "v": 2}],
    ),
    "an index of two levels": (
        frame(r=["a", "a"], s=[1, 2], v=[3, 4]).set_index(["r", "s"]),
        [{"r": "a", "s": 1, "v": 3}, {"r": "a", "s": 2, "v": 4}],
    ),
    "a named range": (
        frame(v=[1, 2], index=pd.RangeIndex(0, 2, name="n")),
        [{"n": 0, "v": 1}, {"n": 1, "v": 2}],
    ),
    "a default index": (frame(v=[1, 2]), [{"v": 1}, {"v": 2}]),
    "categories": (frame(v=pd.Categorical(["b", None])), [{"v": "b"}, {"v": None}]),
    "categories of numbers": (frame(v=pd.Categorical([3, 1])), [{"v": 3}, {"v": 1}]),
    "nullable numbers": (frame(v=pd.array([2**53 + 1, None], "Int64")),
                         [{"v": 2**53 + 1}, {"v": None}]),
    "nullable booleans": (frame(v=pd.array([True, None], "boolean")), [{"v": True}, {"v": None}]),
    "a zone": (frame(v=TIMES.tz_convert("Europe/Berlin")),
               [{"v": time.to_pydatetime()} for time in TIMES]),
    "a wall clock": (frame(v=TIMES.tz_localize(None)),
                     [{"v": time.to_pydatetime().replace(tzinfo=None)} for time in TIMES]),
    "whole numbers and fractions": (frame(v=pd.Series([1, 2.5], dtype=object)),
                                    [{"v": 1.0}, {"v": 2.5}]),
    "decimals and whole numbers": (
        frame(v=pd.Series([decimal.Decimal("1.5"), 2], dtype=object)),
        [{"v": decimal.Decimal("1.5")}, {"v": decimal.Decimal("2.0")}],
    ),
    "text and what is missing": (frame(v=["a", np.nan]), [{"v": "a"}, {"v": None}]),
    "Polars: a decimal": (pl.DataFrame({"v": [decimal.Decimal("1.25")]}),
                          [{"v": decimal.Decimal("1.25")}]),
    "Polars: an enum": (pl.DataFrame({"v": pl.Series(["x"], dtype=pl.Enum(["x", "y"]))}),
                        [{"v": "x"}]),
    "Polars: categories": (pl.DataFrame({"v": pl.Series(["x", None], dtype=pl.Categorical)}),
                           [{"v": "x"}, {"v": None}]),
    "Polars: a zone": (
        pl.DataFrame({"v": [NOON]}).with_columns(pl.col("v").dt.convert_time_zone("Asia/Tokyo")),
        [{"v": NOON}],
    ),
    "Polars: a struct": (pl.DataFrame({"v": [{"b": 1}]}), [{"v": {"b": 1}}]),
}  # fmt: skip

REFUSED: dict[str, tuple[Any, str, str]] = {
    "an index without a name": (frame(v=[1, 2], index=["x", "y"]), "without a name", "rename_axis"),
    "rows that were filtered": (frame(v=[1, 2]).query("v > 1"), "without a name", "drop=True"),
    "levels without names": (
        frame(v=[1, 2], index=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])), "without a name",
        "reset_index"),
    "a level without a name": (
        frame(v=[1], index=pd.MultiIndex.from_tuples([(1, 2)], names=["a", None])),
        "level 1", "rename_axis"),
    "an index named like a column": (
        frame(r=[1], index=pd.Index(["a"], name="r")), "both named 'r'", "rename_axis"),
    "a column twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column 'a'",
                       "apart"),
    "names that are numbers": (pd.DataFrame([[1, 2]]), "a column named 0", "columns=str"),
    "columns of two levels": (
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "x")])), "several levels",
        "join them"),
    "periods": (frame(p=pd.period_range("2026-01", periods=2, freq="M")), r"period\[M\]",
                "to_timestamp"),
    "categories of periods": (
        frame(p=pd.Categorical(pd.period_range("2026-01", periods=2, freq="M"))), r"period\[M\]",
        "to_timestamp"),
    "an index of periods": (
        frame(v=[1, 2], index=pd.period_range("2026-01", periods=2, freq="M", name="p")),
        r"'p' is period", "to_timestamp"),
    "intervals": (frame(p=pd.interval_range(0, 2)), "interval", "left"),
    "classes of a cut": (frame(p=pd.cut([1, 2], 2)), "interval", "left"),
    "sparse numbers": (frame(p=pd.arrays.SparseArray([0, 1])), "Sparse", "to_dense"),
    "complex numbers": (frame(p=[1j, 2]), "complex", "real"),
    "lengths of time": (frame(p=pd.to_timedelta([1, 2])), "timedelta", "total_seconds"),
    "numbers and text": (frame(p=[1, "a"]), r"1 \(int\) and 'a' \(str\)", "convert"),
    "text and bytes": (frame(p=["a", b"b"]), "different kinds", "convert"),
    "dates and times": (frame(p=[NOON.date(), NOON]), "different kinds", "convert"),
    "times with and without a zone": (
        frame(p=pd.Series([NOON, NOON.replace(tzinfo=None)], dtype=object)), "different kinds",
        "convert"),
    "sets": (frame(p=[{1}, {2}]), "sets", "lists"),
    "objects": (frame(p=[object()]), "does not make a table", "astype"),
    "numbers that are too large": (frame(p=pd.Series([2**70], dtype=object)),
                                   "does not make a table", "astype"),
    "a number that no double is": (frame(p=pd.Series([2**53 + 1, 0.5], dtype=object)),
                                   "does not make a table", "astype"),
    "half of a character": (frame(p=["\udcff"]), "does not make a table", "astype"),
    "unsigned numbers": (frame(p=np.array([1], "uint64")), "uint64", "decimal128"),
    "times of day": (frame(p=[dt.time(1)]), "time64", "cast"),
    "nanoseconds": (frame(p=pd.to_datetime([1])), "lose data", "floor"),
    "Polars: objects": (pl.DataFrame({"p": pl.Series([object()], dtype=pl.Object)}),
                        "Python's objects", "map_elements"),
    "Polars: 128 bits": (pl.DataFrame({"p": pl.Series([1], dtype=pl.Int128)}), "Int128", "cast"),
    "Polars: lengths of time": (pl.DataFrame({"p": [dt.timedelta(1)]}), "duration", "int64"),
    "Polars: a lazy frame": (pl.DataFrame({"p": [1]}).lazy(), "LazyFrame", "collect"),
    "Polars: one column": (pl.Series("p", [1]), "one column", "to_frame"),
    "Arrow: a boolean in a byte": (
        pa.table({"p": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))}),
        "bool8", "cast"),
    "dictionaries: text and bytes": ([{"p": "a"}, {"p": b"b"}], "different kinds", "convert"),
    "dictionaries: dates and times": ([{"p": NOON.date()}, {"p": NOON}], "different kinds",
                                      "convert"),
}  # fmt: skip


@pytest.mark.parametrize("what", STORED)
def test_what_is_stored_exactly(ways: list[Callable[[Any], pa.Table]], what: str) -> None:
    rows, wanted = STORED[what]
    for way in ways:
        assert way(rows).to_pylist() == wanted


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(ways: list[Callable[[Any], pa.Table]], what: str) -> None:
    rows, says, hint = REFUSED[what]
    for way in ways:
        with pytest.raises(MillpondError, match=says) as error:
            way(rows)
        assert hint in str(error.value.hint)


def test_a_series_takes_its_time_from_the_index(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.append_series("/s", frame(level=[1.0, 2.0], index=TIMES.rename("time")))
        tx.commit()
    assert pond["/s"].stat().time_column == "time"
    assert pond["/s"].to_arrow().column_names == ["time", "level"]


def test_a_declared_date_has_no_hours() -> None:
    assert mp.values([{"d": NOON.date()}], {"d": "date"}).to_pylist() == [{"d": NOON.date()}]
    with pytest.raises(SchemaError, match="is not a date"):
        mp.values([{"d": NOON}], {"d": "date"})

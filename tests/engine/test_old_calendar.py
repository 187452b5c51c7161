"""Files that Spark wrote by the Julian calendar of its older versions: both engines shift them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import millpond as mp
from millpond.base.errors import MillpondError, SourceError
from millpond.engine.arrow.source.calendar import gregorian
from millpond.plan.expr import col, lit
from millpond.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, List, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

OLD = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
BOTH = {**OLD, "org.apache.spark.legacyINT96": ""}
SWITCH = -141_427
FIRST = dt.date(1, 1, 1)
DAYS = [-719_164, -141_428, SWITCH, None, 18_262]
"""0001-01-01 and 1582-10-04 by the Julian calendar, then days on which both agree."""
DATES = [FIRST, dt.date(1582, 10, 4), dt.date(1582, 10, 15), None, dt.date(2020, 1, 1)]


def days(*numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32()).view(pa.date32())


def micros(*numbers: int | None, tz: str | None = "UTC") -> pa.Array:
    scaled = [None if n is None else n * 86_400_000_000 + 1 for n in numbers]
    return pa.array(scaled, pa.int64()).view(pa.timestamp("us", tz=tz))


def written(path: Path, columns: dict[str, pa.Array], notes: dict[str, str], **how: Any) -> str:
    table = pa.table(columns).replace_schema_metadata(notes)
    pq.write_table(table, path / "a.parquet", **how)
    return str(path / "a.parquet")


def rows(plan: Plan) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan.to_pylist(engine="arrow")
    return found


def test_dates_are_what_spark_shows(tmp_path: Path) -> None:
    path = written(tmp_path, {"d": days(*DAYS)}, OLD)
    assert [row["d"] for row in rows(mp.scan(path))] == DATES


def test_large_files_are_shifted_too(tmp_path: Path) -> None:
    """Those whose pages are decoded by compiled functions, where there are some."""
    path = written(tmp_path, {"n": pa.array(range(20_000)), "d": days(*DAYS * 4_000)}, OLD)
    assert [row["d"] for row in rows(mp.scan(path))] == DATES * 4_000
    few = mp.scan(path).filter(col("n") % 1_000 < 2).select("d")
    assert [row["d"] for row in rows(few)] == DATES[:2] * 20


@pytest.mark.parametrize("notes", [{}, {"org.apache.spark.version": "3.5.0"}])
def test_other_files_are_left_alone(tmp_path: Path, notes: dict[str, str]) -> None:
    path = written(tmp_path, {"d": days(-719_162)}, notes)
    assert rows(mp.scan(path)) == [{"d": FIRST}]


def test_versions_before_3_wrote_that_way_without_saying_so(tmp_path: Path) -> None:
    path = written(tmp_path, {"d": days(*DAYS)}, {"org.apache.spark.version": "2.4.8"})
    assert [row["d"] for row in rows(mp.scan(path))] == DATES


def test_timestamps_are_shifted_and_wall_clocks_are_not(tmp_path: Path) -> None:
    columns = {"ts": micros(*DAYS), "ntz": micros(-719_162, *DAYS[1:], tz=None)}
    found = rows(mp.scan(written(tmp_path, columns, OLD)))
    later = dt.timedelta(microseconds=1)
    midnight = dt.time(tzinfo=dt.UTC)
    expected = [d if d is None else dt.datetime.combine(d, midnight) + later for d in DATES]
    assert [row["ts"] for row in found] == expected
    assert found[0]["ntz"] == dt.datetime(1, 1, 1) + later  # noqa: DTZ001
    assert found[1]["ntz"] == dt.datetime(1582, 10, 14) + later  # noqa: DTZ001


def test_they_are_shifted_wherever_they_are(tmp_path: Path) -> None:
    def column(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_)

    proleptic = dt.date(1, 1, 1)  # two days later, as a reader sees it that does not shift
    date = pa.date32()
    columns = {
        "s": column([{"n": 1, "d": proleptic}, None], pa.struct([("n", pa.int8()), ("d", date)])),
        "l": column([[proleptic, None], []], pa.list_(date)),
        "m": column([[("k", proleptic)], None], pa.map_(pa.string(), date)),
        "t": column(["a", "b"], pa.string()),
    }
    found = rows(mp.scan(written(tmp_path, columns, OLD)))
    shifted = dt.date(1, 1, 3)
    assert found == [
        {"s": {"n": 1, "d": shifted}, "l": [shifted, None], "m": [("k", shifted)], "t": "a"},
        {"s": None, "l": [], "m": None, "t": "b"},
    ]
    member = mp.scan(written(tmp_path, columns, OLD)).select(d=mp.path("s.d"), t=col("t"))
    assert rows(member) == [{"d": shifted, "t": "a"}, {"d": None, "t": "b"}]


def test_statistics_of_old_days_rule_nothing_out(tmp_path: Path) -> None:
    path = written(tmp_path, {"d": days(-719_164, 18_262)}, OLD, row_group_size=1)
    assert rows(mp.scan(path).filter(col("d") == lit(FIRST))) == [{"d": FIRST}]
    assert rows(mp.scan(path).top_k(1, "d")) == [{"d": FIRST}]
    later = mp.scan(path).filter(col("d") > lit(dt.date(2019, 1, 1))).execute(engine="arrow")
    assert sum(batch.num_rows for batch in later) == 1
    assert later.counters.batches_pruned == 0  # the limits of old days are taken for unknown
    early = mp.scan(path).filter(col("d") < lit(dt.date(2019, 1, 1))).execute(engine="arrow")
    assert sum(batch.num_rows for batch in early) == 1
    assert early.counters.batches_pruned == 1


def test_old_times_of_other_zones_are_an_error_that_names_them(tmp_path: Path) -> None:
    notes = {**OLD, "org.apache.spark.timeZone": "America/Los_Angeles"}
    path = written(tmp_path, {"ts": micros(-25_568), "d": days(-719_164)}, notes)
    with pytest.raises(SourceError, match=r"column ts of .*America/Los_Angeles") as caught:
        rows(mp.scan(path))
    assert 'engine="spark"' in str(caught.value.hint)
    assert rows(mp.scan(path, columns="d")) == [{"d": FIRST}]  # a day has no zone
    newer = written(tmp_path, {"ts": micros(-25_567)}, notes)
    assert rows(mp.scan(newer))[0]["ts"].year == 1900


def test_int96_is_shifted_where_it_is_an_instant(tmp_path: Path) -> None:
    # pyarrow writes INT96 by days that it counts on, as Spark does.
    moment = dt.datetime(1600, 1, 1)  # noqa: DTZ001
    old = moment - dt.timedelta(days=20_000)
    columns = {"ts": pa.array([old, None, moment], pa.timestamp("us"))}
    path = written(tmp_path, columns, BOTH, use_deprecated_int96_timestamps=True)
    as_instant, as_clock = ({"ts": type_} for type_ in (TIMESTAMP, TIMESTAMP_NTZ))
    shifted = [row["ts"] for row in rows(mp.scan(path, schema=as_instant))]
    assert shifted[1:] == [None, moment.replace(tzinfo=dt.UTC)]
    assert shifted[0] == old.replace(tzinfo=dt.UTC) - dt.timedelta(days=10)
    assert [row["ts"] for row in rows(mp.scan(path, schema=as_clock))] == [old, None, moment]


def test_days_that_python_has_no_word_for_are_an_error_of_ours(tmp_path: Path) -> None:
    path = written(tmp_path, {"d": days(-719_164)}, {})  # the year 0
    with pytest.raises(MillpondError, match="out of range") as caught:
        rows(mp.scan(path))
    assert "to_arrow" in str(caught.value.hint)


@given(st.dates(max_value=dt.date(1582, 10, 4)))
def test_days_keep_their_names(date: dt.date) -> None:
    """Every day of our calendar up to 1582 is one of the Julian calendar, too."""
    year, month = (date.year, date.month) if date.month > 2 else (date.year - 1, date.month + 12)
    # The usual formula of the Julian day number, which begins at noon.
    number = 1461 * (year + 4716) // 4 + 153 * (month + 1) // 5 + date.day - 1524
    assert gregorian(np.array([number - 2_440_588])) == [date.toordinal() - 719_163]


@pytest.fixture
def old_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark as it wrote before its version 3."""
    names = [f"spark.sql.parquet.{what}RebaseModeInWrite" for what in ("datetime", "int96")]
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "LEGACY")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
def test_both_engines_read_what_spark_wrote(
    old_spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    texts = ["0001-01-01", "0100-03-01", "0999-12-31", "1000-02-28", "1000-03-01", "1500-02-28"]
    texts += ["1582-10-04", "1582-10-15", "1883-11-18", "1969-12-31", "9999-12-31"]
    values = ", ".join(f"(date'{x}', timestamp'{x} 23:59:59.999')" for x in texts)
    query = f"select d, ts, struct(d, array(ts)) deep from values {values} as t(d, ts)"
    name = "spark.sql.parquet.outputTimestampType"
    before = old_spark.conf.get(name)
    old_spark.conf.set(name, kind)
    try:
        old_spark.sql(query).coalesce(1).write.parquet(str(tmp_path / "t"))
    finally:
        old_spark.conf.set(name, str(before))
    schema = Struct.of(
        d=DATE,
        ts=TIMESTAMP,
        deep=Struct.of(d=DATE, col2=List(TIMESTAMP)),
    )
    plan = mp.scan(str(tmp_path / "t"), schema=schema)
    found = rows(plan)
    assert [str(row["d"]) for row in found] == texts
    assert [row["ts"].date() for row in found] == [row["d"] for row in found]
    assert [row["deep"] for row in found] == [{"d": r["d"], "col2": [r["ts"]]} for r in found]
    assert plan.to_pylist(engine="spark") == found
    old = plan.filter(col("d") <= lit(dt.date(1000, 2, 28)))
    assert rows(old) == old.to_pylist(engine="spark") == found[:4]

"""Scans: files of every format, constants, deleted rows, odd names, files that fail."""

# ruff: noqa: DTZ001 - timestamps without a zone are what is tested

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.plan.expr import col
from millpond.plan.make import list_files, values
from millpond.plan.sources import CsvOptions, File, Scan
from millpond.plan.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP_NTZ,
    Decimal,
    List,
    Struct,
)

pytestmark = pytest.mark.spark


def write(path: Path, *numbers: int, type_: pa.DataType | None = None) -> str:
    pq.write_table(pa.table({"x": pa.array(numbers, type_ or pa.int64())}), path)
    return str(path)


@pytest.mark.parametrize(
    "name", ["a b.parquet", "50%.parquet", "a%20b.parquet", "[x]{y}*?.parquet", "ü#&=+.parquet"]
)
def test_odd_file_names(run_rows: Any, tmp_path: Path, name: str) -> None:
    plan = Scan("parquet", (File(write(tmp_path / name, 1, 2)),), Struct.of(x=LONG))
    assert run_rows(plan) == [(1,), (2,)]
    many = Scan("parquet", plan.files * 40, Struct.of(x=LONG))
    assert run_rows(many) == [(1,), (2,)] * 40


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet"])
def test_files_that_spark_would_skip(run_rows: Any, tmp_path: Path, name: str) -> None:
    plan = Scan("parquet", (File(write(tmp_path / name, 7)),), Struct.of(x=LONG))
    assert run_rows(plan) == [(7,)]


def test_urls(run_rows: Any, tmp_path: Path) -> None:
    write(tmp_path / "a b.parquet", 3)
    url = (tmp_path / "a b.parquet").as_uri()
    assert run_rows(Scan("parquet", (File(url),), Struct.of(x=LONG))) == [(3,)]


def test_missing_columns_are_null_and_narrow_ones_widened(run_rows: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1], pa.int16()),
            "f": pa.array([0.5], pa.float32()),
            "c": pa.array([decimal.Decimal("1.5")], pa.decimal128(3, 1)),
            "d": pa.array([dt.date(2024, 5, 31)]),
            "s": pa.array([{"a": 1}]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    columns = Struct.of(
        i=LONG, f=DOUBLE, c=Decimal(10, 3), d=TIMESTAMP_NTZ, s=Struct.of(a=LONG, b=STRING), z=NULL
    )
    plan = Scan("parquet", (File(str(tmp_path / "t.parquet")),), columns)
    at = dt.datetime(2024, 5, 31)
    assert run_rows(plan) == [(1, 0.5, decimal.Decimal("1.500"), at, {"a": 1, "b": None}, None)]


def test_no_files_and_only_constants(run_rows: Any, tmp_path: Path) -> None:
    assert run_rows(Scan("parquet", (), Struct.of(x=LONG))) == []
    file = File(write(tmp_path / "a.parquet", 1, 2), constants=("k",))
    assert run_rows(Scan("parquet", (file,), Struct.of(c=STRING), ("c",))) == [("k",), ("k",)]


@pytest.mark.parametrize("count", [3, 40])
def test_constants_go_with_every_row_of_their_file(
    run_rows: Any, tmp_path: Path, count: int
) -> None:
    days = [dt.date(1500, 1, 1) + dt.timedelta(days=i) for i in range(count)]
    files = tuple(
        File(write(tmp_path / f"{i}.parquet", i, -i), constants=(days[i], None if i % 2 else "e"))
        for i in range(count)
    )
    plan = Scan("parquet", files, Struct.of(d=DATE, x=LONG, s=STRING), ("d", "s"))
    expected = [(days[i], x, None if i % 2 else "e") for i in range(count) for x in (i, -i)]
    assert run_rows(plan) == expected
    assert sorted(run_rows(plan, ordered=False), key=repr) == sorted(expected, key=repr)
    assert run_rows(plan.filter(col("d") == days[1])) == expected[2:4]


def test_files_that_cannot_be_read(engine: Any, tmp_path: Path) -> None:
    columns = Struct.of(x=LONG)
    good = File(write(tmp_path / "good.parquet", 1))
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no, it is not PAR1")
    for name in ("missing.parquet", "empty.parquet", "bad.parquet"):
        bad = File(str(tmp_path / name))
        for files in ((bad,), (good, bad), (good,) * 40 + (bad,)):
            with pytest.raises(SourceError) as caught:
                list(engine.execute(Scan("parquet", files, columns)))
            assert name in str(caught.value)
    text = File(write(tmp_path / "t.parquet", 1), constants=())
    with pytest.raises(SourceError):
        list(engine.execute(Scan("parquet", (text,), Struct.of(x=STRING))))


def test_json_lines(run_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "_a.json").write_text(
        '{"x":1,"d":"2024-05-31"}\n\n{"x":"no","l":[1]}\r\n{}\n{"l":null}', "utf-8"
    )
    (tmp_path / "b.json").write_text('\ufeff{"x":9}\n', "utf-8")
    files = tuple(File(str(tmp_path / name), constants=(name,)) for name in ("_a.json", "b.json"))
    plan = Scan("json", files, Struct.of(x=LONG, f=STRING, d=DATE, l=List(LONG)), ("f",))
    with pytest.raises(SourceError, match="member 'x' is not of type long"):
        run_rows(plan)
    plan = replace(plan, on_error="null")
    day = dt.date(2024, 5, 31)
    expected = [
        (1, "_a.json", day, None),
        (None, "_a.json", None, [1]),
        (None, "_a.json", None, None),
        (None, "_a.json", None, None),
        (9, "b.json", None, None),
    ]
    assert run_rows(plan) == expected


def test_csv(run_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,"y ""q""",z\n1,"a\nb;",1.5\n,"",NaN\n', "utf-8")
    (tmp_path / "b.csv").write_text("z,x\n-1e3,7\n", "utf-8")
    files = tuple(File(str(tmp_path / f"{name}.csv")) for name in "ab")
    columns = Struct((*Struct.of(**{'y "q"': STRING}).fields, *Struct.of(x=LONG, n=DATE).fields))
    plan = Scan("csv", files, columns)
    assert run_rows(plan) == [("a\nb;", 1, None), ("", None, None), (None, 7, None)]
    (tmp_path / "c.csv").write_text("1;'a'';b'\n2;\n", "utf-8")
    options = CsvOptions(delimiter=";", quote="'", has_header=False)
    bare = Scan("csv", (File(str(tmp_path / "c.csv")),), Struct.of(a=LONG, b=STRING), csv=options)
    assert run_rows(bare) == [(1, "a';b"), (2, None)]
    bad = Scan("csv", (files[0],), Struct.of(z=LONG))
    with pytest.raises(SourceError, match=r"a\.csv: column 'z' holds '1\.5', which is not of"):
        run_rows(bad)


def test_dynamic_scans(run_rows: Any, tmp_path: Path) -> None:
    rows = [
        {"path": write(tmp_path / f"{i}.parquet", *range(i * 100, i * 100 + 100)), "k": {"n": i}}
        for i in (2, 0, 1)
    ]
    deleted: list[list[int] | None] = [[0, 1, 99], None, [*range(64), 70]]
    table = values(
        [{**row, "gone": gone} for row, gone in zip(rows, deleted, strict=True)],
        Struct.of(path=STRING, k=Struct.of(n=LONG), gone=List(LONG)),
    )
    plain = table.filter(col("gone").is_null()).dynamic_scan(Struct.of(x=LONG))
    assert run_rows(plain) == [(x,) for x in range(100)]
    plan = table.dynamic_scan(
        Struct.of(x=LONG, k=Struct.of(n=LONG)), constants=["k"], deleted="gone"
    )
    expected = [
        (i * 100 + x, {"n": i})
        for i, gone in zip((2, 0, 1), deleted, strict=True)
        for x in range(100)
        if x not in (gone or ())
    ]
    assert run_rows(plan) == expected
    assert run_rows(plan.filter(col("x") == 70)) == [(70, {"n": 0})]
    assert run_rows(table.head(0).dynamic_scan(Struct.of(x=INTEGER))) == []


def test_a_dynamic_scan_of_nothing_is_an_error(run_rows: Any) -> None:
    plan = values([{"path": None}], Struct.of(path=STRING)).dynamic_scan(Struct.of(x=LONG))
    with pytest.raises(SourceError, match="null"):
        run_rows(plan)


def test_listings(run_rows: Any, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "_c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e.txt").touch()
    found = run_rows(list_files(str(tmp_path)))
    assert [(Path(path).name, size) for path, size, _ in found] == [
        ("_c", 2),
        ("a.txt", 5),
        ("b.txt", 5),
    ]
    later = run_rows(list_files(f"{tmp_path}/", start_from="a.txt").select("path"))
    assert later == [(f"{tmp_path}/a.txt",), (f"{tmp_path}/b.txt",)]
    assert all(at.tzinfo is not None for _, _, at in found)


def test_large_tables_go_through_a_file(run_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from millpond.engine.spark import values as compiled

    monkeypatch.setattr(compiled, "_DIRECT_BYTES", 100)
    table = pa.table(
        {
            "x": pa.array(range(3000), pa.int64()),
            "t": pa.array([dt.datetime(1, 1, 1)] * 3000, pa.timestamp("us")),
            "m": pa.array([[("k", 1)]] * 3000, pa.map_(pa.string(), pa.int32())),
        }
    )
    assert run_table(values(table)).to_pylist() == table.to_pylist()

"""JSON lines and CSV files."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import pytest

from millpond.base.errors import SourceError
from millpond.engine.arrow.source import jsonfiles, jsonlines
from millpond.plan import types as t
from millpond.plan.expr import col
from millpond.plan.sources import CsvOptions, File, OnError, Scan

SCHEMA = t.Struct.of(a=t.LONG, b=t.STRING, c=t.Struct.of(d=t.DOUBLE))
NULLS = {"a": None, "b": None, "c": {"d": None}}


def write(tmp_path: Path, text: str | bytes, name: str = "x.json") -> str:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def json_scan(path: str, schema: t.Struct = SCHEMA, on_error: OnError = "error") -> Scan:
    return Scan("json", (File(path),), schema, on_error=on_error)


def test_members_that_do_not_fit_are_null_where_the_scan_says_so(run: Any, tmp_path: Any) -> None:
    # The lines and what is read of them, as (a, b, d).
    lines: dict[str, list[Any]] = {
        '{"a": 1, "b": "x", "c": {"d": 1.5}, "more": [1]}': [(1, "x", 1.5)],
        '{"a": "no", "b": 5, "c": {"d": "q", "e": 1}}': [(None, "5", None)],
        "   ": [],
        '{"a": 1.5, "c": 3}': [(None, None, None)],
        '{"a": 2, "a": 3}': [(3, None, None)],
        '{"a": 9223372036854775808, "b": true}': [(None, "true", None)],
        '{"x": 1}\r': [(None, None, None)],
    }
    path = write(tmp_path, "\n".join(lines))
    with pytest.raises(SourceError, match=r"line 2 of .*member 'a' is \"no\", which is not of"):
        run(json_scan(path))
    rows, _ = run(json_scan(path, on_error="null"))
    found = [(r["a"], r["b"], r["c"] and r["c"]["d"]) for r in rows]
    assert found == [row for made in lines.values() for row in made]


def test_the_line_that_is_no_object_is_counted_over_blocks(
    run: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(jsonlines, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 64)
    path = write(tmp_path, '{"a": 1}\n\n' * 50 + '{"a":\n')
    with pytest.raises(SourceError, match=r'line 101 of .*x\.json is not a JSON object: {"a":'):
        run(json_scan(path))


def test_blank_files_and_lines_are_no_rows(run: Any, tmp_path: Any) -> None:
    assert run(json_scan(write(tmp_path, "")))[0] == []
    rows, counters = run(json_scan(write(tmp_path, '\ufeff{"a":1}\n\n \t\r\n{"a":2}')))
    assert [row["a"] for row in rows] == [1, 2]
    assert counters.rows_decoded == 2


def test_blocks_grow_with_long_lines(run: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(jsonlines, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 64)
    texts = ["x" * n for n in (1, 500, 2, 64, 63, 3)]
    path = write(tmp_path, "".join(f'{{"a":{i},"b":"{s}"}}\n' for i, s in enumerate(texts)))
    rows, counters = run(json_scan(path))
    assert [row["b"] for row in rows] == texts
    assert counters.batches_decoded > 1
    assert counters.bytes_read == Path(path).stat().st_size


def test_head_stops_reading(run: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(jsonlines, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 100)
    path = write(tmp_path, "".join(f'{{"a":{i}}}\n' for i in range(1_000)))
    rows, counters = run(json_scan(path).head(3))
    assert [row["a"] for row in rows] == [0, 1, 2]
    assert counters.bytes_read == 100


def test_bytes_that_are_no_text_are_replaced_if_so_wanted(run: Any, tmp_path: Any) -> None:
    path = write(tmp_path, b'{"b":"\xff"}\n{"b":"ok"}\n')
    with pytest.raises(SourceError, match=r"line 1 of .* is not UTF-8"):
        run(json_scan(path))
    rows, _ = run(json_scan(path, on_error="null"))
    assert [row["b"] for row in rows] == ["\ufffd", "ok"]


def test_packed_files_and_constants(run: Any, tmp_path: Any) -> None:
    path = write(tmp_path, gzip.compress(b'{"a":1}\n{"a":2}\n'), "x.json.gz")
    columns = t.Struct.of(a=t.LONG, day=t.DATE)
    scan = Scan("json", (File(path, constants=("2024-05-31",)),), columns, ("day",))
    rows, _ = run(scan.filter(col("a") == 2))
    assert rows == [{"a": 2, "day": dt.date(2024, 5, 31)}]


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_missing_and_damaged_files_are_named(format_: Any, run: Any, tmp_path: Any) -> None:
    columns = t.Struct.of(a=t.LONG)
    with pytest.raises(SourceError, match="nowhere"):
        run(Scan(format_, (File(str(tmp_path / "nowhere")),), columns))
    broken = write(tmp_path, gzip.compress(b'{"a":1}\n' * 1000)[:-20], f"x.{format_}.gz")
    with pytest.raises(SourceError, match=r"x\."):
        run(Scan(format_, (File(broken),), columns))


CSV = 'id,name,at,extra\n1,"a, b",2024-05-31,x\n2,,2024-06-01T12:00:00Z,\n3,"",,"say ""hi"""\n'


def test_csv_by_names(run: Any, tmp_path: Any) -> None:
    path = write(tmp_path, CSV, "x.csv")
    columns = t.Struct.of(extra=t.STRING, name=t.STRING, id=t.INTEGER, at=t.TIMESTAMP, none=t.LONG)
    rows, _ = run(Scan("csv", (File(path),), columns))
    at = [dt.datetime(2024, 5, 31, tzinfo=dt.UTC), dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC), None]
    assert [row["at"] for row in rows] == at
    assert [row["name"] for row in rows] == ["a, b", None, ""]
    assert [row["extra"] for row in rows] == ["x", None, 'say "hi"']
    assert [(row["id"], row["none"]) for row in rows] == [(1, None), (2, None), (3, None)]


def test_csv_by_position(run: Any, tmp_path: Any) -> None:
    path = write(tmp_path, "1;'x;y'\n2;z\n", "x.csv")
    options = CsvOptions(delimiter=";", quote="'", has_header=False)
    columns = t.Struct.of(n=t.DOUBLE, s=t.STRING)
    rows, _ = run(Scan("csv", (File(path),), columns, csv=options))
    assert rows == [{"n": 1.0, "s": "x;y"}, {"n": 2.0, "s": "z"}]


def test_csv_texts_that_do_not_fit_name_file_and_column(run: Any, tmp_path: Any) -> None:
    path = write(tmp_path, "a,b\n1,x\n", "x.csv")
    with pytest.raises(SourceError, match=r"line 2 of .*x\.csv: column 'b'"):
        run(Scan("csv", (File(path),), t.Struct.of(b=t.LONG)))
    with pytest.raises(SourceError, match="plain values"):
        run(Scan("csv", (File(path),), t.Struct.of(b=t.List(t.LONG))))
    ragged = write(tmp_path, "a,b\n1,x\n1,2,3\n", "y.csv")
    with pytest.raises(SourceError, match=r"y\.csv"):
        run(Scan("csv", (File(ragged),), t.Struct.of(b=t.STRING)))


def test_an_empty_csv_has_no_rows(run: Any, tmp_path: Any) -> None:
    assert run(Scan("csv", (File(write(tmp_path, "", "x.csv")),), t.Struct.of(b=t.LONG)))[0] == []
    assert (
        run(Scan("csv", (File(write(tmp_path, "b\n", "x.csv")),), t.Struct.of(b=t.LONG)))[0] == []
    )

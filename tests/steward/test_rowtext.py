"""Rows as text and as files: every kind of value, what comes back, and how much is held at once."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import EvaluationError
from millpond.steward.rows import text as rowtext
from millpond.steward.rows.files import FileFormat, write_batches

UTC = pa.timestamp("us", "UTC")
NAN, INFINITE = float("nan"), float("inf")


def written(table: pa.Table, format_: FileFormat) -> bytes:
    sink = io.BytesIO()
    assert write_batches(format_, sink, table.schema, table.to_batches()) == table.num_rows
    return sink.getvalue()


def csv_rows(table: pa.Table) -> list[list[str]]:
    return list(csv.reader(io.StringIO(written(table, "csv").decode(), newline="")))


def json_rows(table: pa.Table) -> list[Any]:
    return [json.loads(line) for line in written(table, "json").decode().split("\n")[:-1]]


class TestCsv:
    def test_texts_are_quoted_where_they_have_to_be(self) -> None:
        texts = ["plain", "", None, "a,b", 'q"q', "line\nend", "\r", " edge ", "ü", "null"]
        table = pa.table({"n,ame": texts, "number": list(range(10))})
        assert csv_rows(table)[0] == ["n,ame", "number"]
        assert [row[0] for row in csv_rows(table)[1:]] == [text or "" for text in texts]
        lines = written(table, "csv").decode()
        assert "\nplain,0\n" in lines
        assert '\n"",1\n' in lines  # an empty text
        assert "\n,2\n" in lines  # nothing

    def test_values(self) -> None:
        table = pa.table(
            {
                "double": [1.0, NAN, -INFINITE, 1e300],
                "utc": pa.array([0, 1_700_000_000_123_456, None, -1], UTC),
                "local": pa.array([0, 1, 2, 3_000_000], pa.timestamp("us")),
                "day": pa.array([0, -1, None, 19000], pa.date32()),
                "exact": pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal(0)]),
                "bytes": [b"\xff\0", b"", None, b"a"],
                "flag": [True, False, None, True],
                "nested": [{"a": [1, None]}, None, {"a": None}, {"a": []}],
            }
        )
        assert csv_rows(table)[1:] == [
            ["1.0", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00", "1970-01-01", "1.50", "/wA=",
             "true", '{"a":[1,null]}'],
            ["NaN", "2023-11-14T22:13:20.123456Z", "1970-01-01T00:00:00.000001", "1969-12-31", "",
             "", "false", ""],
            ["-Infinity", "", "1970-01-01T00:00:00.000002", "", "-2.00", "", "", '{"a":null}'],
            ["1.0E300", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:03", "2022-01-08", "0.00",
             "YQ==", "true", '{"a":[]}'],
        ]  # fmt: skip

    def test_comes_back_as_it_was(self, tmp_path: Any) -> None:
        table = pa.table(
            {
                "text": ["a", "", None, 'x,"y"\nz'],
                "time": pa.array([0, 1, None, 1_700_000_000_123_456], UTC),
                "number": [1.0, 2.5, None, -0.125],
                "whole": [1, None, 3, 2**62],
            }
        )
        (tmp_path / "a.csv").write_bytes(written(table, "csv"))
        found = mp.scan(tmp_path / "a.csv").to_arrow(engine="arrow")
        assert found.to_pylist() == table.to_pylist()
        assert found.schema.types == table.schema.types

    def test_no_rows_and_no_columns(self) -> None:
        assert written(pa.table({"a": pa.array([], pa.int64())}), "csv") == b"a\n"
        assert written(pa.table({"a": [1, 2]}).select([]), "csv") == b"\n\n\n"


class TestJson:
    def test_values(self) -> None:
        keyed = pa.map_(pa.int64(), pa.float64())
        table = pa.table(
            {
                "double": [1.0, NAN, INFINITE, None],
                "inner": [{"x": NAN, "t": b"\xff"}, None, {"x": 0.5, "t": None}, None],
                "map": pa.array([[(1, 0.5)], [], None, [(2, -INFINITE)]], keyed),
                "times": pa.array([[0], None, [], [None]], pa.list_(UTC)),
                "exact": pa.array([Decimal("1.50"), None, Decimal("12345678901234567.89"), None]),
                "text": ['"', "\u2028", "\n", None],
            }
        )
        assert json_rows(table) == [
            {"double": 1.0, "inner": {"x": "NaN", "t": "/w=="}, "map": {"1": 0.5},
             "times": ["1970-01-01T00:00:00Z"], "exact": 1.5, "text": '"'},
            {"double": "NaN", "inner": None, "map": {}, "times": None, "exact": None,
             "text": "\u2028"},
            {"double": "Infinity", "inner": {"x": 0.5, "t": None}, "map": None, "times": [],
             "exact": 12345678901234567.89, "text": "\n"},
            {"double": None, "inner": None, "map": {"2": "-Infinity"}, "times": [None],
             "exact": None, "text": None},
        ]  # fmt: skip
        assert b'"exact":12345678901234567.89' in written(table, "json")

    def test_times_beyond_pythons_years(self) -> None:
        table = pa.table({"t": pa.array([2**60], UTC)})
        assert json_rows(table) == [{"t": "+38504-08-17T21:30:06.846976Z"}]

    def test_such_times_within_others_are_an_error_that_names_the_column(self) -> None:
        table = pa.table({"deep": pa.array([[2**60]], pa.list_(UTC))})
        with pytest.raises(EvaluationError, match="deep") as caught:
            written(table, "json")
        assert "Parquet" in (caught.value.hint or "")

    def test_no_columns(self) -> None:
        assert json_rows(pa.table({"a": [1, 2]}).select([])) == [{}, {}]


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_binary_formats_come_back_as_they_were(format_: FileFormat) -> None:
    table = pa.table(
        {"a": [1, None], "b": pa.array([[{"x": 1}], None]), "t": pa.array([0, 1], UTC)}
    )
    content = written(table, format_)
    if format_ == "parquet":
        assert pq.read_table(io.BytesIO(content)).equals(table)
    else:
        assert pa.ipc.open_stream(content).read_all().equals(table)
    assert written(table.slice(0, 0), format_)


def test_large_values_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = rowtext.pieces

    def pieces(batch: pa.RecordBatch) -> Any:
        for piece in original(batch):
            sizes.append(piece.nbytes)
            yield piece

    monkeypatch.setattr("millpond.steward.rows.files.pieces", pieces)
    table = pa.table({"a": ["x" * (1 << 20)] * 20})
    assert len(written(table, "csv")) == 2 + 20 * ((1 << 20) + 1)
    assert len(sizes) >= 5
    assert max(sizes) <= rowtext.PIECE_BYTES + (1 << 20)

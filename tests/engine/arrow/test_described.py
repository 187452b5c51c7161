"""What a footer's Arrow schema says of how its writer held the columns does not matter."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.plan import aggregates as agg
from millpond.plan.expr import col, element, path

VIEW, BYTES = pa.string_view(), pa.binary_view()
VIEWS = {
    "n": pa.int64(),
    "text": VIEW,
    "list": pa.list_(VIEW),
    "deep": pa.struct([("text", VIEW), ("bytes", BYTES), ("n", pa.int32())]),
    "map": pa.map_(VIEW, pa.list_(VIEW)),
}
PLAIN = {
    "n": pa.int64(),
    "text": pa.string(),
    "list": pa.list_(pa.string()),
    "deep": pa.struct([("text", pa.string()), ("bytes", pa.binary()), ("n", pa.int32())]),
    "map": pa.map_(pa.string(), pa.list_(pa.string())),
}


def table(rows: int) -> pa.Table:
    def row(n: int) -> dict[str, Any]:
        text = None if n % 7 == 3 else f"a text of some length {n % 5}"
        return {
            "n": n,
            "text": text,
            "list": None if n % 5 == 1 else [text, "x"] * (n % 3),
            "deep": None if n % 4 == 2 else {"text": text, "bytes": b"%d" % n, "n": n},
            "map": [("k", [text])],
        }

    return pa.Table.from_pylist([row(n) for n in range(rows)], pa.schema(list(PLAIN.items())))


@pytest.mark.parametrize("rows", [30, 20_000])  # the larger file has texts as dictionaries
@pytest.mark.parametrize(
    "query",
    [
        lambda scan: scan,
        lambda scan: scan.filter(col("n") % 3 == 0),
        lambda scan: scan.filter(path("deep.text") == "a text of some length 2"),
        lambda scan: scan.filter(col("list").any(element() == "x")).select("n", "text"),
        lambda scan: scan.top_k(3, "text", col("n").desc()),
        lambda scan: scan.aggregate("text", n=agg.count()).sort("text"),
        lambda scan: scan.tail(2),
    ],
    ids=["all", "some", "nested", "any", "top_k", "group", "tail"],
)
def test_rows_are_those_of_plain_texts(query: Any, rows: int, run: Any, parquet: Any) -> None:
    plain, fields = table(rows), list(VIEWS.items())
    scan = parquet(plain, rows=rows)
    wanted, _ = run(query(scan))
    # pyarrow writes no lists of views: it is told of them in the footer, where it looks for them.
    with pq.ParquetWriter(scan.files[0].path, plain.schema, store_schema=False) as writer:
        writer.write_table(plain)
        said = base64.b64encode(pa.schema(fields).serialize())
        writer.add_key_value_metadata({"ARROW:schema": said})
    assert "view" in str(pq.read_schema(scan.files[0].path).field("map").type)
    assert run(query(scan))[0] == wanted
    assert wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([1, None], pa.duration("us")), "long"),
        (pa.array(["a", None]).dictionary_encode(), "string"),
        (pa.array(["a", None], pa.large_string()), "string"),
        (pa.array([b"a", None], pa.large_binary()), "binary"),
        (pa.array([86_400_000, None], pa.date64()), "date"),
        (pa.array([1, None], pa.timestamp("ms", tz="Europe/Berlin")), "timestamp"),
        (pa.array([1, None], pa.timestamp("ns")), "timestamp_ntz"),
        (pa.array([[1], None], pa.large_list(pa.int32())), "list<integer>"),
    ],
    ids=lambda given: str(getattr(given, "type", given)),
)
@pytest.mark.parametrize("rows", [2, 20_000])
def test_types_are_those_of_parquet(given: pa.Array, wanted: str, rows: int, tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    repeated = pa.chunked_array([given] * (rows // 2))
    pq.write_table(pa.table({"x": repeated}), path)
    scan = mp.scan(path)
    assert str(scan.schema.field("x").type) == wanted
    shown = pa.Table.from_batches(list(scan.execute(engine="arrow")))["x"]
    pq.write_table(pa.table({"x": repeated}), path, store_schema=False)
    plain = pa.Table.from_batches(list(mp.scan(path).execute(engine="arrow")))["x"]
    assert shown == plain
    assert (len(shown), shown.null_count) == (rows, rows // 2)


def test_a_text_that_looks_like_the_name_stays(tmp_path: Any) -> None:
    """Only the name itself is hidden, though the same bytes may be in statistics."""
    path = str(tmp_path / "a.parquet")
    names = ["ARROW:schema", "ARROW:schema\x18", "a"]
    pq.write_table(pa.table({"x": names}), path)
    found = mp.scan(path).filter(col("x") >= "ARROW:schema").execute(engine="arrow")
    assert [row["x"] for batch in found for row in batch.to_pylist()] == names


def test_footers_larger_than_what_is_read_first(tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    wide = pa.table({f"a column with a long name {n:05}": [f"text {n}"] for n in range(2_000)})
    pq.write_table(wide.cast(pa.schema([(n, VIEW) for n in wide.column_names])), path)
    assert (tmp_path / "a.parquet").stat().st_size > 200_000
    (batch,) = mp.scan(path).execute(engine="arrow")
    assert pa.Table.from_batches([batch]) == wide

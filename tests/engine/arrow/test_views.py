"""Files whose writer had texts and bytes as views give the same rows as others."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.engine.arrow.source.plain import as_plain
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


PLAIN = {name: as_plain(pa.array([], type_)).type for name, type_ in VIEWS.items()}


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
    "type_", [pa.list_(VIEW, 2), pa.large_list(BYTES), pa.struct([]), pa.list_(pa.field("e", VIEW))]
)
def test_types_keep_all_else(type_: pa.DataType) -> None:
    said = str(type_).replace("_view", "")
    assert str(as_plain(pa.nulls(2, type_)).type) == said

"""Sources: files, listings, memory, stored paths; what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import PlanError, SchemaError
from millpond.plan import types as t
from millpond.plan.make import list_files, stored, values
from millpond.plan.sources import LISTING, CsvOptions, DynamicScan, File, Scan, Stored, Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.node import Plan

COLUMNS = t.Struct.of(a=t.LONG, p=t.STRING, q=t.DATE)
PATHS = values([], t.Struct.of(path=t.STRING, n=t.LONG, p=t.STRING, dv=t.List(t.LONG)))


def test_a_listing_has_a_fixed_schema() -> None:
    plan = list_files("/data", start_from="/data/b")
    assert plan.schema == LISTING
    assert plan.label() == "/data from /data/b"
    assert list_files("/data").label() == "/data"


def test_a_scan_gives_its_columns() -> None:
    files = (File("a.parquet", 10, 3, ("x", None)), File("b.parquet", constants=("y", None)))
    scan = Scan("parquet", files, COLUMNS, ("p", "q"))
    assert scan.schema == COLUMNS
    assert scan.file_columns == t.Struct.of(a=t.LONG)
    assert scan.children == ()
    assert scan.label() == "parquet [2 files] (a: long, p: string, q: date)"
    assert Scan("json", files[:0], t.Struct()).label() == "json [0 files] ()"


def test_a_narrower_scan_drops_constants_that_are_not_wanted() -> None:
    scan = Scan("parquet", (File("a", constants=("x", None)),), COLUMNS, ("p", "q"))
    narrow = scan.narrowed(t.Struct.of(a=t.LONG, q=t.DATE))
    assert narrow.constants == ("q",)
    assert narrow.files[0].constants == (None,)
    same = scan.narrowed(t.Struct.of(p=t.STRING, q=t.DATE))
    assert same.files is scan.files


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Scan("orc", (), COLUMNS), PlanError, "unknown format 'orc'"),  # type: ignore[arg-type]
        (lambda: Scan("parquet", (), COLUMNS, ("z",)), SchemaError, "no column 'z'"),
        (lambda: Scan("json", (), COLUMNS, ("p", "p")), SchemaError, "'p' stands twice"),
        (
            lambda: Scan("parquet", (File("a"), File("b", constants=(1,))), COLUMNS),
            SchemaError,
            "b brings 1 constants, not 0",
        ),
        (
            lambda: Scan("parquet", (File("a"),), COLUMNS, ("p",)),
            SchemaError,
            "a brings 0 constants, not 1",
        ),
        (
            lambda: Scan("parquet", (), COLUMNS, csv=CsvOptions()),
            PlanError,
            "CSV options do not fit a parquet scan",
        ),
        (lambda: CsvOptions(delimiter=";;"), PlanError, "one character, not"),
        (lambda: CsvOptions(quote=""), PlanError, "one character, not"),
        (
            lambda: DynamicScan(PATHS, "xml", COLUMNS),  # type: ignore[arg-type]
            PlanError,
            "unknown format 'xml'",
        ),
        (lambda: PATHS.dynamic_scan(COLUMNS, path_column="n"), SchemaError, "paths as strings"),
        (lambda: PATHS.dynamic_scan(COLUMNS, path_column="zz"), SchemaError, "no column 'zz'"),
        (lambda: PATHS.dynamic_scan(COLUMNS, constants=["n"]), SchemaError, "no column 'n'"),
        (
            lambda: PATHS.dynamic_scan(t.Struct.of(n=t.STRING), constants=["n"]),
            SchemaError,
            "changes its type",
        ),
        (
            lambda: PATHS.dynamic_scan(COLUMNS, constants=["p", "p"]),
            SchemaError,
            "stands twice",
        ),
        (
            lambda: PATHS.dynamic_scan(COLUMNS, deleted="n"),
            SchemaError,
            "'n' has to be list<long>, not long",
        ),
        (
            lambda: PATHS.dynamic_scan(COLUMNS, format="json", deleted="dv"),
            PlanError,
            "only Parquet files",
        ),
        (lambda: stored("data", COLUMNS), PlanError, "starts with '/': 'data'"),
    ],
)
def test_sources_that_can_not_be(
    build: Callable[[], object], error: type[PlanError], message: str
) -> None:
    with pytest.raises(error) as raised:
        build()
    assert message in raised.value.message


def test_a_dynamic_scan_takes_constants_from_its_input() -> None:
    plan = PATHS.dynamic_scan(COLUMNS, constants=["p"], deleted="dv")
    assert plan.schema == COLUMNS
    assert plan.children == (PATHS,)
    assert plan.label() == "parquet by path (a: long, p: string, q: date)"


def test_a_million_files_cost_no_walk_of_our_own() -> None:
    class Watched(tuple[File, ...]):
        __slots__ = ()
        looked_at = 0

        def __getitem__(self, key: Any) -> Any:
            Watched.looked_at += 1
            return super().__getitem__(key)

    file = File("part.parquet")
    scan = Scan("parquet", Watched((file,)) * 1_000_000, COLUMNS)
    plan: Plan = scan.filter(t_predicate()).head(3)
    assert len(repr(scan)) <= 210
    assert plan.schema == COLUMNS
    assert Watched.looked_at == 0


def t_predicate() -> Any:
    from millpond.plan.expr import col

    return col("a") > 3


def test_values_are_made_plain() -> None:
    raw = pa.table(
        {"a": pa.array([1, None], pa.uint8()), "s": pa.array(["x", "y"]).dictionary_encode()}
    ).replace_schema_metadata({"pandas": "{}"})
    plan = Values(raw)
    assert plan.schema == t.Struct.of(a=t.SHORT, s=t.STRING)
    assert plan.data.schema == pa.schema({"a": pa.int16(), "s": pa.string()})
    assert plan.data.schema.metadata is None
    assert plan.label() == "[2 rows] (a: short, s: string)"
    assert plan == Values(pa.table({"a": pa.array([1, None], pa.int16()), "s": ["x", "y"]}))


def test_values_are_equal_by_content_whatever_lies_below() -> None:
    plain = Values(pa.table({"a": [1, None, 3], "s": ["x", None, "z"]}))
    longer = pa.table({"a": [0, 1, None, 3, 4], "s": ["w", "x", None, "z", ""]})
    chunks = pa.concat_tables([plain.data.slice(0, 1), plain.data.slice(1)])
    hidden = pa.array([1, 77, 3], mask=pa.array([False, True, False]).to_numpy(False))
    below = plain.data.set_column(0, "a", hidden)
    for other in (longer.slice(1, 3), chunks, below):
        assert Values(other) == plain
    assert Values(longer) != plain


def test_values_that_can_not_be() -> None:
    with pytest.raises(SchemaError, match="stands twice"):
        Values(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    lying = pa.table({"a": [1, None]}, schema=pa.schema([pa.field("a", pa.int64(), False)]))
    with pytest.raises(SchemaError, match="'a' holds nulls and says it has none"):
        Values(lying)
    with pytest.raises(SchemaError, match="has no counterpart"):
        Values(pa.table({"a": pa.array([1], pa.uint64())}))


def test_a_stored_path_knows_no_version() -> None:
    plan = stored("/a/b", COLUMNS)
    assert isinstance(plan, Stored)
    assert plan.schema == COLUMNS
    assert plan.label() == "/a/b (a: long, p: string, q: date)"

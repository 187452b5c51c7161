"""What Spark makes of plans: native operators, pushed filters, pruned columns, no Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.plan import aggregates as agg
from millpond.plan.expr import col, lit, path
from millpond.plan.sources import File, Scan
from millpond.plan.types import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

PYTHON = re.compile(r"PythonUDF|MapInArrow|ArrowEval|BatchEvalPython")


@pytest.fixture
def table_scan(scan_of: Any) -> Any:
    item = {"deep": {"n": 1, "unused": "u"}, "list": [{"p": 1, "q": "q"}]}
    rows = [{"a": 1, "s": "x", "x": 1.5, "tree": item}]
    return scan_of(pa.Table.from_pylist(rows))


def physical(engine: Any, plan: Any, *, ordered: bool = False) -> str:
    df = engine.to_dataframe(plan, ordered=ordered)
    text = str(
        df.sparkSession._jvm.PythonSQLUtils.explainString(df._jdf.queryExecution(), "formatted")
    )
    assert not PYTHON.search(text)
    return text


def test_simple_comparisons_reach_the_parquet_reader(engine: Any, table_scan: Any) -> None:
    plan = table_scan.filter((col("a") > 0) & (col("s") == "x")).filter(col("x").isin([1.5, 2.5]))
    text = physical(engine, plan.filter(col("s").starts_with("x")), ordered=True)
    pushed = re.search(r"PushedFilters: \[(.*?)\]\n", text)
    assert pushed is not None
    for part in ("GreaterThan(a,0)", "EqualTo(s,x)", "In(x, [1.5,2.5])", "StringStartsWith(s,x)"):
        assert part in pushed[1], text


def test_typed_literals_are_pushed_as_values(engine: Any, scan_of: Any) -> None:
    plan = scan_of(pa.table({"i": pa.array([1], pa.int16()), "d": pa.array([1], pa.date32())}))
    text = physical(engine, plan.filter((col("i") == 1) & (col("d") >= lit("1970-01-02"))))
    assert "EqualTo(i,1)" in text
    assert "GreaterThanOrEqual(d,1970-01-02)" in text


def test_nested_columns_are_pruned_and_pushed(engine: Any, table_scan: Any) -> None:
    plan = table_scan.filter(path("tree.deep.n") > 0).select(
        path("tree.list[*].p").alias("p"), path("tree.deep.n")
    )
    text = physical(engine, plan)
    assert (
        "ReadSchema: struct<tree:struct<deep:struct<n:bigint>,list:array<struct<p:bigint>>>>"
        in text
    )
    assert "GreaterThan(tree.deep.n,0)" in text


def test_a_question_about_one_member_is_asked_of_a_list_of_members(
    engine: Any, table_scan: Any
) -> None:
    text = physical(engine, table_scan.filter(path("tree.list").any(path("q").contains("x"))))
    assert re.search(r"exists\(tree#\d+\.list\.q, ", text), text
    text = physical(engine, table_scan.filter(path("tree.list").any(path("q") == "x")))
    assert re.search(r"array_contains\(tree#\d+\.list\.q, x\)", text), text
    both = path("tree.list").any((path("q") == "x") & (path("p") > 1))
    assert re.search(r"exists\(tree#\d+\.list, ", physical(engine, table_scan.filter(both)))


PARSED = Struct.of(
    n=LONG, at=TIMESTAMP, deep=Struct.of(day=DATE, tiny=BYTE), days=List(DATE), by=Map(STRING, DATE)
)


def test_text_is_read_as_json_once(engine: Any, table_scan: Any, tmp_path: Path) -> None:
    """However many members are looked at in the end."""
    parsed = table_scan.select(p=col("s").parse_json(PARSED)).select(path("p.n"), path("p.deep"))
    added = table_scan.parse_json("s", PARSED, output="p").select("p")
    (tmp_path / "x.json").write_text('{"n": 1}\n')
    lines = Scan("json", (File(str(tmp_path / "x.json")),), PARSED)
    for plan in (parsed, added, lines):
        text = physical(engine, plan)
        reads = re.findall(r"from_json\([^()]*\(\w[^()]*\([^()]*\(n,LongType", text)
        assert len(reads) == 1, text


def test_a_query_with_lambdas_is_the_same_code_when_it_is_asked_again(
    engine: Any, table_scan: Any
) -> None:
    def code() -> str:
        wanted = path("tree.list").any((path("q") != "x") & (path("p") > 1))
        df = engine.to_dataframe(table_scan.filter(wanted).select("a"), ordered=False)
        debug = df.sparkSession._jvm.org.apache.spark.sql.execution.debug
        text = str(debug.package.codegenString(df._jdf.queryExecution().executedPlan()))
        return "\n".join(re.findall(r"^/\* \d+ \*/.*$", text, re.MULTILINE))

    first = code()
    assert "element_1" in first
    assert code() == first


def test_only_the_columns_of_the_result_are_read(engine: Any, table_scan: Any) -> None:
    assert "ReadSchema: struct<s:string>" in physical(engine, table_scan.select("s"))
    counted = physical(engine, table_scan.aggregate(n=agg.count()))
    assert "ReadSchema: struct<>" in counted


def test_nothing_is_added_when_the_order_does_not_matter(engine: Any, table_scan: Any) -> None:
    plan = table_scan.filter(col("a") > 0).select("a", (col("x") * 2.0).alias("y"))
    text = physical(engine, plan)
    assert "monotonically_increasing_id" not in text
    assert "cast" not in text.lower()
    assert "Exchange" not in text


def test_a_natural_order_costs_nothing_either(engine: Any, table_scan: Any) -> None:
    text = physical(engine, table_scan.filter(col("a") > 0), ordered=True)
    assert "monotonically_increasing_id" not in text
    assert "Exchange" not in text


def test_top_k_keeps_the_best_rows_only(engine: Any, table_scan: Any) -> None:
    text = physical(engine, table_scan.top_k(3, col("x").desc()), ordered=True)
    assert "TakeOrderedAndProject" in text
    assert "Exchange" not in text


def test_grouping_shuffles_once(engine: Any, table_scan: Any) -> None:
    plan = table_scan.aggregate("s", n=agg.count(), m=agg.mean("x"))
    assert len(re.findall(r"Exchange \(", physical(engine, plan))) == 1
    ordered = physical(engine, plan, ordered=True)
    assert len(re.findall(r"Exchange \(", ordered)) == 2


def test_joins_and_windows_are_native(engine: Any, table_scan: Any) -> None:
    other = table_scan.select(col("a").alias("b"))
    assert "Join" in physical(engine, table_scan.join(other, on=[("a", "b")]), ordered=True)
    window = table_scan.window("r", "row_number", partition_by=["s"], order_by=["x"])
    assert "Window" in physical(engine, window, ordered=True)


def test_casts_stand_only_where_the_plan_has_them(engine: Any, table_scan: Any) -> None:
    text = physical(engine, table_scan.select(col("a").cast(INTEGER).alias("i")))
    assert text.lower().count("cast(") == 1


def test_explain_shows_the_plan_and_reads_nothing(
    engine: Any, table_scan: Any, tmp_path: Any
) -> None:
    text = engine.explain(table_scan.filter(col("a") > 0))
    assert "PushedFilters" in text
    (tmp_path / "part 0.parquet").write_bytes(b"not parquet")
    assert engine.explain(table_scan.filter(col("a") > 0)).count("PushedFilters") == 1


def test_members_are_taken_out_before_rows_are_sorted(engine: Any, table_scan: Any) -> None:
    best = table_scan.top_k(3, path("tree.deep.n").desc(), "a")
    text = physical(engine, best.select("a", path("tree.deep.unused").alias("u")), ordered=True)
    carried = re.search(r"TakeOrderedAndProject\nInput \[\d+\]: \[(.*)\]$", text, re.MULTILINE)
    assert carried is not None, text
    assert [name.partition("#")[0] for name in carried[1].split(", ")][:3] == ["a", "u", "_key0"]
    assert "tree" not in carried[1]
    whole = physical(engine, best.select("a", "tree"), ordered=True)
    assert "_key" not in whole

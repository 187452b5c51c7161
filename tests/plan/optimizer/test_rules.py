"""Corners of single rules that the cases do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.plan import aggregates as agg
from millpond.plan.bound import conjuncts
from millpond.plan.expr import col, lit, path
from millpond.plan.make import sql, stored, values
from millpond.plan.optimizer import optimize
from millpond.plan.optimizer.fold_constants import fold_constants
from millpond.plan.optimizer.fuse_filters import fuse_filters
from millpond.plan.optimizer.fuse_topk import fuse_topk
from millpond.plan.optimizer.merge_projects import merge_projects
from millpond.plan.optimizer.prune_columns import prune_columns
from millpond.plan.optimizer.push_limits import push_limits
from millpond.plan.optimizer.push_predicates import MAX_CONJUNCTS, push_predicates
from millpond.plan.order import Head, TopK
from millpond.plan.rows import Filter, Project
from millpond.plan.sources import CsvOptions, File, Scan, Stored, Values
from millpond.plan.streams import Sql
from millpond.plan.tree import find, topological
from millpond.plan.types import LONG, STRING, Field, List, Map, Struct
from millpond.testing.engine.parts import FirstOfKey

if TYPE_CHECKING:
    from millpond.plan.node import Plan

ABC = Struct.of(a=LONG, b=LONG, c=STRING)
STRICT = Struct((Field("a", LONG, False), Field("b", LONG)))


def scan(columns: Struct = ABC, csv: CsvOptions | None = None) -> Scan:
    return Scan("csv" if csv else "parquet", (File("f", 10, 10),), columns, csv=csv)


def read(plan: Plan) -> Struct:
    """The columns of the one source of a plan."""
    (source,) = [node for node in topological(plan) if not node.children]
    return source.schema


def test_a_stored_path_is_asked_for_whole_columns_only() -> None:
    columns = Struct.of(a=LONG, s=Struct.of(x=LONG, y=LONG))
    best = prune_columns(stored("/t", columns).select(x=path("s.x")))
    (found,) = find(best, lambda node: isinstance(node, Stored))
    assert found.schema == columns.select(["s"])


def test_a_query_text_may_look_at_every_column() -> None:
    query = sql("SELECT a FROM t", schema=Struct.of(a=LONG), t=scan())
    assert prune_columns(query) is query
    assert isinstance(query, Sql)


def test_columns_of_a_headerless_csv_keep_their_places() -> None:
    csv = scan(csv=CsvOptions(has_header=False))
    assert read(prune_columns(csv.select("b"))) == ABC
    assert read(prune_columns(scan(csv=CsvOptions()).select("b"))).names == ("b",)


def test_a_map_is_read_as_a_whole() -> None:
    columns = Struct.of(m=Map(STRING, Struct.of(x=LONG, y=LONG)), z=LONG)
    best = prune_columns(scan(columns).select(x=path("m.k.x")))
    assert read(best) == columns.select(["m"])


def test_nested_quantifiers_need_what_the_innermost_looks_at() -> None:
    inner = Struct.of(n=STRING, size=LONG)
    columns = Struct.of(c=List(Struct.of(files=List(inner), who=STRING)), z=LONG)
    some = path("c").any(path("files").any(path("size") > 3))
    best = prune_columns(scan(columns).filter(some).select("z"))
    wanted = Struct.of(c=List(Struct.of(files=List(Struct.of(size=LONG)))), z=LONG)
    assert read(best) == wanted


def test_a_list_of_lists_is_read_as_it_is() -> None:
    columns = Struct.of(v=List(List(Struct.of(x=LONG, y=LONG))), z=LONG)
    best = prune_columns(scan(columns).select(x=path("v[*][*].x"), first=path("v[0][1].x")))
    assert read(best) == Struct.of(v=List(List(Struct.of(x=LONG))))


def test_both_consumers_of_a_scan_are_served() -> None:
    source = scan()
    both = source.select(x=col("a")).union(source.filter(col("c") == "u").select(x=col("b")))
    best = prune_columns(both)
    assert sum(isinstance(node, Scan) for node in topological(best)) == 1
    assert read(best) == ABC
    few = source.select(x=col("a")).union(source.filter(col("b") > 1).select(x=col("b")))
    assert read(prune_columns(few)).names == ("a", "b")


def test_never_null_stays_never_null() -> None:
    plan = scan(STRICT).select("a", "b").filter(col("a") > 1)
    assert merge_projects(plan) is plan, "without the projection, a would not be nullable"
    kept = scan(STRICT).filter(col("a") > 1).sort("b").head(3)
    assert optimize(kept).schema == STRICT


def test_metadata_survives() -> None:
    marked = Struct((Field("a", LONG).with_metadata({"id": 7}), Field("b", LONG)))
    none = scan(marked).filter(lit(False))
    assert optimize(none).schema == marked
    assert isinstance(optimize(none), Filter), "rows in memory would forget the metadata"
    assert isinstance(optimize(scan(marked).head(0)), Head)


def test_shared_parts_are_not_split() -> None:
    common = scan().select("a", "b").sort("b")
    plan = common.head(3).union(common.filter(col("a") > 1))
    assert fuse_topk(plan) is plan
    assert push_limits(plan) is plan
    assert push_predicates(plan) is plan
    twice = scan().filter(col("a") > 1)
    pair = twice.filter(col("b") > 1).union(twice)
    assert fuse_filters(pair) is pair


def test_long_conjunctions_are_not_carried_far() -> None:
    plan: Plan = scan().select("a", "b")
    for number in range(MAX_CONJUNCTS + 1):
        plan = plan.filter(col("a") > number)
    fused = fuse_filters(plan)
    assert push_predicates(fused) is fused
    assert isinstance(fused, Filter)
    assert len(conjuncts(fused.predicate)) == MAX_CONJUNCTS + 1


def test_a_predicate_that_raises_does_not_overtake_its_guard() -> None:
    rows = scan().select("a", s=col("b") + 1)
    guarded = rows.filter((col("s") != 0) & (1 / col("a") > 2) & (col("a") > 0))
    best = push_predicates(guarded)
    assert isinstance(best, Filter)
    assert str(best.predicate) == "((s != 0) and ((1.0 / cast(a as double)) > 2.0))"
    below = best.input
    assert isinstance(below, Project)
    assert isinstance(below.input, Filter)
    assert str(below.input.predicate) == "(a > 0)"


def test_the_smaller_limit_counts() -> None:
    best = push_limits(scan().head(3).head(7).head(5))
    assert isinstance(best, Head)
    assert best.n == 3
    assert isinstance(best.input, Scan)
    top = push_limits(scan().top_k(9, "a").head(4))
    assert isinstance(top, TopK)
    assert top.n == 4


def test_a_limit_that_changes_nothing_goes() -> None:
    few = values([{"a": 1}, {"a": 2}])
    assert push_limits(few.head(2)) is few
    one = scan().aggregate(n=agg.count())
    assert push_limits(one.head(1)) is one
    assert isinstance(push_limits(scan().sort("a").tail(0)), Values)


@pytest.mark.parametrize("value", [False, None])
def test_a_filter_that_is_never_true_leaves_an_empty_table(value: bool | None) -> None:
    best = fold_constants(scan().filter(lit(value)))
    assert isinstance(best, Values)
    assert best.data.num_rows == 0
    assert best.schema == ABC


def test_a_row_filter_sees_its_rows_though_none_are_kept() -> None:
    plan = scan().filter_ordered(FirstOfKey("a")).filter(lit(False))
    assert fold_constants(plan) is plan


def test_keys_do_not_become_literals() -> None:
    plan = scan().sort(lit(1) + 1, "a")
    assert fold_constants(plan) is plan

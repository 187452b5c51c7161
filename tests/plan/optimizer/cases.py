"""Plans that show what each rule does, over data small enough to run on every engine.

`test_fixtures.py` compares each with its text in tests/plan/fixtures/optimizer, `test_executed.py`
runs both forms. A case whose plan the rule has to leave alone says so with `changes=False`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.plan import aggregates as agg
from millpond.plan.expr import Expr, col, if_else, lit, path
from millpond.plan.types import LONG, STRING, Struct
from millpond.testing.engine.parts import FirstOfKey, RunningSum, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.plan.optimizer.sources import Sources

    from millpond.plan.node import Plan
    from millpond.plan.rows import JoinKind


@dataclass(frozen=True, slots=True)
class Case:
    """A plan for one rule; `optimize` is the name for all of them together."""

    name: str
    rule: str
    plan: Callable[[Sources], Plan]
    changes: bool = True
    engines: tuple[str, ...] = ("arrow", "spark")


CASES: list[Case] = []
register()


def case(
    rule: str, *, changes: bool = True, engines: tuple[str, ...] = ("arrow", "spark")
) -> Callable[[Callable[[Sources], Plan]], None]:
    """Register the function below as a case, under its own name."""

    def register(build: Callable[[Sources], Plan]) -> None:
        CASES.append(Case(build.__name__.strip("_"), rule, build, changes, engines))

    return register


@case("fuse_filters")
def _three_filters(s: Sources) -> Plan:
    rows = s.numbers().filter(col("a") > 0).filter(col("b") < 2)
    return rows.filter(col("c").is_not_null())


@case("fuse_filters", changes=False)
def _a_filter_that_raises_stays_apart(s: Sources) -> Plan:
    return s.numbers().filter(col("b") != 0).filter(col("a") % col("b") == 0)


@case("push_predicates")
def _filter_below_project(s: Sources) -> Plan:
    renamed = s.orders().select(n=path("owner.name"), who=col("owner"), twice=col("id") * 2)
    return renamed.filter((col("n") == "o1") & (path("who.age") > 2) & (col("twice") > 3))


@case("push_predicates")
def _filter_into_union(s: Sources) -> Plan:
    both = s.numbers().union(s.numbers().select("a", b=col("c"), c=col("b")))
    return both.filter(col("b") > -4)


@case("push_predicates")
def _filter_below_sort_and_parse(s: Sources) -> Plan:
    parsed = s.orders().parse_json("text", Struct.of(k=LONG, w=STRING), output="j")
    return parsed.sort(col("id").desc()).filter((path("j.k") > 3) & (col("id") < 30))


@case("push_predicates")
def _filter_below_groups_by_key_only(s: Sources) -> Plan:
    groups = s.orders().aggregate("site", n=agg.count(), last=agg.last("id"))
    return groups.filter((col("site") == "a") & (col("n") > 1))


@case("push_predicates", changes=False)
def _fractional_keys_hide_the_sign_of_zero(s: Sources) -> Plan:
    return s.orders().aggregate("level", n=agg.count()).filter(col("level").cast(STRING) == "0.0")


@case("push_predicates", engines=("spark",))
def _filter_below_window_by_its_keys(s: Sources) -> Plan:
    numbered = s.orders().window("n", "row_number", partition_by=["site"], order_by=["id"])
    return numbered.filter((col("site") == "b") & (col("id") > 4)).drop("items", "owner")


def _joined(s: Sources, how: JoinKind, predicate: Expr) -> Plan:
    left = s.orders().select("id", "site", age=path("owner.age"))
    return left.join(s.sites(), on="site", how=how).filter(predicate)


@case("push_predicates")
def _filter_below_inner_join(s: Sources) -> Plan:
    return _joined(s, "inner", (col("id") > 3) & (col("factor") > 0) & (col("id") > col("factor")))


# Spark itself moves such a filter below the join, and fails where Arrow does not.
@case("push_predicates", changes=False, engines=("arrow",))
def _a_filter_that_raises_stays_above_a_join(s: Sources) -> Plan:
    # The site whose d is 0 has no orders: only below the join would it be divided by.
    sites = s.sites().select("site", d=col("factor") - 5)
    joined = s.orders().select("id", key=col("site")).join(sites, on=[("key", "site")])
    return joined.filter(10 / col("d") < 0)


@case("push_predicates")
def _filter_below_left_join(s: Sources) -> Plan:
    return _joined(s, "left", (col("id") > 3) & col("name").is_null())


@case("push_predicates")
def _filter_below_semi_join(s: Sources) -> Plan:
    return _joined(s, "semi", col("age") > 2)


@case("push_predicates")
def _filter_below_anti_join(s: Sources) -> Plan:
    return _joined(s, "anti", col("age") > 2)


@case("push_predicates", changes=False)
def _filter_stays_above_head_and_shuffle(s: Sources) -> Plan:
    return s.numbers().shuffle(seed=7).head(8).filter(col("b") == 1)


@case("push_predicates", changes=False)
def _filter_stays_above_full_join(s: Sources) -> Plan:
    left = s.numbers()
    right = s.numbers().select(x=col("a"), y=col("c"))
    return left.join(right, on=[("b", "x")], how="full").filter(col("c") < 0)


@case("push_predicates", changes=False)
def _filter_stays_above_what_remembers(s: Sources) -> Plan:
    firsts = s.numbers().filter_ordered(FirstOfKey("b")).filter(col("b") > 0)
    return firsts.stateful("total", RunningSum(), "c", partition_by=["b"]).filter(col("b") < 2)


@case("push_predicates")
def _filter_by_what_names_a_file(s: Sources) -> Plan:
    return s.named_files().filter((col("part") == "p1") & (col("id") > 22)).select("id", "part")


@case("push_limits")
def _head_below_what_remembers(s: Sources) -> Plan:
    return s.numbers().stateful("total", RunningSum(), "c").head(4)


@case("push_limits")
def _head_below_project(s: Sources) -> Plan:
    return s.numbers().with_columns(d=col("a") + 1).head(9).select("d", "c").head(4)


@case("push_limits")
def _head_into_union(s: Sources) -> Plan:
    return s.scan().select("id").union(s.numbers().select(id=col("c"))).head(3)


@case("push_limits")
def _head_of_nothing(s: Sources) -> Plan:
    return s.orders().select("id").head(0)


@case("push_limits")
def _tails_and_heads(s: Sources) -> Plan:
    return s.numbers().tail(9).tail(4).head(30)


@case("push_limits", changes=False)
def _head_stays_above_filter(s: Sources) -> Plan:
    return s.numbers().filter(col("a") > 1).head(3)


@case("fuse_topk")
def _head_of_sort(s: Sources) -> Plan:
    return s.orders().sort(col("level").desc(), "site").select("id", "level").head(6)


@case("fuse_topk")
def _head_of_topk(s: Sources) -> Plan:
    return s.orders().select("id", "site").top_k(9, "site").head(5)


@case("merge_projects")
def _rename_twice(s: Sources) -> Plan:
    first = s.orders().select(a=col("id") + 1, o=col("owner"), k=lit(7))
    return first.select("a", n=path("o.name"), m=col("k") * 2)


@case("merge_projects", changes=False)
def _work_is_not_repeated(s: Sources) -> Plan:
    return s.numbers().select(d=col("a") * 3).select("d", e=col("d") + col("d"))


@case("merge_projects")
def _identity(s: Sources) -> Plan:
    return s.numbers().select("a", "b", "c").filter(col("a") > 1)


@case("prune_columns")
def _nested_members(s: Sources) -> Plan:
    pricey = path("items").any((path("price") > 20) & (path("sku") != "s9"))
    return s.scan().filter(pricey & (path("owner.age") > 1)).select("id", "part")


@case("prune_columns")
def _members_of_each_element(s: Sources) -> Plan:
    whole = s.scan().select("id", its=col("items"))
    return whole.select("id", prices=path("its[*].price"), n=col("its").len())


@case("prune_columns")
def _presence(s: Sources) -> Plan:
    return s.scan().filter(col("owner").is_not_null()).select("id")


@case("prune_columns")
def _sides_of_a_join(s: Sources) -> Plan:
    left = s.scan().filter(col("level") > 0)
    return left.join(s.sites(), on="site").aggregate("name", n=agg.count("id"), m=agg.max("id"))


@case("prune_columns", engines=("spark",))
def _unused_measures_and_windows(s: Sources) -> Plan:
    groups = s.orders().aggregate("site", n=agg.count(), top=agg.max("level"))
    numbered = groups.window("r", "row_number", order_by=["n"])
    return numbered.window("q", "lag", "n", order_by=["n"]).select("site", "q")


@case("prune_columns")
def _union_that_can_drop_members(s: Sources) -> Plan:
    both = s.scan().filter(col("id") < 9).union(s.scan().filter(col("id") > 33))
    return both.select("id", name=path("owner.name"))


@case("prune_columns")
def _union_that_can_not_drop_members(s: Sources) -> Plan:
    both = s.scan().drop("part").union(s.orders())
    return both.filter(path("owner.age") > 3).select("id", name=path("owner.name"))


@case("prune_columns")
def _only_the_number_of_rows(s: Sources) -> Plan:
    return s.scan().sort("site").aggregate(n=agg.count())


@case("prune_columns")
def _parsed_members(s: Sources) -> Plan:
    parsed = s.scan().parse_json("text", Struct.of(k=LONG, w=STRING), output="j")
    return parsed.select("id", w=path("j.w"))


@case("prune_columns")
def _sorted_by_what_is_not_shown(s: Sources) -> Plan:
    return s.scan().sort(path("owner.age").desc(nulls="first")).select("id")


@case("prune_columns")
def _columns_that_are_remembered(s: Sources) -> Plan:
    firsts = s.scan().filter_ordered(FirstOfKey("site"))
    summed = firsts.stateful("total", RunningSum(), "id", where=path("owner.age") > 1)
    return summed.select("total")


@case("prune_columns")
def _files_that_rows_name(s: Sources) -> Plan:
    return s.named_files().filter(path("owner.age") > 2).select("id")


@case("order_conjuncts")
def _selective_and_cheap_first(s: Sources) -> Plan:
    likes = col("text").like("%v1%")
    return (
        s.orders()
        .select("id", "text", "site")
        .filter(likes & (col("id") > 5) & (col("site") == "a"))
    )


@case("order_conjuncts")
def _what_is_seldom_null_is_asked_last(s: Sources) -> Plan:
    in_range = col("id").is_null() | ((col("id") >= 5) & (col("id") <= 7))
    return s.orders().select("id", "text").filter(col("text").is_not_null() & in_range)


@case("order_conjuncts")
def _what_raises_keeps_its_guard(s: Sources) -> Plan:
    guard, divides = col("b") != 0, col("a") % col("b") == 0
    return s.numbers().filter(guard & divides & (col("a") == 1))


@case("order_conjuncts")
def _statistics_count(s: Sources) -> Plan:
    rows = s.scan(with_stats=True).select("id", "site", "part")
    return rows.filter((col("site") == "a") & (col("id") > 38))


@case("fold_constants")
def _literals(s: Sources) -> Plan:
    rows = s.numbers().filter((col("a") > lit(2) * 3 - 5) & (lit(True) | (col("b") > 1)))
    return rows.select("a", k=lit("x").concat("y"), t=if_else(lit(2) > 1, col("b"), col("c")))


@case("fold_constants")
def _never_true(s: Sources) -> Plan:
    return s.numbers().filter((col("a") > 1) & (lit(1) > 2))


@case("fold_constants", changes=False)
def _an_error_is_not_folded_away(s: Sources) -> Plan:
    return s.numbers().head(0).filter((1 / col("b") > 0) & lit(False))


@case("optimize")
def _all_together(s: Sources) -> Plan:
    joined = s.scan().join(s.sites(), on="site").filter((col("level") > 0) & (col("factor") > 0))
    shown = joined.sort(col("at").desc()).select("id", "name", age=path("owner.age"))
    return shown.filter(col("age").is_not_null() & lit(True)).head(4)


@case("optimize")
def _shared_parts_stay_shared(s: Sources) -> Plan:
    common = s.scan().filter(col("id") > 2)
    few = common.select("id", v=path("owner.age"))
    return few.filter(col("v") > 1).union(common.select("id", v=col("id") * 2)).sort("id").head(7)

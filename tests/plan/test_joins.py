"""Joins as people ask for them: a shared key appears once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.rows import Join, Project
from millpond.plan.tree import find

if TYPE_CHECKING:
    from millpond.plan.node import Plan

LEFT = values([], t.Struct.of(k=t.LONG, a=t.STRING, n=t.INTEGER))
RIGHT = values([], t.Struct.of(k=t.LONG, b=t.STRING, m=t.LONG))


def _join(plan: object) -> Join:
    (found,) = find(plan, lambda node: isinstance(node, Join))  # type: ignore[type-var]
    assert isinstance(found, Join)
    return found


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_a_shared_name_appears_once(how: str) -> None:
    plan = LEFT.join(RIGHT, on="k", how=how)  # type: ignore[arg-type]
    assert isinstance(plan, Project)
    assert plan.schema.names == ("k", "a", "n", "b", "m")
    assert _join(plan).how == how


def test_a_full_join_takes_the_key_from_either_side() -> None:
    plan = LEFT.join(RIGHT, on="k", how="full")
    assert plan.label().startswith("k := coalesce(k, _right_k), a, ")


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_one_sided_joins_keep_the_left_side(how: str) -> None:
    plan = LEFT.join(RIGHT, on="k", how=how)  # type: ignore[arg-type]
    assert isinstance(plan, Join)
    assert plan.schema == LEFT.schema


def test_pairs_keep_both_columns() -> None:
    plan = LEFT.select("a", "n").join(RIGHT, on=[("n", "m"), (col("a"), col("b").lower())])
    assert plan.schema.names == ("a", "n", "k", "b", "m")
    assert _join(plan).label() == "inner on cast(n as long) = m and a = lower(b)"


def test_names_and_pairs_together() -> None:
    plan = LEFT.join(RIGHT, on=["k", (col("n"), col("k") + 1), (col("a"), "b")])
    label = _join(plan).label()
    assert label == "inner on k = _right_k and cast(n as long) = (_right_k + 1) and a = b"


def test_names_inside_of_lists_are_not_renamed() -> None:
    right = values([], t.Struct.of(k=t.LONG, li=t.List(t.Struct.of(k=t.LONG))))
    left = values([], t.Struct.of(k=t.LONG, o=t.BOOLEAN))
    plan = left.join(right, on=["k", ("o", path("li").any(col("k") > 1))])
    assert "o = any(li, (k > 1))" in _join(plan).label()


def test_the_hidden_name_is_free() -> None:
    right = values([], t.Struct.of(k=t.LONG, _right_k=t.LONG))
    plan = LEFT.join(right, on="k")
    assert plan.schema.names == ("k", "a", "n", "_right_k")


def test_keys_meet_in_one_type() -> None:
    right = values([], t.Struct.of(n=t.LONG, z=t.LONG))
    plan = LEFT.join(right, on="n", nulls_equal=True)
    assert _join(plan).label() == "inner on cast(n as long) <=> _right_n"
    assert plan.schema.field("n").type == t.INTEGER
    assert LEFT.join(right, on="n", how="full").schema.field("n").type == t.LONG


@pytest.mark.parametrize(
    ("on", "error", "message"),
    [
        ("a", SchemaError, "the right side of the join has no column 'a'"),
        ("b", SchemaError, "the left side of the join has no column 'b'"),
        (["k", "zz"], SchemaError, "the left side of the join has no column 'zz'"),
        ([("a", "m")], TypeMismatchError, r"join keys a \(string\) and m \(long\) have no common"),
        ([], PlanError, "at least one key"),
        ([("a", "b")], SchemaError, "both sides of the join have a column 'k'"),
    ],
)
def test_wrong_joins_are_told_in_the_users_words(
    on: list[str], error: type[PlanError], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        LEFT.join(RIGHT, on=on)
    assert "_right_" not in str(raised.value)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(PlanError, match="unknown join 'outer'") as error:
        LEFT.join(RIGHT, on="k", how="outer")  # type: ignore[arg-type]
    assert "full" in str(error.value.hint)


L = values([{"k": 1, "a": "x"}, {"k": 2, "a": "y"}])
R = values([{"k": 3, "a": "p"}, {"k": 2, "a": "q"}, {"k": 2, "a": "r"}])


def _rows(plan: Plan) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in plan.to_pylist(engine="arrow")]


def test_a_suffix_for_what_both_sides_have() -> None:
    plan = L.join(R, on="k", suffix="_r")
    assert plan.schema.names == ("k", "a", "a_r")
    assert _rows(plan) == [(2, "y", "q"), (2, "y", "r")]
    pairs = L.join(R, on=[("k", "k"), ("a", col("a").upper())], how="full", suffix="_r")
    assert pairs.schema.names == ("k", "a", "k_r", "a_r")
    with pytest.raises(SchemaError, match="both sides of the join have a column 'a'") as caught:
        L.join(R, on="k")
    assert "suffix=" in str(caught.value.hint)
    with pytest.raises(SchemaError, match="'a_r'"):
        L.with_columns(a_r=col("k")).join(R, on="k", suffix="_r")


def test_a_right_join_keeps_the_right_side_and_its_order() -> None:
    plan = L.join(R, on="k", how="right", suffix="_r")
    assert plan.schema.names == ("k", "a", "a_r")
    assert _rows(plan) == [(3, None, "p"), (2, "y", "q"), (2, "y", "r")]
    pairs = L.join(R, on=[("k", "k")], how="right", suffix="_r")
    assert pairs.schema.names == ("k", "a", "k_r", "a_r")
    assert _rows(pairs) == [(None, None, 3, "p"), (2, "y", 2, "q"), (2, "y", 2, "r")]


def test_a_cross_join_has_all_pairs_in_order() -> None:
    plan = L.select("a").join(R.select(b=col("a")), how="cross")
    assert _rows(plan) == [(a, b) for a in "xy" for b in "pqr"]
    assert _rows(L.join(R.head(0), how="cross", suffix="_r")) == []
    with pytest.raises(PlanError, match="a cross join has no keys"):
        L.join(R, on="k", how="cross")


def test_kinds_and_keys_that_are_not_there() -> None:
    with pytest.raises(PlanError, match="unknown join 'outer'") as caught:
        L.join(R, on="k", how="outer")  # type: ignore[arg-type]
    assert "right, cross" in str(caught.value.hint)
    with pytest.raises(PlanError, match="at least one key") as caught:
        L.join(R)
    assert "how='cross'" in str(caught.value.hint)

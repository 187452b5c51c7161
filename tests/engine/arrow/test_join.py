"""Joins against a naive one, of every kind."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import BudgetExceededError
from millpond.plan.make import values
from millpond.plan.rows import JOIN_KINDS

if TYPE_CHECKING:
    from millpond.plan.node import Plan

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [None, 0, 1, -5, 2**62, 7]),
    "short": (pa.int16(), [None, *range(6)]),
    "text": (pa.string(), [None, "", "a", "é"]),
    "double": (pa.float64(), [None, 0.0, -0.0, math.nan, 1.5]),
    "flag": (pa.bool_(), [None, True, False]),
}


def table(rnd: random.Random, names: list[str], rows: int, label: str) -> pa.Table:
    columns = {
        f"{label}{i}": pa.array([rnd.choice(KEYS[n][1]) for _ in range(rows)], KEYS[n][0])
        for i, n in enumerate(names)
    }
    return pa.table({**columns, f"{label}_row": pa.array(range(rows), pa.int64())})


def key_of(row: dict[str, Any], count: int, label: str) -> tuple[Any, ...]:
    values = (row[f"{label}{i}"] for i in range(count))
    return tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in values)


def naive(
    left: list[Any], right: list[Any], count: int, how: str, *, nulls_equal: bool
) -> list[Any]:
    found, used = [], set()
    for a in left:
        key = key_of(a, count, "l")
        partners = [
            i
            for i, b in enumerate(right)
            if key_of(b, count, "r") == key and (nulls_equal or None not in key)
        ]
        if how in ("semi", "anti"):
            found += [a] if bool(partners) == (how == "semi") else []
            continue
        used.update(partners)
        found += [{**a, **right[i]} for i in partners]
        if not partners and how != "inner":
            found.append({**a, **dict.fromkeys(right[0] if right else [])})
    if how == "full":
        rest = [b for i, b in enumerate(right) if i not in used]
        found += [{**dict.fromkeys(left[0] if left else []), **b} for b in rest]
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", JOIN_KINDS)
def test_random_joins(seed: Any, how: Any, run: Any, tiny: Any, same: Any) -> None:
    rnd = random.Random(seed)
    names = rnd.choices(sorted(KEYS), k=rnd.randint(1, 3))
    left, right = table(rnd, names, 60, "l"), table(rnd, names, rnd.choice([1, 20]), "r")
    on = [(f"l{i}", f"r{i}") for i in range(len(names))]
    for nulls_equal in (False, True):
        plan: Plan = values(left).join(values(right), on=on, how=how, nulls_equal=nulls_equal)
        expected = naive(
            left.to_pylist(), right.to_pylist(), len(names), how, nulls_equal=nulls_equal
        )
        assert same(run(plan)[0], expected)
        assert same(run(plan, tiny)[0], expected)


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_empty_sides(how: Any, run: Any) -> None:
    rnd = random.Random(1)
    some, none = table(rnd, ["long"], 3, "l"), table(rnd, ["long"], 0, "r")
    found, _ = run(values(some).join(values(none), on=[("l0", "r0")], how=how))
    empty = {"r0": None, "r_row": None}
    expected = {"inner": [], "semi": [], "anti": some.to_pylist()}
    assert found == expected.get(how, [{**row, **empty} for row in some.to_pylist()])
    found, _ = run(values(none).join(values(some), on=[("r0", "l0")], how=how))
    assert found == ([{**empty, **row} for row in some.to_pylist()] if how == "full" else [])


def test_one_key_with_many_partners_comes_in_batches(run: Any, tiny: Any) -> None:
    left = values(pa.table({"a": [1, 2, 1]}))
    right = values(pa.table({"b": [1] * 18, "n": list(range(18))}))
    rows, _ = run(left.join(right, on=[("a", "b")], how="left"), tiny)
    assert [row["n"] for row in rows] == [*range(18), None, *range(18)]


def test_a_shared_key_appears_once(run: Any) -> None:
    left, right = pa.table({"k": [1, 2], "x": ["a", "b"]}), pa.table({"k": [2, 3], "y": [0.5, 1.5]})
    rows, _ = run(values(left).join(values(right), on="k", how="full"))
    assert rows == [
        {"k": 1, "x": "a", "y": None},
        {"k": 2, "x": "b", "y": 0.5},
        {"k": 3, "x": None, "y": 1.5},
    ]


def test_nested_columns_go_along(run: Any) -> None:
    left = values(pa.table({"k": [1, 2], "s": [{"a": [1]}, None]}))
    right = values(pa.table({"j": [2, 1, 2], "l": [[{"b": 1}], None, []]}))
    rows, _ = run(left.join(right, on=[("k", "j")]))
    assert [(row["s"], row["l"]) for row in rows] == [
        ({"a": [1]}, None),
        (None, [{"b": 1}]),
        (None, []),
    ]


def test_a_right_side_beyond_the_buffer_is_refused(run: Any, tiny: Any) -> None:
    one, many = values(pa.table({"a": [1]})), values(pa.table({"b": list(range(21))}))
    with pytest.raises(BudgetExceededError, match=r"arrow\.max_buffer_rows"):
        run(one.join(many, on=[("a", "b")]), tiny)
    assert len(run(many.join(one, on=[("b", "a")]), tiny)[0]) == 1

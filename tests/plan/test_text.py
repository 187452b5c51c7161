"""Plans and expressions as text: canonical, one line a node."""

from __future__ import annotations

from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.expr import col, lit
from millpond.plan.make import values
from millpond.plan.text import format_expr, one_line, shorten

P = values([{"a": 1, "b": "x"}])


def test_a_plan_is_one_numbered_line_a_node() -> None:
    base = P.filter(col("a") > 1)
    plan = base.head(3).union(base.tail(2).select("a", "b"))
    assert str(plan) == "\n".join(
        [
            "#0 Values [1 rows] (a: long, b: string)",
            "#1 Filter #0 (a > 1)",
            "#2 Head #1 3",
            "#3 Tail #1 2",
            "#4 Project #3 a, b",
            "#5 Union #2, #4",
        ]
    )


def test_line_ends_in_names_and_texts_do_not_break_lines() -> None:
    plan = P.select(**{"two\nlines": lit("x\ny")}).filter(col("two\nlines") == "\r")
    lines = str(plan).splitlines()
    assert len(lines) == 3
    assert lines[1] == r"#1 Project #0 two\nlines := 'x\ny'"
    assert "\n" not in repr(plan)


def test_representations_are_short() -> None:
    wide = values([], t.Struct(tuple(t.Field(f"column_{n}", t.LONG) for n in range(1000))))
    for plan in (wide, wide.select(*wide.schema.names), wide.filter(col("column_1") > 1)):
        assert len(repr(plan)) < 220
        assert repr(plan).startswith(f"<{plan.kind}")
    assert repr(P.union(P)) == "<Union>"
    assert repr(P.head(3)) == "<Head 3>"


def test_bound_and_unbound_expressions_read_alike() -> None:
    expr = (col("a") + 1 > 3) & ~col("b").is_null() | col("a").isin([1, 2])
    assert str(bind(expr, P.schema)) == str(expr)


def test_a_limit_cuts() -> None:
    expr = col("a") + 1 + 2 + 3
    assert format_expr(expr) == "(((a + 1) + 2) + 3)"
    assert format_expr(expr, limit=10) == "(((a + 1)…"
    assert format_expr(expr, limit=19) == "(((a + 1) + 2) + 3)"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
    assert one_line("a\tb\x00é") == r"a\tb\x00é"

"""Strings: code points, full case mapping, patterns."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError, PlanError
from millpond.plan.expr import Expr, col
from millpond.plan.types import STRING

S = col("s")
TEXTS: list[str | None] = ["", "Straße", "İstanbul", "ΟΔΟΣ", "a😀b", " x\t ", "abc", None]
ASCII: list[str | None] = ["", "AbC", "x y", None]


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (S.len(), [0, 6, 8, 4, 3, 4, 3, None]),
        (S.upper(), ["", "STRASSE", "İSTANBUL", "ΟΔΟΣ", "A😀B", " X\t ", "ABC", None]),
        (S.lower(), ["", "straße", "i̇stanbul", "οδος", "a😀b", " x\t ", "abc", None]),
        (S.trim(), ["", "Straße", "İstanbul", "ΟΔΟΣ", "a😀b", "x\t", "abc", None]),
        (S.substr(1, 2), ["", "tr", "st", "ΔΟ", "😀b", "x\t", "bc", None]),
        (S.substr(0, 0), [""] * 7 + [None]),
        (S.substr(9, 5), [""] * 7 + [None]),
        (S.substr(2, (1 << 63) - 1), ["", "raße", "tanbul", "ΟΣ", "b", "\t ", "c", None]),
        (S.contains("a"), [False, True, True, False, True, False, True, None]),
        (S.contains(""), [True] * 7 + [None]),
        (S.starts_with("a"), [False, False, False, False, True, False, True, None]),
        (S.starts_with(""), [True] * 7 + [None]),
        (S.ends_with("ße"), [False, True, False, False, False, False, False, None]),
        (S.ends_with(""), [True] * 7 + [None]),
        (S.replace_text("ß", "ss").substr(4, 9), ["", "sse", "nbul", "", "", "", "", None]),
        (S.replace_text("a", ""), ["", "Strße", "İstnbul", "ΟΔΟΣ", "😀b", " x\t ", "bc", None]),
        (S.concat("-", S).len(), [1, 13, 17, 9, 7, 9, 7, None]),
        (S.concat(), TEXTS),
    ],
    ids=str,
)
def test_function(expr: Expr, wanted: list[Any]) -> None:
    assert value_of(expr, s=(STRING, TEXTS)) == wanted


def test_ascii_takes_the_short_way_to_the_same_result() -> None:
    assert value_of(S.upper(), s=(STRING, ASCII)) == ["", "ABC", "X Y", None]
    assert value_of(S.lower(), s=(STRING, ASCII)) == ["", "abc", "x y", None]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("contains", [True, False, None, None, True]),
        ("starts_with", [False, False, None, None, True]),
        ("ends_with", [True, False, None, None, True]),
    ],
)
def test_a_text_that_is_a_column(name: str, wanted: list[Any]) -> None:
    found = value_of(
        getattr(S, name)(col("part")),
        s=(STRING, ["aß", "a", None, "a", ""]),
        part=(STRING, ["ß", "aa", "a", None, ""]),
    )
    assert found == wanted


LIKE: list[tuple[str, list[str], list[str]]] = [
    ("", [""], ["a"]),
    ("abc", ["abc"], ["abcd", "ABC", "xabc"]),
    ("%", ["", "a\nb"], []),
    ("%%", ["", "x"], []),
    ("_", ["a", "😀", "\n", "ß"], ["", "ab"]),
    ("a%", ["a", "a\nb"], ["ba"]),
    ("%a", ["a", "ba"], ["ab"]),
    ("%a%", ["a", "bab"], ["b"]),
    ("a_c", ["abc", "a\nc", "a😀c"], ["ac", "abbc"]),
    ("_%_", ["ab", "abc"], ["a", ""]),
    ("a%c%e", ["ace", "a\ncde"], ["aec"]),
    (r"100\%", ["100%"], ["1000", r"100\%"]),
    (r"\_x", ["_x"], ["ax"]),
    (r"a\\b", [r"a\b"], [r"a\\b"]),
    (r"\%%\%", ["%%", "%a%"], ["a%", "%"]),
    ("a.c", ["a.c"], ["abc"]),
    ("(a|b)*[c]$", ["(a|b)*[c]$"], ["c"]),
    ("_.%", ["a.", "a.b"], ["ab"]),
]


@pytest.mark.parametrize(("pattern", "hits", "misses"), LIKE, ids=lambda value: repr(value)[:20])
def test_like(pattern: str, hits: list[str], misses: list[str]) -> None:
    found = value_of(S.like(pattern), s=(STRING, [*hits, *misses, None]))
    assert found == [True] * len(hits) + [False] * len(misses) + [None]


@pytest.mark.parametrize("pattern", ["a\\", r"\a", r"a\bc%"])
def test_an_escape_before_anything_else_is_refused(pattern: str) -> None:
    with pytest.raises((EvaluationError, PlanError)):
        value_of(S.like(pattern), s=(STRING, ["a"]))

"""Path texts: read, written back, and refused with a pointer to the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base.errors import ExpressionSyntaxError
from millpond.plan.paths import Each, Index, Name, Step, format_path, parse_path


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", (Name("a"),)),
        ("a.b", (Name("a"), Name("b"))),
        ("a-b.c_1", (Name("a-b"), Name("c_1"))),
        ("payload.commits[*].author", (Name("payload"), Name("commits"), Each(), Name("author"))),
        ("a[0][-1]", (Name("a"), Index(0), Index(-1))),
        ('"Site.Temp.C".value', (Name("Site.Temp.C"), Name("value"))),
        ('"say ""hi"""', (Name('say "hi"'),)),
        ('""', (Name(""),)),
        ("straße.日本", (Name("straße"), Name("日本"))),
        ("[*].x", (Each(), Name("x"))),
    ],
)
def test_paths_are_read(text: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(text) == steps
    assert parse_path(format_path(steps)) == steps


_STEPS = st.lists(
    st.builds(Name, st.text(max_size=6)) | st.builds(Index, st.integers(-9, 9)) | st.just(Each()),
    min_size=1,
)


@given(_STEPS.map(tuple))
def test_written_paths_are_read_back(steps: tuple[Step, ...]) -> None:
    assert parse_path(format_path(steps)) == steps


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "a name is missing"),
        ("a.", 2, "a name is missing"),
        (".a", 0, "a name is missing"),
        ("a..b", 2, "a name is missing"),
        ("a.[0]", 2, "a name is missing"),
        ("a b", 1, "can't be read"),
        ('a"b"', 1, "a dot is missing"),
        ("a[0]b", 4, "a dot is missing"),
        ("a[x]", 1, "can't be read"),
        ('"open', 0, "can't be read"),
        ("1a", 0, "can't be read"),
        ("a[99999999999]", 1, "no list is this long"),
        ("a[3000000000]", 1, "no list is this long"),
        ("a[" + "9" * 5000 + "]", 1, "no list is this long"),
    ],
)
def test_what_is_no_path_is_pointed_at(text: str, position: int, message: str) -> None:
    with pytest.raises(ExpressionSyntaxError, match=message) as error:
        parse_path(text)
    assert error.value.position == position
    assert error.value.text == text
    assert str(error.value).splitlines()[2] == "  " + " " * position + "^"


def test_an_odd_name_gets_a_hint() -> None:
    with pytest.raises(ExpressionSyntaxError) as error:
        parse_path("Site Temp")
    assert "are quoted" in str(error.value.hint)

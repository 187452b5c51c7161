"""JSON files in which a member's name stands nowhere: not parsed, and still right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import SourceError
from millpond.plan.counters import collect_stats
from millpond.plan.expr import Expr, col, path
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS = Struct.of(a=LONG, b=Struct.of(c=LONG))


def scan(directory: Path, *texts: str) -> Scan:
    files = []
    for number, text in enumerate(texts):
        file = directory / f"{number}.json"
        file.write_text(text)
        files.append(File(str(file)))
    return Scan("json", tuple(files), COLUMNS)


def rows(plan: Any) -> list[Any]:
    found: list[Any] = plan.to_arrow(engine="arrow").to_pylist()
    return found


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize(
    ("predicate", "pruned"),
    [
        (col("b").is_not_null(), 2),
        (path("b.c") > 1, 2),
        (col("a").is_not_null() | col("b").is_not_null(), 1),
        (col("b").is_null(), 0),
        (col("a").is_not_null(), 1),
        (col("a").is_not_null() & col("b").is_not_null(), 2),
    ],
    ids=str,
)
def test_files_without_the_member_are_not_parsed(
    tmp_path: Path, predicate: Expr, pruned: int
) -> None:
    plan = scan(
        tmp_path,
        lines({"a": 1}, {"a": 2}),
        lines({"a": 3, "b": {"c": 4}}),
        lines({"other": 5}),
    )
    with collect_stats() as stats:
        found = rows(plan.filter(predicate))
    assert stats.batches_pruned == pruned
    assert stats.files_opened == 3
    every = rows(plan)
    naive: dict[str, Callable[[Any], bool]] = {
        "b is not null": lambda r: r["b"] is not None,
        "(b.c > 1)": lambda r: r["b"] is not None and r["b"]["c"] > 1,
        "(a is not null or b is not null)": lambda r: r["a"] is not None or r["b"] is not None,
        "b is null": lambda r: r["b"] is None,
        "a is not null": lambda r: r["a"] is not None,
        "(a is not null and b is not null)": lambda r: None not in (r["a"], r["b"]),
    }
    assert found == [row for row in every if naive[str(predicate)](row)]


def test_a_name_that_is_written_with_escapes_is_found(tmp_path: Path) -> None:
    plan = scan(tmp_path, '{"\\u0062": {"c": 7}}\n').filter(col("b").is_not_null())
    assert rows(plan) == [{"a": None, "b": {"c": 7}}]


@pytest.mark.parametrize("text", ["[1, 2]\n", '{"a": 1}\nnonsense\n', '{"a": 1', "7\n"])
def test_what_is_no_object_is_an_error_all_the_same(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"0\.json"):
        rows(scan(tmp_path, text).filter(col("b").is_not_null()))


def test_few_rows_read_few_files(tmp_path: Path) -> None:
    texts = [lines({"a": number}) for number in range(64)]
    texts[3] = lines({"b": {"c": 1}})
    with collect_stats() as stats:
        found = rows(scan(tmp_path, *texts).filter(col("b").is_not_null()).head(1))
    assert len(found) == 1
    assert stats.files_opened == 4


@pytest.mark.parametrize("end", ['{"other": {}', '{"other": {}}}', '{"other": {"d": }}'])
def test_a_file_whose_last_line_is_cut_is_an_error(tmp_path: Path, end: str) -> None:
    with pytest.raises(SourceError, match=r"line 2 of .*0\.json"):
        rows(scan(tmp_path, lines({"a": 1}) + end).filter(col("b").is_not_null()))


LONG_LINE = lines({"other": "x" * 100})
"""Many of these are more text than is looked at first, or than is read to find a name."""


@pytest.mark.parametrize("before", [0, 20, 1000], ids=str)
@pytest.mark.parametrize("name", ["b", "\\u0062"])
def test_a_name_is_found_wherever_it_stands(tmp_path: Path, before: int, name: str) -> None:
    text = LONG_LINE * before + f'{{"{name}": {{"c": 7}}}}\n' + LONG_LINE * before
    with collect_stats() as stats:
        found = rows(scan(tmp_path, text).filter(col("b").is_not_null()))
    assert found == [{"a": None, "b": {"c": 7}}]
    assert stats.batches_pruned == 0


@pytest.mark.parametrize("other", ["x", 'a "quoted" text', "\u00e9", "\\", "\x01"])
@pytest.mark.parametrize("count", [1, 20, 700])
def test_text_without_the_name_is_not_parsed(tmp_path: Path, other: str, count: int) -> None:
    text = lines({"other": other * 50, "in": {"d": [1, {"e": other}]}}) * count
    with collect_stats() as stats:
        assert rows(scan(tmp_path, text).filter(col("b").is_not_null())) == []
    assert (stats.batches_pruned, stats.rows_decoded) == (1, 0)


def test_names_that_come_late_do_not_hide_one_that_is_missing(tmp_path: Path) -> None:
    text = LONG_LINE * 20 + lines({"a": 5})
    both = (col("a") > 1) & (path("b.c") > 1)
    with collect_stats() as stats:
        assert rows(scan(tmp_path, text).filter(both)) == []
    assert stats.batches_pruned == 1


@pytest.mark.parametrize("count", [0, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "{}{}\n",
        '{"x": 1,\n"y": 2}\n',
        '{"x": {}}}\n',
    ],
    ids=repr,
)
def test_objects_that_are_not_one_on_each_line(tmp_path: Path, text: str, count: int) -> None:
    text = LONG_LINE * count + text
    line = "" if count else "line 1 "
    with pytest.raises(SourceError, match=rf"{line}.*0\.json is not a JSON object"):
        rows(scan(tmp_path, text).filter(col("b").is_not_null()))


@pytest.mark.parametrize("text", ["{\n}\n{}{}\n", '{"b":\n{}}{}\n'])
def test_objects_on_as_many_lines_that_are_not_one_on_each(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"line 1 of .*0\.json is not a JSON object"):
        rows(scan(tmp_path, text))


def test_an_object_over_many_lines_is_an_error_in_much_text(tmp_path: Path) -> None:
    text = "{\n" + '"x": 1,\n' * 10_000 + '"y": 2}\n'
    with pytest.raises(SourceError, match=r"line 1 of .*0\.json is not a JSON object"):
        rows(scan(tmp_path, text).filter(col("b").is_not_null()))


@pytest.mark.parametrize("text", ["", "\n", '{"a": 1}\r\n{"a": 2}\r\n', '\ufeff{"a": 1}\n\n'])
def test_ends_of_lines_that_are_not_plain(tmp_path: Path, text: str) -> None:
    assert rows(scan(tmp_path, text).filter(col("b").is_not_null())) == []

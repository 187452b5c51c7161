"""SQL texts are refused with the position of what is wrong."""

from __future__ import annotations

import pytest

from millpond.base.errors import SqlError
from millpond.plan.sqltext import check_sql


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "VALUES (1), (2)",
        "SELECT `Site.Temp` FROM t -- a comment",
        "SELECT 1;",
    ],
)
def test_queries_are_accepted(text: str) -> None:
    check_sql(text)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="the query is empty") as error:
        check_sql(text)
    assert (error.value.line, error.value.column) == (1, 1)


def test_the_place_is_shown() -> None:
    text = "SELECT a,\n  b FROM t\nWHERE (a > 1"
    with pytest.raises(SqlError, match="at line 3, column") as error:
        check_sql(text)
    assert error.value.line == 3
    assert error.value.column is not None
    shown = error.value.message.splitlines()
    assert shown[1] == "  WHERE (a > 1"
    assert shown[2].rstrip().endswith("^")


def test_what_is_no_query_is_refused() -> None:
    for text, kind in (("DROP TABLE t", "DROP"), ("INSERT INTO t SELECT 1", "INSERT")):
        with pytest.raises(SqlError, match=f"{kind} is not a query") as error:
            check_sql(text)
        assert "a query only reads" in str(error.value.hint)


def test_one_query_at_a_time() -> None:
    with pytest.raises(SqlError, match="this text has 2"):
        check_sql("SELECT 1; SELECT 2")


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(SqlError, match="can't be read"):
        check_sql("SELECT 'abc")


@pytest.mark.parametrize(
    "text",
    ["", "SELECT (", "SELECT 1; SELECT 2", "SELECT 'a", "SELECT /* a", "SELECT a FROM t )",
     "DROP TABLE t", "SELECT '\udcff'", "SELECT " + "(" * 5000 + "1" + ")" * 5000],
    ids=range(9),
)  # fmt: skip
def test_each_refusal_has_a_hint(text: str) -> None:
    with pytest.raises(SqlError) as error:
        check_sql(text)
    assert error.value.hint
    str(error.value).encode("utf-8", "backslashreplace")


def test_what_is_not_unicode_is_pointed_at() -> None:
    with pytest.raises(SqlError, match="not valid Unicode at line 2, column 3"):
        check_sql("SELECT\n '\udcff'")


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(SqlError, match="nested too deeply"):
        check_sql("SELECT " + "(" * 5000 + "1" + ")" * 5000)

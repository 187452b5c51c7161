"""Which tables a query reads, and that it reads no others."""

from __future__ import annotations

import pytest

from millpond.base.errors import SqlError
from millpond.plan.sqltables import check_inputs, outer_tables


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s",
        'SELECT * FROM "S" JOIN `t` USING (x)',
        "SELECT (SELECT max(x) FROM T) FROM s",
        "WITH a AS (SELECT * FROM s), b AS (SELECT * FROM A) SELECT * FROM B",
        "SELECT * FROM range(10), s",
        "SELECT * FROM s LATERAL VIEW explode(array(1, 2)) v AS x",
        "SELECT * FROM VALUES (1), (2) AS v(x)",
    ],
)
def test_queries_over_their_inputs(text: str) -> None:
    check_inputs(text, ("s", "t"))


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("SELECT * FROM other", "other is no input", 15),
        ("SELECT * FROM s JOIN csv.`/etc/hosts`", "csv.`/etc/hosts` is no input", 22),
        ("SELECT * FROM spark_catalog.default.s", "spark_catalog.default.s is no input", 15),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", "b is no input", 26),
        ("SELECT Reflect('java.lang.System', 'getenv') FROM s", "Reflect is not a function", 8),
        ("SELECT java_method('a', 'b', x) FROM s", "java_method is not a function", 8),
        ("SELECT `reflect`('java.lang.System', 'getenv') FROM s", "reflect is not a function", 8),
        ("SELECT * FROM IDENTIFIER('csv.`/etc/hosts`')", "a table is not named like this", 15),
        ("SELECT from_protobuf(x, 'a', '/etc/hosts') FROM s", "from_protobuf is not a function", 8),
        ("SELECT exists(l, e -> mine(e)) FROM s", "mine is not a function", 23),
        (
            "SELECT TRANSFORM(x) USING 'id' AS (y STRING) FROM s",
            "a query may not have TRANSFORM",
            18,
        ),
        ("SELECT * FROM one.two.three.four", "one.two.three.four is no input", 15),
        ("SELECT * FROM ? s", "? is not the name of a table", 17),
        ("FROM ${x}s", "${x} is not the name of a table", 10),
    ],
)
def test_what_is_no_input_is_pointed_at(text: str, said: str, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        check_inputs(text, ("s", "t"))
    assert caught.value.message.startswith(said)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_tables_that_a_query_defines_are_not_its_inputs() -> None:
    text = "WITH a AS (SELECT * FROM s) SELECT * FROM a, t"
    assert sorted(table.name for table, _ in outer_tables(text)) == ["s", "t"]

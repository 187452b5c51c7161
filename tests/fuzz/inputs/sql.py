"""SQL: queries that other engines answer the same, attempts to get out, and damaged text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fuzz.inputs.case import Case
from tests.fuzz.mutation import mutate_string

if TYPE_CHECKING:
    from random import Random

TABLE: Final = '"/numbers"'
"""A table with the columns n (whole, with nulls), m (whole) and s (text)."""
SECRET: Final = "@SECRET@"
"""Stands for the path of a file that no query may read."""
MARK: Final = "@MARK@"
"""Stands for the path of a file that no query may make."""

ATTEMPTS: Final = (
    f"SELECT TRANSFORM(n) USING 'cat {SECRET}' AS (x STRING) FROM {TABLE}",
    f"SELECT TRANSFORM(n) USING 'touch {MARK}' AS (x STRING) FROM {TABLE}",
    f"SELECT value FROM text.`{SECRET}`",
    f"SELECT 's' FROM {TABLE} --${{system:line.separator}} UNION SELECT value FROM text.`{SECRET}`",
    f"SELECT * FROM csv.`{SECRET}`",
    f'SELECT * FROM "text"."{SECRET}"',
    f"SELECT reflect('java.nio.file.Files', 'readString', '{SECRET}') FROM {TABLE}",
    f"SELECT java_method('java.nio.file.Files', 'readString', '{SECRET}')",
    "SELECT reflect('java.lang.System', 'getenv', 'FUZZ_SECRET')",
    "SELECT '${env:FUZZ_SECRET}' AS x",
    "SELECT '${spark.app.id}' AS x",
    f"INSERT OVERWRITE DIRECTORY '{MARK}' USING csv SELECT 1",
    f"CREATE TABLE x USING csv LOCATION '{MARK}' AS SELECT 1",
    f"ADD FILE '{SECRET}'",
    "SET spark.sql.variable.substitute=true",
    f"LOAD DATA LOCAL INPATH '{SECRET}' INTO TABLE x",
    f"CREATE TEMPORARY VIEW x USING text OPTIONS (path '{SECRET}')",
    f"SELECT * FROM read_files('{SECRET}')",
    f"SELECT (SELECT max(value) FROM text.`{SECRET}`) AS x FROM {TABLE}",
    f"WITH x AS (SELECT value FROM text.`{SECRET}`) SELECT * FROM x",
    f"EXECUTE IMMEDIATE 'SELECT value FROM text.`{SECRET}`'",
    f"FROM text.`{SECRET}` |> SELECT value",
    f"SELECT * FROM IDENTIFIER('text.`{SECRET}`')",
)
ODD: Final = (
    *(
        "SELECT * FROM ? s",
        "SELECT * FROM ${x}s",
        "SELECT :a",
        "",
        ";",
        "SELECT",
        "SELECT 1; SELECT 2",
    ),
    *(
        'SELECT * FROM "/missing"',
        'SELECT * FROM "/"',
        'SELECT * FROM "nosuch:///x"',
        "SELECT * FROM t",
    ),
    *(
        'SELECT * FROM "/numbers@v99"',
        'SELECT * FROM "csv:///numbers"',
        "EXPLAIN SELECT 1",
        "SHOW TABLES",
    ),
    *(
        'DELETE FROM "/numbers"',
        'DROP TABLE "/numbers"',
        "USE x",
        'DESCRIBE "/numbers"',
        "VALUES (1)",
    ),
    f"SELECT {'(' * 300}1{')' * 300}",
    f"SELECT {'-' * 7}1",
    f"SELECT {' + '.join(['n'] * 400)} FROM {TABLE}",
    f"SELECT * FROM {TABLE} TIMESTAMP AS OF '2020-01-01'",
    f"SELECT * FROM {TABLE} VERSION AS OF 1",
    f"SELECT 1/0 AS x, CAST('x' AS INT) AS y FROM {TABLE}",
    f"SELECT explode(sequence(1, 10)) AS x FROM {TABLE}",
    f"SELECT * FROM {TABLE} a, {TABLE} b, {TABLE} c WHERE a.n = b.n",
)


def generate(rng: Random) -> Case:
    """A query; its truth is True if other engines give the same rows for it."""
    kind = rng.random()
    if kind < 0.3:
        return Case(_query(rng).encode(), ".sql", True)
    if kind < 0.5:
        text = rng.choice(ATTEMPTS)
    elif kind < 0.6:
        text = rng.choice(ODD)
    else:
        text = rng.choice([_query(rng), rng.choice(ATTEMPTS), rng.choice(ODD)])
        text = mutate_string(text, rng)
    return Case(text.encode("utf-8", "surrogatepass"), ".sql")


def _query(rng: Random) -> str:
    """A query whose meaning Spark and DuckDB share."""
    where = f" WHERE {_condition(rng)}" if rng.random() < 0.7 else ""
    if rng.random() < 0.5:
        items = ", ".join(f"{_number(rng, 0)} AS x{i}" for i in range(rng.randint(1, 3)))
        return f"SELECT {items}, s FROM {TABLE}{where}"
    calls = ["count(*)", "count(n)", "sum(m)", "min(n)", "max(m)", "min(s)", "count(DISTINCT m)"]
    items = ", ".join(
        f"{call} AS x{i}" for i, call in enumerate(rng.sample(calls, rng.randint(1, 3)))
    )
    if rng.random() < 0.5:
        return f"SELECT s, {items} FROM {TABLE}{where} GROUP BY s"
    return f"SELECT {items} FROM {TABLE}{where}"


def _number(rng: Random, depth: int) -> str:
    if depth > 2 or rng.random() < 0.4:
        return rng.choice(["n", "m", "1", "-3", "NULL"])
    left, right = _number(rng, depth + 1), _number(rng, depth + 1)
    return rng.choice(
        [
            f"({left} {rng.choice('+-*')} {right})",
            f"coalesce({left}, {right}, 0)",
            f"CASE WHEN {_condition(rng, depth + 1)} THEN {left} ELSE {right} END",
            f"abs({left})",
        ]
    )


def _condition(rng: Random, depth: int = 0) -> str:
    if depth > 2 or rng.random() < 0.5:
        kind = rng.random()
        if kind < 0.5:
            return (
                f"{rng.choice('nm')} {rng.choice(['<', '<=', '=', '<>', '>'])} {rng.randint(-3, 9)}"
            )
        if kind < 0.7:
            return f"n IS {rng.choice(['', 'NOT '])}NULL"
        if kind < 0.85:
            return f"s {rng.choice(['=', '<', '<>'])} '{rng.choice(['a', 'b', '', 'ü'])}'"
        return f"m {rng.choice(['', 'NOT '])}IN (1, 2, 5)"
    left, right = _condition(rng, depth + 1), _condition(rng, depth + 1)
    return rng.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])

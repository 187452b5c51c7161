"""Queries use their inputs and functions that compute; what else Spark's SQL can do is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import SqlError
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.sqlgate import check_text, judged
from millpond.plan.make import sql, values
from millpond.plan.sqlfunctions import SQL_FUNCTIONS, WITHHELD
from millpond.plan.streams import Sql
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = "site string, level double, at timestamp, numbers array<int>"
ROWS = values([{"x": 1}], Struct.of(x=LONG))

GOOD = (
    "SELECT * FROM s",
    "VALUES (1), (2)",
    "SELECT site, max(level) OVER (PARTITION BY site) FROM s WHERE level > (SELECT 1 FROM s)",
    "WITH a AS (SELECT * FROM s), b AS (SELECT * FROM a) SELECT * FROM b JOIN a USING (site)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT * FROM s LATERAL VIEW explode(numbers) v AS x",
    "SELECT * FROM s, LATERAL (SELECT s.level + 1)",
    "SELECT transform(numbers, n -> n + 1), exists(numbers, n -> n > 1) FROM s",
    "SELECT * FROM range(3), s",
    "SELECT * FROM explode(array(1, 2))",
    "SELECT * FROM s PIVOT (sum(level) FOR site IN ('a', 'b'))",
    "SELECT * FROM (SELECT site, level, level k FROM s) UNPIVOT (v FOR n IN (level, k))",
    "SELECT site, level FROM s GROUP BY GROUPING SETS ((site), (level), ())",
    "SELECT site, count(*) FROM s GROUP BY ROLLUP (site) HAVING count(*) > 1",
    "SELECT site FROM s QUALIFY row_number() OVER (ORDER BY level) = 1",
    "SELECT row_number() OVER w FROM s WINDOW w AS (PARTITION BY site ORDER BY at)",
    "SELECT window(at, '1 hour') w, max(level) FROM s GROUP BY 1",
    "SELECT site FROM s UNION SELECT site FROM s INTERSECT SELECT site FROM s EXCEPT SELECT '' ",
    "SELECT count(DISTINCT site) FILTER (WHERE level > 1) FROM s TABLESAMPLE (10 PERCENT)",
    "SELECT level::int, numbers[0], EXTRACT(year FROM at), TRIM(BOTH 'a' FROM site) FROM s",
    "SELECT listagg(site, ',') WITHIN GROUP (ORDER BY site) FROM s",
    "SELECT * FROM s a WHERE EXISTS (SELECT 1 FROM s WHERE s.site = a.site)",
    "SELECT * FROM s WHERE site IN (SELECT site FROM s)",
    "SELECT * EXCEPT (numbers) FROM s DISTRIBUTE BY site SORT BY level LIMIT 4 OFFSET 2",
    "SELECT upper(site) COLLATE UTF8_LCASE FROM s",
    "SELECT parse_json('{\"a\": 1}'):a, CAST(level AS DECIMAL(10, 2)), now(), uuid() FROM s",
    "SELECT percentile(level, 0.5), stddev_samp(level) FROM s",
)  # fmt: skip
PIPE = "FROM s |> WHERE level > 1 |> AGGREGATE max(level) GROUP BY site |> LIMIT 3"
QUALIFIED = "SELECT system.builtin.upper(site), builtin.lower(site) FROM s"
HINT = "SELECT /*+ BROADCAST(s) */ * FROM s -- of all"

BAD = (
    ("SELECT TRANSFORM(site) USING 'touch {mark}' AS (x STRING) FROM s", "TRANSFORM"),
    ("SELECT * FROM (SELECT TRANSFORM(site) USING 'touch {mark}' FROM s)", "TRANSFORM"),
    ("FROM s SELECT TRANSFORM(site) USING 'touch {mark}'", "TRANSFORM"),
    ("SELECT MAP site USING 'touch {mark}' FROM s", "TRANSFORM"),
    ("SELECT value FROM text.`{secret}`", "is not an input"),
    ("SELECT site, (SELECT max(value) FROM text.`{secret}`) FROM s", "is not an input"),
    ("SELECT * FROM s WHERE site IN (SELECT value FROM text.`{secret}`)", "is not an input"),
    ("SELECT * FROM s WHERE EXISTS (SELECT 1 FROM csv.`{secret}`)", "is not an input"),
    ("WITH a AS (SELECT value FROM text.`{secret}`) SELECT 1 FROM s", "is not an input"),
    ("FROM text.`{secret}` |> SELECT value", "is not an input"),
    ("SELECT * FROM IDENTIFIER('text.`{secret}`')", "is not an input"),
    ("SELECT * FROM IDENTIFIER('oth' || 'er')", "IDENTIFIER"),
    ("SELECT * FROM other", "other is not an input"),
    ("SELECT (SELECT max(id) FROM other) FROM s", "other is not an input"),
    ("SELECT (WITH other AS (SELECT 1) SELECT 1) FROM other", "other is not an input"),
    ("SELECT * FROM default.kept", "kept is not an input"),
    ("SELECT * FROM kept", "kept is not an input"),
    ("SELECT * FROM spark_catalog.default.kept", "kept is not an input"),
    ("SELECT * FROM global_temp.s", "s is not an input"),
    ("SELECT * FROM s VERSION AS OF 1", "VERSION"),
    ("SELECT reflect('java.lang.System', 'getenv') FROM s", "reflect"),
    ("SELECT `Reflect`('java.lang.System', 'getenv') FROM s", "Reflect"),
    ("SELECT builtin.reflect('java.lang.System', 'getenv')", "reflect"),
    ("SELECT java_method('java.lang.System', 'getenv') FROM s", "java_method"),
    ("SELECT try_reflect('java.lang.System', 'getenv') FROM s", "try_reflect"),
    ("SELECT exists(numbers, n -> reflect('java.lang.System', 'getenv') = '') FROM s", "reflect"),
    ("SELECT * FROM s LATERAL VIEW explode(array(reflect('a', 'b'))) v AS x", "reflect"),
    ("SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv')", "reflect|IDENTIFIER"),
    ("VALUES (reflect('java.lang.System', 'getenv'))", "reflect"),
    ("FROM s |> SELECT reflect('java.lang.System', 'getenv')", "reflect"),
    ("FROM s |> EXTEND java_method('java.lang.System', 'getenv') AS x", "java_method"),
    ("SELECT max(level) FROM s HAVING reflect('java.lang.System', 'getenv') = ''", "reflect"),
    ("SELECT 1 FROM s ORDER BY reflect('java.lang.System', 'getenv')", "reflect"),
    ("SELECT /*+ REPARTITION(3, reflect('a', 'b')) */ * FROM s", "reflect"),
    ("SELECT CURRENT_USER", "current_user"),
    ("VALUES (current_user)", "current_user"),
    ("SELECT (WITH kept AS (SELECT 1) SELECT 1) FROM kept", "kept|LogicalRelation"),
    ("SELECT * FROM TABLE(other)", "TABLE"),
    ("SELECT * FROM s JOIN STREAM(other)", "Streaming"),
    ("SELECT session_user() FROM s", "session_user"),
    ("SELECT version() FROM s", "version"),
    ("SELECT input_file_name() FROM s", "input_file_name"),
    ("SELECT current_catalog()", "current_catalog"),
    ("SELECT from_xml(site, 'a INT', map('rowValidationXSDPath', '{secret}')) FROM s", "from_xml"),
    ("SELECT from_protobuf(CAST(site AS BINARY), 'a', '{secret}') FROM s", "from_protobuf"),
    ("SELECT from_avro(x'00', 'int', map('avroSchemaUrl', '{secret}')) FROM s", "from_avro"),
    ("SELECT mine(site) FROM s", "mine"),
    ("SELECT mine(a) FROM s AS mine(a, b, c, d)", "mine"),
    ("SELECT session.mine(site) FROM s", "mine"),
    ("SELECT spark_catalog.default.upper(site) FROM s", "upper"),
    ("SELECT counter FROM s", "variable of the session"),
    ("SELECT * FROM read_files('{secret}')", "read_files"),
    ("SELECT * FROM python_worker_logs()", "python_worker_logs"),
    ("EXECUTE IMMEDIATE 'SELECT value FROM text.`{secret}`'", "EXECUTE IMMEDIATE"),
    ("BEGIN CREATE TEMPORARY VIEW made AS SELECT 1; SELECT 1; END", "BEGIN"),
    ("CREATE TEMPORARY VIEW made AS SELECT 1", "command|CREATE"),
    ("WITH a AS (SELECT 1) INSERT INTO kept SELECT * FROM a", "INSERT|Insert"),
    ("FROM s INSERT INTO kept SELECT 1", "INSERT|Insert"),
    ("SET spark.sql.variable.substitute = true", "command|SET"),
    ("ADD FILE '{secret}'", "command|ADD"),
    ("INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT 1", "Insert|INSERT"),
    ("CALL system.x()", "command|CALL|Call"),
)  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    """A session with things of its own that no query may see."""
    own = spark.newSession()
    for name in ("spark.sql.variable.substitute", "spark.sql.ansi.doubleQuotedIdentifiers"):
        own.conf.set(name, spark.conf.get(name))
    own.conf.set("spark.sql.caseSensitive", "true")
    own.createDataFrame([], COLUMNS).createOrReplaceTempView("s")
    own.range(3).createOrReplaceTempView("other")
    own.range(3).createOrReplaceGlobalTempView("s")
    own.sql("CREATE TABLE kept USING parquet AS SELECT 1 AS id")
    own.sql("DECLARE OR REPLACE VARIABLE counter INT DEFAULT 1")
    own.udf.register("mine", lambda text: text)
    yield own
    own.sql("DROP TABLE kept")
    own.catalog.dropGlobalTempView("s")


@pytest.mark.spark
@pytest.mark.parametrize("text", [*GOOD, PIPE, QUALIFIED, HINT])
def test_queries_that_compute(session: Any, text: str) -> None:
    assert judged(text, ("s",), session, "inputs").columns


@pytest.mark.spark
@pytest.mark.parametrize(("text", "said"), BAD)
def test_what_a_query_may_not_have(session: Any, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    given = text.format(mark=tmp_path / "mark", secret=tmp_path / "secret")
    try:
        judged(given, ("s",), session, "inputs").collect()
    except Exception as error:  # noqa: BLE001 - Spark itself refuses some
        told = str(error)
    else:
        pytest.fail("it was not refused")
    assert re.search(said, told) or "PARSE_SYNTAX_ERROR" in told
    assert "hunter2" not in told
    assert not (tmp_path / "mark").exists()
    assert not session.catalog.tableExists("made")


@pytest.mark.spark
def test_a_refusal_has_its_place_in_the_text(session: Any) -> None:
    with pytest.raises(SqlError, match=r"reflect .* \(line 2, column 5\)") as caught:
        judged("SELECT\n    reflect('a', 'b') FROM s", ("s",), session, "inputs")
    assert (caught.value.line, caught.value.column) == (2, 5)
    assert "sql.allow" in (caught.value.hint or "")


@pytest.mark.spark
def test_each_function_of_spark_was_decided_on(spark: Any) -> None:
    analysis = spark._jvm.org.apache.spark.sql.catalyst.analysis
    names = set()
    for registry in (analysis.FunctionRegistry.builtin(), analysis.TableFunctionRegistry.builtin()):
        names |= set(registry.listFunction().mkString(" ").split(" "))
    assert {name.removeprefix("system.builtin.") for name in names} == SQL_FUNCTIONS | WITHHELD
    assert not SQL_FUNCTIONS & WITHHELD


@pytest.mark.spark
def test_what_sparks_manual_shows_is_allowed(spark: Any, session: Any) -> None:
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    tried = 0
    for name in sorted(SQL_FUNCTIONS):
        info = registry.lookupFunction(identifier(name))
        shown = info.get().getExamples() if info.isDefined() else ""
        for text in re.findall(r"> (SELECT .*?);\n", shown, re.S):
            if any(re.search(rf"\b{each}\b", text, re.I) for each in WITHHELD):
                continue
            tried += 1
            try:
                judged(text, (), session, "inputs")
            except SqlError as error:
                pytest.fail(f"{text}: {error}")
            except Exception:  # noqa: BLE001, S112 - some examples need other settings
                continue
    assert tried > 500


@pytest.mark.spark
def test_variables_are_not_substituted(run_rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIDDEN", "hunter2")
    text = "SELECT '${env:PATH}' AS a, '${spark.app.id}' AS b, '${system:user.name}' AS c"
    plan = sql(text, schema=Struct.of(a=STRING, b=STRING, c=STRING))
    assert run_rows(plan) == [("${env:PATH}", "${spark.app.id}", "${system:user.name}")]


@pytest.mark.spark
def test_variables_are_not_substituted_in_sessions_of_others(spark: Any) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.variable.substitute", "true")
    plan = sql("SELECT '${env:PATH}' AS a", schema=Struct.of(a=STRING))
    assert SparkEngine(other).to_dataframe(plan).collect()[0].a == "${env:PATH}"
    assert other.conf.get("spark.sql.variable.substitute") == "true"


@pytest.mark.spark
def test_a_session_of_ones_own_can_be_allowed(
    run_rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    text = f"SELECT value FROM text.`{tmp_path}/a.txt` ORDER BY 1"
    refused = sql(text, schema=Struct.of(value=STRING))
    with pytest.raises(SqlError, match="is not an input"):
        run_rows(refused)
    monkeypatch.setenv("MILLPOND_SQL_ALLOW", "session")
    assert run_rows(sql(text, schema=Struct.of(value=STRING))) == [("one",), ("two",)]
    program = "SELECT TRANSFORM(x) USING 'cat' AS (x STRING) FROM t"
    assert run_rows(sql(program, schema=Struct.of(x=STRING), t=ROWS)) == [("1",)]
    with pytest.raises(SqlError):
        run_rows(refused)  # the switch is of whoever writes a query, not of whoever runs it
    nested = sql("SELECT * FROM t", schema=Struct.of(value=STRING), t=refused)
    with pytest.raises(SqlError):
        run_rows(nested)


@pytest.mark.spark
@pytest.mark.parametrize("text", ["SET a=1", "BEGIN SELECT 1; END", "EXECUTE IMMEDIATE 'SELECT 1'"])
def test_commands_are_refused_in_any_case(session: Any, text: str) -> None:
    with pytest.raises(SqlError):
        judged(text, (), session, "session")


class TestOverConnect:
    """Without Spark's plan the text is judged, and has to be plain."""

    @pytest.mark.parametrize("text", GOOD)
    def test_queries_that_compute(self, text: str) -> None:
        check_text(text, ("s",))

    @pytest.mark.parametrize("text", [text for text, _ in BAD])
    def test_what_a_query_may_not_have(self, text: str) -> None:
        if text in ("SELECT counter FROM s", "SELECT * FROM s VERSION AS OF 1"):
            return  # a column by the look of it; and Spark itself refuses versions of an input
        with pytest.raises(SqlError):
            check_text(text.format(mark="/m", secret="/s"), ("s",))

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT 1 --\nFROM s",
            "SELECT /* a */ 1",
            r"SELECT '\' , reflect('a', 'b') --'",
            r"SELECT r'\', TRANSFORM(x) USING 'id' --'",
            "SELECT {# #} 1",
        ],
    )
    def test_text_that_can_be_read_in_two_ways(self, text: str) -> None:
        with pytest.raises(SqlError, match="over Spark Connect"):
            check_text(text, ("s",))


def test_a_query_uses_one_thing_or_the_other() -> None:
    from millpond.base.errors import PlanError

    with pytest.raises(PlanError, match="'inputs' or 'session'"):
        Sql("SELECT 1", (), (), Struct.of(x=LONG), "all")  # type: ignore[arg-type]

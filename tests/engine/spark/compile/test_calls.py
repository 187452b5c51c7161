"""How often the JVM is asked while a plan becomes a DataFrame: each question takes a while."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection

from millpond.engine.spark import SparkEngine, session
from millpond.plan.expr import col, lit, path
from millpond.plan.types import DATE, INTEGER, LONG, TIMESTAMP

pytestmark = pytest.mark.spark

TABLE = pa.Table.from_pylist([{"a": 1, "s": "x", "tree": {"n": 1, "unused": "u"}}])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What goes to the JVM."""
    found: list[str] = []
    send = ClientServerConnection.send_command

    def noted(self: Any, command: str) -> Any:
        found.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    return found


def test_what_is_known_is_not_asked_again(engine: Any, scan_of: Any, asked: list[str]) -> None:
    plan = scan_of(TABLE).filter((col("a") > 1) & (path("tree.n") > 1)).select("a", path("tree.n"))
    engine.to_dataframe(plan)
    asked.clear()
    df = engine.to_dataframe(plan)
    about = [command for command in asked if "sql.functions" in command]
    assert about
    assert not [command for command in about if command.startswith("r")], asked
    assert not [command for command in asked if "parseDataType" in command], asked
    assert len([command for command in about if "`tree`" in command]) == 1, asked
    assert df.collect() == []


def test_which_session_is_the_process_s_is_no_question(
    spark: Any, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_running", session._Running())
    adopted, engine = session.adopt(spark.newSession()), SparkEngine()
    assert engine.session is adopted
    asked.clear()
    assert engine.session is adopted
    # "m" lets go of what Python no longer holds, whenever that is noticed.
    assert [command for command in asked if command[0] != "m"] == []


@pytest.mark.parametrize(
    "value",
    [
        *(lit(number, INTEGER) for number in (0, -(1 << 31), (1 << 31) - 1)),
        *(lit(number, LONG) for number in (0, 1 << 31, -(1 << 31), -(1 << 63), (1 << 63) - 1)),
        lit("1969-12-31T23:59:59.999999Z", TIMESTAMP),
        lit("0001-01-01", DATE),
        lit("9999-12-31", DATE),
    ],
    ids=str,
)
def test_a_constant_is_one_question(
    engine: Any, scan_of: Any, asked: list[str], value: Any
) -> None:
    plan = scan_of(TABLE).select(c=value)
    engine.to_dataframe(plan)
    about = [command for command in asked if "sql.functions" in command and command[0] != "r"]
    assert len(about) == 1, asked
    found = [row for batch in engine.execute(plan) for row in batch.to_pylist()]
    assert found == plan.to_arrow(engine="arrow").to_pylist()

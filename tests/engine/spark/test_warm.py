"""The warm engine: one is started for all tests here, and used as commands use it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.terminal import on_terminal

import millpond as mp
from millpond.base.errors import EngineError, RunCancelledError, SqlError
from millpond.base.settings import Settings
from millpond.engine.spark.warm import client, control, state, wire
from millpond.engine.spark.warm.client import Warm
from millpond.plan.attendant import attend
from millpond.plan.expr import col
from millpond.plan.make import sql, values
from millpond.plan.streams import Sql
from millpond.plan.types import DOUBLE, LONG, STRING, TIMESTAMP, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millpond.plan.node import Plan

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROWS = values([{"x": n} for n in range(10)], Struct.of(x=LONG))
SLEEP = (
    "SELECT java_method('java.lang.Thread', 'sleep', 3600000L) AS s FROM range(0, 8, 1, 4), rows"
)
STUCK = Sql(SLEEP, ("rows",), (ROWS,), Struct.of(s=STRING), "session")
SETTINGS: dict[str, str] = {
    "MILLPOND_SPARK_MASTER": "local[2]",
    "MILLPOND_SPARK_DRIVER_MEMORY": "1g",
    "MILLPOND_WARM_IDLE_MINUTES": "20",
}


def pond(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millpond.cli", *args]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **env}, check=False
    )


def status() -> dict[str, Any]:
    found = control.status()
    assert found is not None
    return found


def wait_for(running: int) -> None:
    while status()["running"] != running:  # the suite's own timeout ends a wait that is in vain
        time.sleep(0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of an engine that runs."""
    place = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place))
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        try:
            started = pond("--json", "engine", "start")
            assert started.returncode == 0, started.stderr
            yield place / "millpond"
        finally:
            pond("engine", "stop")


@pytest.fixture
def warm(place: Path) -> Warm:
    there = state.read()
    assert there is not None
    return Warm(there)


class Attendant:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.on_progress = None

    def tell(self, message: str, *, hint: str | None = None) -> None:
        self.told.append(f"{message} ({hint})")


@pytest.fixture
def attendant(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attendant]:
    """This process is a command for a while; that the other tests have a session is not seen."""
    monkeypatch.setattr("millpond.engine.spark.session.has_session", lambda: False)
    found = Attendant()
    attend(found)
    yield found
    attend(None)


def all_rows(warm: Warm, plan: Plan) -> list[dict[str, Any]]:
    return [row for batch in warm.execute(plan, ordered=True) for row in batch.to_pylist()]


def test_results_are_those_of_a_session_here(warm: Warm, spark: Any) -> None:
    from millpond.engine.spark import SparkEngine

    text = "SELECT x % 3 AS k, sum(x) AS s FROM rows GROUP BY 1 ORDER BY 1"
    here = SparkEngine(spark)
    columns = here.sql_schema(text, {"rows": ROWS.schema})
    assert warm.sql_schema(text, {"rows": ROWS.schema}) == columns
    query = Sql(text, ("rows",), (ROWS,), columns)
    for plan in (query, query.sort(col("s").desc()).head(2), ROWS.filter(col("x") > 20)):
        run = here.execute(plan)
        assert all_rows(warm, plan) == [row for batch in run for row in batch.to_pylist()]
    assert "Aggregate" in warm.explain(query)


def test_it_tells_which_rows_a_range_needs(warm: Warm) -> None:
    schema = Struct.of(time=TIMESTAMP, x=DOUBLE)
    found = warm.pushed_ranges(
        "SELECT time, x * 2 AS x FROM s WHERE x > 1",
        {"s": schema},
        {"s": "time"},
        ("time", 5, None),
    )
    assert found == {"s": (5, None)}


def test_what_a_run_tells_comes_along(warm: Warm) -> None:
    seen: list[Any] = []
    run = warm.execute(ROWS.sort(col("x").desc()), ordered=True, progress=seen.append)
    assert sum(batch.num_rows for batch in run) == 10
    assert run.counters.rows_emitted == 10
    assert run.observations()
    assert seen[-1].done


def test_errors_are_those_of_a_session_here(warm: Warm) -> None:
    with pytest.raises(SqlError, match="levl") as caught:
        warm.sql_schema("SELECT levl FROM rows", {"rows": ROWS.schema})
    assert (caught.value.line, caught.value.column) == (1, 8)
    with pytest.raises(EngineError):
        all_rows(warm, ROWS.select(y=col("x") % (col("x") - 5)))
    assert len(all_rows(warm, ROWS)) == 10


def test_who_does_not_know_the_token_is_not_heard(warm: Warm) -> None:
    with pytest.raises((ConnectionError, EOFError)):
        wire.connect(warm.state.port, "another token")
    # Who says what he wants without a proof gets no answer either.
    with socket.create_connection((wire.HOST, warm.state.port)) as raw:
        channel = wire.Channel(raw)
        channel.send(b"H", b"0" * 32)
        channel.send(wire.REQUEST, json.dumps({"do": "stop"}).encode())
        channel.receive()  # its own greeting
        with pytest.raises((ConnectionError, EOFError)):
            channel.receive()
    assert status()["pid"] == warm.state.pid


def test_the_token_is_nowhere_but_in_a_file_of_the_user(warm: Warm, place: Path) -> None:
    token = warm.state.token
    assert token not in repr(warm)
    assert place.stat().st_mode & 0o777 == 0o700
    for file in place.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        if not file.is_socket():
            assert (token in file.read_text()) == (file == state.state_file())
    told = pond("--json", "engine", "status")
    assert token not in told.stdout + told.stderr
    assert token not in subprocess.run(["ps", "axww"], capture_output=True, text=True).stdout
    found = json.loads(told.stdout)["warm"]
    assert found["pid"] == warm.state.pid
    assert found["address"].startswith("127.0.0.1:")
    assert found["memory"] > 100 << 20
    assert found["differs"] == []
    assert {"since", "idle_seconds", "idle_minutes"} <= set(found)


def test_starting_it_again_finds_it(warm: Warm) -> None:
    again = json.loads(pond("--json", "engine", "start").stdout)
    assert (again["started"], again["pid"]) == (False, warm.state.pid)
    refused = pond("engine", "start", MILLPOND_SPARK_DRIVER_MEMORY="2g")
    assert refused.returncode == 12
    assert "another spark.driver.memory runs already" in refused.stderr
    elsewhere = pond("engine", "start", MILLPOND_SPARK_MASTER="sc://nowhere:1")
    assert elsewhere.returncode == 5


def test_a_run_can_be_cancelled(warm: Warm) -> None:
    run = warm.execute(STUCK, ordered=True)

    def cancel() -> None:
        wait_for(running=1)
        run.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(RunCancelledError):
        next(run)
    other.join()
    wait_for(running=0)
    assert list(run) == []


def test_a_client_that_is_killed_leaves_no_work_behind(warm: Warm) -> None:
    code = """
from tests.engine.spark.test_warm import STUCK, Warm, state
next(Warm(state.read()).execute(STUCK, ordered=True))
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    wait_for(running=1)
    process.kill()
    process.wait()
    wait_for(running=0)
    assert len(all_rows(warm, ROWS)) == 10


@pytest.fixture
def levels(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pond with a table and what is computed from it."""
    monkeypatch.setenv("POND", str(tmp_path / "pond"))
    monkeypatch.chdir(tmp_path)
    with mp.create(tmp_path / "pond").write() as tx:
        tx.write_table("/levels", [{"x": n} for n in range(10)])
        config = {"patterns": {"l": "table:///levels"}, "query": "SELECT x * 2 AS y FROM l"}
        tx.make_factory("/doubled", "sql-derived-table", config)
        # A factory's query may not call into Java to sleep; this one has enough to do.
        endless = "SELECT max(hash(id, x)) AS s FROM range(0, 1000000000000, 1, 4), rows"
        stuck = {"patterns": {"rows": "table:///levels"}, "query": endless}
        tx.make_factory("/stuck", "sql-derived-table", stuck)
        tx.commit()
    return tmp_path


def test_commands_use_it_and_start_no_jvm(levels: Path) -> None:
    before = status()["served"]
    no_java = {"JAVA_HOME": os.environ.get("JAVA_HOME", ""), "PATH": "/nonexistent"}
    text = 'SELECT sum(y) AS s FROM "/doubled" JOIN "/levels" ON y = x'
    for args, expected in (
        (("cat", "/levels", "--sql", "SELECT sum(x) AS s FROM source"), "s\n45\n"),
        (("cat", "/doubled", "--sql", "SELECT max(y) AS s FROM source"), "s\n18\n"),
        (("sql", text), "s\n20\n"),
        (("cat", "/doubled", "--limit", "1"), "y\n0\n"),
    ):
        done = pond(*args, **no_java)
        assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)
    assert status()["served"] > before
    wrong = pond("sql", 'SELECT z\nFROM "/doubled"')
    assert wrong.returncode == 4
    assert "(line 1, column 8)\n  SELECT z\n         ^\n" in wrong.stderr


@pytest.mark.parametrize(
    "args", [("cat", "/stuck", "--format", "json"), ("sql", 'SELECT * FROM "/stuck"', "--json")]
)
def test_ctrl_c_ends_a_command_and_its_work(levels: Path, args: tuple[str, ...]) -> None:
    before = status()["served"]
    process = subprocess.Popen(
        [sys.executable, "-m", "millpond.cli", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The columns are asked for first; then it runs, and would run for an hour.
    while not (status()["running"] == 1 and status()["served"] > before):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    wait_for(running=0)


def test_progress_is_shown_on_a_terminal_alone(levels: Path) -> None:
    sleep = "java_method('java.lang.Thread', 'sleep', 400L)"
    text = f"SELECT {sleep} AS s FROM range(0, 16, 1, 16)"
    code, seen, data = on_terminal("sql", text, cwd=levels, stream="stderr")
    assert (code, data.count("\n")) == (0, 17), seen
    assert " tasks, stage " in seen
    done = pond("sql", text)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, "")


def test_a_command_with_the_same_settings_uses_it(attendant: Attendant, warm: Warm) -> None:
    assert client.found() == warm
    before = status()["served"]
    plan = sql("SELECT count(*) AS n FROM rows", schema={"n": "long"}, rows=ROWS)
    from millpond.engine.spark import SparkEngine

    assert [b.to_pylist() for b in SparkEngine().execute(plan)] == [[{"n": 10}]]
    assert status()["served"] == before + 1
    assert attendant.told == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"spark_driver_memory": "2g"}, "spark.driver.memory"),
        ({"spark_conf": {"spark.sql.shuffle.partitions": "7"}}, "spark.sql.shuffle.partitions"),
        ({"store_region": "eu-1"}, "store.region"),
    ],
)
def test_a_command_with_other_settings_does_not(
    attendant: Attendant, changed: dict[str, Any], named: str
) -> None:
    assert client.found(Settings.load(**changed)) is None
    said = f"the warm engine has another {named}, so Spark starts here"
    assert attendant.told == [f"{said} (pond engine stop, and then pond engine start)"]


def test_nobody_uses_it_unasked(place: Path, attendant: Attendant) -> None:
    assert client.found(Settings.load(warm_use="never")) is None
    attend(None)
    assert client.found() is None


def test_plans_with_relative_paths_stay_here() -> None:
    from millpond.plan.sources import File, Scan

    def scan(path: str) -> Plan:
        return Scan("parquet", (File(path),), Struct.of(x=LONG))

    assert client.can_go(scan("/a.parquet").filter(col("x") > 1))
    assert client.can_go(scan("s3://bucket/a.parquet"))
    assert not client.can_go(scan("a.parquet").filter(col("x") > 1))


def test_an_engine_that_died_is_told_and_replaced(
    warm: Warm, attendant: Attendant, place: Path
) -> None:
    """The last one here: it ends the engine, has a short-lived one started, and sees that end."""
    os.kill(warm.state.pid, signal.SIGKILL)
    while state.is_alive():
        time.sleep(0.05)
    assert client.found() is None
    assert attendant.told == ["the warm engine is gone, so Spark starts here (pond engine start)"]
    assert control.status() is None
    assert pond("engine", "stop").stderr == "no warm engine runs\n"
    assert not state.state_file().exists()
    started = pond("--json", "engine", "start", MILLPOND_WARM_IDLE_MINUTES="0.02")
    assert started.returncode == 0, started.stderr
    while state.is_alive():
        time.sleep(0.05)
    assert not state.state_file().exists()

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import ConfigError, EngineError, EngineUnavailableError
from millpond.base.machine import cores
from millpond.base.settings import Settings
from millpond.engine.spark import conf, session
from millpond.engine.spark.session import adopt, session_log, spark_session, stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from .conftest import RunScript


def configured(**overrides: object) -> Settings:
    return Settings.load(None, {}, **overrides)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing ran in this process, whatever the other tests have started."""
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(session, "_running", session._Running())


# --- what is configured


def test_a_local_spark_is_sized_to_the_machine() -> None:
    given = conf.started_conf(configured().spark)
    assert given["spark.master"] == f"local[{cores()}]"
    assert given["spark.sql.shuffle.partitions"] == str(2 * cores())
    assert given["spark.driver.host"] == "127.0.0.1"
    assert 1 << 30 <= conf.driver_memory() <= 32 << 30


def test_a_cluster_decides_its_own_size() -> None:
    given = conf.started_conf(configured(spark_master="spark://host:7077").spark)
    assert not {"spark.sql.shuffle.partitions", "spark.driver.host", "spark.driver.memory"} & set(
        given
    )


def test_the_users_settings_win_but_for_semantics() -> None:
    spark = configured(spark_conf={"spark.ui.enabled": "true", "spark.driver.memory": "3g"}).spark
    given = conf.started_conf(spark)
    assert (given["spark.ui.enabled"], given["spark.driver.memory"]) == ("true", "3g")
    assert conf.SEMANTICS.items() <= given.items()
    with pytest.raises(ConfigError, match=r"spark\.sql\.ansi\.enabled must be true"):
        conf.started_conf(configured(spark_conf={"spark.sql.ansi.enabled": "false"}).spark)


def test_java_options_are_joined(tmp_path: Path) -> None:
    given = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": "-Xss4m"}
    options = conf.scratch_conf(given, tmp_path, log_level="WARN")["spark.driver.extraJavaOptions"]
    assert options.endswith(" -Xss4m")
    assert '"-Dmillpond.spark.log.level=WARN"' in options


# --- what can't start


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_nobody_listens(fresh: None, listener: socket.socket, scheme: str) -> None:
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(EngineUnavailableError, match=f"nothing answers at 127.0.0.1:{port}"):
        spark_session(configured(spark_master=f"{scheme}://127.0.0.1:{port}/;token=hush"))


def test_a_token_is_not_shown(fresh: None) -> None:
    with pytest.raises(EngineUnavailableError) as caught:
        spark_session(configured(spark_master="sc://127.0.0.1:1/;token=hush"))
    assert "hush" not in str(caught.value)


def test_a_server_that_is_not_spark_connect(
    fresh: None, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_REACH_SECONDS", 1)
    port = listener.getsockname()[1]
    with pytest.raises(EngineUnavailableError, match="not a Spark Connect server"):
        spark_session(configured(spark_master=f"sc://127.0.0.1:{port}"))


def test_an_address_without_a_host(fresh: None) -> None:
    with pytest.raises(ConfigError, match="no host"):
        spark_session(configured(spark_master="sc://:15002"))


def test_pyspark_is_not_installed(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'millpond\[spark\]'"):
        spark_session(configured(spark_master="local[1]"))


def test_importing_does_not_import_spark(run_script: RunScript) -> None:
    done = run_script(
        """
        import sys
        from millpond.engine.spark import errors, java, progress, remote_stream, session, stream
        print([m for m in ("pyspark", "pandas", "py4j", "grpc") if m in sys.modules])
        """
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- the shared session


@pytest.mark.spark
def test_the_settings_that_answers_depend_on(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in conf.SEMANTICS} == dict(conf.SEMANTICS)
    assert spark.sql("""SELECT "a.b" FROM VALUES (1) AS t(`a.b`)""").collect()[0][0] == 1
    assert spark.sql("SELECT a, A FROM VALUES (1, 2) AS t(a, A)").columns == ["a", "A"]


@pytest.mark.spark
def test_workers_run_this_python(spark: SparkSession) -> None:
    seen = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert seen == [sys.executable]


@pytest.mark.spark
def test_same_settings_same_session(spark: SparkSession) -> None:
    known = next(key for key, value in session._running.sessions.items() if value is spark)
    given = {k: v for k, v in known if k not in ("spark.master", "spark.driver.memory")}
    chosen = configured(spark_master="local[2]", spark_driver_memory="2g", spark_conf=given)
    assert spark_session(chosen) is spark


@pytest.mark.spark
def test_other_sql_settings_get_a_session_of_their_own(spark: SparkSession) -> None:
    given = {"spark.sql.shuffle.partitions": "7"}
    chosen = configured(spark_master="local[2]", spark_driver_memory="2g", spark_conf=given)
    other = spark_session(chosen)
    assert other is not spark
    assert other is spark_session(chosen)
    assert other.conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
    assert other.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.spark
def test_another_master_is_refused_while_spark_runs(spark: SparkSession) -> None:
    with pytest.raises(EngineError, match=r"other values of .*spark\.master") as caught:
        spark_session(configured(spark_master="local[1]"))
    assert "stop_session()" in str(caught.value)


@pytest.mark.spark
def test_the_log_is_a_file(spark: SparkSession) -> None:
    log = session_log()
    assert log is not None
    assert log.exists()


@pytest.mark.spark
def test_adopting_a_users_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_running", session._Running())  # it is not of our making
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    theirs.conf.set("spark.sql.caseSensitive", "false")
    settings = configured(spark_master="local[1]")
    with pytest.raises(EngineError, match=r"adopt\(\)"):
        spark_session(settings)
    ours = adopt(theirs)
    assert spark_session(settings) is ours
    assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
    assert ours.conf.get("spark.sql.caseSensitive") == "true"
    assert theirs.conf.get("spark.sql.session.timeZone") == "Europe/Paris"
    assert theirs.conf.get("spark.sql.caseSensitive") == "false"
    stop_session()
    assert theirs.range(2).count() == 2
    with pytest.raises(EngineError, match=r"adopt\(\)"):
        spark_session(settings)


# --- JVMs of their own


@pytest.mark.spark
def test_quiet_and_gone_after_an_exception(run_script: RunScript, cwd: Path, scratch: Path) -> None:
    done = run_script(
        """
        import os, sys
        from millpond.base.settings import Settings
        from millpond.engine.spark import session
        spark = session.spark_session(Settings.load(env={}, spark_master="local[1]"))
        try:
            spark.sql("SELECT 1 / 0").collect()
        except Exception:
            pass
        try:
            spark.sql("SELECT nope FROM range(3)")
        except Exception:
            pass
        assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
        print(session._running.jvm.process.pid, flush=True)
        sys.excepthook = lambda *_: None
        raise RuntimeError
        """
    )
    assert done.returncode == 1
    assert done.stderr == ""
    pid = int(done.stdout)
    assert not is_running(pid)
    assert list(cwd.iterdir()) == []
    left = [p.name for p in scratch.iterdir() if "hsperfdata" not in p.name]
    assert left == []


@pytest.mark.spark
def test_a_jvm_that_does_not_start_says_why(run_script: RunScript, scratch: Path) -> None:
    done = run_script(
        """
        from millpond.base.errors import EngineUnavailableError
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import spark_session
        conf = {"spark.driver.extraJavaOptions": "-agentlib:nosuch"}
        try:
            spark_session(Settings.load(env={}, spark_master="local[1]", spark_conf=conf))
        except EngineUnavailableError as error:
            print(error)
        """
    )
    assert "Could not find agent library nosuch" in done.stdout
    assert "\tat " not in done.stdout
    assert done.stderr == ""
    assert [p.name for p in scratch.iterdir() if "hsperfdata" not in p.name] == []


@pytest.mark.spark
@pytest.mark.slow
def test_adopting_a_session_of_plain_pyspark(run_script: RunScript) -> None:
    done = run_script(
        """
        from pyspark.sql import SparkSession
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import adopt, spark_session, stop_session
        theirs = (
            SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "Europe/Paris").getOrCreate()
        )
        ours = adopt(theirs)
        assert spark_session(Settings.load(env={}, spark_master="local[1]")) is ours
        assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
        assert theirs.conf.get("spark.sql.session.timeZone") == "Europe/Paris"
        stop_session()
        assert theirs.range(2).count() == 2
        theirs.stop()
        print("fine")
        """
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_a_crashed_jvm_is_replaced(run_script: RunScript) -> None:
    done = run_script(
        """
        from millpond.base.settings import Settings
        from millpond.engine.spark import session
        settings = Settings.load(env={}, spark_master="local[1]")
        first = session.spark_session(settings)
        session._running.jvm.process.kill()
        session._running.jvm.process.wait()
        second = session.spark_session(settings)
        assert second is not first
        assert second.range(2).count() == 2
        session.stop_session()
        third = session.spark_session(settings)
        assert third.range(2).count() == 2
        print("fine")
        """
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


@pytest.mark.spark
@pytest.mark.slow
def test_several_executors(run_script: RunScript, cwd: Path) -> None:
    done = run_script(
        """
        import os
        from pathlib import Path
        import pyspark
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import spark_session
        from millpond.engine.spark.stream import arrow_batches
        spark = spark_session(Settings.load(env={}, spark_master="local-cluster[2,1,1024]"))
        home = Path(pyspark.__file__).parent
        assert not (home / "work").exists()
        def executor(_):
            import os, time
            time.sleep(0.5)
            yield os.getppid()
        rdd = spark.sparkContext.parallelize(range(8), 8)
        assert len(set(rdd.mapPartitions(executor).collect())) >= 2
        expected = 0
        for batch in arrow_batches(spark.range(0, 200_000, 1, 7), batch_rows=10_000):
            ids = batch.column(0).to_pylist()
            assert ids == list(range(expected, expected + len(ids)))
            expected += len(ids)
        assert expected == 200_000
        print("fine")
        """
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
    assert list(cwd.iterdir()) == []


def is_running(pid: int) -> bool:
    from pathlib import Path

    return Path(f"/proc/{pid}").exists()

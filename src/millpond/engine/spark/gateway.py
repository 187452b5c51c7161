"""The JVM of a Spark that we start: launched quietly, stopped for certain.

What the JVM prints goes to a file in a scratch directory instead of the user's terminal; when it
fails to start, the end of that file is the error. The directory also takes whatever Spark writes of
its own accord, and it is removed with the JVM. `session.py` decides when.
"""

# PySpark offers no public way to hand it a JVM, nor to take it back.
# ruff: noqa: SLF001

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.base.errors import EngineUnavailableError
from millpond.base.scratch import make_scratch, remove_scratch
from millpond.engine.spark.conf import is_local, scratch_conf
from millpond.engine.spark.interrupts import held_interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_STOP_SECONDS = 20
_TAIL_LINES = 12
_START_SECONDS = 180
_LOG, _ADDRESS = "spark.log", "address"
_JVM_ENDED = "its JVM ended"
# Stacks, and what is also printed on a start that goes well.
_NOT_A_REASON = (
    "\tat ",
    "\t...",
    "WARNING: Using incubator modules",
    "Using Spark's default log4j",
    "Setting default log level",
    "To adjust logging level",
)


@dataclass(frozen=True, slots=True)
class Jvm:
    """A running session with the process and the directory that live as long as it does."""

    session: SparkSession
    process: subprocess.Popen[bytes] | None
    scratch: Path

    @property
    def log(self) -> Path:
        """What the JVM has printed."""
        return self.scratch / _LOG

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; one that `spark-submit` started is taken to."""
        return self.process is None or self.process.poll() is None


def start(conf: Mapping[str, str], *, log_level: str) -> Jvm:
    """Start a JVM with a session in it, or say in one error why it did not start."""
    scratch = make_scratch("spark")
    full = scratch_conf(conf, scratch, log_level=log_level)
    process: subprocess.Popen[bytes] | None = None
    try:
        with _environment(full["spark.master"], scratch):
            if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started the JVM
                process = _launch(full, scratch)
            with _address_of(process, scratch):
                session = _start_session(full)
    except BaseException as error:
        _stop_half_started()
        _close(process)
        reason = _reason(error, scratch / _LOG)
        remove_scratch(scratch)
        if not isinstance(error, Exception):
            raise
        raise EngineUnavailableError(
            f"Spark did not start with master {full['spark.master']}: {reason}",
            engine="spark",
            hint="check spark.master, spark.driver_memory and spark.conf in the settings",
        ) from error
    return Jvm(session, process, scratch)


def stop(jvm: Jvm) -> None:
    """Stop the session and its JVM, and remove what they left; never raises, never hangs."""
    # A JVM that has died can't be stopped politely; PySpark warns about that, and there's no need.
    if jvm.is_alive:
        with contextlib.suppress(Exception):
            jvm.session.stop()
    else:
        _forget_dead_session(jvm.session)
    _close(jvm.process)
    remove_scratch(jvm.scratch)


def _launch(conf: Mapping[str, str], scratch: Path) -> subprocess.Popen[bytes]:
    """Run `spark-submit` as PySpark does, but for its output, which goes to a file."""
    # Not on the command line, which everyone on the machine can read: a value may be a secret.
    properties = scratch / "spark.properties"
    properties.write_text("".join(_property(*item) for item in conf.items()), encoding="utf-8")
    given = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    submit = str(_spark_home() / "bin" / "spark-submit")
    options = ["--properties-file", str(properties), "--load-spark-defaults"]
    with (scratch / _LOG).open("wb") as output:
        return subprocess.Popen(
            [submit, *options, *given],
            stdin=subprocess.PIPE,  # the JVM ends when this does, however Python ends
            stdout=output,
            stderr=output,
            env=os.environ
            | {
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / _ADDRESS),
            },
            start_new_session=True,  # Ctrl-C is for Python, which decides what to stop
        )


def _spark_home() -> Path:
    """Where PySpark's rules find Spark, without importing it: that is done while the JVM starts."""
    told = os.environ.get("SPARK_HOME")
    if told is not None:
        return Path(told)
    found = importlib.util.find_spec("pyspark")
    assert found is not None, "who starts Spark has looked whether it is there"
    package = Path(found.origin or "").parent
    homes = (package / "spark-distribution", package)
    home = next((each for each in homes if (each / "bin" / "spark-submit").is_file()), None)
    if home is None:
        raise FileNotFoundError(f"there is no bin/spark-submit in {package}")
    return home


def _property(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{name}={escaped}\n"


@contextlib.contextmanager
def _address_of(process: subprocess.Popen[bytes] | None, scratch: Path) -> Iterator[None]:
    """Wait until the JVM says where it listens, and let PySpark know while it connects."""
    if process is None:
        yield
        return
    import pyspark.sql  # noqa: F401 - it takes half a second, and the JVM starts meanwhile
    from pyspark import serializers

    deadline = time.monotonic() + _START_SECONDS
    while not (scratch / _ADDRESS).exists():
        if process.poll() is not None:
            raise ChildProcessError(_JVM_ENDED)
        if time.monotonic() > deadline:
            raise TimeoutError(f"its JVM said nothing for {_START_SECONDS} seconds")
        time.sleep(0.05)
    read: Any = serializers
    with (scratch / _ADDRESS).open("rb") as info:
        port, secret = read.read_int(info), read.UTF8Deserializer().loads(info)
    (scratch / _ADDRESS).unlink()
    with _variables({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        yield


def _start_session(conf: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    # PySpark's own handler of Ctrl-C speaks to the JVM in the middle of a call: it has to go again.
    with held_interrupt():
        session = SparkSession(SparkContext(conf=spark_conf))
        _believe_no_checksums(session)
        return session


def _believe_no_checksums(session: SparkSession) -> None:
    """Turn off Hadoop's checksums of local files: hidden files, which other writers leave stale.

    Files of ours carry hashes of themselves. The JVM keeps one client of local files for all.
    """
    jvm: Any = session._jvm
    conf = session._jsc.hadoopConfiguration()
    local = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), conf)
    local.setVerifyChecksum(False)


@contextlib.contextmanager
def _variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for a while; the process's own come back afterwards."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _environment(master: str, scratch: Path) -> Iterator[None]:
    """Variables that Spark reads while it starts; the process's own come back afterwards."""
    wanted = {"PYSPARK_PYTHON": sys.executable}
    if not is_local(master):
        # A cluster's Python has its own path there.
        wanted = {k: os.environ.get(k, v) for k, v in wanted.items()}
    if master.startswith("local-cluster"):
        wanted["SPARK_HOME"] = str(_mirror_spark_home(scratch))
    with _variables(wanted):
        yield


def _mirror_spark_home(scratch: Path) -> Path:
    """Workers of a local cluster write below SPARK_HOME, which is the installed package."""
    mirror = scratch / "home"
    mirror.mkdir()
    for entry in _spark_home().iterdir():
        if entry.name != "work":
            (mirror / entry.name).symlink_to(entry)
    return mirror


def _close(process: subprocess.Popen[bytes] | None) -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
    if process is None:
        return
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stop_half_started() -> None:
    """A context that exists when the start is given up, such as by Ctrl-C, would bar the next."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        with contextlib.suppress(Exception):
            context.stop()


def _forget_dead_session(session: SparkSession) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = session.sparkContext
    context._jsc = None
    context.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _reason(error: BaseException, log: Path) -> str:
    """The error in one line; when that only says that the JVM is gone, the end of its log."""
    from millpond.engine.spark.errors import first_line

    line = first_line(error)
    if not isinstance(error, ChildProcessError | TimeoutError) or not log.exists():
        return line
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()
    useful = [text for text in said if text.strip() and not text.startswith(_NOT_A_REASON)]
    return "\n  ".join([line, *useful[-_TAIL_LINES:]])

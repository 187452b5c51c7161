"""The Spark session of this process: started on first use, quiet, and gone when Python is.

`spark_session()` gives the session for some settings and starts Spark when there is none yet;
`adopt()` makes a session that the user already has the one to use; `stop_session()` ends it all and
also runs at exit. Which settings are set is in `conf.py`, the JVM is in `gateway.py`.

A process has at most one classic Spark. Settings that differ in what Spark can change while it runs
get a session of their own on it; settings that differ in more are refused until it is stopped.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import socket
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from millpond.base.errors import ConfigError, EngineError, EngineUnavailableError, MillpondError
from millpond.base.settings import Settings
from millpond.engine.spark import gateway
from millpond.engine.spark.api import is_classic
from millpond.engine.spark.conf import (
    RUNTIME,
    SEMANTICS,
    is_connect,
    master_url,
    session_conf,
    started_conf,
)
from millpond.engine.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

_REACH_SECONDS = 10
_CONNECT_PORT, _MASTER_PORT = 15002, 7077
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
_CONNECT_PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard")

_Key = tuple[tuple[str, str], ...]


@dataclass
class _Running:
    """What runs in this process. All of it is guarded by `_lock`."""

    jvm: gateway.Jvm | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    sessions: dict[_Key, SparkSession] = field(default_factory=dict)
    remote: list[SparkSession] = field(default_factory=list)
    adopted: SparkSession | None = None
    pid: int = field(default_factory=os.getpid)


_lock = threading.RLock()
_running = _Running()


def spark_session(settings: Settings | None = None) -> SparkSession:
    """The session for these settings, started when it is needed.

    Without settings it is the session that this process uses already, or one by the process's
    settings. An adopted session is used whatever the settings say.
    """
    with _lock:
        if _running.adopted is not None:
            return _running.adopted
        alive = _running.jvm is None or _running.jvm.is_alive
        if settings is None and _running.sessions and alive:
            return next(iter(_running.sessions.values()))
        spark = (Settings.load() if settings is None else settings).spark
        if is_connect(master_url(spark)):
            conf = session_conf(spark)
            key = _key({**conf, "spark.remote": master_url(spark)})
            if key not in _running.sessions:
                _check_mode(classic=False)
                session = _connect(master_url(spark), conf)
                _running.remote.append(session)
                _running.sessions[key] = session
            return _running.sessions[key]
        if _running.jvm is not None and not _running.jvm.is_alive:
            stop_session()  # it crashed, out of memory perhaps: the next one starts afresh
        conf = started_conf(spark)
        key = _key(conf)
        if key not in _running.sessions:
            if _running.jvm is None:
                _check_mode(classic=True)
                _running.jvm = _start(conf, log_level=spark.log_level)
                _running.conf = conf
                _running.sessions[key] = _running.jvm.session
            else:
                _running.sessions[key] = _derive(_running.jvm.session, conf)
        return _running.sessions[key]


def adopt(session: SparkSession) -> SparkSession:
    """Use Spark through a session that already exists, such as a notebook's or a cluster's.

    Millpond works in a new session on the same Spark, with the settings that its answers depend on;
    the session that was given is not changed and is not stopped.
    """
    with _lock:
        if _running.jvm is not None or _running.sessions or _running.adopted is not None:
            raise EngineError(
                "this process already uses a Spark session",
                engine="spark",
                hint="call adopt() before the first use of Spark, or stop_session() first",
            )
        _silence_query_loggers()
        _running.adopted = _settled(session)
        return _running.adopted


def fit_session(session: SparkSession) -> SparkSession:
    """A session that plans can run in: the given one, or a new one on the same Spark.

    The session that was given is not changed.
    """
    found = {name: str(session.conf.get(name)) for name in SEMANTICS}
    wrong = [name for name, value in SEMANTICS.items() if found[name].lower() != value.lower()]
    if not wrong:
        return session
    if not is_classic(session):
        raise ConfigError(
            f"this session has {wrong[0]}={found[wrong[0]]}, and answers depend on it",
            setting=wrong[0],
            hint=f"session.conf.set({wrong[0]!r}, {SEMANTICS[wrong[0]]!r})",
        )
    return _settled(session)


def _settled(session: SparkSession) -> SparkSession:
    own = session.newSession()
    _apply(own, {**RUNTIME, **SEMANTICS})
    return own


def stop_session() -> None:
    """Stop every session that was started here, and forget an adopted one; safe to repeat."""
    if _running.pid != os.getpid():
        return  # a forked child: Spark is its parent's
    with _lock:
        remote, jvm = list(_running.remote), _running.jvm
        _running.remote.clear()
        _running.sessions.clear()
        _running.adopted = _running.jvm = None
        _running.conf = {}
        for session in remote:
            # A server that is gone can't be told goodbye.
            with contextlib.suppress(Exception):
                session.stop()
        if remote:
            os.environ.pop(_CONNECT_MODE, None)
        if jvm is not None:
            gateway.stop(jvm)


def has_session() -> bool:
    """Whether this process uses Spark already."""
    with _lock:
        return _running.adopted is not None or bool(_running.sessions)


def session_pid() -> int | None:
    """The process of the JVM that was started here; None where none runs."""
    with _lock:
        jvm = _running.jvm
        if jvm is None or jvm.process is None or not jvm.is_alive:
            return None
        return jvm.process.pid


def session_log() -> Path | None:
    """The file that holds what Spark's JVM printed; None while none was started here."""
    with _lock:
        return None if _running.jvm is None else _running.jvm.log


def _start(conf: Mapping[str, str], *, log_level: str) -> gateway.Jvm:
    _require("pyspark", extra="spark")
    _require("pandas", extra="spark")
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is not None and context._active_spark_context is not None:  # noqa: SLF001
        raise EngineError(
            "a Spark session that Millpond did not start is running in this process",
            engine="spark",
            hint="pass it to millpond.engine.spark.session.adopt(), or stop it",
        )
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has started the JVM already
        find_java()
    _check_master(conf["spark.master"])
    _silence_query_loggers()
    jvm = gateway.start(conf, log_level=log_level)
    atexit.register(stop_session)
    return jvm


def _check_mode(*, classic: bool) -> None:
    """PySpark's functions speak to one kind of session in a process."""
    if _running.remote if classic else _running.jvm is not None:
        running = "Spark Connect" if classic else "Spark itself"
        raise EngineError(
            f"this process already uses {running}",
            engine="spark",
            hint="call stop_session() first, or use the same spark.master throughout the process",
        )


def _derive(base: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    changed = {k for k in {*conf, *_running.conf} if conf.get(k) != _running.conf.get(k)}
    fixed = sorted(k for k in changed if not base.conf.isModifiable(k))
    if fixed:
        raise EngineError(
            f"Spark runs in this process with other values of {', '.join(fixed)}",
            engine="spark",
            hint="call stop_session() first, or use the same settings throughout the process",
        )
    session = base.newSession()
    _apply(session, {k: conf[k] for k in conf if base.conf.isModifiable(k)})
    return session


def _apply(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set what can be set on a running Spark, and make sure that answers will be right."""
    from millpond.engine.spark.errors import translate

    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        wrong = {k: session.conf.get(k) for k, v in SEMANTICS.items() if session.conf.get(k) != v}
    except Exception as error:
        raise translate(error) from error
    if wrong:
        found = ", ".join(f"{name}={value}" for name, value in sorted(wrong.items()))
        raise EngineError(
            f"this Spark does not let Millpond change {found}",
            engine="spark",
            hint="; ".join(f"start it with {name}={SEMANTICS[name]}" for name in sorted(wrong)),
        )


def _connect(url: str, conf: Mapping[str, str]) -> SparkSession:
    _require("pyspark", extra="connect")
    for package in _CONNECT_PACKAGES:
        _require(package, extra="connect")
    from pyspark.errors import utils as pyspark_utils
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # The client of a server that is gone retries for many minutes, so look before it does.
    _check_reachable(url, default_port=_CONNECT_PORT)
    _check_speaks_grpc(url)
    _silence_query_loggers()
    os.environ[_CONNECT_MODE] = "1"  # makes `pyspark.sql.functions` speak to the server
    # As `conf.py` has it; a server does not let it be set, and there is no public name for it here.
    utils: Any = pyspark_utils
    utils._enable_debugging_cache = False  # noqa: SLF001
    try:
        session = cast("SparkSession", ConnectSession.builder.remote(url).create())
    except Exception as error:
        from millpond.engine.spark.errors import first_line

        os.environ.pop(_CONNECT_MODE, None)
        raise EngineUnavailableError(
            f"no session on the Spark Connect server {_shown(url)}: {first_line(error)}",
            engine="spark",
            hint="check the address, its token and that the server's version fits",
        ) from error
    atexit.register(stop_session)
    # By default a server that dies is waited for during ten minutes; this is half of one.
    policy = DefaultPolicy(max_retries=9, backoff_multiplier=3.0, max_backoff=5000)
    cast("Any", session).client.set_retry_policies([policy])
    try:
        _apply(session, conf)
    except MillpondError:
        session.stop()
        raise
    return session


def _check_master(master: str) -> None:
    if master.startswith("spark://"):
        # High availability: several masters, of which one answers.
        hosts = master.removeprefix("spark://").split(",")
        for last, host in enumerate(hosts, start=1 - len(hosts)):
            try:
                _check_reachable(f"spark://{host}", default_port=_MASTER_PORT)
                return
            except EngineUnavailableError:
                if last == 0:
                    raise


def _check_reachable(url: str, *, default_port: int) -> None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or default_port
    except ValueError:
        host, port = None, 0
    if not host:
        raise ConfigError(
            f"spark.master has no host that can be read: {_shown(url)}",
            setting="spark.master",
            hint="write it as spark://host:7077 or sc://host:15002",
        )
    try:
        socket.create_connection((host, port), timeout=_REACH_SECONDS).close()
    except OSError as error:
        raise EngineUnavailableError(
            f"nothing answers at {host}:{port} ({_shown(url)}): {error.strerror or error}",
            engine="spark",
            hint="start the server, or check spark.master in the settings",
        ) from error


def _check_speaks_grpc(url: str) -> None:
    import grpc  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise ConfigError(
            f"spark.master is not a Spark Connect address: {_shown(url)}",
            setting="spark.master",
            hint="write it as sc://host:15002/;token=...",
        ) from error
    try:
        grpc.channel_ready_future(channel).result(timeout=_REACH_SECONDS)
    except grpc.FutureTimeoutError as error:
        raise EngineUnavailableError(
            f"{_shown(url)} accepts connections but is not a Spark Connect server",
            engine="spark",
            hint="check the port, and whether the server wants use_ssl=true",
        ) from error
    finally:
        channel.close()


def _require(package: str, *, extra: str) -> None:
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise EngineUnavailableError(
            f"the package {package} is not installed",
            engine="spark",
            hint=f"pip install 'millpond[{extra}]'",
        )


def _silence_query_loggers() -> None:
    """PySpark prints each SQL error as JSON on stderr, although it also raises it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _shown(url: str) -> str:
    """The address without its parameters: one of them may be a token."""
    return url.partition("/;")[0]


def _key(conf: Mapping[str, str]) -> _Key:
    return tuple(sorted(conf.items()))

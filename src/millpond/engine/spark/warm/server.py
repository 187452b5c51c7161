"""The warm engine itself: `python -m millpond.engine.spark.warm.server`, started by `control.py`.

Each connection asks one thing, in a thread of its own. Who closes it before the end has its work
cancelled, whether it said so or was killed. The engine ends when it is told to, when nobody has
asked for anything for a while, when its JVM is gone, or when another one has taken its place.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import EngineError, MillpondError
from millpond.engine.spark.warm import state, wire
from millpond.plan.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from millpond.base.settings import Settings
    from millpond.engine.spark import SparkEngine
    from millpond.engine.spark.execution import SparkExecution
    from millpond.engine.spark.progress import Progress
    from millpond.engine.spark.warm.client import WarmRun
    from millpond.plan.node import Plan

ALREADY_THERE: Final = 3
"""The exit code of an engine that found another one."""
_LOOK_SECONDS: Final = 0.5
_WARM_ROUNDS: Final = 5


class Server:
    """Answers requests with an engine."""

    def __init__(self, settings: Settings, token: str) -> None:
        self.stopping = threading.Event()
        self._settings = settings
        self._token = token
        self.began = datetime.now(UTC)
        self._listener = socket.create_server((wire.HOST, 0))
        self._lock = threading.Lock()
        self._active = 0
        self._served = 0
        self._last = time.monotonic()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def idle_seconds(self) -> float:
        """How long nothing has been asked for; 0 while something runs."""
        with self._lock:
            return 0.0 if self._active else time.monotonic() - self._last

    def listen(self) -> None:
        """Take connections, until the listener is closed."""
        self._last = time.monotonic()
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(sock,), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _greet(self, sock: socket.socket) -> None:
        channel = wire.Channel(sock)
        try:
            channel.greet(self._token, is_server=True)
            _, content = channel.receive()
        except (OSError, EOFError):  # a stranger, or one who went away
            channel.close()
            return
        from pyspark import InheritableThread

        # It gives back the thread of the JVM that goes with it.
        thread = InheritableThread(target=self._answer, args=(channel, content))
        thread.daemon = True  # one that waits for its reader does not keep the engine from ending
        thread.start()

    def _answer(self, channel: wire.Channel, content: bytes) -> None:
        is_work = False
        try:
            asked: dict[str, Any] = json.loads(content)
            doing, is_work = self._found(asked["do"])
            with self._lock:
                self._active += is_work
            answer = doing(channel, asked)
            channel.send(wire.ANSWER, pickle.dumps(answer))
        except (OSError, EOFError):  # nobody is there any more
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who asked is told
            with suppress(OSError):
                channel.send(wire.ERROR, pickle.dumps(_tellable(error)))
        finally:
            with self._lock:
                self._active -= is_work
                self._served += is_work
                if is_work:
                    self._last = time.monotonic()
            channel.close()

    def _found(self, name: str) -> tuple[Callable[[wire.Channel, dict[str, Any]], Any], bool]:
        """What answers a request, and whether it is work, without which the engine is idle."""
        asked = {"status": self._do_status, "stop": self._do_stop}
        work = {
            "run": self._do_run,
            "schema": self._do_schema,
            "ranges": self._do_ranges,
            "explain": self._do_explain,
        }
        return {**asked, **work}[name], name in work

    # What can be asked for

    def _do_status(self, channel: wire.Channel, asked: dict[str, Any]) -> dict[str, Any]:
        del channel, asked
        from millpond.engine.spark.session import session_pid

        jvm = session_pid()
        return {
            "pid": os.getpid(),
            "address": f"{wire.HOST}:{self.port}",
            "since": self.began.isoformat(timespec="seconds"),
            "idle_seconds": round(self.idle_seconds, 1),
            "idle_minutes": self._settings.warm.idle_minutes,
            "running": self._active,
            "served": self._served,
            "memory": _memory(os.getpid()) + (_memory(jvm) if jvm is not None else 0),
        }

    def _do_stop(self, channel: wire.Channel, asked: dict[str, Any]) -> None:
        del channel, asked
        self.stopping.set()

    def _do_schema(self, channel: wire.Channel, asked: dict[str, Any]) -> str:
        del channel
        from millpond.plan.typejson import schema_from_json, schema_to_json

        inputs = {name: schema_from_json(text) for name, text in asked["inputs"].items()}
        found = self._engine().sql_schema(asked["text"], inputs, allow=asked["allow"])
        return schema_to_json(found)

    def _do_ranges(
        self, channel: wire.Channel, asked: dict[str, Any]
    ) -> dict[str, tuple[int | None, int | None]]:
        del channel
        from millpond.plan.typejson import schema_from_json

        inputs = {name: schema_from_json(text) for name, text in asked["inputs"].items()}
        column, start, end = asked["wanted"]
        return self._engine().pushed_ranges(
            asked["text"], inputs, asked["times"], (column, start, end)
        )

    def _do_explain(self, channel: wire.Channel, asked: dict[str, Any]) -> str:
        del channel
        from millpond.plan.codec import loads

        return self._engine().explain(loads(asked["plan"]))

    def _do_run(self, channel: wire.Channel, asked: dict[str, Any]) -> dict[str, Any]:
        from millpond.plan.codec import loads

        def report(progress: Progress) -> None:
            channel.send(wire.PROGRESS, json.dumps(asdict(progress)).encode())

        engine = self._engine(report if asked["progress"] else None)
        plan = loads(asked["plan"])
        run = _run(engine, plan, asked)
        over = threading.Event()
        threading.Thread(target=_cancel_when_left, args=(channel, run, over), daemon=True).start()
        try:
            for batch in run:
                channel.send(wire.BATCH, _message(batch))
        finally:
            over.set()
            run.close()
        return {"counters": run.counters.to_dict(), "observations": run.observations()}

    def _engine(self, progress: Callable[[Progress], object] | None = None) -> SparkEngine:
        from millpond.engine.spark import SparkEngine
        from millpond.engine.spark.session import spark_session

        return SparkEngine(spark_session(self._settings), self._settings, progress=progress)


def _run(engine: SparkEngine, plan: Plan, asked: dict[str, Any]) -> SparkExecution | WarmRun:
    if asked["parts"] is None:
        return engine.execute(plan) if asked["ordered"] else engine.execute_parallel(plan)
    run = engine.execute_into(plan, Parts(**asked["parts"]))
    assert run is not None, "who asks has looked whether it can be done"
    return run


def _cancel_when_left(
    channel: wire.Channel, run: SparkExecution | WarmRun, over: threading.Event
) -> None:
    """Cancel a run when its reader says so, or goes away."""
    with suppress(OSError, EOFError):
        channel.receive()
    if not over.is_set():
        run.cancel()


def _message(batch: pa.RecordBatch) -> memoryview:
    import pyarrow as pa

    with pa.BufferOutputStream() as out:
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        return memoryview(out.getvalue())


def _tellable(error: Exception) -> MillpondError:
    """An error that can be sent: one of ours, without what it holds on to."""
    if isinstance(error, MillpondError):
        error.__cause__ = None
        return error
    return EngineError(f"the warm engine failed: {error!r}", engine="spark")


def _memory(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import subprocess

        said = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.strip()
        return int(said) * 1024 if said.isdigit() else 0


def _warm_up(settings: Settings) -> None:
    """Run a query, so that the first one of a user finds classes loaded and code compiled."""
    from tempfile import TemporaryDirectory

    import pyarrow as pa
    import pyarrow.parquet as pq

    from millpond.engine.spark import SparkEngine
    from millpond.engine.spark.session import spark_session
    from millpond.plan.sources import File, Scan
    from millpond.plan.streams import Sql
    from millpond.plan.types import DOUBLE, STRING, Struct

    engine = SparkEngine(spark_session(settings), settings)
    text = "SELECT site, max(level) AS level FROM source WHERE level > 1 GROUP BY site ORDER BY 1"
    with TemporaryDirectory(prefix="millpond-warm-") as place:
        file = f"{place}/levels.parquet"
        pq.write_table(pa.table({"site": ["a", "b"], "level": [1.5, 2.5]}), file)
        source = Scan("parquet", (File(file),), Struct.of(site=STRING, level=DOUBLE))
        for _ in range(_WARM_ROUNDS):
            columns = engine.sql_schema(text, {"source": source.schema})
            list(engine.execute(Sql(text, ("source",), (source,), columns)))


def main() -> int:
    """Be the warm engine, until the end."""
    from millpond.base.settings import Settings
    from millpond.engine.spark.session import session_pid, spark_session, stop_session

    life = state.Life()
    if not life.begin():
        return ALREADY_THERE
    settings = Settings.load()
    os.chdir("/")  # whoever starts it may want to remove where it stands
    token = secrets.token_urlsafe(32)
    given = state.parts(settings, token)  # before anything else can change what it is made from
    server = Server(settings, token)
    signal.signal(signal.SIGTERM, lambda *_: server.stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    me = None
    try:
        spark_session(settings)
        _warm_up(settings)
        me = state.State(os.getpid(), server.port, token, given)
        state.write(me)
        threading.Thread(target=server.listen, daemon=True).start()
        idle = settings.warm.idle_minutes * 60
        while not server.stopping.wait(_LOOK_SECONDS):
            if server.idle_seconds > idle or session_pid() is None or state.read() != me:
                break
    except MillpondError as error:
        print(error, file=sys.stderr)  # noqa: T201 - into the log, where `control.py` reads it
        return 1
    finally:
        server.close()
        if me is not None:
            state.remove(me)
        stop_session()
        life.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

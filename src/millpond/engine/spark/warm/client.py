"""What a command has of the warm engine: plans go there, Arrow batches come back.

Commands use one by themselves, others do not: see `plan/attendant.py`. `found()` gives the engine
that runs with the same settings.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import EngineError, MillpondError, RunCancelledError
from millpond.base.settings import Settings
from millpond.engine.spark.conf import is_local, master_url
from millpond.engine.spark.interrupts import held_interrupt
from millpond.engine.spark.progress import Progress
from millpond.engine.spark.warm import state, wire
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.attendant import attendant
from millpond.plan.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from millpond.plan.executor import Observation
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.plan.streams import SqlAllow
    from millpond.plan.types import Struct

    Report = Callable[[Progress], object]


def found(settings: Settings | None = None, *, tells: bool = True) -> Warm | None:
    """The warm engine that runs with these settings, if this process is a command that may use it.

    Where there is none, the command is told why, if it is to be.
    """
    from millpond.engine.spark.session import has_session

    watcher = attendant()
    if watcher is None or has_session():
        return None
    chosen = settings or Settings.load()
    if chosen.warm.use == "never" or not is_local(master_url(chosen.spark)):
        return None
    warm = _looked_for(chosen)
    if isinstance(warm, Warm):
        return warm
    if tells:
        watcher.tell(warm[0], hint=warm[1])
    return None


def _looked_for(chosen: Settings) -> Warm | tuple[str, str | None]:
    """The warm engine, or why there is none and what to do."""
    try:
        there = state.read()
    except EngineError as error:
        return f"no warm engine is used: {error.message}", error.hint
    if there is None:
        return "Spark starts; with a warm engine it need not: pond engine start", None
    other = state.differences(state.parts(chosen, there.token), there.parts)
    if other:
        more = " and more" if len(other) > 3 else ""
        said = f"the warm engine has another {', '.join(other[:3])}{more}, so Spark starts here"
        return said, "pond engine stop, and then pond engine start"
    warm = Warm(there)
    if not warm.answers():
        return "the warm engine is gone, so Spark starts here", "pond engine start"
    return warm


def can_go(plan: Plan) -> bool:
    """Whether a plan means the same there as here: it names no files by relative paths."""
    from millpond.plan.sources import ListFiles, Scan
    from millpond.plan.tree import topological

    for node in topological(plan):
        if isinstance(node, ListFiles) and not _is_absolute(node.path):
            return False
        if isinstance(node, Scan) and not all(_is_absolute(file.path) for file in node.files):
            return False
    return True


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or ":/" in path


@dataclass(frozen=True, slots=True)
class Warm:
    """A warm engine that runs."""

    state: state.State

    def answers(self) -> bool:
        """Whether it is there, and is the one that it seems to be."""
        try:
            self._channel().close()
        except (OSError, EOFError):
            return False
        return True

    def execute(
        self,
        plan: Plan,
        *,
        ordered: bool = False,
        parts: Parts | None = None,
        progress: Report | None = None,
    ) -> WarmRun:
        """Run a plan that names no stored path; with `parts`, its rows are written there."""
        return WarmRun(self, plan, ordered=ordered, parts=parts, progress=progress)

    def explain(self, plan: Plan) -> str:
        """Spark's physical plan."""
        from millpond.plan.codec import dumps

        text: str = self.ask({"do": "explain", "plan": dumps(plan)})
        return text

    def sql_schema(
        self, text: str, inputs: Mapping[str, Struct], *, allow: SqlAllow = "inputs"
    ) -> Struct:
        """The columns that a query gives."""
        from millpond.plan.typejson import schema_from_json, schema_to_json

        given = {name: schema_to_json(schema) for name, schema in inputs.items()}
        asked = {"do": "schema", "text": text, "inputs": given, "allow": allow}
        return schema_from_json(self.ask(asked))

    def pushed_ranges(
        self,
        text: str,
        inputs: Mapping[str, Struct],
        times: Mapping[str, str],
        wanted: tuple[str, int | None, int | None],
    ) -> dict[str, tuple[int | None, int | None]]:
        """Which rows of its inputs a query needs for a range of what it gives."""
        from millpond.plan.typejson import schema_to_json

        given = {name: schema_to_json(schema) for name, schema in inputs.items()}
        asked = {"text": text, "inputs": given, "times": dict(times), "wanted": list(wanted)}
        found = self.ask({"do": "ranges", **asked})
        return {name: (start, end) for name, (start, end) in found.items()}

    def ask(self, request: Mapping[str, Any]) -> Any:
        """What it answers, or the error that it answers with."""
        channel = self.begin(request)
        try:
            with held_interrupt(channel.close):
                kind, content = channel.receive()
        except (OSError, EOFError) as error:
            raise _lost() from error
        finally:
            channel.close()
        return read_answer(kind, content)

    def begin(self, request: Mapping[str, Any]) -> wire.Channel:
        """Ask for something."""
        try:
            channel = self._channel()
            channel.send(wire.REQUEST, json.dumps(request).encode())
        except (OSError, EOFError) as error:
            raise _lost() from error
        return channel

    def _channel(self) -> wire.Channel:
        return wire.connect(self.state.port, self.state.token)


class WarmRun:
    """A run on the warm engine. Nothing runs before the first batch is asked for."""

    def __init__(
        self,
        warm: Warm,
        plan: Plan,
        *,
        ordered: bool,
        parts: Parts | None,
        progress: Report | None,
    ) -> None:
        from millpond.plan.codec import dumps

        self.schema: pa.Schema = to_arrow_schema(plan.schema) if parts is None else parts.schema()
        self.counters = Counters.begin()
        self._warm = warm
        self._progress = progress
        self._request = {
            "do": "run",
            "plan": dumps(plan),
            "ordered": ordered,
            "parts": None if parts is None else asdict(parts),
            "progress": progress is not None,
        }
        self._channel: wire.Channel | None = None
        self._seen: tuple[Observation, ...] = ()
        self._is_cancelled = self._is_over = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._is_over:
            raise StopIteration
        try:
            batch = self._next()
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            raise StopIteration
        return batch

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        self._is_cancelled = True
        channel = self._channel
        if channel is not None:
            try:
                channel.send(wire.CANCEL)
            except OSError:  # it has ended by itself
                return

    def close(self) -> None:
        """Stop and release everything."""
        self._is_over = True
        if self._channel is not None:
            self._channel.close()

    def observations(self) -> tuple[Observation, ...]:
        """What was seen of each step; known at the end."""
        return self._seen

    def _next(self) -> pa.RecordBatch | None:
        if self._is_cancelled:
            raise RunCancelledError("spark")
        with held_interrupt(self.cancel):
            if self._channel is None:
                self._channel = self._warm.begin(self._request)
            while True:
                kind, content = self._receive(self._channel)
                if kind == wire.BATCH:
                    return _batch(content)
                if kind != wire.PROGRESS:
                    break
                if self._progress is not None:
                    self._progress(Progress(**json.loads(content)))
        end: dict[str, Any] = read_answer(kind, content)
        self._seen = end["observations"]
        for name, amount in end["counters"].items():
            self.counters.add(name, amount)
        return None

    def _receive(self, channel: wire.Channel) -> tuple[bytes, bytes]:
        try:
            return channel.receive()
        except (OSError, EOFError) as error:
            if self._is_cancelled or self._is_over:
                raise RunCancelledError("spark") from None
            raise _lost() from error


def read_answer(kind: bytes, content: bytes) -> Any:
    """An answer, or the error that came instead."""
    said = pickle.loads(content)
    if kind == wire.ERROR and isinstance(said, MillpondError):
        raise said
    return said


def _batch(content: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        return reader.read_next_batch()


def _lost() -> EngineError:
    return EngineError(
        "the warm engine has ended in the middle of this",
        engine="spark",
        hint="look why: pond engine status; and run it again",
    )

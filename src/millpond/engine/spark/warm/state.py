"""Where the warm engine is, and which settings it runs with: a file that only its user can read.

The file holds the token by which both sides know each other. A lock beside it is held by the engine
as long as it lives, however it ends. Settings are compared by their digests, so none of them is in
the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from millpond.base.errors import EngineError
from millpond.base.home import state_home
from millpond.engine.spark.conf import started_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.settings import Settings

_VARIABLES: Final = (
    "HADOOP_CONF_DIR",
    "JAVA_HOME",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
)
"""What Spark looks at in the environment when it starts."""


@dataclass(frozen=True, slots=True)
class State:
    """A warm engine, as it describes itself."""

    pid: int
    port: int
    token: str
    parts: dict[str, str]
    """Digests of what it was started with, by name."""

    def __repr__(self) -> str:
        return f"State(pid={self.pid}, port={self.port})"


def directory() -> Path:
    """Where state is kept; made if it is not there, and only its user gets in."""
    found = _place()
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        found.chmod(0o700)  # fails if it is another user's
    except OSError as error:
        raise _unusable(found, error.strerror or str(error)) from error
    return found


def _place() -> Path:
    found = Path(state_home())
    if not found.is_absolute():
        raise _unusable(found, "this user has no home")
    return found


def _unusable(place: Path, why: str) -> EngineError:
    return EngineError(
        f"{place} can't be used: {why}",
        engine="spark",
        hint="set XDG_STATE_HOME to a directory of your own",
    )


def state_file() -> Path:
    """The file of this machine; a home may be shared by several."""
    return _place() / f"engine-{socket.gethostname()}.json"


def log_file() -> Path:
    """What the engine has printed."""
    return directory() / f"engine-{socket.gethostname()}.log"


def read() -> State | None:
    """What the file says; None if there is none. Whether the engine lives is another question."""
    try:
        found: dict[str, Any] = json.loads(state_file().read_text(encoding="utf-8"))
        return State(**found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise EngineError(
            f"{state_file()} can't be read: {error}",
            engine="spark",
            hint="delete it, and start the engine again: pond engine start",
        ) from error


def write(state: State) -> None:
    """Tell where the engine is; the file is there as a whole, and nobody else can read it."""
    directory()
    file = state_file()
    new = file.with_suffix(".new")
    with suppress(FileNotFoundError):
        new.unlink()
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump(asdict(state), out)
    new.replace(file)


def remove(state: State) -> None:
    """Take the file away, if it is still about this engine."""
    with suppress(FileNotFoundError, EngineError):
        if read() == state:
            state_file().unlink()


class Life:
    """The lock that an engine holds while it lives."""

    def __init__(self) -> None:
        self._handle: int | None = None

    def begin(self) -> bool:
        """Take the lock; False if another one has it."""
        directory()
        path = state_file().with_suffix(".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def end(self) -> None:
        """Let it go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def is_alive() -> bool:
    """Whether an engine lives, or is being started."""
    life = Life()
    if life.begin():
        life.end()
        return False
    return True


# Settings


def parts(settings: Settings, token: str) -> dict[str, str]:
    """Digests of all that an engine's answers and powers depend on, by the names users know."""
    spark, store = settings.spark, settings.store
    found = dict(started_conf(spark))
    found["spark.log_level"] = spark.log_level
    found["spark.verify"] = spark.verify
    found |= {f"store.{name}": _shown(getattr(store, name)) for name in store.__slots__}
    found |= {f"variable {name}": os.environ.get(name, "") for name in _VARIABLES}
    found["version of pyspark"] = metadata.version("pyspark")
    found["Python"] = f"{sys.prefix} {sys.version}"
    found["version of millpond"] = _code()
    key = blake3(token.encode()).digest()
    return {name: blake3(v.encode(), key=key).hexdigest(length=16) for name, v in found.items()}


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What differs, by name.

    >>> differences({"a": "1", "b": "1"}, {"a": "1", "b": "2", "c": "3"})
    ['b', 'c']
    """
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def _shown(value: object) -> str:
    revealed = getattr(value, "reveal", None)
    return str(value if revealed is None else revealed())


def _code() -> str:
    """Names the code that both sides share: an engine from before a change does not know of it."""
    root = Path(__file__).parents[3]
    newest, waiting = 0, [str(root / "plan"), str(root / "engine" / "spark")]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name.endswith(".py"):
                    newest = max(newest, entry.stat().st_mtime_ns)
    return f"{root} {newest}"

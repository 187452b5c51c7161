"""The operations that are killed, each with all states that a reader may see afterwards."""

from __future__ import annotations

import contextlib
import io
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.oracles import comparable
from tests.fuzz.ponds import BLOB, readings

import millpond as mp
from millpond.fs.entry import EntryType

if TYPE_CHECKING:
    from collections.abc import Callable

SPARK_PATHS: Final = ("/queried",)
"""Computed by Spark, and so not part of the state that is compared."""


def commit(location: str) -> None:
    """Commit one transaction over nodes of all kinds."""
    pond = mp.open(location)
    with pond.write("commit") as tx:
        tx.write_bytes("/new", b"new")
        tx.write_bytes("/blob", BLOB + b"more")
        tx.write_bytes("/dir/note.txt", b"changed")
        tx.write_bytes("/log", b"two\n", series=True)
        tx.write_table("/made", [{"x": 1.5}, {"x": 2.5}])
        tx.write_table("/table", [{"id": 2, "name": "two", "x": 0.5, "extra": True}])
        tx.append_series("/in/a", readings(900, 5))
        tx.move("/dir/sub", "/sub")
        tx.remove("/dir/new0")
        tx.commit()


def append(location: str) -> None:
    """Append to a series and make another one."""
    pond = mp.open(location)
    with pond.write("append") as tx:
        tx.append_series("/in/b", readings(900, 50, scale=0.25))
        tx.append_series("/in/c", readings(0, 50))
        tx.commit()


def copy(location: str) -> None:
    """Copy files of the machine into the pond, some of them as rows."""
    source = Path(location).parent / "source"
    source.mkdir(exist_ok=True)
    for number in range(3):
        (source / f"{number}.txt").write_bytes(b"line\n" * 30_000)
    (source / "rows.csv").write_text("timestamp,level\n2026-03-01T00:00:00Z,1.5\n")
    _pond(location, "copy", "-p", f"host://{source}/*.txt", "/copied/")


def copy_rows(location: str) -> None:
    """Copy a CSV file of the machine into a new series."""
    source = Path(location).parent / "rows.csv"
    lines = [f"2026-03-01T{hour:02}:00:00Z,{hour}.5" for hour in range(24)]
    source.write_text("timestamp,level\n" + "\n".join(lines) + "\n")
    _pond(location, "copy", f"host+csv+series://{source}", "/in/copied")


def materialize(location: str) -> None:
    """Write the rows of a computed path down."""
    _pond(location, "materialize", "/joined", "/published")


def maintain(location: str) -> None:
    """Compact, write checkpoints, and remove what is not needed."""
    mp.open(location).maintain(dry_run=False, retention=timedelta(0))


def rebuild(location: str) -> None:
    """Make the control table again."""
    mp.open(location).rebuild_control()


def recover(location: str) -> None:
    """Recover what a commit left that was killed after its moment."""
    mp.open(location).recover()


def query(location: str) -> None:
    """Compute a path by Spark."""
    mp.open(location)["/queried"].to_arrow()


def _pond(location: str, *args: str) -> None:
    """Run a command of the command line in this process."""
    from millpond.cli.main import main

    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            main(["--pond", location, *args])
        except SystemExit as ended:
            if ended.code:
                sys.exit(f"{args}: exit code {ended.code}: {output.getvalue()}")


OPERATIONS: Final[dict[str, Callable[[str], None]]] = {
    "commit": commit,
    "append": append,
    "copy": copy,
    "copy rows": copy_rows,
    "materialize": materialize,
    "maintain": maintain,
    "control rebuild": rebuild,
    "recover": recover,
    "query": query,
}
"""All of them change the pond in one transaction, or change nothing that a reader sees."""


def state(location: str) -> dict[str, Any]:
    """Everything that a reader sees: names, versions, contents, and the pond's settings."""
    pond = mp.open(location)
    scope, todo = pond.read(), ["/"]
    seen: dict[str, Any] = {"settings": sorted(pond.control.metadata().items())}
    while todo:
        for stat in scope.children(todo.pop()).values():
            path = stat.path
            if stat.is_directory:
                todo.append(path)
            seen[path] = (str(stat.entry_type), stat.version, _content(scope, path, stat))
    return seen


def _content(scope: Any, path: str, stat: Any) -> Any:
    kind = stat.entry_type
    if stat.is_directory or kind is EntryType.EXECUTABLE or path in SPARK_PATHS:
        return None
    if kind is EntryType.SYMLINK:
        return scope.stat(path, follow=False).target
    if kind.is_bytes:
        return scope.read_bytes(path)
    return sorted(comparable(scope.to_arrow(path)), key=repr)

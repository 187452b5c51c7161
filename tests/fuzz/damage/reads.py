"""The fixed reads after each fault: what a user would ask a pond, each with its answer or error."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.children import traceback_of
from tests.fuzz.oracles import comparable

import millpond as mp
from millpond.base.errors import MillpondError
from millpond.steward.exporting import Asked, export
from millpond.steward.places import parse_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.steward.pond import Pond

FILES: Final = ("/dir/note.txt", "/dir/sub/blob", "/log", "/link", "/lines.csv", "/dir/new1")
ROWS: Final = (
    *("/table", "/table@v1", "/in/a", "/in/a@v3", "/in/b", "/joined", "/pivoted"),
    *("/reduced/a/res=1h.series", "/reduced/b/res=6h.series"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A digest of what was read, or the error."""

    value: str | None = None
    error: str | None = None
    is_ours: bool = True
    """Whether the error is one of Millpond's."""


def read_all(location: str, *, with_spark: bool = False) -> dict[str, Answer]:
    """Open a pond and read everything in fixed ways."""
    reads: dict[str, Callable[[Pond], Any]] = {
        "list": _listing,
        **{f"cat {path}": partial(_bytes, path) for path in FILES},
        **{f"cat {path}": partial(_rows, path) for path in ROWS},
        "count /in/a": _count,
        "filter /in/a": _filtered,
        "csv /lines.csv": _lines,
        "versions": _versions,
        "as_of": _as_of,
        "export": _exported,
        "settings": lambda pond: sorted(pond.control.metadata().items()),
    }
    if with_spark:
        reads |= {
            "spark /table": partial(_spark, "/table"),
            "spark /in/a": partial(_spark, "/in/a"),
            "spark /joined": partial(_spark, "/joined"),
            "cat /queried": partial(_rows, "/queried"),
        }
    return {name: _answer(location, read) for name, read in reads.items()}


def _answer(location: str, read: Callable[[Pond], Any]) -> Answer:
    """Read by a pond that was opened for this read alone."""
    try:
        found = read(mp.open(location))
    except MillpondError as error:
        return Answer(error=f"{type(error).__name__}: {error.message[:300]}")
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        return Answer(error=traceback_of(error), is_ours=False)
    return Answer(hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest())


def _listing(pond: Pond) -> Any:
    scope, found, todo = pond.read(), [], ["/"]
    while todo:
        for stat in scope.children(todo.pop()).values():
            found.append((stat.path, str(stat.entry_type), stat.version, stat.size, stat.target))
            if stat.is_directory:
                todo.append(stat.path)
    return sorted(found, key=repr)


def _bytes(path: str, pond: Pond) -> Any:
    return pond[path].read_bytes()


def _rows(path: str, pond: Pond) -> Any:
    rows = pond[path].to_arrow()
    return rows.schema.names, sorted(comparable(rows), key=repr)


def _count(pond: Pond) -> Any:
    return pond["/in/a"].plan().count(engine="arrow")


def _filtered(pond: Pond) -> Any:
    rows = pond["/in/a"].to_arrow(columns=["level"], predicate=mp.col("level") > 150)
    return sorted(comparable(rows))


def _lines(pond: Pond) -> Any:
    from millpond.steward.rows.selection import Which, select

    plan = select([parse_place("csv:///lines.csv")], pond.read, Which()).plan
    assert plan is not None
    return comparable(plan.to_arrow(engine="arrow"))


def _versions(pond: Pond) -> Any:
    found: list[Any] = []
    for path in ("/table", "/in/a", "/log", "/dir/note.txt"):
        found += [
            (s.path, s.size, s.min_event_time, s.max_event_time) for s in pond[path].versions()
        ]
    return found


def _as_of(pond: Pond) -> Any:
    scope = pond.read(as_of=3)
    return scope.read_bytes("/dir/note.txt"), sorted(comparable(scope.to_arrow("/in/a")), key=repr)


def _exported(pond: Pond) -> Any:
    """All stored and computed paths that need no Spark, as files."""
    with tempfile.TemporaryDirectory() as directory:
        places = [parse_place(path) for path in ("/dir", "/in", "/table", "/joined", "/reduced")]
        asked = Asked(directory, format="csv")
        export(pond.read(), places, asked).run(lambda _count: None)
        files = sorted(file for file in Path(directory).rglob("*") if file.is_file())
        return [
            (str(file.relative_to(directory)), sorted(file.read_bytes().splitlines()))
            for file in files
        ]


def _spark(path: str, pond: Pond) -> Any:
    rows = pond[path].plan().to_arrow(engine="spark")
    return rows.schema.names, sorted(comparable(rows), key=repr)


def wrong(answers: Mapping[str, Answer], truth: Mapping[str, Answer]) -> list[str]:
    """The reads that gave another answer and no error."""
    return [
        name
        for name, answer in answers.items()
        if answer.error is None and answer.value != truth[name].value
    ]

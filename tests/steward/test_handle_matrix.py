"""Every method of a handle on every kind of node: the right result, or an error that leads on."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pytest

import millpond as mp
from millpond.base.errors import (
    DirectoryError,
    LinkLoopError,
    MillpondError,
    NoDirectoryError,
    PathNotFoundError,
    PathTypeError,
)
from millpond.steward.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SERIES: Final = [{"timestamp": START + timedelta(hours=h), "x": float(h)} for h in range(3)]
JOIN: Final = {"inputs": [{"pattern": "/series"}]}

ROWS: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "/table": (("a",), 1),
    "/table@v1": (("a",), 1),
    "/link": (("a",), 1),
    "/series": (("timestamp", "x"), 3),
    "/series@v1": (("timestamp", "x"), 3),
    "/join": (("timestamp", "x"), 3),
    "/join@v1": (("timestamp", "x"), 3),
    "/reduce/s/res=1h.series": (("timestamp", "x.avg"), 3),
    "/pivot": (("timestamp", "series.x"), 3),
    "/synthetic": (("timestamp", "level"), 5),
    "/entries/j": (("timestamp", "x"), 3),
}
ON_SPARK: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "/sql": (("x",), 3),
    "/sql-series": (("timestamp", "x"), 3),
}
BYTES: Final = {
    "/dir/file.csv": b"a,b\n1,2\n",
    "/dir/file.csv@v1": b"a,b\n1,2\n",
    "/log": b"1\n2\n",
    "/log@v2": b"2\n",
    "/pages/a.md": b"hi",
    "/rename": b'{\n  "renames": {\n    "x": "y"\n  }\n}\n',
}
CHILDREN: Final = {
    "/dir": ["file.csv"],
    "/dirlink": ["file.csv"],
    "/reduce": ["s"],
    "/reduce/s": ["res=1h.series"],
    "/entries": ["j"],
    "/pages": ["a.md"],
}
NOTHING: Final[dict[str, type[MillpondError]]] = {
    "/missing": PathNotFoundError,
    "/dir/missing/deep": PathNotFoundError,
    "/loose": PathNotFoundError,
    "/table@v9": PathNotFoundError,
    "/table/below": NoDirectoryError,
    "/loop": LinkLoopError,
}
THERE: Final = (*ROWS, *ON_SPARK, *BYTES, *CHILDREN, "/", "/run")


@pytest.fixture(scope="module")
def pond(tmp_path_factory: pytest.TempPathFactory) -> Pond:
    made = mp.create(tmp_path_factory.mktemp("matrix") / "pond")
    with made.write() as tx:
        tx.make_directory("/dir")
        tx.write_bytes("/dir/file.csv", BYTES["/dir/file.csv"])
        tx.write_bytes("/log", b"1\n", series=True)
        tx.write_table("/table", [{"a": 1}])
        tx.append_series("/series", SERIES)
        for link, target in (("/link", "/table"), ("/dirlink", "/dir"), ("/loose", "/nowhere"),
                             ("/loop", "/loop")):  # fmt: skip
            tx.make_link(link, target)
        tx.make_factory("/join", "timeseries-join", JOIN)
        tx.make_factory(
            "/reduce", "temporal-reduce",
            {"in_pattern": "/series", "out_pattern": "s", "resolutions": ["1h"],
             "aggregations": [{"type": "avg"}]},
        )  # fmt: skip
        tx.make_factory("/pivot", "timeseries-pivot", {"pattern": "/series", "columns": ["x"]})
        for path, factory, query in (
            ("/sql", "sql-derived-table", "SELECT x FROM s"),
            ("/sql-series", "sql-derived-series", "SELECT timestamp, x FROM s"),
        ):
            tx.make_factory(path, factory, {"patterns": {"s": "/series"}, "query": query})
        line = {"name": "level", "components": [{"type": "line", "slope": 1}]}
        tx.make_factory(
            "/synthetic", "synthetic-timeseries",
            {"start": "2026-01-01", "end": "2026-01-02", "interval": "6h", "points": [line]},
        )  # fmt: skip
        entry = {"name": "j", "factory": "timeseries-join", "config": JOIN}
        tx.make_factory("/entries", "dynamic-dir", {"entries": [entry]})
        tx.make_factory(
            "/pages", "template",
            {"in_pattern": "/series", "out_pattern": "a.md", "template": "hi"},
        )  # fmt: skip
        tx.make_factory("/rename", "column-rename", {"renames": {"x": "y"}})
        tx.make_factory("/run", "log-ingest", {"active_pattern": "/no.log", "pond_path": "/logs"})
        tx.commit()
    with made.write() as tx:
        tx.write_bytes("/log", b"2\n", series=True)
        tx.commit()
    return made


def stream(handle: Handle) -> pa.Table:
    return pa.RecordBatchReader.from_stream(handle).read_all()


WITH_ROWS: Final[dict[str, Callable[[Handle], tuple[tuple[str, ...], int | None]]]] = {
    "schema": lambda h: (h.schema.names, None),
    "plan": lambda h: (h.plan().schema.names, h.plan().count()),
    "to_arrow": lambda h: (tuple(h.to_arrow().column_names), h.to_arrow().num_rows),
    "to_pandas": lambda h: (tuple(h.to_pandas().columns), len(h.to_pandas())),
    "__arrow_c_stream__": lambda h: (tuple(stream(h).column_names), stream(h).num_rows),
}
WITH_SPARK: Final[dict[str, Callable[[Handle], tuple[tuple[str, ...], int | None]]]] = {
    "to_spark": lambda h: (tuple(h.to_spark().columns), h.to_spark().count()),
}
WITH_BYTES: Final[dict[str, Callable[[Handle], bytes]]] = {
    "read_bytes": lambda h: h.read_bytes(),
    "read_text": lambda h: h.read_text().encode(),
    "read_chunks": lambda h: b"".join(h.read_chunks()),
    "open": lambda h: h.open().read(),
}
WITH_CHILDREN: Final[dict[str, Callable[[Handle], list[str]]]] = {
    "__iter__": lambda h: [child.name for child in h],
}
OF_ALL: Final[dict[str, Callable[[Handle], Any]]] = {
    "stat": lambda h: h.stat(),
    "versions": lambda h: h.versions(),
}
OF_ANY_PATH: Final = {"name", "path", "scope", "exists", "at", "glob", "_repr_html_", "__truediv__"}


def test_all_methods_are_here() -> None:
    known = {*WITH_ROWS, *WITH_SPARK, *WITH_BYTES, *WITH_CHILDREN, *OF_ALL, *OF_ANY_PATH}
    public = {name for name, _ in inspect.getmembers(Handle) if not name.startswith("_")}
    assert public <= known, "a method of a handle is missing in the matrix"


@pytest.mark.parametrize("method", WITH_ROWS)
@pytest.mark.parametrize("path", ROWS)
def test_rows(pond: Pond, path: str, method: str) -> None:
    columns, count = ROWS[path]
    names, rows = WITH_ROWS[method](pond[path])
    assert names == columns
    assert rows in (count, None)


@pytest.mark.spark
@pytest.mark.parametrize("path", [*ROWS, *ON_SPARK])
def test_rows_on_spark(spark: object, pond: Pond, path: str) -> None:
    del spark
    columns, count = {**ROWS, **ON_SPARK}[path]
    for method in {**WITH_ROWS, **WITH_SPARK} if path in ON_SPARK else WITH_SPARK:
        names, rows = {**WITH_ROWS, **WITH_SPARK}[method](pond[path])
        assert names == columns
        assert rows in (count, None)


@pytest.mark.parametrize("path", ROWS)
def test_duckdb_finds_a_handle_by_the_name_of_a_variable(pond: Pond, path: str) -> None:
    handle = pond[path]
    found = duckdb.sql("SELECT count(*) FROM handle").fetchall()
    assert found == [(ROWS[path][1],)]
    assert handle.path == path


@pytest.mark.parametrize("method", WITH_BYTES)
@pytest.mark.parametrize("path", BYTES)
def test_bytes(pond: Pond, path: str, method: str) -> None:
    assert WITH_BYTES[method](pond[path]) == BYTES[path]


@pytest.mark.parametrize("path", CHILDREN)
def test_children(pond: Pond, path: str) -> None:
    assert [child.name for child in pond[path]] == CHILDREN[path]
    assert [child.name for child in pond[path].glob("*")] == CHILDREN[path]
    assert (pond[path] / CHILDREN[path][0]).exists()


@pytest.mark.parametrize("path", THERE)
def test_what_is_there(pond: Pond, path: str) -> None:
    handle = pond[path]
    assert handle.exists()
    assert repr(handle) == f"Handle({path!r})"
    assert handle.name == path.rpartition("/")[2]
    assert handle.stat().version >= 1
    assert handle.path.partition("@")[0] in handle._repr_html_()
    assert [stat.version for stat in handle.versions()] == list(
        range(1, len(handle.versions()) + 1)
    )
    assert handle.at(1).stat().version == 1
    if path not in (*CHILDREN, "/"):
        assert not (handle / "below").exists()
        assert list(handle.glob("*")) == []


def refusals() -> list[tuple[str, str, Callable[[Handle], Any]]]:
    methods: dict[str, Callable[[Handle], Any]] = {**WITH_ROWS, **WITH_BYTES, **WITH_CHILDREN}
    fits = {name: {*ROWS, *ON_SPARK} for name in WITH_ROWS}
    fits |= {name: {*BYTES} for name in WITH_BYTES}
    fits |= {name: {*CHILDREN, "/"} for name in WITH_CHILDREN}
    return [
        (path, name, method)
        for path in THERE
        for name, method in methods.items()
        if path not in fits[name]
    ]


@pytest.mark.parametrize(("path", "name", "method"), refusals())
def test_what_a_node_does_not_have(
    pond: Pond, path: str, name: str, method: Callable[[Handle], Any]
) -> None:
    with pytest.raises((PathTypeError, DirectoryError)) as error:
        method(pond[path])
    assert path in str(error.value)
    assert error.value.hint, f"{name} of {path} leads nowhere: {error.value}"
    if path == "/run" and name not in WITH_CHILDREN:
        assert "pond run /run" in error.value.hint


@pytest.mark.parametrize("path", NOTHING)
def test_what_is_not_there(pond: Pond, path: str) -> None:
    handle = pond[path]
    assert not handle.exists()
    assert list(handle.glob("*")) == []
    assert "nothing is there" in handle._repr_html_()
    assert handle.at(3).path.endswith("@v3")
    methods: dict[str, Callable[[Handle], Any]] = {
        **WITH_ROWS, **WITH_BYTES, **WITH_CHILDREN, **OF_ALL,
    }  # fmt: skip
    for name, method in methods.items():
        if path == "/table@v9" and name in ("__iter__", "versions"):
            continue  # they are about the node
        with pytest.raises(NOTHING[path]) as error:
            method(handle)
        assert error.value.hint, f"{name} of {path} leads nowhere"

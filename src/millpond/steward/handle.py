"""`Handle`: one path of a pond in the hand. Nothing is read before it is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Unpack

from millpond.base.errors import ScopeError
from millpond.fs.paths import child, parts, split_version

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.steward.scope import Scope, Stat
    from millpond.steward.temporal.times import Wanted


class Handle:
    """A path at a scope's version: `pond["/sensors/a"]`, or one version of it: `pond["/t@v3"]`.

    It goes on seeing what its scope sees. It belongs to the thread that took it.

    >>> import millpond as mp
    >>> pond = mp.create("example")
    >>> with pond.write("first rows") as tx:
    ...     _ = tx.make_directory("/sites")
    ...     _ = tx.write_table("/sites/levels", [{"site": "Weir", "level": 2.9}])
    ...     _ = tx.write_bytes("/sites/readme.txt", b"Levels in metres.")
    ...     _ = tx.commit()
    >>> pond["/sites/levels"].to_arrow().to_pylist()
    [{'site': 'Weir', 'level': 2.9}]
    >>> [handle.name for handle in pond["/sites"]]
    ['levels', 'readme.txt']
    >>> (pond["/sites"] / "readme.txt").read_text()
    'Levels in metres.'
    """

    def __init__(self, scope: Scope, path: str) -> None:
        self.scope = scope
        self.path = path
        self._thread = threading.get_ident()

    def __repr__(self) -> str:
        return f"Handle({self.path!r})"

    def _open(self) -> Scope:
        if self._thread != threading.get_ident():
            raise ScopeError(
                f"the handle of {self.path} belongs to another thread",
                hint="take one there: pond.read()[path]",
            )
        return self.scope

    # What it is

    @property
    def name(self) -> str:
        """The last part of its path; nothing for the root."""
        return (parts(self.path) or ("",))[-1]

    def exists(self) -> bool:
        """Whether something is there."""
        return self._open().exists(self.path)

    def stat(self) -> Stat:
        """What is known of it without reading: kind, version, size, times."""
        return self._open().stat(self.path)

    @property
    def schema(self) -> Struct:
        """The columns of its rows, stored or computed; nothing is run for them."""
        from millpond.steward.temporal.times import columns_of

        return columns_of(self._open(), self.path)

    def versions(self) -> list[Stat]:
        """What was written to it, oldest first.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> for text in (b"draft", b"final"):
        ...     with pond.write() as tx:
        ...         _ = tx.write_bytes("/note", text)
        ...         _ = tx.commit()
        >>> [(stat.path, stat.size) for stat in pond["/note"].versions()]
        [('/note@v1', 5), ('/note@v2', 5)]
        >>> pond["/note"].at(1).read_text()
        'draft'
        """
        scope, plain = self._open(), split_version(self.path).path
        return [scope.stat_of(f"{plain}@v{r.version}", r) for r in scope.versions(plain)]

    def at(self, version: int) -> Handle:
        """One version of it; `pond["/note@v1"]` is the same as `pond["/note"].at(1)`."""
        return Handle(self._open(), f"{split_version(self.path).path}@v{version}")

    # Directories

    def __truediv__(self, name: str) -> Handle:
        return Handle(self._open(), child(self.path, name))

    def __iter__(self) -> Iterator[Handle]:
        """What is in a directory, by name."""
        scope = self._open()
        return iter([Handle(scope, stat.path) for stat in scope.children(self.path).values()])

    def glob(self, pattern: str) -> Iterator[Handle]:
        """What fits a pattern below a directory: `*` within a name, `**` any directories.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> with pond.write() as tx:
        ...     _ = tx.make_directory("/2024/may", parents=True)
        ...     _ = tx.write_bytes("/2024/may/weir.csv", b"level")
        ...     _ = tx.write_bytes("/2024/total.csv", b"level")
        ...     _ = tx.commit()
        >>> [handle.path for handle in pond["/2024"].glob("*.csv")]
        ['/2024/total.csv']
        >>> [handle.path for handle in pond["/"].glob("**/*.csv")]
        ['/2024/may/weir.csv', '/2024/total.csv']
        """
        from millpond.fs.glob import Pattern, expand

        scope = self._open()
        scope.check()
        whole = Pattern.parse(child(_literally(self.path), pattern))
        return (Handle(scope, match.located.path) for match in expand(scope.view, whole))

    # Bytes

    def read_bytes(self) -> bytes:
        """All its bytes, checked against their hash."""
        return self._open().read_bytes(self.path)

    def read_text(self, encoding: str = "utf-8") -> str:
        """All its bytes as text."""
        return self.read_bytes().decode(encoding)

    def read_chunks(self) -> Iterator[bytes]:
        """Its bytes in pieces."""
        return self._open().read_chunks(self.path)

    def open(self) -> io.BufferedReader:
        """Its bytes as a file to read and to seek in, in bounded memory.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> with pond.write() as tx:
        ...     _ = tx.write_bytes("/log", b"up\\ndown\\n")
        ...     _ = tx.commit()
        >>> with pond["/log"].open() as file:
        ...     list(file)
        [b'up\\n', b'down\\n']
        """
        from millpond.steward.bytefile import open_bytes

        return open_bytes(self._open(), self.path)

    # Rows

    def plan(self, **wanted: Unpack[Wanted]) -> Plan:
        """Its rows as a plan, to go on from with any builder.

        `columns` names those that are wanted, `predicate` says which rows; of a series also
        `time_start` and `time_end`, both of which belong to the range. Files in which no such row
        can be are not opened.

        >>> import millpond as mp
        >>> from datetime import UTC, datetime
        >>> pond = mp.create("example")
        >>> days = [{"time": datetime(2024, 5, n, tzinfo=UTC), "mm": n} for n in (1, 2, 3)]
        >>> with pond.write() as tx:
        ...     _ = tx.append_series("/rain", days)
        ...     _ = tx.commit()
        >>> since = pond["/rain"].plan(columns=["mm"], time_start=datetime(2024, 5, 2))
        >>> since.aggregate(total=mp.agg.sum("mm")).to_pylist(engine="arrow")
        [{'total': 5}]
        """
        return self._open().plan(self.path, **wanted)

    def to_arrow(self, **wanted: Unpack[Wanted]) -> pa.Table:
        """Its rows; what is wanted of them is said as in `plan`."""
        return self._open().to_arrow(self.path, **wanted)

    def to_pandas(self, **wanted: Unpack[Wanted]) -> Any:
        """Its rows as a DataFrame of pandas."""
        plan = self.plan(**wanted)
        return plan.to_pandas(engine=self.scope.pond.engine_for(plan))

    def to_spark(self, session: SparkSession | None = None, **wanted: Unpack[Wanted]) -> DataFrame:
        """Its rows as a DataFrame over Spark's own Parquet reader."""
        from millpond.kernel.data import to_dataframe

        return to_dataframe(self.plan(**wanted), session)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # Whoever is given a handle may read the stream in a thread of its own, as DuckDB does.
        # A read scope does not mind; a transaction refuses other threads by itself.
        return self.scope.reader(self.path).__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from millpond.steward.notebook import show

        return show(self)


def _literally(path: str) -> str:
    """A path as a pattern that only it fits."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)

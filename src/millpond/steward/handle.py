"""`Handle`: one path of a pond in the hand. Nothing is read before it is asked for."""

from __future__ import annotations

import html
import io
import threading
from typing import TYPE_CHECKING, Any

from millpond.base.errors import ScopeError
from millpond.fs.paths import child, split_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.steward.scope import Scope, Stat


class Handle:
    """A path at a scope's version: `pond["/sensors/a"]`."""

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

    def exists(self) -> bool:
        """Whether something is there."""
        return self._open().exists(self.path)

    def stat(self) -> Stat:
        """What is known of it without reading."""
        return self._open().stat(self.path)

    @property
    def schema(self) -> Struct:
        """The columns of its rows."""
        return self._open().delta(self.path).schema

    def versions(self) -> list[Stat]:
        """What was written to it, oldest first."""
        scope, plain = self._open(), split_version(self.path).path
        return [scope.stat_of(f"{plain}@v{r.version}", r) for r in scope.versions(plain)]

    def at(self, version: int) -> Handle:
        """One version of it."""
        return Handle(self._open(), f"{split_version(self.path).path}@v{version}")

    def __truediv__(self, name: str) -> Handle:
        return Handle(self.scope, child(self.path, name))

    def __iter__(self) -> Iterator[Handle]:
        """What is in a directory."""
        for stat in self._open().children(self.path).values():
            yield Handle(self.scope, stat.path)

    # Bytes

    def read_bytes(self) -> bytes:
        """All its bytes."""
        return self._open().read_bytes(self.path)

    def read_text(self, encoding: str = "utf-8") -> str:
        """All its bytes as text."""
        return self.read_bytes().decode(encoding)

    def read_chunks(self) -> Iterator[bytes]:
        """Its bytes in pieces."""
        return self._open().read_chunks(self.path)

    def open(self) -> io.BufferedReader:
        """Its bytes as a file to read from beginning to end, in bounded memory."""
        return io.BufferedReader(_Chunks(self.read_chunks()))

    # Rows

    def plan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Expr | None = None,
        *,
        time_start: datetime | None = None,
        time_end: datetime | None = None,
    ) -> Plan:
        """Its rows as a plan, to go on from."""
        return self._open().plan(
            self.path,
            columns=columns,
            predicate=predicate,
            time_start=time_start,
            time_end=time_end,
        )

    def to_arrow(self, **how: Any) -> pa.Table:
        """Its rows."""
        return self.plan(**how).to_arrow(engine=self.scope.pond.engine)

    def to_pandas(self, **how: Any) -> Any:
        """Its rows as a DataFrame of pandas."""
        return self.to_arrow(**how).to_pandas()

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Its rows as a DataFrame over Spark's own Parquet reader."""
        from millpond.kernel.data import to_dataframe

        return to_dataframe(self.plan(), session)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        run = self.plan().execute(engine=self.scope.pond.engine)
        reader = pa.RecordBatchReader.from_batches(run.schema, run)
        return reader.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        stat = self.stat()
        facts = {"type": stat.entry_type, "version": stat.version, "size": stat.size}
        shown = ", ".join(f"{k} {v}" for k, v in facts.items() if v is not None)
        text = f"<b>{html.escape(self.path)}</b> ({html.escape(shown)})"
        if stat.entry_type.is_table:
            text += self.plan().head(10).to_pandas(engine=self.scope.pond.engine).to_html()
        return text


class _Chunks(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = memoryview(chunk)
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

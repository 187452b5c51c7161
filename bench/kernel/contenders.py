"""The two contenders: how each does what a case asks for.

Both get a path and stream Arrow record batches where there are rows. Everything is done anew in
every run, but for `refresh`, which is about a table that is open already. What `deltalake` offers
for a task is used the way that was measured as its fastest: `file_uris` for paths, `scan` for rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bench.digest import Digest
from bench.kernel.adds import id_range
from bench.kernel.copies import LogCopy
from bench.measure import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def millpond(action: str, path: str, size: int) -> Work:
    """Our kernel with the Arrow engine."""
    return _our_plan(path, size) if action == "plan" else _MILLPOND[action](path)


def deltalake(action: str, path: str, size: int) -> Work:
    """The Rust library, through its Python package."""
    return _their_plan(path, size) if action == "plan" else _DELTALAKE[action](path)


CONTENDERS: Final = ("millpond", "deltalake")
PEERS: Final = {"millpond": "deltalake"}


def _our_open(path: str) -> Work:
    from millpond import delta_table

    def opened() -> Iterable[pa.RecordBatch]:
        table = delta_table(path)
        yield _opened(table.version, [field.name for field in table.schema], table.metadata.id)

    return _streamed(opened)


def _our_paths(path: str) -> Work:
    from millpond import delta_table

    return _streamed(lambda: delta_table(path).files(columns=["path"]).batches())


def _our_plan(path: str, size: int) -> Work:
    from millpond import col, delta_table

    low, high = id_range(size)
    wanted = (col("id") >= low) & (col("id") <= high)
    return _streamed(lambda: delta_table(path).files(wanted, columns=["path"]).batches())


def _our_refresh(path: str) -> Work:
    from millpond import delta_table

    copy = LogCopy(path)
    table = delta_table(str(copy.path))

    def run() -> None:
        nonlocal table
        copy.commit(table.version + 1)
        table = table.update()

    def digest() -> Digest:
        before = table.version
        run()
        live = table.files(columns=["path"])["path"].to_pylist()
        return _refreshed(table.version - before, live, runs=table.version)

    return Work(run, digest)


def _our_read(path: str) -> Work:
    from millpond import delta_table

    return _streamed(lambda: delta_table(path).scan().to_batches(engine="arrow"))


def _our_checkpoint(path: str) -> Work:
    from millpond import delta_table
    from millpond.kernel.write.checkpoint import write_checkpoint

    copy = LogCopy(path)

    def run() -> None:
        copy.restore()
        write_checkpoint(delta_table(str(copy.path)))

    return Work(run, lambda: _checkpoint_digest(copy, run))


def _their_open(path: str) -> Work:
    from deltalake import DeltaTable

    def opened() -> Iterable[pa.RecordBatch]:
        table = DeltaTable(path)
        names = [field.name for field in table.schema().fields]
        yield _opened(table.version(), names, str(table.metadata().id))

    return _streamed(opened)


def _their_paths(path: str) -> Work:
    from deltalake import DeltaTable

    return _listed(path, lambda: DeltaTable(path).file_uris())


def _their_plan(path: str, size: int) -> Work:
    from deltalake import DeltaTable

    low, high = id_range(size)
    wanted = f"id >= {low} and id <= {high}"
    return _listed(path, lambda: DeltaTable(path).file_uris(file_pruning_predicate=wanted))


def _their_refresh(path: str) -> Work:
    from deltalake import DeltaTable

    copy = LogCopy(path)
    table = DeltaTable(str(copy.path))

    def run() -> None:
        copy.commit(table.version() + 1)
        table.update_incremental()

    def digest() -> Digest:
        before = table.version()
        run()
        return _refreshed(table.version() - before, table.file_uris(), runs=table.version())

    return Work(run, digest)


def _their_read(path: str) -> Work:
    from deltalake import DeltaTable

    return _streamed(lambda: pa.RecordBatchReader.from_stream(DeltaTable(path).scan()))


def _their_checkpoint(path: str) -> Work:
    from deltalake import DeltaTable

    copy = LogCopy(path)

    def run() -> None:
        copy.restore()
        DeltaTable(str(copy.path)).create_checkpoint()

    return Work(run, lambda: _checkpoint_digest(copy, run))


_MILLPOND: Final[dict[str, Callable[[str], Work]]] = {
    "open": _our_open,
    "paths": _our_paths,
    "refresh": _our_refresh,
    "read": _our_read,
    "checkpoint": _our_checkpoint,
}
_DELTALAKE: Final[dict[str, Callable[[str], Work]]] = {
    "open": _their_open,
    "paths": _their_paths,
    "refresh": _their_refresh,
    "read": _their_read,
    "checkpoint": _their_checkpoint,
}


def _streamed(batches: Callable[[], Iterable[pa.RecordBatch]]) -> Work:
    def run() -> None:
        for _ in batches():
            pass

    return Work(run, lambda: Digest.of(batches()))


def _listed(path: str, uris: Callable[[], list[str]]) -> Work:
    """Absolute paths; the digest is of what they are below the table, as the log has them."""

    def run() -> None:
        uris()

    def digest() -> Digest:
        inside = [uri.removeprefix(path).removeprefix("/") for uri in uris()]
        return Digest.of(pa.table({"path": pa.array(inside, pa.string())}).to_batches())

    return Work(run, digest)


def _opened(version: int, names: list[str], table_id: str) -> pa.RecordBatch:
    return pa.record_batch(
        {"version": [version], "names": [names], "table": [table_id]},
        schema=pa.schema(
            [("version", pa.int64()), ("names", pa.list_(pa.string())), ("table", pa.string())]
        ),
    )


def _refreshed(gained: int, live: list[Any], *, runs: int) -> Digest:
    """How many versions came in one refresh, and how many files are not accounted for by runs.

    Each commit that a run wrote added ten files, and how many runs there were differs.
    """
    unexplained = len(set(live)) - 10 * runs
    return Digest.of(pa.table({"gained": [gained], "unexplained": [unexplained]}).to_batches())


def _checkpoint_digest(copy: LogCopy, run: Callable[[], None]) -> Digest:
    """The live files that a third party reads out of what was written, without older files."""
    import duckdb

    run()
    new = copy.written()
    found = duckdb.sql(
        f"select add.path, add.size from read_parquet({new!r}) where add is not null"
    )
    return Digest.of(found.to_arrow_reader())

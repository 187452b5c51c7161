"""`Kept`: results under `cache/`, each named by the key of what it was computed from.

They are derived and disposable: deleting them loses nothing. A result is a Parquet file that is
there as a whole or not at all, so two processes that compute the same do no harm. Only the user
that computed a result can read it (mode 0600): an input may be a private file of this machine.
Other users, and those that can't write into the pond, keep results in a directory of their own.

Results and notes are sealed, and checked when they are used. One that is damaged is removed and
computed again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from millpond.base.errors import ObjectNotFoundError, StoreAccessError, StoreError
from millpond.base.seals import (
    BrokenSealError,
    Checks,
    check_bytes,
    check_file,
    opened_text,
    seal_file,
    sealed_bytes,
    sealed_text,
)
from millpond.base.store import open_store
from millpond.base.store.local import LocalStore
from millpond.plan.sources import File, Scan
from millpond.provider.rows import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from millpond.base.store import ObjectMeta, PutMode, Store
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct

DIRECTORY: Final = "cache"
ROW_GROUP_ROWS: Final = 128 * 1024
TOUCHED_AFTER: Final = timedelta(days=1)
"""A result that is used says so this often, so that upkeep removes only what is not."""
WHOLE_BYTES: Final = 4 << 20
"""Up to so many bytes a result in an object store is read whole to be checked."""
CHECKED: Final = Checks()
_OVER: Final[PutMode] = "overwrite"
_log = logging.getLogger("millpond.provider")


@dataclass(frozen=True, slots=True)
class Result:
    """A result that was kept."""

    key: str
    path: str
    """Where a scan finds it."""
    size: int


@dataclass(slots=True)
class Counts:
    """How often something was found, and how often and how much was computed."""

    found: int = 0
    made: int = 0
    rows_made: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where results are."""

    store: Store
    location: str
    """As scans name it."""


class Places:
    """The pond, and the user's own directory where the pond can't be written."""

    def __init__(self, store: Store, location: str) -> None:
        self.pond = Place(store, location)

    @cached_property
    def own(self) -> Place | None:
        """Of the user; None if there is no home. It is made when something is put there."""
        base = os.environ.get("XDG_CACHE_HOME", "")
        try:
            home = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
        except RuntimeError:
            return None
        directory = str(home / "millpond" / key_of(self.pond.location)[:16])
        return Place(open_store(directory, durable=False, private=True), directory)

    def all(self) -> Iterator[Place]:
        """Those that may have results, the likeliest first."""
        yield self.pond
        if self.own is not None and Path(self.own.location).exists():
            yield self.own


class Kept:
    """The results of one kind: images of formats, partial aggregates, stretches of joins."""

    def __init__(self, places: Places, kind: str) -> None:
        self._places = places
        self.kind = kind
        self.counts = Counts()

    def of(self, kind: str) -> Kept:
        """Those of another kind."""
        return Kept(self._places, kind)

    def find(self, key: str) -> Result | None:
        """The result of a key, if it was kept."""
        name = self._name(key)
        for place in self._places.all():
            try:
                meta = place.store.head(name)
            except ObjectNotFoundError:
                continue
            if _is_of_another(place.store, name):
                continue
            if not self._is_intact(place, name, meta):
                continue
            self.counts.found += 1
            if datetime.now(UTC) - meta.modified > TOUCHED_AFTER:
                _touch(place.store, name)
            return Result(key, f"{place.location}/{name}", meta.size)
        return None

    def read_text(self, key: str) -> str | None:
        """A note, if it was kept."""
        for place in self._places.all():
            name = self._name(key, "json")
            try:
                return opened_text(place.store.get(name), name)
            except (ObjectNotFoundError, StoreAccessError):
                continue
            except BrokenSealError as error:
                self._remove(place, name, error)
        return None

    def write_text(self, key: str, text: str) -> None:
        """Keep a note; who can't, does without."""
        try:
            name = self._name(key, "json")
            self._put(name, lambda store: store.put(name, sealed_text(text, name), mode=_OVER))
        except StoreError as error:
            _log.info("a note could not be kept: %s", error.message)

    def keep(
        self,
        key: str,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        group_rows: int = ROW_GROUP_ROWS,
    ) -> Result:
        """Write a result, in bounded memory; one that came first is as good."""
        with _Draft(schema, group_rows) as draft:
            for batch in batches:
                draft.add(batch)
            return self._taken(key, draft)

    def teed(
        self, key: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Give batches on while they are written; what is not read to its end is not kept."""
        with _Draft(schema) as draft:
            for batch in batches:
                draft.add(batch)
                yield batch
            try:
                self._taken(key, draft)
            except StoreError as error:
                _log.info("a result could not be kept: %s", error.message)

    def _taken(self, key: str, draft: _Draft) -> Result:
        made = draft.finish()
        self.counts.made += 1
        self.counts.rows_made += draft.rows
        return self.keep_file(key, made) if isinstance(made, Path) else self._keep_bytes(key, made)

    def _keep_bytes(self, key: str, content: bytes) -> Result:
        name = self._name(key)
        content, _ = sealed_bytes(content, name)
        place, meta = self._put(name, lambda store: store.put(name, content, mode=_OVER))
        return Result(key, f"{place.location}/{name}", meta.size)

    def keep_file(self, key: str, file: Path) -> Result:
        """Take over a Parquet file that was written already, and seal it."""
        name = self._name(key)
        seal_file(file, name)
        place, meta = self._put(name, lambda store: store.put_file(name, file, mode=_OVER))
        return Result(key, f"{place.location}/{name}", meta.size)

    def _put(self, name: str, put: Callable[[Store], ObjectMeta]) -> tuple[Place, ObjectMeta]:
        """In the pond, or else in the user's own place."""
        pond, own = self._places.pond, self._places.own
        if own is not None and _is_of_another(pond.store, name):
            return own, put(own.store)
        try:
            return pond, put(pond.store)
        except StoreAccessError as error:
            if own is None:
                raise
            _log.info("results are kept in %s: %s", own.location, error.message)
            return own, put(own.store)

    def _is_intact(self, place: Place, name: str, meta: ObjectMeta) -> bool:
        """Return whether a result is what was written; one that is not is removed."""
        try:
            if isinstance(place.store, LocalStore):
                check = partial(check_file, required=True, label=name)
                CHECKED.once(place.store.root / name, check)
            elif meta.size <= WHOLE_BYTES:
                check_bytes(place.store.get(name), required=True, label=name)
            # A larger object is checked by its reader: its footer, and each page that it reads.
        except BrokenSealError as error:
            self._remove(place, name, error)
            return False
        except (OSError, StoreError):  # it was removed meanwhile, or can't be read
            return False
        return True

    def _remove(self, place: Place, name: str, error: Exception) -> None:
        """Remove what is damaged, so that it is computed again."""
        self.counts.damaged += 1
        _log.warning("%s/%s is damaged and is computed again: %s", place.location, name, error)
        try:
            place.store.delete(name)
        except StoreError as failure:
            _log.info("it could not be removed: %s", failure.message)

    def _name(self, key: str, suffix: str = "parquet") -> str:
        return f"{DIRECTORY}/{self.kind}/{key}.{suffix}"


class _Draft:
    """A Parquet file at work: in memory while it is small, then in a file that is gone at last."""

    def __init__(self, schema: pa.Schema, group_rows: int = ROW_GROUP_ROWS) -> None:
        self.rows = 0
        self._group_rows = group_rows
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._file: Path | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows, which are written by the row group: each write begins a new one."""
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self.rows += batch.num_rows
        if self._held_rows >= ROW_GROUP_ROWS:
            if self._writer is None:
                handle, name = tempfile.mkstemp(prefix="millpond-", suffix=".parquet")
                os.close(handle)
                self._file = Path(name)
                self._writer = self._open(name)
            self._write(self._writer)

    def _open(self, sink: str | pa.BufferOutputStream) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        # Numbers are rarely the same; to look whether they are takes longer than to write them.
        texts = [field.name for field in self._schema if not _is_number(field.type)]
        return pq.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            use_dictionary=texts,
            write_page_checksum=True,
        )

    def _write(self, writer: pq.ParquetWriter) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._held, self._schema)
        if table.num_rows:
            writer.write_table(table, row_group_size=self._group_rows)
        self._held, self._held_rows = [], 0

    def finish(self) -> Path | bytes:
        """The whole of it."""
        import pyarrow as pa

        if self._writer is not None and self._file is not None:
            self._write(self._writer)
            self._writer.close()
            return self._file
        sink = pa.BufferOutputStream()
        with self._open(sink) as writer:
            self._write(writer)
        content: bytes = sink.getvalue().to_pybytes()
        return content


def _is_number(type_: pa.DataType) -> bool:
    import pyarrow.types as at

    return bool(at.is_integer(type_) or at.is_floating(type_) or at.is_temporal(type_))


def _is_of_another(store: Store, name: str) -> bool:
    """Return whether a result is there that another user computed and this one can't read."""
    if not isinstance(store, LocalStore):
        return False
    file = store.root / name
    is_effective = os.access in os.supports_effective_ids
    return not os.access(file, os.R_OK, effective_ids=is_effective) and file.exists()


def _touch(store: Store, name: str) -> None:
    try:
        store.touch(name)
    except StoreError as error:
        _log.info("the use of a result could not be noted: %s", error.message)


def scan_of(results: Sequence[Result], schema: Struct) -> Plan:
    """The rows of results, in order."""
    return Scan("parquet", tuple(File(each.path, each.size) for each in results), schema)

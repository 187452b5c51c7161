"""`Kept`: results under `cache/`, each named by the key of what it was computed from.

They are derived and disposable: deleting them loses nothing. A result is a Parquet file that is
there as a whole or not at all, so two processes that compute the same do no harm.
"""

from __future__ import annotations

import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import ObjectNotFoundError, StoreError
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from millpond.base.store import Store
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct

DIRECTORY: Final = "cache"
ROW_GROUP_ROWS: Final = 128 * 1024
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


class Kept:
    """The results of one kind: images of formats, partial aggregates, stretches of joins."""

    def __init__(self, store: Store, location: str, kind: str) -> None:
        self._store = store
        self._location = location
        self.kind = kind
        self.counts = Counts()

    def of(self, kind: str) -> Kept:
        """Those of another kind."""
        return Kept(self._store, self._location, kind)

    def find(self, key: str) -> Result | None:
        """The result of a key, if it was kept."""
        name = self._name(key)
        try:
            meta = self._store.head(name)
        except ObjectNotFoundError:
            return None
        self.counts.found += 1
        return Result(key, f"{self._location}/{name}", meta.size)

    def read_text(self, key: str) -> str | None:
        """A note, if it was kept."""
        try:
            return self._store.get(self._name(key, "json")).decode()
        except ObjectNotFoundError:
            return None

    def write_text(self, key: str, text: str) -> None:
        """Keep a note; who may only read does without."""
        try:
            self._store.put(self._name(key, "json"), text.encode(), mode="overwrite")
        except StoreError as error:
            _log.info("a note could not be kept: %s", error.message)

    def keep(self, key: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Result:
        """Write a result, in bounded memory; one that came first is as good."""
        import pyarrow.parquet as pq

        handle, temporary = tempfile.mkstemp(prefix="millpond-", suffix=".parquet")
        os.close(handle)
        try:
            with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
                    self.counts.rows_made += batch.num_rows
            self.counts.made += 1
            return self.keep_file(key, Path(temporary))
        finally:
            Path(temporary).unlink(missing_ok=True)

    def keep_file(self, key: str, file: Path) -> Result:
        """Take over a Parquet file that was written already."""
        name = self._name(key)
        meta = self._store.put_file(name, file, mode="overwrite")
        return Result(key, f"{self._location}/{name}", meta.size)

    def _name(self, key: str, suffix: str = "parquet") -> str:
        return f"{DIRECTORY}/{self.kind}/{key[:2]}/{key}.{suffix}"


def scan_of(results: Sequence[Result], schema: Struct) -> Plan:
    """The rows of results, in order."""
    return Scan("parquet", tuple(File(each.path, each.size) for each in results), schema)

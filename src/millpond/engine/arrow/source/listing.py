"""The operator over a directory: the files right below a path, by name."""

from __future__ import annotations

import datetime as dt
import os
import re
import stat
from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.base.store.children import children
from millpond.base.store.path import is_path
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import LISTING, ListFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,200}")


class List(Operator):
    """A listing, in batches."""

    def __init__(self, node: ListFiles, context: Context) -> None:
        super().__init__()
        self.path = node.path
        self.start_from = node.start_from
        self.context = context

    def run(self) -> Steps:
        """The direct children that are files, from `start_from` on."""
        rows: list[tuple[str, int, int]] = []
        base = self.path.rstrip("/")
        try:
            for name, size, micros in self._children():
                rows.append((f"{base}/{name}", size, micros))
                if len(rows) == self.context.batch_rows:
                    yield _batch(rows)
                    rows = []
        except (MillpondError, PermissionError) as error:
            raise unreadable(self.path, error) from error
        if rows:
            yield _batch(rows)

    def _children(self) -> Iterator[tuple[str, int, int]]:
        """Names, sizes and times in microseconds."""
        local = local_path(self.path)
        if local is not None:
            yield from _local_children(local, self.start_from)
            return
        address, name = split_url(self.path)
        name = name.strip("/")
        store, prefix = self.context.files.store(address), f"{name}/" if name else ""
        for meta in children(store, prefix, start_from=self.start_from):
            micros = (meta.modified - _EPOCH) // _MICROSECOND
            yield meta.path[len(prefix) :], meta.size, micros

    def describe(self) -> str:
        """The path."""
        return f"List {self.path}"


def _local_children(directory: str, start_from: str | None) -> Iterator[tuple[str, int, int]]:
    """The files of one directory, as a store would list them; others are not even looked at."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 - of thousands, few may be wanted
    except (FileNotFoundError, NotADirectoryError):
        return
    if start_from is not None:
        names = [name for name in names if name >= start_from]
    plain = [name for name in names if _PLAIN.fullmatch(name) or is_path(name)]
    for name in sorted(plain, key=str.encode):
        # Between the look into the directory and this one a file can be deleted.
        try:
            status = os.stat(f"{directory}/{name}")  # noqa: PTH116 - twice as fast
        except FileNotFoundError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield name, status.st_size, status.st_mtime_ns // 1000


def _batch(rows: list[tuple[str, int, int]]) -> pa.RecordBatch:
    schema = to_arrow_schema(LISTING)
    paths, sizes, times = zip(*rows, strict=True)
    arrays = [
        pa.array(paths, schema.field(0).type),
        pa.array(sizes, schema.field(1).type),
        pa.array(times, pa.int64()).cast(schema.field(2).type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

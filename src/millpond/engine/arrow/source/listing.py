"""The operator over a directory: the files right below a path, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import LISTING, ListFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.store import ObjectMeta
    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps


class List(Operator):
    """A listing, in batches."""

    def __init__(self, node: ListFiles, context: Context) -> None:
        super().__init__()
        self.path = node.path
        self.start_from = node.start_from
        self.context = context

    def run(self) -> Steps:
        """The direct children that are files, from `start_from` on."""
        rows: list[tuple[str, int, object]] = []
        base = self.path.rstrip("/")
        try:
            for name, meta in self._children():
                rows.append((f"{base}/{name}", meta.size, meta.modified))
                if len(rows) == self.context.batch_rows:
                    yield _batch(rows)
                    rows = []
        except MillpondError as error:
            raise unreadable(self.path, error) from error
        if rows:
            yield _batch(rows)

    def _children(self) -> Iterator[tuple[str, ObjectMeta]]:
        local = local_path(self.path)
        if local is not None:
            store, prefix = self.context.files.store(local), ""
        else:
            address, name = split_url(self.path)
            name = name.strip("/")
            store, prefix = self.context.files.store(address), f"{name}/" if name else ""
        # `start_after` leaves its own name out, so begin a little before and compare.
        after = prefix + self.start_from[:-1] if self.start_from else None
        for meta in store.list(prefix, start_after=after):
            child = meta.path[len(prefix) :]
            if "/" not in child and (self.start_from is None or child >= self.start_from):
                yield child, meta

    def describe(self) -> str:
        """The path."""
        return f"List {self.path}"


def _batch(rows: list[tuple[str, int, object]]) -> pa.RecordBatch:
    schema = to_arrow_schema(LISTING)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

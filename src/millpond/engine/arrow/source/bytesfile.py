"""Files as bytes: each is one row with its content, or the part that its constants name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.base.store.ranges import check_range
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.plan.arrow import to_arrow
from millpond.plan.sources import CONTENT, RANGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_BATCH_BYTES = 4 << 20
_MOST_FILES = 1024


def read_bytes(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """A row for each file. Batches grow, so that who wants only the first rows reads few files."""
    held: list[Entry] = []
    contents: list[bytes | None] = []
    size, most = 0, 1
    for entry in entries:
        held.append(entry)
        contents.append(_content(entry, context) if CONTENT in spec.columns else None)
        size += len(contents[-1] or b"")
        if size >= _BATCH_BYTES or len(held) >= most:
            yield _batch(held, contents, spec, context)
            held, contents, size, most = [], [], 0, min(2 * most, _MOST_FILES)
    if held:
        yield _batch(held, contents, spec, context)


def _batch(
    entries: list[Entry], contents: list[bytes | None], spec: ScanSpec, context: Context
) -> pa.RecordBatch:
    context.counters.add("batches_decoded")
    context.counters.add("rows_decoded", len(entries))
    arrays = []
    for field in spec.columns:
        values = contents
        if field.name in spec.constants:
            values = [entry.constants[field.name] for entry in entries]
        arrays.append(pa.array(values, to_arrow(field.type)))
    return batch_of(arrays, spec.columns, len(entries))


def _content(entry: Entry, context: Context) -> bytes:
    offset, length = (entry.constants.get(name) for name in RANGE)
    try:
        check_range(entry.path, offset or 0, length or 0)
        found = _read(entry.path, offset or 0, length, context)
    except (OSError, MillpondError) as error:
        raise unreadable(entry.path, error) from error
    context.counters.add("files_opened")
    context.counters.add("bytes_read", len(found))
    return found


def _read(path: str, offset: int, length: int | None, context: Context) -> bytes:
    local = local_path(path)
    if local is not None:
        with open(local, "rb") as file:  # noqa: PTH123 - a name of any bytes, as it is
            file.seek(offset)
            return file.read(-1 if length is None else length)
    address, name = split_url(path)
    store = context.files.store(address)
    if length is None:
        return store.get(name)[offset:]
    return store.get_range(name, offset, length)

"""Many JSON files: small ones are read whole and parsed together, others block by block."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.engine.arrow.source.jsonlines import (
    check_lines,
    line_batch,
    parse_lines,
    read_json_lines,
    split_lines,
)
from millpond.engine.arrow.source.stream import is_packed
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.scan import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_SMALL_BYTES = 1 << 20
_TOGETHER_BYTES = 4 << 20


def read_json_files(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of files. First one is read, then two, then four: who wants few rows reads few."""
    held: list[Entry] = []
    contents: list[bytes] = []
    size, most = 0, 1
    for entry in entries:
        content = _small_content(entry.path, context)
        if content is not None:
            held.append(entry)
            contents.append(content)
            size += len(content)
        if content is None or size >= _TOGETHER_BYTES or len(held) >= most:
            yield from _together(held, contents, spec, context)
            held, contents, size, most = [], [], 0, 2 * most
        if content is None:
            yield from read_json_lines(entry, spec, context)
    yield from _together(held, contents, spec, context)


def _small_content(path: str, context: Context) -> bytes | None:
    """The content of a small file as it is, or None for others."""
    if is_packed(path):
        return None
    try:
        content = _read(path, context)
    except (OSError, MillpondError) as error:
        raise unreadable(path, error) from error
    if content is not None:
        context.counters.add("files_opened")
        context.counters.add("bytes_read", len(content))
    return content


def _read(path: str, context: Context) -> bytes | None:
    local = local_path(path)
    if local is not None:
        found = os.stat(local)  # noqa: PTH116 - a Path would cost more than the call
        if not stat.S_ISREG(found.st_mode) or found.st_size > _SMALL_BYTES:
            return None
        with open(local, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    address, name = split_url(path)
    store = context.files.store(address)
    return store.get(name) if store.head(name).size <= _SMALL_BYTES else None


def _together(
    entries: list[Entry], contents: list[bytes], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of these files as one batch."""
    if not entries:
        return
    whole = [text if text.endswith(b"\n") else text + b"\n" for text in contents]
    lines, starts = split_lines(b"".join(whole))
    parsed, is_sure = parse_lines(lines, spec, context)
    if not is_sure:
        for entry, content in zip(entries, contents, strict=True):
            check_lines(entry.path, content)
    if not len(lines):
        return
    ends = np.cumsum([len(text) for text in whole])
    rows = np.searchsorted(ends, starts, side="right")
    constants = {}
    for field in spec.columns:
        if field.name in spec.constants:
            values = [entry.constants[field.name].value for entry in entries]
            constants[field.name] = pa.array(values, to_arrow(field.type)).take(pa.array(rows))
    yield line_batch(parsed, constants, spec)

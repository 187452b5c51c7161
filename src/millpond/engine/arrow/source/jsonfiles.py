"""Many JSON files: small ones are read whole and parsed together, others block by block."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from millpond.base.errors import MillpondError
from millpond.engine.arrow.source.bounds import ALL_NULL
from millpond.engine.arrow.source.files import local_path, split_url, unreadable
from millpond.engine.arrow.source.jsonlines import (
    check_block,
    line_batch,
    parse_lines,
    read_json_lines,
    split_lines,
)
from millpond.engine.arrow.source.prune import may_hold
from millpond.engine.arrow.source.stream import is_packed
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import row_paths
from millpond.plan.paths import Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.bounds import Bounds
    from millpond.engine.arrow.source.prune import Lookup
    from millpond.engine.arrow.source.scan import Entry
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.types import DataType

_SMALL_BYTES = 1 << 20
_TOGETHER_BYTES = 4 << 20


def read_json_files(
    entries: Iterator[Entry], spec: ScanSpec, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of files. First one is read, then two, then four: who wants few rows reads few."""
    held: list[Entry] = []
    contents: list[bytes] = []
    size, most = 0, 1
    absent, counts = AbsentMembers(spec), _Counts(context)
    try:
        for entry in entries:
            content = _small_content(entry.path, context)
            if content is not None:
                counts.opened += 1
                counts.bytes += len(content)
                if absent.rule_out(content):
                    counts.pruned += 1
                    continue
                held.append(entry)
                contents.append(content)
                size += len(content)
            if content is None or size >= _TOGETHER_BYTES or len(held) >= most:
                counts.flush()
                yield from _together(held, contents, spec, context)
                held, contents, size, most = [], [], 0, 2 * most
            if content is None:
                yield from read_json_lines(entry, spec, context)
        counts.flush()
        yield from _together(held, contents, spec, context)
    finally:
        counts.flush()


@dataclass(slots=True)
class _Counts:
    """What was done since the counters were told: of a thousand small files, many at once."""

    context: Context
    opened: int = 0
    bytes: int = 0
    pruned: int = 0

    def flush(self) -> None:
        """Tell the counters."""
        counters = self.context.counters
        for name, count in (
            ("files_opened", self.opened),
            ("bytes_read", self.bytes),
            ("batches_pruned", self.pruned),
        ):
            if count:
                counters.add(name, count)
        self.opened = self.bytes = self.pruned = 0


class AbsentMembers:
    """Files in which a member's name stands nowhere have null there, so conditions may fail.

    Only the bytes are searched: a commit without `"metaData"` need not be parsed to find it.
    """

    def __init__(self, spec: ScanSpec) -> None:
        self._predicates = spec.predicates
        firsts = {path.steps[0] for expr in spec.predicates for path in row_paths(expr)}
        names = (step.name for step in firsts if isinstance(step, Name))
        self._marks = {name: f'"{name}"'.encode() for name in names if name not in spec.constants}
        self._usable = all(_PLAIN.fullmatch(name) for name in self._marks)
        self._verdicts: dict[frozenset[str], bool] = {}

    def rule_out(self, content: bytes) -> bool:
        """Whether no line can meet the conditions."""
        if not self._usable or not self._marks:
            return False
        present = frozenset(name for name, mark in self._marks.items() if mark in content)
        if len(present) == len(self._marks) or b"\\u" in content:
            return False
        found = self._verdicts.get(present)
        if found is None:
            found = self._verdicts[present] = not all(
                may_hold(predicate, self._lookup(present)) for predicate in self._predicates
            )
        # What is no object at all is an error, which parsing finds.
        return found and _looks_whole(content)

    def _lookup(self, present: frozenset[str]) -> Lookup:
        marks = self._marks

        def lookup(steps: tuple[str, ...], type_: DataType) -> Bounds | None:
            del type_
            return ALL_NULL if steps[0] in marks and steps[0] not in present else None

        return lookup


_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_LINES = re.compile(rb"(?:\{[^\n]*\}\r?\n)*(?:\{[^\n]*\})?\s*")


def _looks_whole(content: bytes) -> bool:
    """Whether every line begins and ends like an object, and the last one is: there a cut shows."""
    if _LINES.fullmatch(content) is None:
        return False
    last = content.rstrip().rpartition(b"\n")[2]
    try:
        return not last or isinstance(msgspec.json.decode(last), dict)
    except ValueError:
        return False


def _small_content(path: str, context: Context) -> bytes | None:
    """The content of a small file as it is, or None for others."""
    if is_packed(path):
        return None
    try:
        return _read(path, context)
    except (OSError, MillpondError) as error:
        raise unreadable(path, error) from error


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
    parsed = parse_lines(lines, spec, context)
    if spec.strict or not parsed.are_objects:
        for entry, content in zip(entries, contents, strict=True):
            check_block(parsed, entry.path, content, spec)
    if not len(lines):
        return
    ends = np.cumsum([len(text) for text in whole])
    rows = np.searchsorted(ends, starts, side="right")
    constants = {}
    for field in spec.columns:
        if field.name in spec.constants:
            values = [entry.constants[field.name].value for entry in entries]
            constants[field.name] = pa.array(values, to_arrow(field.type)).take(pa.array(rows))
    yield line_batch(parsed.values, constants, spec)

"""Faults of a log: every file of it cut off, emptied, flipped, swapped, or made odd line by line.

What a reader may make of a log with a fault is in `readings.py`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

    Change = Callable[[bytes, Random], bytes | None]
    Edit = Callable[[dict[str, Any], Random], str | None]

COMMIT: Final = re.compile(r"\d{20}\.json")
COMPACTION: Final = re.compile(r"\d{20}\.\d{20}\.compacted\.json")
CHECKPOINT: Final = re.compile(r"\d{20}\.checkpoint\..*")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to which file of the log; `swapped` is the other one, if there are two."""

    kind: str
    file: str
    swapped: str | None = None


def inject(log: Path, rng: Random) -> Fault:
    """Do one thing to one file of the log."""
    while True:
        found = _attempt(log, rng)
        if found is not None:
            return found


def _attempt(log: Path, rng: Random) -> Fault | None:
    """None if what was drawn can't be done to the file that was drawn."""
    files = sorted(file for file in log.rglob("*") if file.is_file())
    file = rng.choice(files)
    name = str(file.relative_to(log))
    is_text = file.suffix in (".json", ".crc") or name == "_last_checkpoint"
    kinds = [*BYTES, *(TEXT if is_text else PARQUET), "remove", "swap"]
    kind = rng.choice(kinds)
    if kind == "remove":
        return _removed(file, name)
    if kind == "swap":
        return _swapped(file, name, rng.choice(files), log)
    change = BYTES.get(kind) or TEXT.get(kind) or PARQUET[kind]
    before = file.read_bytes()
    after = change(before, rng)
    if after is None or after == before or (not is_text and _ends_process(after)):
        return None
    file.write_bytes(after)
    return Fault(kind, name)


def _removed(file: Path, name: str) -> Fault | None:
    later = f"{int(name[:20]) + 1:020}.json" if COMMIT.fullmatch(name) else ""
    if not (file.parent / later).is_file():  # only a commit between others is missed
        return None
    file.unlink()
    return Fault("remove", name)


def _swapped(file: Path, name: str, other: Path, log: Path) -> Fault | None:
    """Two files of one kind under each other's names."""
    kinds = (COMMIT, COMPACTION)
    names = (name, str(other.relative_to(log)))
    if file == other or not any(all(kind.fullmatch(one) for one in names) for kind in kinds):
        return None
    one, two = file.read_bytes(), other.read_bytes()
    file.write_bytes(two)
    other.write_bytes(one)
    return Fault("swap", *names)


# Bytes


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(1, max(2, len(content)))]


def _flip(content: bytes, rng: Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _zeros(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content)) if content else 0
    count = min(rng.randint(1, 16), len(content) - at)
    return content[:at] + bytes(count) + content[at + count :]


def _insert(content: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(content))
    return content[:at] + rng.randbytes(rng.randint(1, 4)) + content[at:]


def _more(content: bytes, rng: Random) -> bytes:
    return content + rng.choice([b"{", b'{"add":', b"\x00", b"null\n", b"[]\n", b"1\n", b'"a"\n'])


# Lines of JSON


def _edit(content: bytes, rng: Random, change: Edit) -> bytes | None:
    """Another text for one line, which holds an object."""
    lines = content.split(b"\n")
    chosen = rng.choice([i for i, text in enumerate(lines) if text.startswith(b"{")] or [-1])
    if chosen < 0:
        return None
    try:
        action = json.loads(lines[chosen])
    except ValueError:  # a checksum or a hint that was garbage from the start
        return None
    text = change(action, rng)
    if text is None:
        return None
    lines[chosen] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _leaf(action: dict[str, Any], rng: Random) -> tuple[dict[str, Any], str] | None:
    """Any field of the action, however deep: who holds it, and its name."""
    holders = [action]
    for holder in holders:  # grows while it is walked
        holders += [value for value in holder.values() if isinstance(value, dict)]
    places = [(holder, name) for holder in holders for name in holder if name]
    return rng.choice(places) if places else None


ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 1.5, 2**31, 2**63, 10**30, "", "1", "x", [], {}, [1], {"a": 1}),
    *("NaN", "\ud800", "a" * 5000),
)


def _odd_value(action: dict[str, Any], rng: Random) -> str | None:
    place = _leaf(action, rng)
    if place is None:
        return None
    holder, name = place
    holder[name] = rng.choice(ODD_VALUES)
    return json.dumps(action)


def _odd_number(action: dict[str, Any], rng: Random) -> str | None:
    """A number as only JSON's grammar, or not even that, has it."""
    place = _leaf(action, rng)
    if place is None or isinstance(place[0][place[1]], (dict, str)):
        return None
    holder, name = place
    holder[name] = "@"
    odd = rng.choice(["1E400", "-0", "1.0", "12.0e0", "NaN", "Infinity", "01", "+1", "1e2", "0x1"])
    return json.dumps(action).replace('"@"', odd)


def _missing(action: dict[str, Any], rng: Random) -> str | None:
    place = _leaf(action, rng)
    if place is None:
        return None
    del place[0][place[1]]
    return json.dumps(action)


def _twice(action: dict[str, Any], rng: Random) -> str | None:
    """A field that is there twice, first with another value."""
    place = _leaf(action, rng)
    if place is None:
        return None
    holder, name = place
    other = rng.choice(["null", '"other"', "7", "{}"])
    value = holder.pop(name)
    holder["@"] = value
    text = f"{json.dumps(name)}: {other}, {json.dumps(name)}:"
    return json.dumps(action).replace('"@":', text)


def _nan_in_stats(action: dict[str, Any], rng: Random) -> str | None:
    add = action.get("add")
    if not isinstance(add, dict) or "minValues" not in str(add.get("stats")):
        return None
    stats = json.loads(add["stats"])
    values = stats[rng.choice(["minValues", "maxValues", "nullCount"])]
    for name in values:
        values[name] = rng.choice(["NaN", float("nan"), float("inf"), None, [], "x", 1e308])
    add["stats"] = json.dumps(stats)
    return json.dumps(action)


def _broken_stats(action: dict[str, Any], rng: Random) -> str | None:
    add = action.get("add")
    if not isinstance(add, dict) or not add.get("stats"):
        return None
    add["stats"] = rng.choice([add["stats"][:-3], "", "null", "[]", "1", '{"numRecords": "x"}'])
    return json.dumps(action)


def _line_edit(change: Edit) -> Change:
    return lambda content, rng: _edit(content, rng, change)


def _as_windows(content: bytes, rng: Random) -> bytes:
    return content.replace(b"\n", b"\r\n")


def _blank_lines(content: bytes, rng: Random) -> bytes:
    return b"\n \n" + content.replace(b"\n", b"\n\n")


def _mark(content: bytes, rng: Random) -> bytes:
    return b"\xef\xbb\xbf" + content


def _repeated_line(content: bytes, rng: Random) -> bytes:
    lines = content.split(b"\n")
    if b'"checkpointMetadata"' in content:  # who writes one says that no file is in it twice
        lines = [line for line in lines if b'"add"' not in line]
    return content + rng.choice(lines) + b"\n"


# Parquet


def _footer(content: bytes, rng: Random) -> bytes | None:
    if len(content) < 12:
        return None
    length = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, len(content)]).to_bytes(4, "little")
    return content[:-8] + rng.choice([length + b"PAR1", content[-8:-4] + b"PARE"])


def _no_footer(content: bytes, rng: Random) -> bytes:
    return content[: max(4, len(content) - 8)]


_STATISTICS: Final = re.compile(
    "level histogram size mismatch|Unencoded byte array data|Unexpected end of stream"
)
_ASK: Final = """
import sys, pyarrow as pa, pyarrow.parquet as pq
metadata = pq.read_metadata(pa.BufferReader(sys.stdin.buffer.read()))
for group in map(metadata.row_group, range(metadata.num_row_groups)):
    for column in range(group.num_columns):
        group.column(column).statistics
"""


def _ends_process(content: bytes) -> bool:
    """Whether pyarrow dies of a column's statistics: a fault that is left out.

    Where they are too short for their type, or count levels that the schema does not have, pyarrow
    26 throws what nothing in Python can catch. It raises an error where the column's rows are read
    first; but who asks for statistics wants to know whether they have to be read at all, and no
    other question tells beforehand. That is asked here, and then a process that may die. (Reading
    says nothing of short statistics of bytes of a fixed length, which these logs do not hold.)
    """
    if not any(map(_STATISTICS.search, _read_errors(content))):
        return False
    asked = subprocess.run([sys.executable, "-c", _ASK], input=content, capture_output=True)
    return asked.returncode < 0


def _read_errors(content: bytes) -> Iterator[str]:
    """What is wrong with the columns of a file that can be opened, row group by row group."""
    try:
        reader = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).reader
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return
    for group in range(reader.num_row_groups):
        for column in range(reader.metadata.num_columns):
            try:
                reader.read_row_group(group, column_indices=[column], use_threads=False)
            except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
                yield str(error)


BYTES: Final[dict[str, Change]] = {
    "cut": _cut,
    "empty": lambda content, rng: b"",
    "flip": _flip,
    "zeros": _zeros,
    "insert": _insert,
    "more": _more,
}
TEXT: Final[dict[str, Change]] = {
    "odd value": _line_edit(_odd_value),
    "odd number": _line_edit(_odd_number),
    "missing": _line_edit(_missing),
    "twice": _line_edit(_twice),
    "nan in stats": _line_edit(_nan_in_stats),
    "broken stats": _line_edit(_broken_stats),
    "windows": _as_windows,
    "blank lines": _blank_lines,
    "mark": _mark,
    "repeated line": _repeated_line,
}
PARQUET: Final[dict[str, Change]] = {"footer": _footer, "no footer": _no_footer}

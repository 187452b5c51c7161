"""Bytes that are too many for a row: put away once, read again as they were, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from millpond.base.errors import IntegrityError, ObjectNotFoundError, PondError, StoreError
from millpond.base.store.local import LocalStore
from millpond.base.store.memory import MemoryStore
from millpond.fs.blobs import INLINE_BYTES, Blobs, blob_path, digest_of
from millpond.fs.entry import ROOT, EntryType, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millpond.fs.edit import Stored

LIMIT = 100
CONTENTS = {
    "nothing": b"",
    "small": b"hello",
    "at the limit": bytes(range(100)),
    "above it": bytes(range(101)),
    "large": bytes(range(256)) * 20_000,  # several chunks
}


class CountingStore(MemoryStore):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0

    def put(self, path: str, data: Any, **how: Any) -> Any:
        self.puts += 1
        return super().put(path, data, **how)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def blobs(store: CountingStore) -> Blobs:
    return Blobs(store, inline_bytes=LIMIT)


def row_of(stored: Stored) -> Row:
    row = Row(ROOT, "node", "f", EntryType.DATA, version=3)
    return replace(row, size=stored.size, blake3=stored.blake3)


def read(blobs: Blobs, stored: Stored) -> bytes:
    chunks = list(blobs.read(row_of(stored), stored.content, path="/f"))
    assert all(chunks), "no chunk is empty"
    return b"".join(chunks)


def pieces(data: bytes, size: int = 7_001) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("data", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("way", ["bytes", "bytearray", "memoryview", "chunks", "file"])
def test_what_is_kept_is_read_again(blobs: Blobs, data: bytes, way: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    stored = {
        "bytes": lambda: blobs.keep(data),
        "bytearray": lambda: blobs.keep(bytearray(data)),
        "memoryview": lambda: blobs.keep(memoryview(data)),
        "chunks": lambda: blobs.keep(pieces(data)),
        "file": lambda: blobs.keep_file(tmp_path / "f"),
    }[way]()
    assert (stored.size, stored.blake3) == (len(data), blake3(data).hexdigest())
    is_inline = len(data) <= LIMIT
    assert stored.content == (data if is_inline else None)
    names = [meta.path for meta in blobs.store.list()]
    assert names == ([] if is_inline else [blob_path(stored.blake3)])
    assert read(blobs, stored) == data


def test_the_limit_is_64_kib(store: CountingStore) -> None:
    blobs = Blobs(store)
    assert blobs.keep(bytes(INLINE_BYTES)).content is not None
    assert blobs.keep(bytes(INLINE_BYTES + 1)).content is None
    assert INLINE_BYTES == 64 * 1024


def test_blobs_are_spread_over_directories() -> None:
    digest = digest_of(b"x")
    assert blob_path(digest) == f"blobs/{digest[:2]}/{digest}"


def test_equal_content_is_stored_once(blobs: Blobs, store: CountingStore, tmp_path: Path) -> None:
    data = CONTENTS["large"]
    (tmp_path / "f").write_bytes(data)
    first = blobs.keep(data)
    assert blobs.keep(pieces(data)) == blobs.keep_file(tmp_path / "f") == first
    assert store.puts == 1
    blobs.keep(data + b"!")
    assert (store.puts, len(list(store.list()))) == (2, 2)


def test_two_who_put_the_same_at_once(store: CountingStore) -> None:
    """The blob comes between the look and the put of another one."""
    slow, quick = Blobs(store, inline_bytes=LIMIT), Blobs(store, inline_bytes=LIMIT)
    data = CONTENTS["large"]
    looked = store.head

    def head(path: str) -> Any:
        store.head = looked  # type: ignore[method-assign]
        try:
            return looked(path)
        finally:
            quick.keep(data)

    store.head = head  # type: ignore[method-assign]
    stored = slow.keep(data)
    assert read(slow, stored) == data
    assert len(list(store.list())) == 1


def test_a_blob_of_another_size_is_put_right(blobs: Blobs, store: CountingStore) -> None:
    data = CONTENTS["large"]
    store.put(blob_path(digest_of(data)), b"cut short")
    assert read(blobs, blobs.keep(data)) == data


def test_ranges(blobs: Blobs) -> None:
    for data in (CONTENTS["at the limit"], CONTENTS["large"]):
        stored = blobs.keep(data)
        for start, length in ((0, 10), (5, 0), (90, 10), (90, 99), (len(data), 5)):
            found = blobs.read_range(row_of(stored), stored.content, start, length)
            assert found == data[start : start + length]


def test_a_row_without_content_has_no_bytes(blobs: Blobs) -> None:
    assert list(blobs.read(Row(ROOT, "n", "f", EntryType.DATA), None, path="/f")) == []


# Damage


@pytest.mark.parametrize("position", [0, 1 << 20, -1])
def test_a_flipped_bit_is_found(tmp_path: Path, position: int) -> None:
    blobs = Blobs(LocalStore(tmp_path), inline_bytes=LIMIT)
    stored = blobs.keep(CONTENTS["large"])
    file = tmp_path / blob_path(stored.blake3)
    data = bytearray(file.read_bytes())
    data[position] ^= 4
    file.write_bytes(data)
    told: list[bytes] = []
    with pytest.raises(IntegrityError, match=r"content of /f \(version 3\) is damaged") as error:
        told.extend(blobs.read(row_of(stored), None, path="/f"))
    assert error.value.path == "/f"
    assert "pond fsck" in str(error.value.hint)
    assert sum(map(len, told)) < len(data), "nobody got all of it before it was found"


def test_a_flipped_bit_inline_is_found(blobs: Blobs) -> None:
    stored = blobs.keep(b"hello")
    with pytest.raises(IntegrityError, match=r"/f .* is damaged: its hash is"):
        list(blobs.read(row_of(stored), b"hellp", path="/f"))


@pytest.mark.parametrize("size", [0, 10, 1 << 20])
def test_a_cut_blob_is_found(blobs: Blobs, store: CountingStore, size: int) -> None:
    stored = blobs.keep(CONTENTS["large"])
    store.put(blob_path(stored.blake3), CONTENTS["large"][:size], mode="overwrite")
    with pytest.raises(IntegrityError, match="is damaged"):
        read(blobs, stored)


def test_a_blob_that_is_gone_is_named(blobs: Blobs, store: CountingStore) -> None:
    stored = blobs.keep(CONTENTS["large"])
    store.delete(blob_path(stored.blake3))
    with pytest.raises(IntegrityError, match=r"/f \(version 3\) is gone") as error:
        read(blobs, stored)
    assert error.value.path == "/f"


# Files of this machine


class ChangingStore(MemoryStore):
    """Changes a file when the blob is looked for: between the two readings."""

    def __init__(self, file: Path, content: bytes) -> None:
        super().__init__()
        self.file, self.content = file, content

    def head(self, path: str) -> Any:
        # Not replaced but written over, as a logger does.
        with self.file.open("r+b") as file:
            file.write(self.content)
            file.truncate()
        return super().head(path)


@pytest.mark.parametrize(
    "changed",
    [b"", b"x" * 50, b"y" * 500, b"x" * 499, b"x" * 501],
    ids=["emptied", "small", "other bytes", "shorter", "longer"],
)
def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, changed: bytes) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 500)
    store = ChangingStore(file, changed)
    with pytest.raises(PondError, match=f"{file} was changed while it was copied") as error:
        Blobs(store, inline_bytes=LIMIT).keep_file(file)
    assert error.value.hint == "copy it when nobody writes to it"
    assert list(store.list()) == []


def test_files_that_cannot_be_read(blobs: Blobs, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError, match=f"there is no local file {tmp_path / 'x'}"):
        blobs.keep_file(tmp_path / "x")
    with pytest.raises(StoreError, match="can't be read: Is a directory") as error:
        blobs.keep_file(tmp_path)
    assert error.value.hint


def test_chunks_that_fail_leave_nothing(blobs: Blobs, store: CountingStore) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x" * 1000
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blobs.keep(chunks())
    assert list(store.list()) == []


LARGE = """
import resource, sys
from pathlib import Path
from millpond.base.store.local import LocalStore
from millpond.fs.blobs import Blobs
from millpond.fs.entry import ROOT, EntryType, Row

place, way, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
blobs = Blobs(LocalStore(place / "pond"))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def chunks():
    for number in range(size >> 20):
        yield number.to_bytes(8, "big") * (1 << 17)

before = peak()
stored = blobs.keep(chunks()) if way == "chunks" else blobs.keep_file(place / "large")
row = Row(ROOT, "n", "f", EntryType.DATA, size=stored.size, blake3=stored.blake3)
read = sum(map(len, blobs.read(row, stored.content, path="/f")))
assert stored.size == read == size, (stored.size, read)
print(peak() - before)
"""


@pytest.mark.parametrize("way", ["chunks", "file"])
def test_a_large_file_takes_little_memory(tmp_path: Path, way: str) -> None:
    size = 300 << 20
    if way == "file":
        with (tmp_path / "large").open("wb") as file:
            for number in range(size >> 20):
                file.write(number.to_bytes(8, "little") * (1 << 17))
    command = [sys.executable, "-c", LARGE, str(tmp_path), way, str(size)]
    # Chunks that have no name yet are spooled to a file, which must be no file in memory.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 32 << 20

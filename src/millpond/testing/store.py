"""What every `Store` promises, as tests: subclass `StoreConformance` and give it a `store` fixture.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self) -> Store:
            return MyStore()

`StoreStateMachine` (in `store_machine`) compares a store with `MemoryStore` over random sequences
of operations.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event
from typing import TYPE_CHECKING, ClassVar

import pytest

from millpond.base.errors import ObjectExistsError, ObjectNotFoundError, StoreError
from millpond.base.store import TEMP_PREFIX, PutMode, Store
from millpond.testing.store_machine import StoreStateMachine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["StoreConformance", "StoreStateMachine"]

ODD_NAMES = (
    "a b", " leading", "trailing ", "100%", "a%20b", "a#b", "a+b", "a=b", "a?b", "a&b", "a;b",
    "a:b", "a,b", "a'b", 'a"b', "a*b", "[a]", "{a}", "(a)", "a|b", "a\\b", "~a", "^`", "$a", "@a",
    "!a", ".hidden", "..a", "a..", "_delta_log", "<a>", "ä", "日本語", "🐟", "e\u0301", "x" * 200,
    "k=v/part-0.parquet", "k=%2F/part 0.parquet",
)  # fmt: skip
BAD_PATHS = (
    "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", "a\0b", "a\nb",
    "a\x7fb", "x" * 256, "\ud800", f"{TEMP_PREFIX}a", f"a/{TEMP_PREFIX}b/c",
)  # fmt: skip
RACERS = 16
LARGE_CHUNKS = 10
LARGE_CHUNK = bytes(range(256)) * (1 << 12)


class StoreConformance:
    """One test for each promise of `millpond.base.store.protocol.Store`."""

    # Reading back -------------------------------------------------------------------------------

    def test_is_a_store(self, store: Store) -> None:
        """The object has every method of the protocol, and a URL."""
        assert isinstance(store, Store)
        assert "://" in store.url

    @pytest.mark.parametrize("mode", ["create", "overwrite"])
    def test_put_then_get(self, store: Store, mode: PutMode) -> None:
        """What was put is what is got."""
        meta = store.put("a/b", b"hello", mode=mode)
        assert (meta.path, meta.size, store.get("a/b")) == ("a/b", 5, b"hello")

    def test_empty_object(self, store: Store) -> None:
        """An object of no bytes is an object."""
        assert store.put("empty", b"").size == 0
        assert store.put("no-chunks", iter(())).size == 0
        assert store.get("empty") == store.get("no-chunks") == b""
        assert list(store.get_stream("empty")) == []
        assert store.get_range("empty", 0, 10) == b""
        assert [meta.size for meta in store.list()] == [0, 0]

    @pytest.mark.parametrize("data", [bytearray(b"xyz"), memoryview(b"-xyz-")[1:4]])
    def test_other_bytes(self, store: Store, data: bytearray | memoryview) -> None:
        """Everything that is like bytes can be put."""
        store.put("a", data)
        assert store.get("a") == b"xyz"

    def test_chunks(self, store: Store) -> None:
        """Chunks become one object; empty ones do not matter."""
        assert store.put("a", iter([b"x", b"", b"yz"])).size == 3
        assert store.get("a") == b"xyz"

    @pytest.mark.parametrize("mode", ["create", "overwrite"])
    def test_large_object(self, store: Store, mode: PutMode) -> None:
        """An object of more than one part, in and out as a stream."""
        meta = store.put("big", (LARGE_CHUNK for _ in range(LARGE_CHUNKS)), mode=mode)
        assert meta.size == store.head("big").size == LARGE_CHUNKS * len(LARGE_CHUNK)
        pieces = list(store.get_stream("big", chunk_bytes=1 << 20))
        assert all(pieces)
        assert len(pieces) > 1
        assert b"".join(pieces) == LARGE_CHUNK * LARGE_CHUNKS
        assert [m.path for m in store.list()] == ["big"]

    def test_large_create_keeps_what_is_there(self, store: Store) -> None:
        """Also an object of many parts is created only once."""
        store.put("big", b"first")
        with pytest.raises(ObjectExistsError):
            store.put("big", (LARGE_CHUNK for _ in range(LARGE_CHUNKS)))
        assert store.get("big") == b"first"
        assert [m.path for m in store.list()] == ["big"]

    @pytest.mark.parametrize("mode", ["create", "overwrite"])
    @pytest.mark.parametrize("good_chunks", [1, LARGE_CHUNKS])
    def test_chunks_that_fail(self, store: Store, mode: PutMode, good_chunks: int) -> None:
        """An error of whoever makes the chunks passes through, and nothing is written."""
        error = FileNotFoundError("the source is gone")

        def chunks() -> Iterator[bytes]:
            for _ in range(good_chunks):
                yield LARGE_CHUNK
            raise error

        with pytest.raises(FileNotFoundError) as caught:
            store.put("a", chunks(), mode=mode)
        assert caught.value is error
        assert list(store.list()) == []

    def test_put_file(self, store: Store, tmp_path: Path) -> None:
        """A local file's bytes become an object; a missing file is named."""
        source = tmp_path / "source"
        source.write_bytes(b"from a file")
        assert store.put_file("a", source).size == 11
        assert store.get("a") == b"from a file"
        with pytest.raises(ObjectExistsError):
            store.put_file("a", source)
        store.put_file("a", str(source), mode="overwrite")
        with pytest.raises(ObjectNotFoundError, match="nowhere"):
            store.put_file("b", tmp_path / "nowhere")

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [
            (0, 10, b"0123456789"), (0, 3, b"012"), (7, 3, b"789"), (7, 99, b"789"),
            (9, 1, b"9"), (10, 1, b""),
            (99, 5, b""), (0, 0, b""), (5, 0, b""), (2, 1 << 40, b"23456789"),
        ],
    )  # fmt: skip
    def test_ranges(self, store: Store, start: int, length: int, expected: bytes) -> None:
        """A range ends where the object ends."""
        store.put("a", b"0123456789")
        assert store.get_range("a", start, length) == expected

    @pytest.mark.parametrize(("start", "length"), [(-1, 2), (0, -1)])
    def test_negative_ranges(self, store: Store, start: int, length: int) -> None:
        """Nothing counts from the back."""
        store.put("a", b"0123456789")
        with pytest.raises(StoreError):
            store.get_range("a", start, length)

    # Names --------------------------------------------------------------------------------------

    def test_odd_names(self, store: Store) -> None:
        """Whatever is in a name, it comes back as it was."""
        for name in ODD_NAMES:
            store.put(f"odd/{name}", name.encode())
        for name in ODD_NAMES:
            assert store.get(f"odd/{name}") == name.encode()
            assert store.head(f"odd/{name}").path == f"odd/{name}"
        listed = [meta.path for meta in store.list("odd/")]
        assert listed == sorted((f"odd/{name}" for name in ODD_NAMES), key=str.encode)

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_bad_paths(self, store: Store, path: str) -> None:
        """A path that leaves the root, or that some store could not keep, is refused by all."""
        for operation in (
            lambda: store.put(path, b""),
            lambda: store.put(path, b"", mode="overwrite"),
            lambda: store.get(path),
            lambda: store.get_range(path, 0, 1),
            lambda: list(store.get_stream(path)),
            lambda: store.head(path),
            lambda: store.delete(path),
        ):
            with pytest.raises(StoreError, match="can't name an object"):
                operation()

    @pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../b", "\0"])
    def test_bad_prefixes(self, store: Store, prefix: str) -> None:
        """A prefix that no path can have is a mistake, not an empty list."""
        with pytest.raises(StoreError, match="can't name an object"):
            list(store.list(prefix))

    # What isn't there ---------------------------------------------------------------------------

    def test_missing(self, store: Store) -> None:
        """Reading what isn't there is an error that names it."""
        store.put("there/a", b"")
        for path in ("nowhere", "there/b", "there", "there/a/b"):
            for operation in (
                lambda: store.get(path),  # noqa: B023
                lambda: store.get_range(path, 0, 1),  # noqa: B023
                lambda: store.get_range(path, 0, 0),  # noqa: B023
                lambda: list(store.get_stream(path)),  # noqa: B023
                lambda: store.head(path),  # noqa: B023
            ):
                with pytest.raises(ObjectNotFoundError) as caught:
                    operation()
                assert caught.value.path == path

    def test_delete(self, store: Store) -> None:
        """A deleted object is gone, its name is free, and a second delete does nothing."""
        store.put("d/a", b"1")
        store.put("d/b", b"2")
        store.delete("d/a")
        store.delete("d/a")
        store.delete("never/there")
        store.delete("d")
        assert [meta.path for meta in store.list()] == ["d/b"]
        store.put("d/a", b"again")
        assert store.get("d/a") == b"again"

    # Metadata -----------------------------------------------------------------------------------

    def test_head(self, store: Store) -> None:
        """Size, time and etag agree between put, head and list."""
        put = store.put("a", b"12345")
        head = store.head("a")
        assert (put.path, put.size, put.etag) == (head.path, head.size, head.etag)
        assert list(store.list()) == [head]
        assert head.modified.utcoffset() == timedelta()

    def test_etag_changes(self, store: Store) -> None:
        """An object of the same size and other content has another etag."""
        first = store.put("a", b"1")
        second = store.put("a", b"2", mode="overwrite")
        assert first.etag != second.etag == store.head("a").etag

    # Listing ------------------------------------------------------------------------------------

    NAMES: ClassVar[tuple[str, ...]] = (
        "a-b", "a.b", "a/-", "a/b/c", "a/b0", "a/é", "a/\uff46", "a/🐟", "a0", "ab/c", "b/a", "c",
    )  # fmt: skip

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """The store with `NAMES`, put in another order than they sort in."""
        for name in reversed(self.NAMES):
            store.put(name, name.encode())
        return store

    def test_list_order(self, filled: Store) -> None:
        """By UTF-8 bytes of the whole path: '-' < '/' < '0', and U+FF46 before U+1F41F."""
        listed = [meta.path for meta in filled.list()]
        assert listed == sorted(self.NAMES, key=str.encode) == list(self.NAMES)

    @pytest.mark.parametrize(
        "prefix", ["", "a", "a/", "a/b", "a/b/", "a/b/c", "a0", "ab", "zzz", "b/a/x", "a/🐟", "!"]
    )
    def test_list_prefix(self, filled: Store, prefix: str) -> None:
        """A prefix is plain text: it may end within a name."""
        expected = [name for name in self.NAMES if name.startswith(prefix)]
        assert [meta.path for meta in filled.list(prefix)] == expected

    @pytest.mark.parametrize("prefix", ["", "a/", "a/b", "b"])
    def test_list_start_after(self, filled: Store, prefix: str) -> None:
        """The start itself is left out, and need not exist."""
        for start in (*self.NAMES, "a", "a/", "a/b", "a/zzz", "0", "zzz"):
            found = [meta.path for meta in filled.list(prefix, start_after=start)]
            behind = [name for name in self.NAMES if name.encode() > start.encode()]
            assert found == [name for name in behind if name.startswith(prefix)], start

    def test_list_is_lazy(self, filled: Store) -> None:
        """The first row can be had alone, and a list that nobody reads costs nothing."""
        assert next(iter(filled.list())).path == self.NAMES[0]
        filled.list("a/")

    def test_list_of_nothing(self, store: Store) -> None:
        """A store to which nothing was put is empty, not an error."""
        assert list(store.list()) == []
        assert list(store.list("a/b/")) == []

    # Many at once -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("racers", "repeat", "chunked"),
        [(RACERS, 1000, False), (RACERS, 1000, True), (5, 1_300_000, True)],
        ids=["whole", "chunks", "parts"],
    )
    def test_create_race(self, store: Store, racers: int, repeat: int, chunked: bool) -> None:
        """Of many racing creators exactly one wins, and the object is the winner's."""
        barrier = Barrier(racers)

        def content(racer: int) -> bytes:
            return f"racer {racer:02}".encode() * repeat

        def create(racer: int) -> bool:
            data = content(racer)
            pieces = (data[i : i + 65_521] for i in range(0, len(data), 65_521))
            barrier.wait()
            try:
                store.put("race/x", pieces if chunked else data)
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(racers) as pool:
            won = list(pool.map(create, range(racers)))
        assert won.count(True) == 1
        assert store.get("race/x") == content(won.index(True))
        assert [meta.path for meta in store.list()] == ["race/x"]

    def test_overwrite_is_atomic(self, store: Store) -> None:
        """While an object is overwritten, readers see a whole version of it, and always one."""
        versions = [bytes([65 + number]) * (20_000 + number) for number in range(16)]
        store.put("a", versions[0])
        done = Event()

        def read() -> int:
            reads = 0
            while not done.is_set() or reads == 0:
                assert store.get("a") in versions
                assert b"".join(store.get_stream("a", chunk_bytes=4096)) in versions
                assert store.head("a").size in map(len, versions)
                assert [meta.path for meta in store.list()] == ["a"]
                reads += 1
            return reads

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for version in versions * 2:
                    store.put("a", version, mode="overwrite")
            finally:
                done.set()
            assert all(reader.result() for reader in readers)
        assert store.get("a") == versions[-1]

    def test_touch_changes_no_object(self, store: Store) -> None:
        """An object that is touched is what it was, and not older."""
        store.put("a", b"1")
        before = store.head("a").modified
        store.touch("a")
        assert store.get("a") == b"1"
        assert store.head("a").modified >= before
        with pytest.raises(ObjectNotFoundError):
            store.touch("b")

    def test_sweep_keeps_objects(self, store: Store) -> None:
        """Sweeping removes no object, however old."""
        store.put("a", b"1")
        assert store.sweep(before=datetime.now(UTC) + timedelta(days=1)) == 0
        assert store.get("a") == b"1"

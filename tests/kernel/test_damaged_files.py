"""Data files that were damaged after they were written: no read gives other rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.write.tables import append, data_files, new_table

import millpond as mp
from millpond.base.errors import DamagedFileError, IntegrityError, SourceError
from millpond.base.seals import chunk_spans, mark_in, metadata_of, tail_of
from millpond.plan.types import BOOLEAN, LONG, STRING, List, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan

QUERIES: dict[str, Callable[[Plan], Plan]] = {
    "all": lambda rows: rows,
    "few": lambda rows: rows.filter(mp.col("n") % 997 == 3),
    "range": lambda rows: rows.filter(mp.col("n") < 4),
    "top_k": lambda rows: rows.top_k(3, mp.col("some").desc(), "n"),
    "group": lambda rows: rows.aggregate("site", n=mp.agg.count(), m=mp.agg.max("n")).sort("site"),
    "parts": lambda rows: rows.select("deep", "flag").head(70),
}
ALL = {"all"}


def rows(count: int) -> pa.Table:
    rng = Random(7)
    return pa.table(
        {
            "n": range(count),
            "site": [f"site {n % 5}" for n in range(count)],
            "text": [str(rng.random()) for _ in range(count)],
            "flag": [n % 3 == 0 for n in range(count)],
            "some": [None if n % 4 else n for n in range(count)],
            "deep": [{"x": n * 2, "list": ["a"] * (n % 3)} for n in range(count)],
        }
    )


SCHEMA = Struct.of(
    n=LONG,
    site=STRING,
    text=STRING,
    flag=BOOLEAN,
    some=LONG,
    deep=Struct.of(x=LONG, list=List(STRING)),
)


def table_of(path: Path, count: int) -> DeltaTable:
    return append(new_table(path, SCHEMA), rows(count))


def answer(table: DeltaTable, query: str, engine: str = "arrow") -> Any:
    plan = QUERIES[query](table.scan().plan(engine))
    return [row for batch in plan.execute(engine=engine) for row in batch.to_pylist()]


def the_file(path: Path) -> Path:
    [name] = data_files(path)
    return path / name


def regions(content: bytes) -> dict[str, tuple[int, int]]:
    """The parts of a file, each with where it begins and ends."""
    tail = tail_of(lambda n, at: content[at : at + n], len(content))
    assert tail is not None
    assert tail.seal is not None
    footer = len(content) - len(tail.footer)
    found = {"head": (0, 4)}
    for number, (start, size) in enumerate(chunk_spans(metadata_of(tail.footer))):
        # A chunk begins with the header of a page; its body comes next.
        found[f"header of chunk {number}"] = (start, start + 24)
        found[f"body of chunk {number}"] = (start + 24, start + size)
    found["page index"] = (tail.seal.end, tail.seal.block)
    found["seal"] = (tail.seal.block, footer)
    found["footer"] = (footer, len(content) - 8)
    found["trailer"] = (len(content) - 8, len(content))
    return found


def flips(content: bytes, most: int) -> Iterator[tuple[str, int]]:
    """Bits in all parts of a file: all of a small part, a sample of a large one."""
    rng = Random(11)
    for name, (start, end) in regions(content).items():
        bits = range(8 * start, 8 * end)
        for bit in bits if len(bits) <= most else rng.sample(bits, most):
            yield name, bit


@pytest.mark.parametrize("native", ["auto", "never"])
@pytest.mark.parametrize(("count", "most"), [(90, 16), (12_000, 6)])
def test_a_flipped_bit_never_gives_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: str, count: int, most: int
) -> None:
    monkeypatch.setenv("MILLPOND_ARROW_NATIVE", native)
    table = table_of(tmp_path, count)
    truth = {query: answer(table, query) for query in QUERIES}
    file = the_file(tmp_path)
    content = file.read_bytes()
    harmless: Counter[str] = Counter()
    for number, (region, bit) in enumerate(flips(content, most)):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        file.write_bytes(broken)
        for query in QUERIES if number % 4 == 0 else ALL:
            try:
                found = answer(table, query)
            except DamagedFileError:
                continue
            assert found == truth[query], (region, bit, query)
            if query == "all":
                harmless[region] += 1
    assert set(harmless) <= {"head", "page index"}  # which this engine does not read


def test_other_damage_is_named(tmp_path: Path) -> None:
    table = table_of(tmp_path / "a", 90)
    file = the_file(tmp_path / "a")
    content = file.read_bytes()
    other = table_of(tmp_path / "b", 91)
    faults = {
        "empty": b"",
        "cut": content[:-1],
        "half": content[: len(content) // 2],
        "zeros": content[:40] + bytes(4096) + content[40 + 4096 :],
        "twice": content + content,
        "other": the_file(tmp_path / "b").read_bytes(),
        "written again": again(content),
    }
    assert answer(other, "all") != answer(table, "all")
    for name, fault in faults.items():
        file.write_bytes(fault)
        with pytest.raises(IntegrityError, match="damaged") as caught:
            answer(table, "all")
        assert file.name in caught.value.message, name
        assert caught.value.hint is not None


def again(content: bytes) -> bytes:
    """The same rows in a file without a seal, and without checksums."""
    sink = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(content)), sink)
    return bytes(sink.getvalue())


def test_a_chunk_is_hashed_only_when_it_is_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, 12_000)
    file = the_file(tmp_path)
    content = bytearray(file.read_bytes())
    start, end = regions(bytes(content))["body of chunk 2"]  # of the column `text`
    content[start : end - 1] = bytes(end - start - 1)
    file.write_bytes(content)
    assert len(answer(table, "group")) == 5
    with pytest.raises(DamagedFileError, match="column text of row group 0"):
        answer(table, "all")


def test_files_carry_checksums_that_other_readers_verify(tmp_path: Path) -> None:
    table_of(tmp_path, 12_000)
    file = the_file(tmp_path)
    content = bytearray(file.read_bytes())
    assert mark_in(file.name) is not None
    for name, (_, end) in regions(bytes(content)).items():
        if not name.startswith("body"):
            continue
        broken = content.copy()
        broken[end - 3] ^= 4
        reader = pq.ParquetFile(pa.BufferReader(broken), page_checksum_verification=True)
        with pytest.raises(OSError, match="CRC"):
            reader.read()


@pytest.mark.parametrize("native", ["auto", "never"])
def test_checksums_of_foreign_files_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: str
) -> None:
    monkeypatch.setenv("MILLPOND_ARROW_NATIVE", native)
    file = tmp_path / "a.parquet"
    pq.write_table(rows(12_000), file, write_page_checksum=True, compression="zstd")
    content = file.read_bytes()
    scan = mp.scan(str(file))
    assert sum(batch.num_rows for batch in scan.execute(engine="arrow")) == 12_000
    for start, size in chunk_spans(pq.read_metadata(file)):
        for bit in range(8):
            broken = bytearray(content)
            broken[start + size - 2] ^= 1 << bit
            file.write_bytes(broken)
            with pytest.raises(SourceError):
                list(scan.execute(engine="arrow"))

"""A sealed Parquet file: other readers see no difference, and each changed bit is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.seals import (
    BrokenSealError,
    check_file,
    mark_in,
    seal_file,
    sealed_bytes,
    tail_of,
)

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table({"n": range(30), "text": [f"a text {n % 4}" for n in range(30)]})


def written(path: Path, table: pa.Table = TABLE) -> str:
    pq.write_table(table, path, row_group_size=20, write_page_index=True)
    return seal_file(path)


def test_others_read_a_sealed_file_as_before(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    written(file)
    assert pq.read_table(file).equals(TABLE)
    assert pq.read_table(file, filters=[("n", "==", 25)]).num_rows == 1
    assert check_file(file)


def test_each_flipped_bit_is_found_by_a_check_of_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    mark = written(file)
    content = file.read_bytes()
    for bit in range(8 * len(content)):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        file.write_bytes(broken)
        with pytest.raises(BrokenSealError):
            check_file(file, mark)


@pytest.mark.parametrize("kept", [0, 3, 8, 60, 200, -1, -9])
def test_a_file_that_was_cut_is_found(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "a.parquet"
    mark = written(file)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(BrokenSealError):
        check_file(file, mark)


def test_another_sealed_file_in_its_place_is_found(tmp_path: Path) -> None:
    mark = written(tmp_path / "a.parquet")
    written(tmp_path / "b.parquet", TABLE.slice(1))
    with pytest.raises(BrokenSealError, match="another file"):
        check_file(tmp_path / "b.parquet", mark)


def test_a_file_without_a_seal_is_not_checked_unless_it_needs_one(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE, file)
    assert not check_file(file)
    with pytest.raises(BrokenSealError, match="missing"):
        check_file(file, required=True)


def test_a_footer_larger_than_the_first_read(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    mark = written(file)
    content = file.read_bytes()
    for first in range(8, 400, 7):
        tail = tail_of(lambda n, at: content[at : at + n], len(content), first=first)
        assert tail is not None
        assert tail.seal is not None
        assert (tail.seal.mark, tail.seal.chunks) == (mark, 4)


def test_a_file_in_memory_gets_the_same_seal(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE, file)
    content, mark = sealed_bytes(file.read_bytes())
    assert (seal_file(file), file.read_bytes()) == (mark, content)
    assert mark_in(f"part.{mark}.zstd.parquet") == mark


def test_a_file_without_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    mark = written(file, TABLE.slice(0, 0))
    assert check_file(file, mark)

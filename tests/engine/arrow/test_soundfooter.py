"""Footers that end the process inside of pyarrow are refused before."""

from __future__ import annotations

import io
import struct
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import SourceError
from millpond.engine.arrow.native.library import library
from millpond.engine.arrow.source.soundfooter import fault_in_python, footer_fault

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table(
    {
        "n": [1, None, 3],
        "s": ["a", "bc", None],
        "l": [[1, None], None, []],
        "m": pa.array([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}]),
        "k": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "r": pa.array([1.5, 2.5, 3.5]),
    },
    schema=pa.schema(
        [
            ("n", pa.int64()),
            ("s", pa.string()),
            ("l", pa.list_(pa.int64())),
            ("m", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
            ("k", pa.map_(pa.string(), pa.int64())),
            pa.field("r", pa.float64(), nullable=False),
        ]
    ),
)
COUNTS = b"\x29\x06\x19\x26\x02\x02\x00"
"""One null and one value: the list of two counts that the column `n` has, and its end."""


LEAVES = 8


def written(**options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=2, **options)
    return sink.getvalue()


def footer_of(content: bytes) -> bytes:
    (size,) = struct.unpack("<I", content[-8:-4])
    return content[-8 - size : -8]


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
@pytest.mark.parametrize("statistics", [True, False])
def test_good_footers(version: str, statistics: bool) -> None:
    content = written(
        version=version, write_statistics=statistics, write_page_index=True, store_schema=True
    )
    footer = footer_of(content)
    assert fault_in_python(footer) is None
    assert footer_fault(footer, LEAVES) is None


def test_a_footer_that_ends_the_process(tmp_path: Path) -> None:
    content = written()
    footer = footer_of(content)
    assert COUNTS in footer
    bad = footer.replace(COUNTS, b"\x29\x06\x19\x16\x02\x00", 1)  # one count, where two levels are
    for fault in (footer_fault(bad, LEAVES), fault_in_python(bad)):
        assert fault == "column 0 counts levels that it does not have"
    file = tmp_path / "a.parquet"
    file.write_bytes(content[: -8 - len(footer)] + bad + struct.pack("<I", len(bad)) + b"PAR1")
    with pytest.raises(SourceError, match="counts levels that it does not have") as caught:
        mp.scan(str(file)).to_arrow(engine="arrow")
    assert caught.value.hint


def test_a_footer_that_breaks_off() -> None:
    footer = footer_of(written())
    assert footer_fault(footer[: len(footer) // 2], LEAVES) is not None
    assert fault_in_python(footer[: len(footer) // 2]) is not None


@pytest.mark.skipif(library() is None, reason="nothing was compiled")
def test_the_compiled_function_finds_what_python_finds() -> None:
    footer = footer_of(written())
    rng = Random(5)
    found = 0
    for _ in range(3000):
        bad = bytearray(footer)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            pq.read_metadata(io.BytesIO(b"PAR1" + bad + struct.pack("<I", len(bad)) + b"PAR1"))
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            continue  # neither is asked
        one, other = footer_fault(bytes(bad), LEAVES), fault_in_python(bytes(bad))
        found += one is not None
        assert (one is None) == (other is None), (one, other)
    assert found > 20

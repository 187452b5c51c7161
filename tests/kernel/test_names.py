"""File names of a log: the widths, the kinds, and everything that only looks like one."""

from __future__ import annotations

import pytest

from millpond.kernel import names
from millpond.kernel.names import LogName, parse_name

UNIQUE = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000003.json", LogName("commit", 3, 3)),
        ("00000000000000000003.crc", LogName("checksum", 3, 3)),
        ("00000000000000000003.checkpoint.parquet", LogName("checkpoint", 3, 3)),
        (
            f"00000000000000000003.checkpoint.{UNIQUE}.json",
            LogName("checkpoint", 3, 3, unique=UNIQUE),
        ),
        (
            f"00000000000000000003.checkpoint.{UNIQUE}.parquet",
            LogName("checkpoint", 3, 3, unique=UNIQUE),
        ),
        (
            "00000000000000000003.checkpoint.0000000002.0000000005.parquet",
            LogName("checkpoint", 3, 3, 2, 5),
        ),
        (
            "00000000000000000003.00000000000000000007.compacted.json",
            LogName("compaction", 3, 7),
        ),
        (f"{names.MAX_VERSION:020d}.json", LogName("commit", names.MAX_VERSION, names.MAX_VERSION)),
    ],
)
def test_a_name_says_what_a_file_is(name: str, expected: LogName) -> None:
    assert parse_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "3.json",
        "000000000000000000003.json",
        "0000000000000000003x.json",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٣.json",
        ".00000000000000000003.json.crc",
        "00000000000000000003.json#1",
        "00000000000000000003.json.tmp",
        "00000000000000000003.JSON",
        f"00000000000000000003.{UNIQUE}.json",
        "00000000000000000003.checkpoint.json",
        "00000000000000000003.checkpoint.abc.parquet",
        "00000000000000000003.checkpoint.0000000000.0000000005.parquet",
        "00000000000000000003.checkpoint.0000000006.0000000005.parquet",
        "00000000000000000003.checkpoint.2.5.parquet",
        "00000000000000000007.00000000000000000003.compacted.json",
        "99999999999999999999.json",
        "_last_checkpoint",
        "",
    ],
)
def test_anything_else_is_no_file_of_the_log(name: str) -> None:
    assert parse_name(name) is None


def test_names_that_are_made_can_be_read() -> None:
    assert parse_name(names.commit_name(5)) == LogName("commit", 5, 5)
    assert parse_name(names.checksum_name(5)) == LogName("checksum", 5, 5)
    assert parse_name(names.checkpoint_name(5)) == LogName("checkpoint", 5, 5)
    assert parse_name(names.part_name(5, 1, 3)) == LogName("checkpoint", 5, 5, 1, 3)
    assert parse_name(names.compaction_name(5, 9)) == LogName("compaction", 5, 9)
    made = names.unique_checkpoint_name(5, UNIQUE)
    assert parse_name(made) == LogName("checkpoint", 5, 5, unique=UNIQUE)
    staged = names.file_name(names.staged_name(5, UNIQUE))
    assert parse_name(staged) is None
    assert names.parse_staged_name(staged) == LogName("commit", 5, 5, unique=UNIQUE)

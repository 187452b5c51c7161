"""Segments from listings that are made up: no file is touched."""

from __future__ import annotations

import pytest

from millpond.base.errors import (
    CorruptLogError,
    LogGapError,
    TableNotFoundError,
    VersionNotFoundError,
)
from millpond.kernel import names
from millpond.kernel.names import parse_name
from millpond.kernel.segment import LogFile, LogSegment, LogSegmentBuilder

UNIQUE = "80a083e8-7026-4e79-81be-64bd76c43a1{}"


def log_file(name: str, size: int = 1) -> LogFile:
    parsed = parse_name(name)
    assert parsed is not None
    return LogFile(f"/t/_delta_log/{name}", parsed, size, 0)


def commits(*versions: int) -> list[str]:
    return [names.commit_name(v) for v in versions]


def segment(*listed: str, at: int | None = None, empty: tuple[str, ...] = ()) -> LogSegment:
    builder = LogSegmentBuilder("/t", max_version=at)
    for name in listed:
        builder.add_file(log_file(name, 0 if name in empty else 1))
    return builder.build()


def shown(files: tuple[LogFile, ...]) -> list[str]:
    return [names.file_name(file.path) for file in files]


def test_commits_alone() -> None:
    found = segment(*commits(0, 1, 2))
    assert found.version == 2
    assert found.checkpoint is None
    assert [f.name.version for f in found.commits] == [0, 1, 2]


def test_a_checkpoint_stands_for_what_was_before() -> None:
    found = segment(*commits(1, 2, 3), names.checkpoint_name(2))
    assert found.checkpoint is not None
    assert found.checkpoint.version == 2
    assert [f.name.version for f in found.commits] == [3]
    assert found.checkpoint_commit is not None
    assert found.checkpoint_commit.name.version == 2


def test_a_version_in_the_past_uses_nothing_newer() -> None:
    found = segment(*commits(0, 1, 2, 3), names.checkpoint_name(2), at=1)
    assert (found.version, found.checkpoint) == (1, None)


def test_a_checkpoint_in_parts_counts_when_it_is_whole() -> None:
    parts = [names.part_name(2, part, 3) for part in (1, 2, 3)]
    whole = segment(*commits(0, 1, 2), *parts)
    assert whole.checkpoint is not None
    assert shown(whole.checkpoint.files) == parts
    lacking = segment(*commits(0, 1, 2), *parts[:2])
    assert lacking.checkpoint is None


def test_of_several_checkpoints_the_unique_then_the_one_in_parts_is_taken() -> None:
    classic = names.checkpoint_name(2)
    parts = [names.part_name(2, part, 2) for part in (1, 2)]
    first, second = (names.unique_checkpoint_name(2, UNIQUE.format(i)) for i in (1, 2))
    found = segment(*commits(2), classic, *parts)
    assert found.checkpoint is not None
    assert shown(found.checkpoint.files) == parts
    found = segment(*commits(2), classic, *parts, first, second)
    assert found.checkpoint is not None
    assert shown(found.checkpoint.files) == [second]


def test_empty_checkpoints_and_compactions_do_not_count_but_empty_commits_do() -> None:
    checkpoint, compacted = names.checkpoint_name(1), names.compaction_name(0, 1)
    found = segment(*commits(0, 1), checkpoint, compacted, empty=(checkpoint, compacted))
    assert (found.checkpoint, found.compactions) == (None, ())
    assert segment(*commits(0, 1), empty=(names.commit_name(1),)).version == 1


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (commits(0, 2), "lacks version 1"),
        (commits(0, 1, 4, 5), "lacks versions 2, 3"),
        (commits(3, 4), "begins at version 3, without a checkpoint"),
        (
            [*commits(3, 4), names.part_name(2, 1, 3), names.part_name(2, 3, 3)],
            r"without a checkpoint \(that of version 2 lacks part 2 of 3\)",
        ),
        ([*commits(0, 4), names.checkpoint_name(2)], "lacks version 3"),
        (commits(0, names.MAX_VERSION), "lacks versions 1, 2, 3, 4, 5, …"),
        (commits(names.MAX_VERSION), f"begins at version {names.MAX_VERSION}, without"),
        (
            [*commits(3, 4), names.part_name(2, 2, 9_999_999_999)],
            "lacks parts 1, 3, 4, 5, 6 of 9999999999",
        ),
    ],
)
def test_gaps_are_named(listed: list[str], message: str) -> None:
    with pytest.raises(LogGapError, match=message):
        segment(*listed)


def test_a_gap_behind_says_what_can_still_be_read() -> None:
    with pytest.raises(LogGapError) as caught:
        segment(*commits(0, 1, 3))
    assert caught.value.hint == "versions up to 1 can still be read: version=1"


def test_nothing_is_no_table() -> None:
    with pytest.raises(TableNotFoundError, match="no commit"):
        segment()
    with pytest.raises(CorruptLogError, match=r"nothing but parts .* lacks part 2 of 2\)"):
        segment(names.part_name(2, 1, 2))
    with pytest.raises(VersionNotFoundError, match="up to version 1"):
        segment(names.part_name(0, 1, 2), at=1)


def test_compactions_cover_commits_the_widest_first() -> None:
    found = segment(
        *commits(0, 1, 2, 3, 4, 5),
        names.compaction_name(1, 2),
        names.compaction_name(1, 3),
        names.compaction_name(2, 4),
    )
    assert shown(found.cover()) == [
        names.commit_name(5),
        names.commit_name(4),
        names.compaction_name(1, 3),
        names.commit_name(0),
    ]


def test_compactions_that_reach_over_an_edge_are_left_aside() -> None:
    found = segment(
        *commits(0, 1, 2, 3),
        names.checkpoint_name(1),
        names.compaction_name(0, 2),
        names.compaction_name(2, 5),
    )
    assert shown(found.cover()) == commits(3, 2)


def test_the_newest_checksum_since_the_checkpoint_is_known() -> None:
    found = segment(*commits(0, 1, 2, 3), *map(names.checksum_name, (0, 2)))
    assert found.checksum is not None
    assert found.checksum.name.version == 2
    old = segment(*commits(2, 3), names.checkpoint_name(2), names.checksum_name(1))
    assert old.checksum is None


def test_a_catalogs_tail_counts_from_its_first_commit_on() -> None:
    tail = [log_file(names.commit_name(v)) for v in (2, 3)]
    tail = [LogFile(f"/staged/{f.name.version}", f.name, 1, 0) for f in tail]
    builder = LogSegmentBuilder("/t", log_tail=tail)
    for name in (*commits(0, 1, 2), names.compaction_name(1, 2)):
        builder.add_file(log_file(name))
    found = builder.build()
    assert [f.path for f in found.commits][2:] == ["/staged/2", "/staged/3"]
    assert found.compactions == ()

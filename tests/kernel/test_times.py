"""Time travel: moments, commit times that grow, and times that commits state themselves."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.kernel.handmade import add, begin, checkpoint, commit, info, metadata, protocol

from millpond import delta_table
from millpond.base.errors import CorruptLogError, PlanError, VersionNotFoundError
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.machine import Consume
from millpond.kernel.names import LogName, commit_name
from millpond.kernel.open import ListLog, Wanted
from millpond.kernel.segment import LogFile, LogSegment
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.times import (
    CommitTimes,
    commit_times,
    first_stated,
    to_millis,
    version_at,
)

if TYPE_CHECKING:
    from pathlib import Path

NOON = 1_717_156_800_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("moment", "millis"),
    [
        (NOON, NOON),
        ("2024-05-31T12:00:00Z", NOON),
        ("2024-05-31 12:00:00", NOON),
        ("2024-05-31T14:00:00+02:00", NOON),
        ("2024-05-31", NOON - 12 * HOUR),
        (dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC), NOON),
        (dt.datetime(2024, 5, 31, 12), NOON),  # noqa: DTZ001
        (dt.datetime(2024, 5, 31, 12, 0, 0, 1999, tzinfo=dt.UTC), NOON + 1),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=dt.UTC), -1),
    ],
)
def test_moments(moment: Any, millis: int) -> None:
    assert to_millis(moment, "t") == millis


@pytest.mark.parametrize("moment", ["yesterday", "", True, 1.5, None])
def test_what_is_no_moment(moment: Any) -> None:
    with pytest.raises(VersionNotFoundError, match="is no timestamp") as caught:
        to_millis(moment, "t")
    assert caught.value.hint


def file(version: int, modified: int) -> LogFile:
    return LogFile(f"/t/{version}", LogName("commit", version, version), 1, modified)


def test_files_times_are_made_to_grow() -> None:
    files = [file(0, 10), file(1, 10), file(2, 5), file(3, 30)]
    assert commit_times(files, {}) == {0: 10, 1: 11, 2: 12, 3: 30}
    assert commit_times(files, {2: 100, 3: 200}) == {0: 10, 1: 11, 2: 100, 3: 200}


def test_the_latest_version_at_or_before_a_moment() -> None:
    times = {3: 10, 4: 20}
    assert [version_at(times, millis, "t") for millis in (10, 19, 20, 99)] == [3, 3, 4, 4]
    with pytest.raises(VersionNotFoundError, match="no version as old") as caught:
        version_at(times, 9, "t")
    assert "version 3 of 1970" in str(caught.value)
    with pytest.raises(VersionNotFoundError, match="ms"):
        version_at(times, -(10**18), "t")
    with pytest.raises(VersionNotFoundError) as caught:
        version_at({3: 10**18}, 9, "t")
    assert f"version 3 of {10**18} ms" in str(caught.value)


def snapshot(**configuration: str) -> Snapshot:
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    segment = LogSegment("/t", 3, None, tuple(file(v, 0) for v in range(4)))
    return Snapshot(segment, Protocol(1, 2), Metadata("", "", configuration=properties))


def stated(**times: int) -> pa.Table:
    infos = [{"inCommitTimestamp": time} for time in times.values()]
    versions = [int(name[1:]) for name in times]
    type_ = pa.struct([("inCommitTimestamp", pa.int64())])
    return pa.table({"version": versions, "commitInfo": pa.array(infos, type_)})


class TestCommitTimes:
    """Files' times are 100, 110, 120 and 130; what commits state is from another clock."""

    def at(self, millis: int, rows: pa.Table, **configuration: str) -> int | None:
        files = tuple(file(v, 100 + 10 * v) for v in range(4))
        found = CommitTimes("/t", Wanted(millis=millis), files, snapshot(**configuration))
        following = found.next(rows)
        assert isinstance(following, Consume)
        assert isinstance(following.phase, ListLog)
        assert following.phase.wanted.millis is None
        return following.phase.wanted.version

    def test_by_files(self) -> None:
        nothing = stated()
        assert [self.at(m, nothing) for m in (100, 115, 120, 999)] == [0, 1, 2, 3]

    def test_by_what_commits_state(self) -> None:
        rows = stated(v3=40, v2=30, v1=20, v0=10)
        on = {"enableInCommitTimestamps": "true"}
        assert [self.at(m, rows, **on) for m in (10, 39, 40, 999)] == [0, 2, 3, 3]

    def test_before_and_after_the_commit_that_began_it(self) -> None:
        rows = stated(v3=115, v2=105)
        on = {"enableInCommitTimestamps": "true", "inCommitTimestampEnablementVersion": "2"}
        # From 105 on stated times count, although files of earlier commits are younger.
        assert [self.at(m, rows, **on) for m in (100, 104, 105, 112, 115)] == [0, 0, 2, 2, 3]

    def test_a_commit_that_should_state_its_time_and_does_not(self) -> None:
        with pytest.raises(CorruptLogError, match="commit 1 of /t does not state"):
            self.at(3, stated(v0=1, v2=3, v3=4), enableInCommitTimestamps="true")

    def test_the_plan_reads_only_what_may_state_a_time(self) -> None:
        files = tuple(file(v, 0) for v in range(4))
        wanted = Wanted(millis=0)
        assert "[0 files]" in str(CommitTimes("/t", wanted, files, snapshot()).plan())
        on = {"enableInCommitTimestamps": "true"}
        assert "[4 files]" in str(CommitTimes("/t", wanted, files, snapshot(**on)).plan())
        on["inCommitTimestampEnablementVersion"] = "3"
        assert "[1 file]" in str(CommitTimes("/t", wanted, files, snapshot(**on)).plan())
        on["inCommitTimestampEnablementVersion"] = "4"
        assert "[0 files]" in str(CommitTimes("/t", wanted, files, snapshot(**on)).plan())

    @pytest.mark.parametrize("text", ["²", "9" * 5000, "-1", ""])
    def test_what_is_no_version_is_the_first(self, text: str) -> None:
        assert first_stated(snapshot(inCommitTimestampEnablementVersion=text)) == 0


def test_a_table_by_the_times_of_its_files(tmp_path: Path) -> None:
    commit(tmp_path, 0, protocol(), metadata(), add("0"), millis=NOON)
    commit(tmp_path, 1, add("1"), millis=NOON - HOUR)
    commit(tmp_path, 2, add("2"), millis=NOON + HOUR)
    assert delta_table(tmp_path, timestamp=NOON).version == 0
    assert delta_table(tmp_path, timestamp=NOON + 1).version == 1
    assert delta_table(tmp_path, timestamp="2024-05-31T12:59:59.999Z").version == 1
    found = delta_table(tmp_path, timestamp=dt.datetime(2024, 5, 31, 13, tzinfo=dt.UTC))
    assert (found.version, len(found.files())) == (2, 3)
    with pytest.raises(VersionNotFoundError, match=r"2024-05-31T11:59:59\.999000"):
        delta_table(tmp_path, timestamp=NOON - 1)
    with pytest.raises(PlanError, match="not both"):
        delta_table(tmp_path, 1, NOON)


def test_a_table_by_the_times_that_its_commits_state(tmp_path: Path) -> None:
    on = {"enableInCommitTimestamps": "true", "inCommitTimestampEnablementVersion": "1"}
    begin(tmp_path, add("0"))
    commit(tmp_path, 0, protocol(), metadata(), add("0"), millis=NOON)
    commit(tmp_path, 1, info(inCommitTimestamp=NOON + HOUR), metadata(**on), add("1"), millis=0)
    commit(tmp_path, 2, info(inCommitTimestamp=NOON + 2 * HOUR), add("2"), millis=0)
    for hours, version in ((0, 0), (0.5, 0), (1, 1), (1.5, 1), (2, 2), (9, 2)):
        assert delta_table(tmp_path, timestamp=NOON + int(hours * HOUR)).version == version
    history = delta_table(tmp_path).history()
    assert [row["timestamp"] - NOON for row in history] == [2 * HOUR, HOUR, 0]


def test_a_moment_whose_version_was_cleaned_up(tmp_path: Path) -> None:
    for version in range(4):
        lines = [add(str(version))] if version else [protocol(), metadata(), add("0")]
        commit(tmp_path, version, *lines, millis=NOON + version * HOUR)
    checkpoint(tmp_path, 2, protocol(), metadata(), *(add(str(v)) for v in range(3)))
    (tmp_path / "_delta_log" / commit_name(0)).unlink()
    assert delta_table(tmp_path, timestamp=NOON + 2 * HOUR).version == 2
    with pytest.raises(VersionNotFoundError, match="up to version 1"):
        delta_table(tmp_path, timestamp=NOON + HOUR)
    with pytest.raises(VersionNotFoundError, match="the oldest is version 1"):
        delta_table(tmp_path, timestamp=NOON)


@pytest.mark.parametrize("configuration", [{}, {"enableInCommitTimestamps": "true"}])
def test_a_checkpoint_alone_has_no_time(tmp_path: Path, configuration: dict[str, str]) -> None:
    checkpoint(tmp_path, 2, protocol(), metadata(**configuration), add("0"))
    assert delta_table(tmp_path).version == 2
    with pytest.raises(VersionNotFoundError, match="no time is known"):
        delta_table(tmp_path, timestamp=NOON)


def test_before_a_table_became_unreadable_it_can_be_read_by_time(tmp_path: Path) -> None:
    commit(tmp_path, 0, protocol(), metadata(), add("0"), millis=NOON)
    commit(tmp_path, 1, protocol(features=["from-the-future"]), millis=NOON + HOUR)
    assert delta_table(tmp_path, timestamp=NOON).version == 0

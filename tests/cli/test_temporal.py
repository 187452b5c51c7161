"""`pond temporal`: bounds that are set, opened and cleared; overlaps, for people and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    for days in ((1, 2, 3), (3, 4)):
        append(place, "/a", *days)
    append(place, "/b", 9)
    with mp.open(place).write() as tx:
        tx.write_table("/t", [{"n": 1}])
        tx.commit()
    return cli


def append(place: Path, path: str, *days: int) -> None:
    with mp.open(place).write() as tx:
        rows = [{"time": datetime(2024, 5, day, 12, tzinfo=UTC), "day": day} for day in days]
        tx.append_series(path, rows)
        tx.commit()


def days(cli: Cli, path: str) -> list[int]:
    return [int(line.rpartition(",")[2]) for line in cli.ok("cat", path).splitlines()[1:]]


class TestBounds:
    def test_a_day_is_meant_whole(self, full: Cli, place: Path) -> None:
        result = full("temporal", "set-bounds", "/a", "--min", "2024-05-02", "--max", "2024-05-03")
        assert result.exit_code == 0
        assert result.stderr == (
            "/a: from 2024-05-02 00:00:00+00:00 to 2024-05-03 23:59:59.999999+00:00\n"
        )
        assert days(full, "/a") == [2, 3, 3]
        append(place, "/a", 1, 3, 7)
        assert days(full, "/a") == [2, 3, 3, 3]
        assert days(full, "/[ab]") == [2, 3, 3, 3, 9]

    def test_ends_can_be_moved_opened_and_cleared(self, full: Cli) -> None:
        full.ok("temporal", "set-bounds", "/a", "--max", "2024-05-03T12:00:00Z")
        assert days(full, "/a") == [1, 2, 3, 3]
        full.ok("temporal", "set-bounds", "/a", "--min", "2024-05-03T14:00:00+02:00")
        assert days(full, "/a") == [3, 3]
        full.ok("temporal", "set-bounds", "/a", "--max", "open")
        assert days(full, "/a") == [3, 3, 4]
        full.ok("temporal", "set-bounds", "/a", "--clear")
        assert days(full, "/a") == [1, 2, 3, 3, 4]

    def test_patterns_and_json(self, full: Cli) -> None:
        found = full.json("temporal", "set-bounds", "/*", "--max", "2024-05-01")
        assert [each["path"] for each in found["bounds"]] == ["/a", "/b"]
        assert found["bounds"][0]["last"] == "2024-05-01T23:59:59.999999+00:00"
        assert found["bounds"][0]["first"] is None
        assert days(full, "/b") == []

    @pytest.mark.parametrize(
        ("args", "code"),
        [
            (("/a",), 2),
            (("/a", "--clear", "--min", "2024-05-01"), 2),
            (("/a", "--min", "yesterday"), 2),
            (("/a", "--min", "2024-05-02", "--max", "2024-05-01"), 8),
            (("/t", "--min", "2024-05-02"), 8),
            (("/nope", "--min", "2024-05-02"), 6),
            ((), 2),
        ],
    )
    def test_errors(self, full: Cli, args: tuple[str, ...], code: int) -> None:
        assert full.fails("temporal", "set-bounds", *args, code=code)
        assert days(full, "/a") == [1, 2, 3, 3, 4]


class TestOverlaps:
    def test_for_people(self, full: Cli) -> None:
        result = full("temporal", "detect-overlaps", "/*")
        assert result.stdout.splitlines() == [
            "first                      last                       rows  source",
            "2024-05-01 12:00:00+00:00  2024-05-03 12:00:00+00:00     3  /a@v1",
            "2024-05-03 12:00:00+00:00  2024-05-04 12:00:00+00:00     2  /a@v2",
            "2024-05-09 12:00:00+00:00  2024-05-09 12:00:00+00:00        /b@v1",
            "",
            f"{'first':25}  {'last':25}  one    rows  other  its rows  same times",
            "2024-05-03 12:00:00+00:00  2024-05-03 12:00:00+00:00  /a@v1     1  /a@v2         1  1",
        ]
        assert result.stderr == "3 runs of 3 sources\n1 overlap\n"

    def test_json(self, full: Cli) -> None:
        found = full.json("temporal", "detect-overlaps", "/a", "/b", "--by", "path")
        assert found["sources"] == ["/a", "/b"]
        assert found["overlaps"] == []
        assert [run["sources"] for run in found["runs"]] == [["/a"], ["/b"]]

    def test_nothing(self, full: Cli) -> None:
        result = full("temporal", "detect-overlaps", "/b")
        assert "nothing overlaps" in result.stderr
        assert full.json("temporal", "detect-overlaps", "/a", "--as-of", "1")["overlaps"] == []

    def test_errors(self, full: Cli) -> None:
        full.fails("temporal", "detect-overlaps", "/t", code=8)
        full.fails("temporal", "detect-overlaps", "/x*", code=6)
        full.fails("temporal", "detect-overlaps", code=2)

"""`pond maintain` and `pond fsck`: what they say, what they delete, and their exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    pond = mp.open(place)
    for number in range(10):
        with pond.write() as tx:
            tx.write_bytes("/f", b"%d" % number)
            tx.write_bytes("/big", b"x" * 100_000)
            tx.append_series("/s", [{"time": _day(number), "n": number}])
            tx.commit()
    return cli


def _day(number: int) -> object:
    from datetime import UTC, datetime

    return datetime(2024, 5, 1 + number, tzinfo=UTC)


def objects(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


class TestMaintain:
    def test_nothing_is_deleted_unless_that_is_said(self, full: Cli, place: Path) -> None:
        root = full.ok("fsck", "--root")
        before = objects(place)
        found = full.json("maintain", "--retention", "0s")
        assert {item["path"] for item in found["compacted"]} >= {"/s", "oplog"}
        assert found["deleted"] is False
        assert found["garbage"]
        missing = {path for path in before - objects(place) if "control" not in path.parts}
        assert missing == set()
        assert full.ok("fsck", "--root") == root
        assert full.ok("cat", "/s").count("\n") == 11

    def test_vacuum(self, full: Cli, place: Path) -> None:
        root = full.ok("fsck", "--root")
        full.ok("maintain")
        told = full.json("maintain", "--retention", "0s")
        found = full.json("maintain", "--vacuum", "--retention", "0s")
        assert found["deleted"] is True
        assert {item["object"] for item in told["garbage"]} <= {
            item["object"] for item in found["garbage"]
        }
        assert not any((place / item["object"]).exists() for item in found["garbage"])
        assert full.ok("fsck", "--root") == root
        assert full.json("maintain", "--retention", "0s")["garbage"] == []

    def test_for_people(self, full: Cli) -> None:
        said = full("maintain", "--retention", "0s").stderr
        assert "compacted /s: 10 files are 1 now" in said
        assert "could be deleted: pond maintain --vacuum" in said
        said = full("maintain", "--vacuum", "--retention", "7d").stderr
        assert "nothing was to be compacted" in said
        assert "is garbage" in said

    def test_without_compaction(self, full: Cli) -> None:
        assert full.json("maintain", "--no-compact")["compacted"] == []

    @pytest.mark.parametrize("text", ["soon", "-1d", "1y", ""])
    def test_lengths_of_time(self, full: Cli, text: str) -> None:
        assert "--retention" in full.fails("maintain", f"--retention={text}", code=2)


class TestFsck:
    def test_sound(self, full: Cli) -> None:
        found = full.json("fsck")
        assert found["sound"] is True
        assert found["findings"] == []
        assert (found["nodes"], found["last_txn_seq"]) == (3, 10)
        result = full("fsck")
        assert result.exit_code == 0
        assert result.stdout == f"content root  {found['root']}\n"
        assert "are sound" in result.stderr
        assert full.ok("fsck", "--root") == f"{found['root']}\n"

    def test_damage_is_named_and_is_exit_code_10(self, full: Cli, place: Path) -> None:
        digest = mp.open(place)["/big"].stat().blake3
        assert digest is not None
        blob = place / "blobs" / digest[:2] / digest
        blob.write_bytes(b"y" + blob.read_bytes()[1:])
        result = full("fsck")
        assert result.exit_code == 10
        assert "/big" in result.stdout
        assert "damaged" in result.stdout
        assert "restore" in result.stderr
        result = full("--json", "fsck")
        assert result.exit_code == 10
        assert '"sound": false' in result.stdout

    def test_a_pond_that_can_not_be_opened(self, full: Cli, place: Path) -> None:
        newest = max((place / "data" / "_delta_log").glob("*.json"))
        newest.write_bytes(b"{")
        full.fails("cat", "/f", code=10)
        result = full("fsck")
        assert result.exit_code == 10
        assert "_delta_log" in result.stdout

    def test_no_pond(self, cli: Cli, tmp_path: Path) -> None:
        assert cli("--pond", str(tmp_path / "nowhere"), "fsck").exit_code != 0

"""`log-ingest`: log files grow, are rotated, packed, truncated and replaced; nothing is doubled."""

from __future__ import annotations

import bz2
import gzip
import os
import random
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.steward.places import At, is_after_the_moment
from tests.steward.processes import die, run

import millpond as mp
from millpond.base.errors import (
    FactoryConfigError,
    PathExistsError,
    PondError,
    StoreError,
    WriteConflictError,
)
from millpond.fs.entry import EntryType
from millpond.provider.logs import files
from millpond.steward.committing import steps
from millpond.steward.running import run_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.steward.pond import Pond


@dataclass
class Logs:
    """A directory of log files, and a pond that collects them."""

    directory: Path
    pond: Pond
    clock: int = 1_700_000_000

    def write(self, name: str, data: bytes) -> Path:
        """A file with these bytes, newer than all before."""
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.touch(name)
        return file

    def append(self, data: bytes, name: str = "app.log") -> None:
        with (self.directory / name).open("ab") as file:
            file.write(data)
        self.touch(name)

    def touch(self, name: str) -> None:
        self.clock += 60
        os.utime(self.directory / name, (self.clock, self.clock))

    def rotate(self, *, keep: int = 9) -> None:
        """As logrotate does: each file is named by the next number."""
        (self.directory / f"app.log.{keep}").unlink(missing_ok=True)
        for number in range(keep - 1, 0, -1):
            file = self.directory / f"app.log.{number}"
            if file.exists():
                file.rename(self.directory / f"app.log.{number + 1}")
        (self.directory / "app.log").rename(self.directory / "app.log.1")

    def ingest(self) -> list[str]:
        """Run it; what it said, without the directory."""
        told = run_node(self.pond, "/ingest").told
        return [line.replace(f"{self.directory}/", "") for line in told]

    @property
    def content(self) -> bytes:
        return self.pond.read().read_bytes("/logs/app.log")


def configured(directory: Path, pond: Pond, **more: Any) -> Logs:
    config = {
        "active_pattern": f"{directory}/app.log",
        "archived_pattern": f"{directory}/app.log.*",
        "pond_path": "/logs",
        **more,
    }
    directory.mkdir(exist_ok=True)
    with pond.write() as tx:
        tx.make_factory("/ingest", "log-ingest", config)
        tx.commit()
    return Logs(directory, pond)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    yield configured(tmp_path / "log", mp.create(tmp_path / "pond"))
    steps.observe(None)


class TestGrowing:
    def test_only_what_is_new(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        assert logs.ingest() == ["/logs/app.log: 4 bytes of app.log (new)"]
        logs.append(b"two\n")
        assert logs.ingest() == ["/logs/app.log: 4 bytes of app.log (grown)"]
        assert logs.content == b"one\ntwo\n"
        assert logs.pond.read().read_bytes("/logs/app.log@v2") == b"two\n"
        assert logs.pond.read().stat("/logs/app.log").entry_type is EntryType.DATA_SERIES

    def test_twice_is_once(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        before = logs.pond.read().txn_seq
        assert logs.ingest() == []
        assert logs.pond.read().txn_seq == before

    def test_there_is_nothing(self, logs: Logs) -> None:
        assert logs.ingest() == []
        logs.write("app.log", b"")
        assert logs.ingest() == []
        assert not logs.pond.read().exists("/logs")

    def test_large_files(self, logs: Logs) -> None:
        data = random.Random(5).randbytes(3 * files.CHUNK_BYTES + 17)
        logs.write("app.log", data[: files.CHUNK_BYTES + 5])
        logs.ingest()
        logs.write("app.log", data)
        logs.ingest()
        assert logs.content == data

    def test_what_grows_while_it_is_read(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        logs.write("app.log", b"one\n")
        found = files.look

        def look(file: files.LogFile, *args: Any) -> files.Look:
            logs.append(b"more\n")
            return found(file, *args)

        monkeypatch.setattr("millpond.provider.logs.news.look", look)
        logs.ingest()
        monkeypatch.undo()
        assert logs.content == b"one\n"
        logs.ingest()
        assert logs.content == b"one\nmore\n"


class TestRotation:
    def test_the_rest_of_the_old_one_comes_first(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.append(b"two\n")
        logs.rotate()
        logs.write("app.log", b"three\n")
        assert logs.ingest() == [
            "/logs/app.log: 4 bytes of app.log.1 (rotated)",
            "/logs/app.log: 6 bytes of app.log (new)",
        ]
        assert logs.content == b"one\ntwo\nthree\n"
        assert len(logs.pond.read().versions("/logs/app.log")) == 2, "a run is a version"

    def test_nothing_was_left(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.rotate()
        assert logs.ingest() == []
        logs.write("app.log", b"two\n")
        assert logs.ingest() == ["/logs/app.log: 4 bytes of app.log (new)"]
        assert logs.content == b"one\ntwo\n"
        assert logs.ingest() == []

    def test_more_than_once_between_runs(self, logs: Logs) -> None:
        logs.write("app.log", b"1\n")
        logs.ingest()
        for number in range(2, 5):
            logs.rotate()
            logs.write("app.log", b"%d\n" % number)
        logs.ingest()
        assert logs.content == b"1\n2\n3\n4\n"

    def test_archived_ones_from_before(self, logs: Logs) -> None:
        for number in range(1, 12):
            logs.write("app.log", b"%d\n" % number)
            if number < 11:
                logs.rotate(keep=20)
        logs.ingest()
        assert logs.content == b"".join(b"%d\n" % number for number in range(1, 12))

    def test_written_to_after_it_was_rotated(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.rotate()
        logs.write("app.log", b"two\n")
        logs.ingest()
        logs.append(b"late\n", "app.log.1")
        assert logs.ingest() == ["/logs/app.log: 5 bytes of app.log.1 (grown)"]
        assert logs.content == b"one\ntwo\nlate\n"
        assert logs.ingest() == []

    def test_copied_and_truncated(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.append(b"two\n")
        logs.write("app.log.1", (logs.directory / "app.log").read_bytes())
        logs.append(b"three\n")
        logs.ingest()  # both are there for a moment
        assert logs.content == b"one\ntwo\nthree\n"
        logs.write("app.log.1", (logs.directory / "app.log").read_bytes())
        logs.write("app.log", b"four\n")
        assert logs.ingest() == ["/logs/app.log: 5 bytes of app.log (new)"]
        assert logs.content == b"one\ntwo\nthree\nfour\n"

    @pytest.mark.parametrize("packed", [gzip.compress, bz2.compress])
    def test_packed(self, logs: Logs, packed: Any) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.write("app.log.1.gz", packed(b"one\nmore\n"))
        logs.write("app.log", b"two\n")
        assert logs.ingest() == [
            "/logs/app.log: 5 bytes of app.log.1.gz (rotated)",
            "/logs/app.log: 4 bytes of app.log (new)",
        ]
        assert logs.content == b"one\nmore\ntwo\n"
        logs.write("app.log.2.gz", packed(b"one\nmore\n"))
        assert logs.ingest() == [], "the same under another name"

    def test_packed_too_short(self, logs: Logs) -> None:
        whole = gzip.compress(b"one\n" * 10_000)
        logs.write("app.log.1.gz", whole[:-9])
        logs.write("app.log", b"two\n")
        first, second = logs.ingest()
        assert first == "/logs/app.log: 4 bytes of app.log (new)"
        assert second.startswith("/logs/app.log: app.log.1.gz is left for the next time: ")
        logs.write("app.log.1.gz", whole)
        logs.ingest()
        assert logs.content == b"two\n" + b"one\n" * 10_000

    def test_packed_in_a_way_that_is_not_known(self, logs: Logs) -> None:
        logs.write("app.log.1.zst", b"\x28\xb5\x2f\xfd....")
        with pytest.raises(StoreError, match=r"app\.log\.1\.zst is packed by zstd"):
            logs.ingest()

    def test_archived_ones_are_read_once(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(4):
            logs.write("app.log", b"%d\n" % number)
            logs.rotate()
        logs.write("app.log", b"x\n")
        logs.ingest()
        read: list[str] = []
        found = files.look

        def look(file: files.LogFile, *args: Any) -> files.Look:
            read.append(Path(file.path).name)
            return found(file, *args)

        monkeypatch.setattr("millpond.provider.logs.news.look", look)
        logs.ingest()
        assert read == ["app.log"]
        logs.rotate()  # names change, files do not
        logs.write("app.log", b"y\n")
        logs.ingest()
        assert read == ["app.log", "app.log.1", "app.log"]


class TestReplaced:
    def test_another_file(self, logs: Logs) -> None:
        logs.write("app.log", b"one\ntwo\n")
        logs.ingest()
        logs.write("app.log", b"ONE\ntwo\nthree\n")
        assert logs.ingest() == ["/logs/app.log: 14 bytes of app.log (replaced)"]
        assert logs.content == b"one\ntwo\nONE\ntwo\nthree\n"
        logs.append(b"four\n")
        assert logs.ingest() == ["/logs/app.log: 5 bytes of app.log (grown)"]

    def test_truncated(self, logs: Logs) -> None:
        logs.write("app.log", b"one\ntwo\n")
        logs.ingest()
        logs.write("app.log", b"one\n")
        assert logs.ingest() == ["/logs/app.log: 4 bytes of app.log (replaced)"]
        assert logs.content == b"one\ntwo\none\n"

    def test_what_was_known_turns_up_again(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.write("app.log", b"two\n")
        logs.ingest()
        logs.write("app.log.1", b"one\nmore\n")
        assert logs.ingest() == ["/logs/app.log: 5 bytes of app.log.1 (grown)"]

    def test_archived_ones_that_were_gone_for_a_while(self, logs: Logs) -> None:
        logs.write("app.log.1", b"one\n")
        logs.write("app.log", b"two\n")
        logs.ingest()
        (logs.directory / "app.log.1").unlink()
        logs.append(b"three\n")
        logs.ingest()
        logs.write("app.log.7", b"one\n")
        assert logs.ingest() == []

    def test_a_beginning_that_many_files_have(self, logs: Logs) -> None:
        logs.write("app.log", b"# time level\n")
        logs.ingest()
        logs.append(b"1\n")
        logs.ingest()
        logs.rotate()
        logs.write("app.log", b"# time level\n2\n")
        logs.ingest()
        assert logs.content == b"# time level\n1\n# time level\n2\n"


class TestStreams:
    def test_many_active_files(self, tmp_path: Path) -> None:
        directory = tmp_path / "log"
        logs = configured(
            directory,
            mp.create(tmp_path / "pond"),
            active_pattern=f"{directory}/*/access.log",
            archived_pattern=f"{directory}/*/access.log.*",
        )
        logs.write("north/access.log.1", b"n1\n")
        logs.write("north/access.log", b"n2\n")
        logs.write("south/access.log", b"s\n")
        logs.write("west/access.log.1", b"w\n")
        logs.ingest()
        scope = logs.pond.read()
        assert scope.read_bytes("/logs/north/access.log") == b"n1\nn2\n"
        assert scope.read_bytes("/logs/south/access.log") == b"s\n"
        assert scope.read_bytes("/logs/west/access.log") == b"w\n"
        logs.write("west/access.log", b"x\n")
        logs.ingest()
        assert logs.pond.read().read_bytes("/logs/west/access.log") == b"w\nx\n"
        assert logs.pond.read().txn_seq == scope.txn_seq + 1

    def test_named_by_both_patterns(self, tmp_path: Path) -> None:
        archived = f"{tmp_path}/log/app.log*"
        logs = configured(tmp_path / "log", mp.create(tmp_path / "p"), archived_pattern=archived)
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.rotate()
        logs.write("app.log", b"two\n")
        assert logs.ingest() == ["/logs/app.log: 4 bytes of app.log (new)"]
        assert logs.content == b"one\ntwo\n"

    def test_no_archived_ones(self, tmp_path: Path) -> None:
        logs = configured(tmp_path / "log", mp.create(tmp_path / "p"), archived_pattern=None)
        logs.write("app.log", b"one\n")
        logs.ingest()
        assert logs.content == b"one\n"

    def test_variables(self, tmp_path: Path) -> None:
        pond = mp.create(tmp_path / "pond")
        logs = configured(tmp_path / "log", pond, pond_path="/{{ where }}")
        logs.write("app.log", b"one\n")
        with pytest.raises(FactoryConfigError, match="where"):
            logs.ingest()
        pond.variables = {"where": "collected"}
        logs.ingest()
        assert pond.read().read_bytes("/collected/app.log") == b"one\n"


class TestMistakes:
    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"active_pattern": "app.log"}, "active_pattern: 'app.log' does not begin with /"),
            ({"active_pattern": "/a/?.log"}, "active_pattern: use \\* alone"),
            ({"archived_pattern": "/a/[x"}, "archived_pattern: .* is not closed"),
            ({"pond_path": ""}, "pond_path: a path is not empty"),
            ({"path": "/logs"}, "path: there is no such member"),
        ],
    )
    def test_configurations(self, tmp_path: Path, config: dict[str, Any], message: str) -> None:
        with pytest.raises(FactoryConfigError, match=message):
            configured(tmp_path / "log", mp.create(tmp_path / "pond"), **config)

    def test_something_else_is_there(self, logs: Logs) -> None:
        with logs.pond.write() as tx:
            tx.make_directory("/logs")
            tx.write_bytes("/logs/app.log", b"mine\n", series=True)
            tx.commit()
        logs.write("app.log", b"one\n")
        with pytest.raises(PathExistsError, match=r"/logs/app\.log was not made by log-ingest"):
            logs.ingest()

    def test_whose_archived_file_is_it(self, tmp_path: Path) -> None:
        directory = tmp_path / "log"
        logs = configured(
            directory, mp.create(tmp_path / "pond"), active_pattern=f"{directory}/*/*.log"
        )
        logs.write("app.log.1", b"one\n")
        with pytest.raises(FactoryConfigError, match="can't be told from which active file"):
            logs.ingest()

    def test_changed_while_it_is_read(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        logs.write("app.log", b"one\n")
        found = files.look

        def look(file: files.LogFile, *args: Any) -> files.Look:
            seen = found(file, *args)
            (logs.directory / "app.log").write_bytes(b"two\n")
            return seen

        monkeypatch.setattr("millpond.provider.logs.news.look", look)
        with pytest.raises(PondError, match="changed while it was read"):
            logs.ingest()
        monkeypatch.undo()
        assert not logs.pond.read().exists("/logs/app.log")
        logs.ingest()
        assert logs.content == b"two\n"

    def test_two_at_the_same_time(self, logs: Logs) -> None:
        logs.write("app.log", b"one\n")
        logs.ingest()
        logs.append(b"two\n")
        other = mp.open(logs.pond.location)

        def overtake(place: str) -> None:
            if place == "before:oplog":
                steps.observe(None)
                run_node(other, "/ingest")

        steps.observe(overtake)
        with pytest.raises(WriteConflictError, match=r"has written /logs/app\.log meanwhile"):
            logs.ingest()
        assert logs.content == b"one\ntwo\n"
        assert logs.ingest() == []


def killed_at(location: str, place: str) -> None:
    pond = mp.open(location)
    steps.observe(At(place, 1, die))
    run_node(pond, "/ingest")


@pytest.mark.parametrize(
    "where", [f"{side}:{name}" for name in steps.STEPS for side in ("before", "after")]
)
def test_killed(logs: Logs, where: str) -> None:
    logs.write("app.log", b"one\n")
    logs.ingest()
    logs.append(b"two\n")
    logs.rotate()
    logs.write("app.log", b"three\n")
    assert run(killed_at, logs.pond.location, where) == -signal.SIGKILL
    pond = mp.open(logs.pond.location)
    stands = is_after_the_moment(where)
    expected = b"one\ntwo\nthree\n"
    assert pond.read().read_bytes("/logs/app.log") == (expected if stands else b"one\n")
    logs.pond = pond
    assert len(logs.ingest()) == (0 if stands else 2)
    assert logs.content == expected


ACTIONS = st.lists(
    st.sampled_from(["append", "append", "rotate", "pack", "ingest", "ingest"]), max_size=14
)


@settings(max_examples=25, deadline=None)
@given(actions=ACTIONS)
def test_any_history(actions: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """However files grow, are rotated and packed: each line is there once, and in its order."""
    place = tmp_path_factory.mktemp("history")
    logs = configured(place / "log", mp.create(place / "pond"))
    lines = 0
    logs.write("app.log", b"")
    for action in actions:
        if action == "append":
            lines += 1
            logs.append(b"line %d\n" % lines)
        elif action == "rotate":
            logs.rotate(keep=50)
            logs.write("app.log", b"")
        elif action == "pack":
            for file in sorted(logs.directory.glob("app.log.[2-9]")):
                packed = file.with_name(f"{file.name}.gz")
                packed.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
                os.utime(packed, (file.stat().st_mtime, file.stat().st_mtime))
                file.unlink()
        else:
            logs.ingest()
    logs.ingest()
    expected = b"".join(b"line %d\n" % number for number in range(1, lines + 1))
    found = logs.content if logs.pond.read().exists("/logs/app.log") else b""
    assert found == expected
    assert logs.ingest() == []

"""The local store: its promises, real processes that race, and processes that are killed."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millpond.base.errors import ObjectNotFoundError, StoreAccessError, StoreError
from millpond.base.store import TEMP_PREFIX, Store, open_store
from millpond.base.store.local import LocalStore
from millpond.base.store.local_io import translated
from millpond.testing.store import StoreConformance, StoreStateMachine

RACERS = 16
TOMORROW = datetime.now(UTC) + timedelta(days=1)


class TestLocalStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "pond")

    def test_no_temporary_file_stays(self, tmp_path: Path, filled: Store) -> None:
        files = {p.name for p in (tmp_path / "pond").rglob("*") if p.is_file()}
        assert files == {name.rpartition("/")[2] for name in self.NAMES}


class TestHastyLocalStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "pond", durable=False)


class LocalMachine(StoreStateMachine):
    def make_store(self) -> Store:
        self.directory = tempfile.TemporaryDirectory()
        return LocalStore(self.directory.name)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.directory.cleanup()


TestLocalMachine = LocalMachine.TestCase


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


RACER = """
import sys
from millpond.base.errors import ObjectExistsError
from millpond.base.store.local import LocalStore
store, racer = LocalStore(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
won = []
for name in range(20):
    try:
        store.put(f"log/{name}", [racer.encode()] * 500)
        won.append(str(name))
    except ObjectExistsError:
        pass
print(" ".join(won), flush=True)
"""


def test_a_name_that_no_directory_can_have(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="File name too long"):
        LocalStore(tmp_path / ("n" * 300))


def test_racing_processes_have_one_winner_for_each_name(tmp_path: Path) -> None:
    racers = [start(RACER, str(tmp_path), f"racer-{number};") for number in range(RACERS)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    winners: dict[str, str] = {}
    for number, racer in enumerate(racers):
        output, _ = racer.communicate()
        assert racer.returncode == 0
        for name in output.split():
            assert name not in winners
            winners[name] = f"racer-{number};"
    assert sorted(winners, key=int) == [str(name) for name in range(20)]
    store = LocalStore(tmp_path)
    for name, winner in winners.items():
        assert store.get(f"log/{name}") == winner.encode() * 500
    assert len(list(store.list())) == 20


WRITER = """
import sys
from millpond.base.store.local import LocalStore
store = LocalStore(sys.argv[1])
for number in range(10**6):
    store.put(f"made/{number:06}", [b"%06d\\n" % number] * 20_000)
    store.put("replaced", [b"%06d\\n" % number] * 20_000, mode="overwrite")
    print(number, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 7, 20])
def test_kill_in_the_middle_of_many_puts(tmp_path: Path, acknowledged: int) -> None:
    writer = start(WRITER, str(tmp_path))
    assert writer.stdout is not None
    for _ in range(acknowledged):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    done = acknowledged + rest.count("\n")

    store = LocalStore(tmp_path)
    made = [meta.path for meta in store.list("made/")]
    assert made == [f"made/{number:06}" for number in range(len(made))]
    assert done <= len(made) <= done + 1
    for path in made:
        assert store.get(path) == (path[-6:] + "\n").encode() * 20_000
    lines = Counter(store.get("replaced").splitlines())
    assert list(lines.values()) == [20_000]
    store.sweep(before=TOMORROW)
    assert leftovers(tmp_path) == []
    assert [meta.path for meta in store.list("made/")] == made


HALF = """
import sys
from millpond.base.store.local import LocalStore
def chunks():
    yield b"x" * 10_000_000
    print("half", flush=True)
    sys.stdin.readline()
LocalStore(sys.argv[1]).put("d/a", chunks(), mode=sys.argv[2])
"""


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_kill_within_a_put_leaves_nothing_visible(tmp_path: Path, mode: str) -> None:
    store = LocalStore(tmp_path)
    if mode == "overwrite":
        store.put("d/a", b"before")
    before = list(store.list())
    writer = start(HALF, str(tmp_path), mode)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "half\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()

    assert len(leftovers(tmp_path)) == 1
    assert list(store.list()) == before
    assert store.sweep(before=datetime(2000, 1, 1, tzinfo=UTC)) == 0
    assert store.sweep(before=TOMORROW) == 1
    assert leftovers(tmp_path) == []
    assert list(store.list()) == before
    store.put("d/b", b"goes on")


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(f"{TEMP_PREFIX}*"))


def test_every_name_is_synced_after_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def sync(descriptor: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name[:12])
        real_sync(descriptor)

    def link(source: Path, target: Path) -> None:
        steps.append("link")
        real_link(source, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("the names of open files are asked from /proc")
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    store = LocalStore(tmp_path / "pond")
    store.put("d/e/a", b"1")
    temp = f"sync {TEMP_PREFIX[:12]}"
    parents = [f"sync {tmp_path.name[:12]}", "sync pond", "sync d"]
    assert steps == [*parents, temp, "link", "sync e"]
    steps.clear()
    store.put("d/e/b", b"2")
    assert steps == [temp, "link", "sync e"]


def test_a_store_that_is_not_durable_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, durable=False)
    store.put("d/a", b"1")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store.put("d/b", b"2")
    store.put("d/a", b"3", mode="overwrite")
    store.delete("d/b")
    assert not synced
    assert not store.capabilities.is_durable
    open_store(tmp_path).put("d/c", b"4")
    assert synced


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_no_hard_links_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def no_link(source: Path, target: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_link)
    store = LocalStore(tmp_path)
    with pytest.raises(StoreError, match="has no hard links"):
        store.put("a", b"1")
    assert list(tmp_path.iterdir()) == []
    store.put("a", b"2", mode="overwrite")


def test_a_link_whose_answer_was_lost_has_won(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_link = os.link

    def link_twice(source: Path, target: Path) -> None:
        real_link(source, target)
        real_link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    store = LocalStore(tmp_path)
    store.put("a", b"1")
    assert store.get("a") == b"1"


def test_a_write_that_the_system_cuts_short_is_a_store_error(tmp_path: Path) -> None:
    """What is left in the buffer fails once more when the file is closed."""
    store = LocalStore(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError, match="File too large"):
            store.put("a", b"1" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = LocalStore(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="free some space"):
        store.put("a", b"1")
    assert list(tmp_path.iterdir()) == []


def test_no_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, mode: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    store = LocalStore(tmp_path)
    store.put("a", b"1")
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(StoreAccessError, match="Permission denied"):
        store.get("a")


def test_an_object_is_no_directory_and_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"1")
    for mode in ("create", "overwrite"):
        with pytest.raises(StoreError, match="is a directory"):
            store.put("a", b"2", mode=mode)
        with pytest.raises(StoreError, match="is an object"):
            store.put("a/b/c", b"3", mode=mode)
    with pytest.raises(ObjectNotFoundError):
        store.head("a")
    assert [meta.path for meta in store.list()] == ["a/b"]


def test_a_directory_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b/c", b"1")
    store.delete("a/b/c")
    (tmp_path / "a/b").rmdir()
    (tmp_path / "a").rmdir()
    store.put("a/b/c", b"2")
    assert store.get("a/b/c") == b"2"


def test_a_directory_above_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b/c", b"1")
    shutil.rmtree(tmp_path / "a")
    store.put("a/d/e", b"2")
    assert store.get("a/d/e") == b"2"


def test_files_that_no_put_could_make_are_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a", b"1")
    (tmp_path / "line\nbreak").touch()
    (tmp_path / os.fsdecode(b"latin-\xe9")).touch()
    (tmp_path / "empty-directory").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert [meta.path for meta in store.list()] == ["a"]


def test_listing_opens_only_directories_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    for name in ("a/x/1", "b/x/1", "b/y/1", "c/x/1"):
        store.put(name, b"")
    opened: list[str] = []
    real = os.scandir

    def scandir(directory: str | Path) -> object:
        opened.append(os.path.relpath(directory, tmp_path))
        return real(directory)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [meta.path for meta in store.list("b/", start_after="b/x/1")] == ["b/y/1"]
    assert opened == ["b", "b/x", "b/y"]


def test_a_file_can_not_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is not a directory"):
        LocalStore(tmp_path / "file")


def test_url_finds_the_store_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a b%20#ü")
    store.put("x", b"1")
    assert open_store(store.url).get("x") == b"1"


def test_a_file_system_for_reading_alone_is_no_access(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreAccessError, match="Read-only file system") as caught,
        translated("a/b", root=tmp_path),
    ):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    assert caught.value.hint == "it is mounted for reading alone"


def test_sweep_removes_empty_directories_that_are_old(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    for path in ("a/b/c", "a/kept", "young/x"):
        store.put(path, b"1")
    store.delete("a/b/c")
    store.delete("young/x")
    for directory in ("a/b", "a"):
        os.utime(tmp_path / "store" / directory, (0, 0))
    store.sweep(before=datetime.now(UTC))
    assert sorted(p.name for p in (tmp_path / "store").rglob("*")) == ["a", "kept", "young"]
    store.put("a/b/c", b"2")  # what the store knows of its directories is looked at again
    assert store.get("a/b/c") == b"2"

"""The index: the same tree as the OpLog's, or none at all, whatever happens to its files."""

from __future__ import annotations

import json
import random
import shutil
import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import millpond as mp
from millpond.base.errors import MillpondError
from millpond.fs.entry import ROOT, EntryType, Row
from millpond.fs.oplog.persistence import state_of
from millpond.steward.index import runs
from millpond.steward.index import writing as indexing
from millpond.steward.index.tree import Index, IndexTree
from millpond.steward.index.writing import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

SEEDS = range(3)


def index_of(pond: Pond) -> Index:
    assert pond.index is not None
    return pond.index


def opened(pond: Pond) -> IndexTree | None:
    def slow() -> Tree:
        raise AssertionError("the OpLog was asked")

    return index_of(pond).open(slow)


def expected(tree: Tree) -> dict[str, dict[str, Row]]:
    """All directories of the OpLog, also those that can't be reached; links with their targets."""

    def full(row: Row) -> Row:
        is_link = row.entry_type is EntryType.SYMLINK
        return replace(row, content=tree.content(row)) if is_link else row

    parts = state_of(tree).files
    return {part: {k: full(v) for k, v in tree.children(part).items()} for part in parts}


def same(pond: Pond) -> None:
    """The index is there and is the tree of the OpLog."""
    found, tree = opened(pond), pond.oplog.latest()
    assert found is not None
    assert (found.version, found.txn_seq) == (tree.version, tree.txn_seq)
    wanted = expected(tree)
    assert {part: dict(found.children(part)) for part in wanted} == wanted
    for part in wanted:
        assert list(found.children(part)) == list(wanted[part])


def write(pond: Pond, path: str) -> None:
    with pond.write("write") as tx:
        tx.write_bytes(path, path.encode())
        tx.commit()


def maintain(pond: Pond) -> None:
    """A commit that keeps the rows, as compaction does."""
    state = state_of(pond.oplog.latest())
    said = {"txn_id": str(uuid.uuid4()), "operation": "OPTIMIZE", "data_change": False}
    assert pond.oplog.log.commit(state, [], {}, **said) is not None  # type: ignore[arg-type]


class Deeds:
    """Random changes of a tree."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self) -> str:
        """A path that is there, or nearly."""
        names = [f"/{self.random.choice('abcde')}" for _ in range(self.random.randint(1, 3))]
        return "".join(names)

    def do(self, tx: WriteScope) -> None:
        """One change; what can't be done is not done."""
        path, other = self.some(), self.some()
        deeds: list[Callable[[], object]] = [
            *[lambda: tx.make_directory(path, parents=True)] * 4,
            lambda: tx.write_bytes(path, other.encode()),
            lambda: tx.write_bytes(path, b"x" * 70_000),
            lambda: tx.write_bytes(path, b"more", series=True),
            lambda: tx.move(path, other),
            lambda: tx.remove(path, recursive=True),
            lambda: tx.restore(path),
            lambda: tx.restore(f"{path}@v1"),
            lambda: tx.make_link(path, other),
        ]
        try:
            self.random.choice(deeds)()
        except MillpondError:
            return

    def transaction(self, pond: Pond) -> None:
        with pond.write("random") as tx:
            for _ in range(self.random.randint(2, 12)):
                self.do(tx)
            tx.commit()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_histories(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "JOIN_EVERY", 4)
    pond, deeds = mp.create(tmp_path / "pond"), Deeds(seed)
    other = mp.open(tmp_path / "pond")
    for number in range(24):
        deeds.transaction(deeds.random.choice((pond, other)))
        if deeds.random.random() < 0.15:
            maintain(pond)
        if deeds.random.random() < 0.1:
            assert rebuild(index_of(pond), pond.oplog.latest())
        if number % 4 == 0:
            same(pond)
    same(pond)
    assert pond.oplog.latest().txn_seq > 8  # not all deeds can be done


def test_runs_stay_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "JOIN_EVERY", 4)
    pond = mp.create(tmp_path / "pond")
    most = 0
    for number in range(40):
        write(pond, f"/f{number}")
        most = max(most, len(runs.list_runs(index_of(pond).directory)))
    assert most <= 4 + 5  # those that wait, and one for each doubling
    same(pond)


def test_an_empty_pond_needs_no_files(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    found = opened(pond)
    assert found is not None
    assert (found.version, found.txn_seq, dict(found.children(ROOT))) == (0, 0, {})


def test_what_the_index_does_not_know_makes_it_useless(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    silent = mp.open(tmp_path / "pond")
    silent.oplog.on_commit = None
    write(silent, "/b")
    assert opened(pond) is None
    write(pond, "/c")
    assert opened(pond) is None
    assert rebuild(index_of(pond), pond.oplog.latest())
    same(pond)
    write(pond, "/d")
    same(pond)


def test_it_can_be_deleted(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    shutil.rmtree(tmp_path / "pond" / "cache")
    assert opened(pond) is None
    write(pond, "/b")
    assert rebuild(index_of(pond), pond.oplog.latest())
    same(pond)


def test_damage_is_never_believed(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    for name in ("/a", "/b"):
        write(pond, name)
    for file in runs.list_runs(index_of(pond).directory):
        good = file.path.read_bytes()
        for place in range(0, len(good), 7):
            file.path.write_bytes(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
            assert opened(pond) is None, place
        for length in (0, 5, 12, len(good) // 2, len(good) - 1):
            file.path.write_bytes(good[:length])
            assert opened(pond) is None, length
        file.path.write_bytes(good + b"more")
        assert opened(pond) is None
        file.path.write_bytes(good)
    same(pond)


def test_other_things_in_its_directory_do_not_matter(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    directory = index_of(pond).directory
    (directory / "notes.txt").write_text("mine")
    (directory / f".{0:020d}-{1:020d}.run.17.abc").write_text("half a run")
    (directory / f"{0:020d}-{7:020d}.run").mkdir()
    assert opened(pond) is None  # it looks like a run, and is none
    (directory / f"{0:020d}-{7:020d}.run").rmdir()
    same(pond)


def test_rows_of_another_shape_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    monkeypatch.setattr(runs, "_SHAPE", 7)
    assert opened(pond) is None


def test_a_log_that_was_put_back(tmp_path: Path) -> None:
    """The index has seen a future that is not the one of the log."""
    place = tmp_path / "pond"
    pond = mp.create(place)
    write(pond, "/kept")
    shutil.copytree(place / "data", tmp_path / "saved")
    for number in range(4):
        write(pond, f"/lost{number}")
    shutil.rmtree(place / "data")
    shutil.copytree(tmp_path / "saved", place / "data")
    again = mp.open(place)
    assert opened(again) is None
    assert list(again.read().children("/")) == ["kept"]
    again.oplog.on_commit = None  # the old run of this version stays where it is
    write(again, "/new0")
    again = mp.open(place)
    write(again, "/new1")
    write(again, "/new2")
    assert opened(again) is None
    assert rebuild(index_of(again), again.oplog.latest())
    same(again)


def test_runs_of_a_lost_future_go_when_the_index_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "JOIN_EVERY", 1)
    place = tmp_path / "pond"
    pond = mp.create(place)
    for name in ("/kept0", "/kept1"):
        write(pond, name)
    assert rebuild(index_of(pond), pond.oplog.latest())
    shutil.copytree(place / "data", tmp_path / "saved")
    shutil.copytree(place / "cache", tmp_path / "cache")
    for number in range(4):
        write(pond, f"/lost{number}")
    shutil.rmtree(place / "data")
    shutil.copytree(tmp_path / "saved", place / "data")
    shutil.copytree(tmp_path / "cache", place / "cache", dirs_exist_ok=True)
    again = mp.open(place)
    assert rebuild(index_of(again), again.oplog.latest())
    same(again)
    for number in range(4):
        write(again, f"/new{number}")
        same(again)


def test_what_was_removed_with_its_directory_is_there_when_that_is_restored(
    tmp_path: Path,
) -> None:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.make_directory("/a/b", parents=True)
        tx.write_bytes("/a/b/f", b"1")
        tx.commit()
    with pond.write() as tx:
        tx.remove("/a", recursive=True)
        tx.commit()
    assert rebuild(index_of(pond), pond.oplog.latest())
    with pond.write() as tx:
        tx.restore("/a")
        tx.commit()
    same(pond)
    found = opened(pond)
    assert found is not None
    above = found.child(ROOT, "a")
    assert above is not None
    assert list(found.children(above.node_id)) == ["b"]


def test_a_commit_without_an_id_can_not_be_confirmed(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    actions = [{"commitInfo": {"operation": "OPTIMIZE", "timestamp": 0}}]
    text = "\n".join(json.dumps(action) for action in actions)
    (tmp_path / "pond" / "data" / "_delta_log" / f"{2:020d}.json").write_text(text)
    again = mp.open(tmp_path / "pond")
    assert again.oplog.latest().version == 2
    assert opened(again) is None
    assert not rebuild(index_of(again), again.oplog.latest())
    write(again, "/b")
    assert opened(again) is None
    assert rebuild(index_of(again), again.oplog.latest())
    same(again)


def test_where_it_can_not_be_written_ponds_work_without(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    (tmp_path / "pond" / "cache").write_text("a file is in the way")
    write(pond, "/a")
    assert opened(pond) is None
    assert not rebuild(index_of(pond), pond.oplog.latest())
    assert list(pond.read().children("/")) == ["a"]


def test_an_object_store_has_none() -> None:
    assert Index.at("s3://bucket/pond") is None


def test_old_rows_and_contents_come_from_the_oplog(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    write(pond, "/a")
    write(pond, "/a")
    tree = index_of(pond).open(lambda: pond.read().tree)
    assert tree is not None
    row = tree.child(ROOT, "a")
    assert row is not None
    assert [each.version for each in tree.history(ROOT, row.node_id)] == [1, 2]
    assert tree.content(row) == b"/a"
    assert tree.latest(ROOT, row.node_id) == row


def test_readers_see_whole_transactions_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "JOIN_EVERY", 2)
    place = tmp_path / "pond"
    mp.create(place)

    def work(name: str) -> None:
        pond = mp.open(place)
        for number in range(8):
            with pond.write() as tx:
                tx.write_bytes(f"/{name}{number}-x", b"1")
                tx.write_bytes(f"/{name}{number}-y", b"1")
                tx.commit()

    writers = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    reader = mp.open(place)
    seen = 0
    # Writers may be quicker than the first index: then it is looked at when they are done.
    while not seen or any(writer.is_alive() for writer in writers):
        found = opened(reader)
        if found is None:
            rebuild(index_of(reader), reader.oplog.latest())
            continue
        names = set(found.children(ROOT))
        assert len(names) == 2 * found.txn_seq
        assert {name[:-1] for name in names if name.endswith("x")} == {
            name[:-1] for name in names if name.endswith("y")
        }
        seen += 1
    assert len(mp.open(place).read().children("/")) == 48

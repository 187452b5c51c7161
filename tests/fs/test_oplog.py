"""The OpLog: what is read and written for what is asked, by counting; and what others see of it."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fs.ponds import apply, fill, rows_of, stored

from millpond.base.clock import ManualClock
from millpond.base.errors import (
    CommitError,
    IntegrityError,
    PondError,
    PondNotFoundError,
    StoreError,
)
from millpond.base.ids import NodeId, TxnId
from millpond.base.store.local import LocalStore
from millpond.base.store.memory import MemoryStore
from millpond.fs import edit
from millpond.fs.entry import ROOT, EntryType, Row, to_micros
from millpond.fs.oplog.columns import column
from millpond.fs.oplog.log import INFO, NewFile
from millpond.fs.oplog.persistence import OpLog, state_of
from millpond.fs.oplog.rowfile import WHOLE_BYTES, RowFile
from millpond.fs.oplog.rows import GROUP_BYTES, PARTITION, write_parquet
from millpond.fs.persistence import Commit
from millpond.fs.resolve import resolve
from millpond.fs.walk import walk
from millpond.fs.working import Working
from millpond.kernel.write.clean import clean_log
from millpond.testing.fs import commit, names, new_row

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.base.store import Store
    from millpond.fs.tree import Tree

START = datetime(2024, 2, 29, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def oplog(clock: ManualClock) -> OpLog:
    """An OpLog in a store in memory."""
    return OpLog.create(f"memory://{uuid.uuid4()}", {}, clock=clock)


@pytest.fixture
def on_disk(tmp_path: Path, clock: ManualClock) -> OpLog:
    return OpLog.create(str(tmp_path / "pond"), {}, clock=clock)


def again(oplog: OpLog) -> OpLog:
    """The same as another process would open it."""
    return OpLog(oplog.location, clock=oplog._clock)


def directory(name: str, part_id: str = ROOT) -> Row:
    return replace(new_row(name, part_id), entry_type=EntryType.DIRECTORY)


def files(tree: Tree, part_id: str) -> int:
    return len(state_of(tree).files[part_id])


def records(oplog: OpLog, version: int) -> dict[str, list[int]]:
    """How many rows each file has that a commit added, by partition."""
    found: dict[str, list[int]] = {}
    text = oplog.log.store.get(f"_delta_log/{version:020}.json").decode()
    for line in text.splitlines():
        add = json.loads(line).get("add")
        if add is not None:
            rows = json.loads(add["stats"])["numRecords"]
            found.setdefault(add["partitionValues"][PARTITION], []).append(rows)
    return found


# What is read


def test_a_directory_is_read_from_the_files_of_its_partition(oplog: OpLog) -> None:
    apply(oplog, lambda w: fill(w, {"/a": None, "/b": None, "/c": None}))
    for number in range(5):
        apply(oplog, partial(fill, content={f"/a/{number}": b""}))
        apply(oplog, partial(fill, content={f"/b/{number}": b"", f"/b/{number}x": b""}))
    reader = again(oplog)
    tree = reader.latest()
    assert reader.files_read == 0, "opening reads the log alone"
    a = resolve(tree, "/a").node_id
    assert (reader.files_read, files(tree, ROOT)) == (1, 1)
    assert len(tree.children(a)) == 5
    assert (reader.files_read, files(tree, a)) == (6, 5)
    assert tree.child(a, "3") is not None
    assert len(list(walk(tree, "/a"))) == 5
    assert reader.files_read == 6, "what was read is kept"
    assert len(list(walk(tree))) == 3 + 5 + 10
    assert reader.files_read == 11


def test_a_lookup_does_not_depend_on_the_size_of_the_pond(oplog: OpLog) -> None:
    others = [directory(f"other-{number}") for number in range(500)]
    inside = [new_row("x", row.node_id) for row in others]
    commit(oplog, *others, *inside)
    deep = "/" + "/".join(f"d{n}" for n in range(9)) + "/file"
    apply(oplog, lambda w: fill(w, {deep: b"found"}))
    for number in range(3):  # some more files where the path leads, and elsewhere
        path = "/d0/d1" + f"/extra-{number}"
        apply(oplog, partial(fill, content={path: b"", f"/other-{number}/y": b""}))
    reader = again(oplog)
    tree = reader.latest()
    found = resolve(tree, deep)
    assert found.row is not None
    on_the_way = [ROOT, *(row.node_id for row in found.parents)]
    assert len(on_the_way) == 10
    assert reader.files_read == sum(files(tree, part) for part in on_the_way)
    assert reader.files_read == 2 + 9 + 3  # the root has two, /d0/d1 three more
    assert sum(map(len, state_of(tree).files.values())) > 500
    before = reader.files_read
    assert tree.content(found.row) == b"found"
    assert reader.files_read == before + 1


def test_a_newer_tree_reads_only_what_is_new(oplog: OpLog) -> None:
    apply(oplog, lambda w: fill(w, {"/a/x": b"", "/b/x": b"", "/c/x": b""}))
    reader = again(oplog)
    tree = reader.latest()
    for path in ("/a/x", "/b/x"):
        resolve(tree, path)
    assert reader.files_read == 3
    apply(oplog, lambda w: fill(w, {"/a/y": b"", "/c/y": b""}))
    newer = reader.refresh(tree)
    resolve(newer, "/a/y")
    resolve(newer, "/b/x")
    assert reader.files_read == 4, "one file of /a is new; /c was never looked into"
    resolve(newer, "/c/y")
    assert reader.files_read == 6


def test_who_writes_does_not_read_it_again(oplog: OpLog) -> None:
    tree = apply(oplog, lambda w: fill(w, {"/a/x": b"1"}))
    before = again(oplog)
    resolve(tree, "/a/x")
    read = oplog.files_read
    work = Working(tree)
    fill(work, {"/a/y": b"2", "/a/z": b"3"})
    newer = commit(oplog, *rows_of(work), base=tree)
    assert [found.path for found in walk(newer)] == ["/a", "/a/x", "/a/y", "/a/z"]
    assert oplog.files_read == read
    assert [f.row for f in walk(newer)] == [f.row for f in walk(before.latest())]


def test_one_content_of_many_is_decoded_alone(oplog: OpLog) -> None:
    each = GROUP_BYTES // 4
    contents = {f"{n:02}": bytes([n]) * each for n in range(16)}
    commit(oplog, *(new_row(name, content=data) for name, data in contents.items()))
    reader = again(oplog)
    tree = reader.latest()
    (path,) = state_of(tree).files[ROOT]
    assert reader.open_file(path)._file.num_row_groups == 4
    rows = tree.children(ROOT)
    before = reader.files_read
    for name, row in rows.items():
        assert tree.content(row) == contents[name]
    assert reader.files_read == before + 1, "the file stays open while its contents are asked for"


class CountingStore:
    """Counts the bytes that are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read = 0
        self.requests = 0

    def get_range(self, path: str, start: int, length: int) -> bytes:
        found = self._store.get_range(path, start, length)
        self.read += len(found)
        self.requests += 1
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_listing_reads_no_contents_of_large_files(oplog: OpLog) -> None:
    noise = random.Random(1)
    rows = [new_row(f"{n:03}", content=noise.randbytes(60_000)) for n in range(300)]
    commit(oplog, *rows)
    reader = again(oplog)
    tree = reader.latest()
    counting = CountingStore(reader.log.store)
    reader.log.store = counting
    assert len(tree.children(ROOT)) == 300
    assert counting.read < WHOLE_BYTES + (1 << 20), "18 MB of contents are not read"
    counting.read = 0
    row = tree.child(ROOT, "123")
    assert row is not None
    assert tree.content(row) == rows[123].content
    assert counting.read < WHOLE_BYTES + 2 * GROUP_BYTES


def test_a_small_file_is_one_request(oplog: OpLog) -> None:
    commit(oplog, *(new_row(str(n), content=b"x") for n in range(50)))
    reader = again(oplog)
    tree = reader.latest()
    counting = CountingStore(reader.log.store)
    reader.log.store = counting
    assert len(tree.children(ROOT)) == 50
    assert counting.requests == 1


# What is written


@pytest.mark.parametrize(("target", "rows"), [("/renamed", 1), ("/other/moved", 2)])
def test_a_large_directory_is_renamed_and_moved_by_one_or_two_rows(
    oplog: OpLog, target: str, rows: int
) -> None:
    large, other = directory("large"), directory("other")
    inside = [new_row(f"{number:05}", large.node_id) for number in range(10_000)]
    commit(oplog, large, other, *inside)
    writer = again(oplog)
    work = Working(writer.latest())
    edit.move(work, "/large", target)
    assert large.node_id not in work.base.known(), "nobody looks into it"
    tree = commit(writer, *rows_of(work), base=work.base)
    written = records(writer, tree.version)
    assert sum(sum(counts) for counts in written.values()) == rows
    assert len(written) == rows
    found = resolve(again(oplog).latest(), f"{target}/09999")
    assert found.node_id == inside[-1].node_id


def test_rows_of_a_directory_are_one_file(oplog: OpLog) -> None:
    tree = apply(oplog, lambda w: fill(w, {f"/{d}/{n}": b"" for d in "abc" for n in range(50)}))
    assert sorted(records(oplog, tree.version).values()) == [[3], [50], [50], [50]]


def test_a_commit_says_what_it_is(oplog: OpLog) -> None:
    said = {"message": "hello", "txn_seq": 99, "timestamp": 1, "txn_id": "x"}
    tree = oplog.commit(oplog.latest(), [new_row("a")], Commit("my-id", said))
    assert tree is not None
    line = oplog.log.store.get("_delta_log/00000000000000000001.json").decode().splitlines()[0]
    info = json.loads(line)["commitInfo"]
    assert (info["txnId"], info["readVersion"], info["operation"]) == ("my-id", 0, "WRITE")
    assert info[INFO] == {
        "message": "hello", "txn_seq": 1, "timestamp": to_micros(START) + 1, "txn_id": "my-id",
    }  # fmt: skip
    assert state_of(tree).last == state_of(again(oplog).latest()).last == info[INFO]


def test_who_loses_takes_files_back(oplog: OpLog) -> None:
    base = oplog.latest()
    commit(oplog, new_row("a"))
    before = [meta.path for meta in oplog.log.store.list()]
    assert (
        oplog.commit(
            base, [new_row("b"), new_row("c", str(NodeId.new()))], Commit(str(TxnId.new()))
        )
        is None
    )
    assert [meta.path for meta in oplog.log.store.list()] == before


class FailingStore(LocalStore):
    """Can't put one kind of file."""

    fails = ""

    def put(self, path: str, data: Any, **how: Any) -> Any:
        if self.fails and self.fails in path:
            raise StoreError("the disk is full", path=path)
        return super().put(path, data, **how)


@pytest.mark.parametrize("fails", [".parquet", ".json"])
def test_a_commit_that_fails_leaves_nothing(on_disk: OpLog, fails: str) -> None:
    commit(on_disk, new_row("a"))
    store = FailingStore(f"{on_disk.location}/data")
    on_disk.log.store = store
    before = [meta.path for meta in store.list()]
    store.fails = fails
    with pytest.raises(StoreError, match="the disk is full"):
        on_disk.commit(on_disk.latest(), [new_row("b")], Commit(str(TxnId.new())))
    assert [meta.path for meta in store.list()] == before
    store.fails = ""
    assert names(commit(on_disk, new_row("c"))) == ["a", "c"]


# The past


def test_the_past_can_be_had_when_its_commits_have_left_the_log(
    oplog: OpLog, clock: ManualClock
) -> None:
    times = [to_micros(START)]
    for number in range(12):
        clock.advance(SECOND)
        commit(oplog, new_row(f"{number:02}", content=str(number).encode()))
        times.append(to_micros(clock.now()))
    assert oplog.log.look_after(12, every=6)
    removed = clean_log(oplog.log.table(), before=datetime.now(UTC) + timedelta(days=1))
    assert len([path for path in removed.paths if path.endswith(".json")]) == 12
    for number in (12, 13):
        clock.advance(SECOND)
        commit(oplog, new_row(f"{number:02}", content=str(number).encode()))
        times.append(to_micros(clock.now()))
    reader = again(oplog)
    for seq in range(1, len(times)):
        for tree in (reader.as_of(txn_seq=seq), reader.as_of(micros=times[seq])):
            assert tree.txn_seq == seq
            assert names(tree) == [f"{n:02}" for n in range(seq)]
    assert reader.as_of(micros=times[1] - 1).txn_seq == 0


def test_the_last_transaction_is_known_without_its_commit(oplog: OpLog, clock: ManualClock) -> None:
    for number in range(3):
        commit(oplog, new_row(str(number)))
    oplog.log.look_after(3, every=3)
    oplog.log.store.delete("_delta_log/00000000000000000003.json")
    clock.set(START - SECOND)  # the clock goes back while nobody looks
    tree = again(oplog).latest()
    assert (tree.txn_seq, tree.version) == (3, 3)
    last = max(row.timestamp for row in tree.children(ROOT).values())
    newer = again(oplog).commit(tree, [new_row("3")], Commit(str(TxnId.new())))
    assert newer is not None
    row = newer.child(ROOT, "3")
    assert row is not None
    assert (row.txn_seq, row.timestamp > last) == (4, True)


def test_who_is_behind_a_cleaned_log_is_told_and_goes_on(oplog: OpLog) -> None:
    """The number after an old version is free again; what is put there would be lost."""
    base = commit(oplog, new_row("a"))
    for number in range(6):
        commit(oplog, new_row(str(number)))
    oplog.log.look_after(7, every=7)
    clean_log(oplog.log.table(), before=datetime.now(UTC) + timedelta(days=1))
    late = again(oplog)
    assert late.commit(base, [new_row("b")], Commit(str(TxnId.new()))) is None
    newest = late.refresh(base)
    assert newest.txn_seq == 7
    assert "b" in names(commit(late, new_row("b"), base=newest))
    assert names(base) == ["a"]


def test_who_is_far_behind_opens_anew(oplog: OpLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millpond.fs.oplog.log.FAR_BEHIND", 5)
    base = commit(oplog, new_row("start"))
    for number in range(8):
        commit(oplog, new_row(str(number)))
    newest = oplog.refresh(base)
    assert (newest.txn_seq, newest.version) == (9, 9)
    assert names(newest) == [*map(str, range(8)), "start"]


# Maintenance


def compact(oplog: OpLog, part_id: str = ROOT) -> None:
    """Write the files of a directory as one, as maintenance does."""
    tree = oplog.latest()
    rows = [
        replace(row, content=tree.content(row))
        for rows in tree.partition(part_id).by_node.values()
        for row in rows
    ]
    state = state_of(tree)
    file = NewFile({PARTITION: part_id}, write_parquet(rows), len(rows))
    removed = [
        {"path": path, "deletionTimestamp": 0, "dataChange": False} for path in state.files[part_id]
    ]
    made = oplog.log.commit(
        state, [file], {"timestamp": 5}, txn_id=str(TxnId.new()), removed=removed,
        data_change=False, operation="OPTIMIZE",
    )  # fmt: skip
    assert made is not None


def test_compaction_changes_nothing_that_can_be_seen(oplog: OpLog, clock: ManualClock) -> None:
    other = str(NodeId.new())
    for number in range(6):
        clock.advance(SECOND)
        commit(oplog, new_row(str(number), content=b"%d" % number), new_row(str(number), other))
    base = oplog.latest()
    middle, half = again(oplog).latest(), again(oplog).latest()
    assert names(middle) == [str(n) for n in range(6)]  # looked into before, and not
    said = dict(state_of(base).last)
    compact(again(oplog))
    compact(again(oplog), other)
    newest = oplog.latest()
    assert (newest.txn_seq, newest.version) == (6, 8)
    assert files(newest, ROOT) == files(newest, other) == 1
    for tree in (base, middle, half, oplog.refresh(base), oplog.refresh(middle), newest):
        assert tree.txn_seq == 6
        assert {n: tree.content(row) for n, row in tree.children(ROOT).items()} == {
            str(n): b"%d" % n for n in range(6)
        }
    assert state_of(newest).last == said, "what the last transaction said is said again"
    for seq in range(7):
        assert names(oplog.as_of(txn_seq=seq)) == [str(n) for n in range(seq)]
        micros = to_micros(START + seq * SECOND)
        assert oplog.as_of(micros=micros).txn_seq == seq
    assert commit(oplog, new_row("new")).txn_seq == 7
    for tree in (base, middle, half):
        assert names(oplog.refresh(tree)) == [*map(str, range(6)), "new"]
    assert oplog.commit(base, [new_row("late")], Commit(str(TxnId.new()))) is None


def test_time_does_not_stand_still_for_maintenance(oplog: OpLog, clock: ManualClock) -> None:
    """What compacts may have a clock that is ahead; the next transaction is later."""
    commit(oplog, new_row("a"), new_row("b"))
    state = state_of(oplog.latest())
    ahead = to_micros(START + timedelta(days=1))
    made = oplog.log.commit(state, [], {"timestamp": ahead}, txn_id=str(TxnId.new()))
    assert made is not None
    assert (made.last["txn_seq"], made.last["timestamp"]) == (1, ahead)
    tree = commit(oplog, new_row("c"))
    row = tree.child(ROOT, "c")
    assert row is not None
    assert row.timestamp == ahead + 1


def test_commits_of_others_say_nothing(oplog: OpLog, clock: ManualClock) -> None:
    """A commit without our words does not hide which transaction was last, nor when."""
    for number in range(6):
        clock.advance(SECOND)
        tree = commit(oplog, new_row(str(number)))
        for _ in range(2 if number in (1, 5) else 0):
            info = {"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE"}}
            name = f"_delta_log/{oplog.latest().version + 1:020}.json"
            oplog.log.store.put(name, json.dumps(info).encode())
    for found in (again(oplog).latest(), oplog.refresh(tree)):
        assert (found.txn_seq, found.version) == (6, 10)
    for seq in range(7):
        assert again(oplog).as_of(micros=to_micros(START + seq * SECOND)).txn_seq == seq
    assert commit(again(oplog), new_row("x")).txn_seq == 7


def test_checkpoints_are_written_when_it_is_time(oplog: OpLog) -> None:
    for number in range(4):
        tree = commit(oplog, new_row(str(number)))
        assert oplog.log.look_after(tree.version, every=3) == (tree.version == 3)
    assert not oplog.log.look_after(0, every=1)
    found = [meta.path for meta in oplog.log.store.list("_delta_log/") if "checkpoint" in meta.path]
    assert any("00000000000000000003.checkpoint" in path for path in found)
    assert names(again(oplog).latest()) == ["0", "1", "2", "3"]


# Others


def test_deltalake_reads_it(on_disk: OpLog, clock: ManualClock) -> None:
    clock.advance(SECOND)
    apply(on_disk, lambda w: fill(w, {"/a/x": b"hello", "/l": "a/x", "/a b": b"\0\xff"}))
    clock.advance(SECOND)
    tree = apply(
        on_disk,
        lambda w: edit.move(w, "/a/x", "/x"),
        lambda w: edit.write(w, "/x", EntryType.DATA, stored(b"again"), factory="f"),
    )
    for is_checkpointed in (False, True):
        if is_checkpointed:
            on_disk.log.look_after(tree.version, every=1)
        table = deltalake.DeltaTable(f"{on_disk.location}/data")
        assert table.version() == 2
        assert table.metadata().partition_columns == [PARTITION]
        query = deltalake.QueryBuilder().register("t", table)
        rows = query.execute("select * from t order by txn_seq, name, version").read_all()
        found = pa.table(rows)
        told = [
            (row["txn_seq"], row["name"], row["version"], row["removed"], row["content"])
            for row in found.to_pylist()
        ]
        assert told == [
            (1, "a", 1, False, None), (1, "a b", 1, False, b"\0\xff"), (1, "l", 1, False, b"a/x"),
            (1, "x", 1, False, b"hello"), (2, "x", 1, True, None), (2, "x", 2, False, b"again"),
        ]  # fmt: skip
        assert set(found.column("timestamp").to_pylist()) == {START + SECOND, START + 2 * SECOND}
        assert set(found.column(PARTITION).to_pylist()) == {ROOT, resolve(tree, "/a").node_id}
        assert found.schema.field("timestamp").type == pa.timestamp("us", "UTC")
    said = [entry.get(INFO) for entry in table.history()]
    assert [entry["txn_seq"] for entry in said if entry] == [2, 1, 0]


def test_there_is_no_pond(tmp_path: Path) -> None:
    with pytest.raises(PondNotFoundError, match=f"there is no pond at {tmp_path}") as caught:
        OpLog(str(tmp_path)).latest()
    assert caught.value.hint == f"make one: pond init {tmp_path}"


def test_there_is_a_pond_already(oplog: OpLog) -> None:
    commit(oplog, new_row("a"))
    with pytest.raises(CommitError, match="there is a Delta table at"):
        OpLog.create(oplog.location, {})
    assert names(again(oplog).latest()) == ["a"]


def test_kinds_of_tomorrow_are_named(oplog: OpLog) -> None:
    row = new_row("a")
    object.__setattr__(row, "entry_type", "hologram")
    commit(oplog, row)
    with pytest.raises(PondError, match="a node of the kind 'hologram'") as caught:
        again(oplog).latest().children(ROOT)
    assert caught.value.hint == "install a newer millpond"


# Damage


def test_a_flipped_bit_in_rows_is_found() -> None:
    """Wherever it is in the pages: it is found, or what is read is what was written."""
    rows = [new_row(f"{n}", content=bytes([n]) * 40, config=str(n) * 9) for n in range(60)]
    good = write_parquet(rows)
    footer = 8 + int.from_bytes(good[-8:-4], "little")
    store = MemoryStore()

    def look() -> list[Row]:
        file = RowFile(store, "part")
        found = file.rows(ROOT)
        return [replace(row, content=file.content(n)) for n, row in enumerate(found)]

    outcomes = []
    for position in range(0, len(good) - footer, 7):
        bad = bytearray(good)
        bad[position] ^= 16
        store.put("part", bytes(bad), mode="overwrite")
        try:
            outcomes.append(look() == rows)
        except IntegrityError as error:
            outcomes.append("is damaged" in error.message and "pond fsck" in str(error.hint))
    assert len(outcomes) > 300
    assert all(outcomes)
    store.put("part", good, mode="overwrite")
    assert look() == rows


@pytest.mark.parametrize("cut", [0, 3, 100, -1, -9])
def test_a_cut_file_of_rows_is_found(on_disk: OpLog, tmp_path: Path, cut: int) -> None:
    tree = commit(on_disk, new_row("a", content=b"1"))
    (path,) = state_of(tree).files[ROOT]
    file = tmp_path / "pond" / "data" / path
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(IntegrityError, match="holds rows of the pond, is damaged") as caught:
        again(on_disk).latest().children(ROOT)
    assert caught.value.path == path
    assert path.startswith(f"{PARTITION}={ROOT}/part-")


def test_other_columns_are_damage(oplog: OpLog) -> None:
    good = pq.read_table(pa.BufferReader(write_parquet([new_row("a")])))
    binary = good.column("name").cast(pa.binary())
    for table in (good.drop_columns(["content"]), good.set_column(2, "name", binary)):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        oplog.log.store.put("part", bytes(sink.getvalue()), mode="overwrite")
        with pytest.raises(IntegrityError, match=r"is damaged: .*(content|name)"):
            oplog.open_file("part")


def test_a_file_of_rows_that_is_gone_is_named(on_disk: OpLog) -> None:
    tree = commit(on_disk, new_row("a"))
    (path,) = state_of(tree).files[ROOT]
    on_disk.log.store.delete(path)
    with pytest.raises(IntegrityError, match="holds rows of the pond, is gone") as caught:
        again(on_disk).latest().children(ROOT)
    assert caught.value.path == path


def test_a_store_that_fails_is_no_damage(oplog: OpLog) -> None:
    commit(oplog, new_row("a"))
    reader = again(oplog)
    tree = reader.latest()

    class Down(CountingStore):
        def get_range(self, path: str, start: int, length: int) -> bytes:
            raise StoreError("the network is down", path=path)

    reader.log.store = Down(reader.log.store)
    with pytest.raises(StoreError, match="the network is down"):
        tree.children(ROOT)


# Columns


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "", "日本", None], pa.string()),
        ([b"a", None, b"", b"\xff\0"], pa.binary()),
        ([1, None, 0, -(2**63), 2**63 - 1], pa.int64()),
        ([True, None, False] * 7, pa.bool_()),
        ([0, None, -1, 10**15], pa.timestamp("us", "UTC")),
        ([], pa.string()),
        ([], pa.bool_()),
        ([None, None], pa.binary()),
    ],
)
def test_columns_are_those_of_arrow(values: list[Any], kind: pa.DataType) -> None:
    made = column(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))

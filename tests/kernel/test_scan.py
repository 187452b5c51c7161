"""Which files are live: the filters with made-up rows, the phases without files, whole machines."""

from __future__ import annotations

import asyncio
import json
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.kernel.handmade import (
    Action,
    add,
    begin,
    checkpoint,
    commit,
    listing,
    metadata,
    numbers,
    paths,
    protocol,
    remove,
)
from tests.kernel.test_machine import Failing

from millpond import col, delta_table
from millpond.base.errors import (
    CorruptLogError,
    MachineStateError,
    PhaseError,
    PlanError,
    SchemaError,
    SourceError,
    VersionNotFoundError,
)
from millpond.kernel import AsyncStateMachine, ScanBuilder, distinct, names
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.checkpointed import CheckpointManifest, CheckpointProbe, CheckpointReplay
from millpond.kernel.machine import Consume, PartialResult, Terminus
from millpond.kernel.names import parse_name
from millpond.kernel.replay import AddRemoveDedup, FirstOfEach, unique_id
from millpond.kernel.scan import (
    CommitDifference,
    CommitReplay,
    ListSince,
    incremental_machine,
)
from millpond.kernel.segment import LogFile, LogSegmentBuilder
from millpond.kernel.snapshot import Snapshot
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from pathlib import Path

UNIQUE = "80a083e8-7026-4e79-81be-64bd76c43a10"
DV = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}


# ---- the filters


def keys(*rows: tuple[int, str, str], vectors: tuple[str | None, ...] = ()) -> pa.RecordBatch:
    """Actions as the filter sees them: version, `+` or `-`, path; and vectors."""
    found = vectors or (None,) * len(rows)
    return pa.record_batch(
        {
            "version": pa.array([row[0] for row in rows], pa.int64()),
            "is_add": pa.array([row[1] == "+" for row in rows]),
            "key_path": pa.array([row[2] for row in rows], pa.string()),
            "dv_type": pa.array([None if v is None else "u" for v in found], pa.string()),
            "dv_path": pa.array(found, pa.string()),
            "dv_offset": pa.array([None if v is None else 1 for v in found], pa.int32()),
        }
    )


def kept(*batches: pa.RecordBatch, **how: Any) -> list[list[int]]:
    run = AddRemoveDedup("t", **how).open()
    found = []
    for batch in batches:
        mask = run.apply(batch).to_pylist()
        found.append([row for row, keep in enumerate(mask) if keep])
    run.finish()
    return found


def naively_kept(rows: list[tuple[int, str, str]], *, keep_removes: bool) -> list[int]:
    """The same, row by row: a file's first action, and an add after a remove of its commit."""
    known: dict[str, tuple[int, str]] = {}
    found = []
    for row, (version, sign, path) in enumerate(rows):
        if path not in known or (sign == "+" and known[path] == (version, "-")):
            known[path] = (version, sign)
            if sign == "+" or keep_removes:
                found.append(row)
    return found


class TestAddRemoveDedup:
    def test_the_newest_action_for_a_file_counts(self) -> None:
        rows = keys((3, "+", "a"), (3, "-", "b"), (2, "+", "b"), (1, "+", "a"), (1, "+", "c"))
        assert kept(rows) == [[0, 4]]

    def test_what_was_removed_may_come_again(self) -> None:
        assert kept(keys((3, "+", "a"), (2, "-", "a"), (1, "+", "a"))) == [[0]]

    @pytest.mark.parametrize("order", [("+", "-"), ("-", "+")])
    def test_in_one_commit_an_add_counts_before_a_remove(self, order: tuple[str, str]) -> None:
        both = keys(*((2, sign, "a") for sign in order), (1, "+", "a"))
        assert kept(both) == [[order.index("+")]]
        apart = [keys((2, sign, "a")) for sign in order]
        assert [len(found) for found in kept(*apart)] == [int(s == "+") for s in order]

    def test_an_exchanged_vector_is_another_file(self) -> None:
        rows = keys((2, "-", "a"), (2, "+", "a"), (1, "+", "a"), vectors=(None, "x", None))
        assert kept(rows) == [[1]]
        rows = keys((3, "-", "a"), (3, "+", "a"), (2, "+", "a"), vectors=("x", "y", "x"))
        assert kept(rows) == [[1]]

    def test_a_file_that_comes_twice_in_one_commit_is_one(self) -> None:
        assert kept(keys((2, "+", "a"), (2, "+", "a"))) == [[0]]

    def test_spellings_of_an_absolute_path_are_one(self) -> None:
        rows = keys((3, "-", "file:/x/a"), (2, "-", "/x/b"), (1, "+", "/x/a"), (1, "+", "/x/c"))
        assert kept(rows, keys((1, "+", "file:///x/b"), (1, "+", "b"))) == [[3], [1]]

    def test_of_a_compaction_the_first_counts(self) -> None:
        rows = keys((-1, "-", "a"), (-1, "+", "b"), (-1, "+", "a"), (0, "+", "a"))
        assert kept(rows) == [[1]]

    @pytest.mark.parametrize("keep_removes", [False, True])
    def test_it_does_not_matter_where_batches_end(self, keep_removes: bool) -> None:
        rng = random.Random(7)
        for _ in range(200):
            versions = sorted((rng.randrange(4) for _ in range(12)), reverse=True)
            rows = [(version, rng.choice("+-"), rng.choice("abcdef")) for version in versions]
            cuts = sorted(rng.sample(range(1, 12), rng.randrange(6)))
            spans = list(pairwise([0, *cuts, 12]))
            found = kept(*(keys(*rows[a:b]) for a, b in spans), keep_removes=keep_removes)
            whole = [a + row for (a, _), part in zip(spans, found, strict=True) for row in part]
            assert whole == naively_kept(rows, keep_removes=keep_removes)

    @pytest.mark.parametrize("number", [None, 7])
    def test_files_with_and_without_vectors_in_any_batches(
        self, number: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if number is not None:  # as if all texts had the same one
            monkeypatch.setattr(
                distinct, "numbers_of", lambda texts: np.full(len(texts), number, np.uint64)
            )
        rng = random.Random(8)
        for _ in range(200):
            versions = sorted((rng.randrange(4) for _ in range(9)), reverse=True)
            rows = [(version, rng.choice("+-"), rng.choice("abcdefgh")) for version in versions]
            vectors = tuple(rng.choice([None, None, None, "x", "y"]) for _ in rows)
            cuts = sorted(rng.sample(range(1, 9), rng.randrange(4)))
            spans = list(pairwise([0, *cuts, 9]))
            found = kept(*(keys(*rows[a:b], vectors=vectors[a:b]) for a, b in spans))
            whole = [a + row for (a, _), part in zip(spans, found, strict=True) for row in part]
            named = [
                (version, sign, f"{path} {vector}")
                for (version, sign, path), vector in zip(rows, vectors, strict=True)
            ]
            assert whole == naively_kept(named, keep_removes=False)

    @pytest.mark.parametrize("again", [False, True])
    def test_what_was_seen_does_not_depend_on_how_it_was_found(self, again: bool) -> None:
        dedup = AddRemoveDedup("t")
        run = dedup.open()
        run.apply(keys((3, "+", "a"), (3, "-", "file:/b")))
        run.apply(keys((2, "+", "a"), (2, "-", "c"), vectors=("x", None)))
        if again:
            run.apply(keys((1, "+", "a"), (1, "+", "c")))
        run.finish()
        assert set(dedup.seen) == {"a", "/b", ("a", "ux@1"), "c"}
        assert len(dedup.seen) == 4

    def test_ids_of_vectors_are_those_of_the_checkpoint(self) -> None:
        kinds, paths, offsets = ("u", "i", None, "p", "u"), ("x", None, "y", "", "x@1"), (1, 2, 3)
        batch = pa.record_batch(
            {
                "version": pa.array([1] * 5, pa.int64()),
                "is_add": pa.array([True] * 5),
                "key_path": pa.array(list("abcde")),
                "dv_type": pa.array(kinds, pa.string()),
                "dv_path": pa.array(paths, pa.string()),
                "dv_offset": pa.array([*offsets, None, None], pa.int32()),
            }
        )
        dedup = AddRemoveDedup("t")
        run = dedup.open()
        run.apply(batch)
        run.finish()
        ids = map(unique_id, kinds, paths, (*offsets, None, None))
        names = [
            path if found is None else (path, found)
            for path, found in zip("abcde", ids, strict=True)
        ]
        assert list(dedup.seen) == names

    def test_removes_can_be_kept(self) -> None:
        rows = keys((3, "-", "a"), (2, "+", "a"), (2, "-", "b"), (1, "+", "c"))
        assert kept(rows, keep_removes=True) == [[0, 2, 3]]

    def test_what_was_seen_is_known_at_the_end_alone(self) -> None:
        dedup = AddRemoveDedup("t")
        run = dedup.open()
        run.apply(keys((1, "+", "a")))
        with pytest.raises(MachineStateError, match="not been read to their end"):
            dedup.tombstones()
        run.finish()
        assert dedup.tombstones().to_pydict() == {"path": ["a"], "dv": [None]}

    def test_a_run_that_fails_leaves_no_trace(self) -> None:
        dedup = AddRemoveDedup("t")
        dedup.open().apply(keys((1, "-", "a")))
        whole = dedup.open()
        whole.apply(keys((1, "+", "b")))
        whole.finish()
        assert set(dedup.seen) == {"b"}

    def test_tombstones_have_every_spelling(self) -> None:
        dedup = AddRemoveDedup("t")
        run = dedup.open()
        run.apply(keys((1, "-", "file:/x"), (1, "-", "y"), vectors=("v", None)))
        run.finish()
        found = {(row["path"], row["dv"]) for row in dedup.tombstones().to_pylist()}
        assert found == {*((p, "uv@1") for p in ("/x", "file:/x", "file:///x")), ("y", None)}

    def test_an_action_without_a_path_is_an_error(self) -> None:
        rows = keys((7, "+", None))  # type: ignore[arg-type]
        with pytest.raises(CorruptLogError, match="version 7 of t has no path"):
            kept(rows)

    def test_unique_ids(self) -> None:
        assert unique_id(None, "x", 1) is None
        assert unique_id("u", "x", 1) == "ux@1"
        assert unique_id("i", "x", None) == "ix"


def test_the_first_row_of_each_column_is_found_once() -> None:
    run = FirstOfEach(("a", "b")).open()
    batch = pa.record_batch({"a": [None, 1, 2], "b": pa.array([None] * 3, pa.int64())})
    assert run.apply(batch).to_pylist() == [False, True, False]
    later = pa.record_batch({"a": [3, 4], "b": [None, 5]})
    assert run.apply(later).to_pylist() == [False, True]
    assert run.apply(later).to_pylist() == [False, False]


# ---- the phases


def snapshot(*listed: str, features: tuple[str, ...] | None = None) -> Snapshot:
    builder = LogSegmentBuilder("/t")
    for name in listed:
        parsed = parse_name(name)
        assert parsed is not None
        builder.add_file(LogFile(f"/t/_delta_log/{name}", parsed, 1, 0))
    given = Metadata.from_dict(metadata(Struct.of(n=LONG, p=STRING), ["p"])["metaData"])
    return Snapshot(builder.build(), Protocol(3, 7, features or (), features or ()), given)


COMMITS = [names.commit_name(v) for v in range(3)]
CLASSIC = snapshot(*COMMITS, names.checkpoint_name(1))
PARTS = snapshot(*COMMITS, *(names.part_name(1, part, 2) for part in (1, 2)))
V2 = snapshot(*COMMITS, names.unique_checkpoint_name(1, UNIQUE))
ALONE = snapshot(*COMMITS)


def finished(*rows: tuple[int, str, str]) -> AddRemoveDedup:
    dedup = AddRemoveDedup("/t")
    run = dedup.open()
    run.apply(keys(*rows))
    run.finish()
    return dedup


def sidecars(*named: str) -> pa.Table:
    return pa.table({"path": pa.array(named, pa.string()), "size": pa.array([7] * len(named))})


class TestPhases:
    def test_commits_are_replayed_in_order_and_not_in_parallel(self) -> None:
        state = ScanBuilder(ALONE).start()
        assert isinstance(state, PartialResult)
        assert isinstance(state.phase, CommitReplay)
        assert not state.phase.is_parallelizable
        text = str(state.phase.plan())
        assert "json [3 files]" in text
        assert "add_remove_dedup" in text

    def test_after_the_commits_there_may_be_nothing(self) -> None:
        scan = ScanBuilder(ALONE).build()
        replay = CommitReplay("/t", scan, finished((1, "+", "a")))
        assert replay.next() == Terminus(scan)

    def test_before_the_end_of_the_commits_nothing_follows(self) -> None:
        replay = CommitReplay("/t", ScanBuilder(ALONE).build(), AddRemoveDedup("/t"))
        with pytest.raises(MachineStateError):
            replay.next()

    @pytest.mark.parametrize(
        ("given", "kind"),
        [(CLASSIC, CheckpointManifest), (PARTS, CheckpointReplay), (V2, CheckpointManifest)],
    )
    def test_then_the_checkpoint(self, given: Snapshot, kind: type[Any]) -> None:
        replay = CommitReplay("/t", ScanBuilder(given).build(), finished())
        state = replay.next()
        assert not isinstance(state, Terminus)
        assert isinstance(state.phase, kind)

    def test_a_manifest_names_sidecars(self) -> None:
        manifest = CheckpointManifest("/t", ScanBuilder(V2).build(), None)
        assert manifest.plan().schema.names == ("path", "size")
        state = manifest.next(sidecars("a%20b.parquet", "s3://other/c.parquet"))
        assert isinstance(state, PartialResult)
        replay = state.phase
        assert isinstance(replay, CheckpointReplay)
        found = [(file.path, file.size) for file in replay.sidecars]
        assert found == [("/t/_delta_log/_sidecars/a b.parquet", 7), ("s3://other/c.parquet", 7)]
        assert "parquet [2 files]" in str(replay.plan())

    def test_a_checkpoint_is_replayed_in_any_order(self) -> None:
        scan = ScanBuilder(CLASSIC).build()
        replay = CheckpointReplay("/t", scan, finished((2, "-", "a"), (2, "+", "b")))
        assert replay.is_parallelizable
        assert "anti" in str(replay.plan())
        assert replay.next() == Terminus(scan)
        assert "Join" not in str(CheckpointReplay("/t", scan, finished()).plan())
        assert "Join" not in str(CheckpointReplay("/t", scan, None).plan())

    def test_statistics_are_looked_for_where_a_predicate_needs_them(self) -> None:
        needing = ScanBuilder(PARTS).with_predicate(col("n") > 3).build()
        state = needing.after_commits(None)
        assert isinstance(state, Consume)
        probe = state.phase
        assert isinstance(probe, CheckpointProbe)
        assert "stats_parsed" in str(probe.plan())
        for rows, parsed in ((pa.table({"stats": [1]}), True), (pa.table({"stats": []}), False)):
            following = probe.next(rows)
            assert isinstance(following, PartialResult)
            assert isinstance(following.phase, CheckpointReplay)
            assert following.phase.parsed is parsed
            assert ("stats_parsed" in str(following.phase.plan())) is parsed
        by_partition = ScanBuilder(PARTS).with_predicate(col("p") == "x").build()
        assert isinstance(by_partition.after_commits(None), PartialResult)

    def test_statistics_that_can_not_be_read_are_left_alone(self) -> None:
        needing = ScanBuilder(PARTS).with_predicate(col("n") > 3).build()
        probe = CheckpointProbe("/t", needing, None, ())
        state = probe.instead(SourceError("of another type", engine="x", path="/t"))
        assert isinstance(state, PartialResult)
        assert isinstance(state.phase, CheckpointReplay)
        assert not state.phase.parsed
        assert probe.instead(PlanError("no")) is None

    def test_only_known_facts_about_files(self) -> None:
        assert ScanBuilder(ALONE).with_columns("path", "size").build().schema.names == (
            "path",
            "size",
        )
        with pytest.raises(PlanError, match="'colour'") as caught:
            ScanBuilder(ALONE).with_columns("colour")
        assert "modificationTime" in str(caught.value)

    def test_a_predicate_over_unknown_columns(self) -> None:
        with pytest.raises(SchemaError, match="zz"):
            ScanBuilder(ALONE).with_predicate(col("zz") == 1).build()

    def test_the_difference_reads_commits_alone(self) -> None:
        machine = incremental_machine(ScanBuilder(CLASSIC).build(), 1)
        assert machine.phase == "CommitDifference"
        scan = ScanBuilder(ALONE).with_columns("size").build()
        commits = ALONE.segment.commits[1:]
        plan = CommitDifference("/t", scan, commits, AddRemoveDedup("/t")).plan()
        assert plan.schema.names == ("change", "size")
        assert "json [2 files]" in str(plan)

    def test_a_difference_from_behind_a_checkpoint_lists_the_commits_first(self) -> None:
        machine = incremental_machine(ScanBuilder(CLASSIC).build(), 0)
        assert machine.phase == "ListSince"
        phase = ListSince("/t", ScanBuilder(CLASSIC).build(), 0)
        state = phase.next(listing(*((name, 1) for name in COMMITS[1:])))
        assert isinstance(state, PartialResult)
        assert isinstance(state.phase, CommitDifference)
        assert [file.name.version for file in state.phase.commits] == [1, 2]
        with pytest.raises(VersionNotFoundError, match="no commit 1 any more") as caught:
            phase.next(listing((COMMITS[2], 1)))
        assert "from version 1 on" in str(caught.value)

    def test_a_difference_over_very_many_versions_that_are_gone(self) -> None:
        checkpoint = names.checkpoint_name(names.MAX_VERSION)
        phase = ListSince("/t", ScanBuilder(snapshot(checkpoint)).build(), 3)
        with pytest.raises(VersionNotFoundError, match="no commit 4 any more") as caught:
            phase.next(listing((checkpoint, 1)))
        assert f"from version {names.MAX_VERSION} on" in str(caught.value)

    @pytest.mark.parametrize("since", [-2, 3, True, "1"])
    def test_a_difference_from_nowhere(self, since: Any) -> None:
        with pytest.raises(VersionNotFoundError):
            incremental_machine(ScanBuilder(CLASSIC).build(), since)

    def test_no_difference_to_itself(self) -> None:
        assert incremental_machine(ScanBuilder(CLASSIC).build(), 2).collect()[0] == []


# ---- whole machines


def live(table: Path, **how: Any) -> list[str]:
    return paths(delta_table(table, **how).files()["path"].to_pylist())


def outside(folder: Path) -> tuple[str, str, str]:
    """A file elsewhere, in three spellings."""
    return f"{folder}/x", f"file:{folder}/x", f"file://{folder}/x"


@pytest.mark.parametrize("checkpointed", [False, True])
def test_spellings_across_commits_and_checkpoints(tmp_path: Path, checkpointed: bool) -> None:
    table, others = tmp_path / "t", outside(tmp_path)
    for added in others:
        for removed in others:
            begin(table, add(added), add("y"))
            if checkpointed:
                checkpoint(table, 0, protocol(), metadata(), add(added), add("y"))
            commit(table, 1, remove(removed))
            assert live(table) == ["y"]


def test_a_vector_is_exchanged_behind_a_checkpoint(tmp_path: Path) -> None:
    old, new = {**DV, "sizeInBytes": 1, "cardinality": 1}, {**DV, "offset": 9}
    new |= {"sizeInBytes": 1, "cardinality": 2}
    lines = [protocol(features=["deletionVectors"]), metadata(), add("a", deletionVector=old)]
    commit(tmp_path, 0, *lines, add("b"))
    checkpoint(tmp_path, 0, *lines, add("b"))
    commit(tmp_path, 1, remove("a", deletionVector=old), add("a", deletionVector=new))
    commit(tmp_path, 2, remove("b"), add("b", deletionVector=old))
    found = delta_table(tmp_path).files(columns=["path", "deletionVector"]).to_pylist()
    assert sorted((row["path"], row["deletionVector"]["offset"]) for row in found) == [
        ("a", 9),
        ("b", 4),
    ]


def test_tombstones_of_a_checkpoint_are_no_files(tmp_path: Path) -> None:
    begin(tmp_path, add("a"))
    checkpoint(tmp_path, 0, protocol(), metadata(), add("a"), remove("b"))
    commit(tmp_path, 1, add("c"))
    assert live(tmp_path) == ["a", "c"]


def test_a_file_that_comes_again_brings_new_facts(tmp_path: Path) -> None:
    begin(tmp_path, add("a", size=1, tags={"k": "old"}))
    checkpoint(tmp_path, 0, protocol(), metadata(), add("a", size=1, tags={"k": "old"}))
    commit(tmp_path, 1, add("a", size=2, tags={"k": "new"}))
    found = delta_table(tmp_path).files(columns=["path", "size", "tags"]).to_pylist()
    assert found == [{"path": "a", "size": 2, "tags": [("k", "new")]}]


def statistics(low: int, high: int) -> dict[str, Any]:
    limits = {"minValues": {"n": low}, "maxValues": {"n": high}, "nullCount": {"n": 0}}
    return {"numRecords": 10, **limits}


LIMITS = pa.struct([("n", pa.int64())])
PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        *((name, LIMITS) for name in ("minValues", "maxValues", "nullCount")),
    ]
)


def many(table: Path, kind: str) -> None:
    """Files 0 to 9 with numbers from tens on, in a checkpoint with statistics of some kind."""
    head = [protocol(), metadata()]
    lines: list[Action] = []
    for ten in range(10):
        found = statistics(ten * 10, ten * 10 + 9)
        line = add(str(ten))
        if kind != "parsed":
            line["add"]["stats"] = json.dumps(found)
        if kind != "json":
            line["add"]["stats_parsed"] = found
        lines.append(line)
    commit(table, 0, *head)
    parsed = None if kind == "json" else PARSED
    checkpoint(table, 0, *head, *lines, parsed=parsed, group_rows=4)
    commit(table, 1, add("late", stats=json.dumps(statistics(200, 209))))


@pytest.mark.parametrize("kind", ["json", "parsed", "both"])
def test_a_predicate_leaves_out_files(tmp_path: Path, kind: str) -> None:
    many(tmp_path, kind)
    table = delta_table(tmp_path)
    for predicate, expected in (
        (col("n") == 42, ["4"]),
        (col("n") >= 85, ["8", "9", "late"]),
        (col("n") < 0, []),
        (col("n").is_null(), []),
    ):
        files = table.files(predicate, columns=["path"])
        assert paths(files["path"].to_pylist()) == expected
        trace = [(s.phase, s.kind, s.parallelizable) for s in _run(files).trace]
        assert trace == [
            ("CommitReplay", "partial result", False),
            ("CheckpointManifest", "consume", False),
            ("CheckpointProbe", "consume", False),
            ("CheckpointReplay", "partial result", True),
        ]


def _run(files: Any) -> Any:
    machine = files.state_machine()
    machine.run_to_terminal()
    return machine


def test_statistics_of_a_type_that_the_column_had_before(tmp_path: Path) -> None:
    texts = pa.struct([("n", pa.string())])
    limits = [(name, texts) for name in ("minValues", "maxValues")]
    parsed = pa.struct([("numRecords", pa.int64()), *limits, ("nullCount", LIMITS)])
    old = add("old")
    old["add"]["stats_parsed"] = {"numRecords": 1, "minValues": {"n": "a"}, "maxValues": {"n": "b"}}
    begin(tmp_path, add("old"), schema=Struct.of(n=STRING))
    checkpoint(tmp_path, 0, protocol(), metadata(Struct.of(n=STRING)), old, parsed=parsed)
    commit(tmp_path, 1, metadata(), remove("old"), numbers(tmp_path, "new", 1, 9))
    scan = delta_table(tmp_path).scan(predicate=col("n") > 5)
    assert scan.to_arrow().to_pydict() == {"n": [9]}


@pytest.mark.parametrize(
    ("healthy", "kind"),
    [
        *((healthy, "at once") for healthy in range(4)),
        # A manifest without sidecars has no rows, and so no middle.
        *((healthy, "in the middle") for healthy in (0, 2, 3)),
    ],
)
def test_an_engine_that_fails_is_asked_again(tmp_path: Path, healthy: int, kind: str) -> None:
    many(tmp_path, "both")
    commit(tmp_path, 2, remove("8"), add("later"))
    phases = ["CommitReplay", "CheckpointManifest", "CheckpointProbe", "CheckpointReplay"]
    engine: Any = Failing(["no"] * healthy + [kind])
    files = delta_table(tmp_path).files(col("n") >= 85, columns=["path"])
    builder = ScanBuilder(delta_table(tmp_path).snapshot).with_predicate(col("n") >= 85)
    running = builder.machine(engine)
    with pytest.raises(PhaseError) as caught:
        running.run_to_terminal()
    assert caught.value.phase == running.phase == phases[healthy]
    found = [path for batch in running for path in batch.column("path").to_pylist()]
    whole = paths(files["path"].to_pylist())
    assert whole == ["9", "late", "later"]
    # What the commits gave had come before, if a later phase failed.
    assert paths(found) == (whole if healthy == 0 else ["9"])


def test_the_async_driver_gives_the_same_files(tmp_path: Path) -> None:
    many(tmp_path, "both")
    builder = ScanBuilder(delta_table(tmp_path).snapshot).with_columns("path")

    async def run() -> list[str]:
        driver = AsyncStateMachine(builder.machine("arrow"))
        found = [p async for batch in driver for p in batch.column("path").to_pylist()]
        assert driver.into_terminal().snapshot is builder.snapshot
        return found

    assert paths(asyncio.run(run())) == live(tmp_path)


def test_partial_results_come_before_the_checkpoint_is_read(tmp_path: Path) -> None:
    many(tmp_path, "both")
    machine = ScanBuilder(delta_table(tmp_path).snapshot).with_columns("path").machine("arrow")
    batches = iter(machine)
    assert next(batches).column("path").to_pylist() == ["late"]
    assert [step.phase for step in machine.trace] == ["CommitReplay"]
    with pytest.raises(MachineStateError, match="still before CommitReplay"):
        machine.into_terminal()
    assert sum(batch.num_rows for batch in batches) == 10


def changed(table: Path, since: int, **how: Any) -> list[tuple[str, str]]:
    machine = delta_table(table, **how).files_since(since, columns=["path"])
    return sorted(tuple(row.values()) for batch in machine for row in batch.to_pylist())


@pytest.mark.parametrize("checkpointed", [None, 1, 3])
def test_what_changed_since_a_version(tmp_path: Path, checkpointed: int | None) -> None:
    states = [["a"], ["a", "b"], ["b"], ["b", "c"]]
    begin(tmp_path, add("a"))
    commit(tmp_path, 1, add("b"))
    commit(tmp_path, 2, remove("a"))
    commit(tmp_path, 3, add("c"))
    if checkpointed is not None:
        lines = [add(path) for path in states[checkpointed]]
        checkpoint(tmp_path, checkpointed, protocol(), metadata(), *lines)
    for since in range(4):
        found = changed(tmp_path, since)
        files = set(states[since]) - {path for change, path in found if change == "remove"}
        files |= {path for change, path in found if change == "add"}
        assert sorted(files) == states[3]
    assert changed(tmp_path, 0) == [("add", "b"), ("add", "c"), ("remove", "a")]
    assert changed(tmp_path, 0, version=1) == [("add", "b")]
    assert changed(tmp_path, -1) == [("add", "b"), ("add", "c"), ("remove", "a")]

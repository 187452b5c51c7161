"""Checkpoints that are not what they should be: adds without a path, statistics of other types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.kernel.handmade import (
    Action,
    add,
    checkpoint,
    commit,
    metadata,
    numbers,
    paths,
    protocol,
    remove,
)

from millpond import col, delta_table
from millpond.base.errors import CheckpointError, PlanError, SourceError
from millpond.kernel import ScanBuilder, names
from millpond.kernel.checkpointed import CheckpointReplay, NamelessAdd
from millpond.kernel.machine import Consume, PartialResult
from millpond.plan.sources import File

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UNIQUE = "80a083e8-7026-4e79-81be-64bd76c43a10"
HEAD = [protocol(features=["v2Checkpoint"]), metadata()]
NAMELESS: Action = {"add": {**add("")["add"], "path": None}}
EMPTY: Action = {"add": {}}
"""What some writers may have where there is no add: all members are null, and it itself is not."""


def sidecar(file: Path) -> Action:
    found = {"path": file.name, "sizeInBytes": file.stat().st_size, "modificationTime": 0}
    return {"sidecar": found}


def write(table: Path, kind: str, *parts: list[Action], **how: Any) -> list[str]:
    """Version 0, and its checkpoint of these parts; the names of the files with the parts."""
    commit(table, 0, *HEAD)
    if kind in ("classic", "json"):
        lines = [line for part in parts for line in part]
        name = names.checkpoint_name(0)
        if kind == "json":
            name = names.unique_checkpoint_name(0, UNIQUE).replace(".parquet", ".json")
            lines.append({"checkpointMetadata": {"version": 0}})
        return [checkpoint(table, 0, *HEAD, *lines, name=name, **how).name] * len(parts)
    if kind == "parts":
        many = len(parts)
        files = [names.part_name(0, number, many) for number in range(1, many + 1)]
        for number, (file, part) in enumerate(zip(files, parts, strict=True)):
            checkpoint(table, 0, *(HEAD if number == 0 else ()), *part, name=file, **how)
        return files
    made = [
        checkpoint(table, 0, *part, name=f"_sidecars/{number}.parquet", **how)
        for number, part in enumerate(parts)
    ]
    manifest(table, made)
    return [file.name for file in made]


def manifest(table: Path, sidecars: list[Path]) -> None:
    """A checkpoint whose adds are in these files."""
    name = names.unique_checkpoint_name(0, UNIQUE).replace(".parquet", ".json")
    lines = [*HEAD, {"checkpointMetadata": {"version": 0}}, *map(sidecar, sidecars)]
    checkpoint(table, 0, *lines, name=name)


# ---- adds without a path


@pytest.mark.parametrize("kind", ["classic", "json", "parts", "sidecars"])
@pytest.mark.parametrize("later", [False, True])
def test_an_add_without_a_path_names_its_file(tmp_path: Path, kind: str, later: bool) -> None:
    a, b = numbers(tmp_path, "a", 1), numbers(tmp_path, "b", 2)
    files = write(tmp_path, kind, [a, b], [add("x"), NAMELESS], [add("y")], group_rows=1)
    if later:
        commit(tmp_path, 1, remove("x"), remove("y"), numbers(tmp_path, "c", 3))
    table = delta_table(tmp_path)
    reads: list[Callable[[], pa.Table]] = [
        lambda: table.scan().to_arrow(engine="arrow"),
        lambda: table.files().to_arrow(),
        lambda: table.files(columns=["modificationTime", "path"]).to_arrow(),
    ]
    for read in reads:
        with pytest.raises(CheckpointError, match=f"{files[1]} has no path") as caught:
            read()
        assert caught.value.path is not None
        assert caught.value.path.endswith(files[1])
        assert "remove" in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["classic", "sidecars"])
def test_an_add_without_a_path_names_its_file_on_spark(tmp_path: Path, kind: str) -> None:
    files = write(tmp_path, kind, [add("a")], [add("x"), NAMELESS])
    with pytest.raises(CheckpointError, match=f"{files[1]} has no path"):
        delta_table(tmp_path).files(engine="spark").to_arrow()


@pytest.mark.parametrize("kind", ["classic", "sidecars"])
def test_adds_that_are_none_are_left_out(tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind, [add("a"), EMPTY], [EMPTY, add("b")])
    table = delta_table(tmp_path)
    assert paths(table.files()["path"].to_pylist()) == ["a", "b"]
    assert paths(table.files(columns=["path"])["path"].to_pylist()) == ["a", "b"]


def test_where_nothing_else_is_read_it_is_not_seen(tmp_path: Path) -> None:
    """It would take a column more: `size` alone does not need the paths, nor they it."""
    write(tmp_path, "classic", [add("a", size=7), NAMELESS])
    table = delta_table(tmp_path)
    assert table.files(columns=["path"])["path"].to_pylist() == ["a"]
    assert table.files(columns=["size"])["size"].to_pylist() == [7]


def test_what_a_predicate_rules_out_is_not_looked_at(tmp_path: Path) -> None:
    limits = {"minValues": {"n": 1}, "maxValues": {"n": 5}, "nullCount": {"n": 0}}
    stats = json.dumps({"numRecords": 1, **limits})
    nameless = {"add": {**NAMELESS["add"], "stats": stats}}
    write(tmp_path, "classic", [numbers(tmp_path, "a", 8), nameless])
    table = delta_table(tmp_path)
    assert table.files(col("n") > 6)["path"].to_pylist() == ["a"]
    with pytest.raises(CheckpointError, match="has no path"):
        table.files(col("n") > 4).to_arrow()


def test_a_file_without_it_after_all_leaves_the_first_word() -> None:
    told = CheckpointError("an add has no path", table="/t")
    phase = NamelessAdd("/t", (File("/t/_delta_log/x.parquet"),), told)
    with pytest.raises(CheckpointError) as caught:
        phase.next(pa.table({"file": pa.array([], pa.int64())}))
    assert caught.value is told


# ---- statistics of other types


def parsed(type_: pa.DataType) -> pa.DataType:
    limits, nulls = pa.struct([("n", type_)]), pa.struct([("n", pa.int64())])
    members = {"minValues": limits, "maxValues": limits, "nullCount": nulls}
    return pa.struct([("numRecords", pa.int64()), *members.items()])


MAKE: dict[pa.DataType, Any] = {
    pa.int64(): int,
    pa.int32(): int,
    pa.float64(): float,
    pa.string(): str,
}


def with_stats(table: Path, name: str, type_: pa.DataType, *values: int) -> Action:
    """A file of numbers, with its statistics as columns of a type."""
    file = numbers(table, name, *values)
    stats = json.loads(file["add"]["stats"])
    for limit in ("minValues", "maxValues"):
        stats[limit]["n"] = MAKE[type_](stats[limit]["n"])
    return {"add": {**file["add"], "stats_parsed": stats}}


def mixed(table: Path, *types: pa.DataType) -> None:
    """A sidecar for each type: files of the numbers 0 to 4, 10 to 14 and so on, five in each."""
    commit(table, 0, *HEAD)
    made = []
    for number, type_ in enumerate(types):
        lines = [
            with_stats(table, f"{number}-{n}", type_, *range(start, start + 5))
            for n, start in enumerate(range(50 * number, 50 * number + 50, 10))
        ]
        name = f"_sidecars/{number}.parquet"
        made.append(checkpoint(table, 0, *lines, name=name, parsed=parsed(type_), group_rows=2))
    manifest(table, made)


LONG, INT, DOUBLE, TEXT = pa.int64(), pa.int32(), pa.float64(), pa.string()
TYPES = [
    *((LONG, DOUBLE), (DOUBLE, LONG), (LONG, TEXT), (TEXT, LONG), (LONG, LONG, DOUBLE)),
    *((INT, LONG), (LONG, INT, TEXT, LONG), (TEXT, DOUBLE)),
]


def found(table: Path, least: int, **how: Any) -> list[str]:
    """The files that may have such numbers, as often as they are told."""
    return paths(delta_table(table).files(col("n") >= least, **how)["path"].to_pylist())


@pytest.mark.parametrize("types", TYPES, ids=str)
@pytest.mark.parametrize("later", [False, True])
def test_sidecars_that_have_statistics_of_different_types(
    tmp_path: Path, types: tuple[pa.DataType, ...], later: bool
) -> None:
    mixed(tmp_path, *types)
    every = [f"{number}-{n}" for number in range(len(types)) for n in range(5)]
    last, late = 50 * len(types) - 10, []
    if later:
        commit(tmp_path, 1, remove("0-1"), numbers(tmp_path, "late", 1000))
        every.remove("0-1")
        late = ["late"]
    assert found(tmp_path, 0) == [*every, *late]
    assert found(tmp_path, 0, columns=["path"]) == [*every, *late]
    assert found(tmp_path, last) == [every[-1], *late]
    rows = delta_table(tmp_path).scan(predicate=col("n") > last).to_arrow(engine="arrow")
    more = [1000] if later else []
    assert sorted(rows["n"].to_pylist()) == [*range(last + 1, last + 5), *more]


@pytest.mark.spark
@pytest.mark.parametrize("types", TYPES[:4], ids=str)
def test_sidecars_that_have_statistics_of_different_types_on_spark(
    tmp_path: Path, types: tuple[pa.DataType, ...]
) -> None:
    mixed(tmp_path, *types)
    assert len(found(tmp_path, 0, engine="spark")) == 10
    assert found(tmp_path, 90, engine="spark") == ["1-4"]


def steps(table: Path, least: int) -> list[tuple[str, bool]]:
    """The phases of the checkpoint, and whether each read statistics as columns."""
    machine = delta_table(table).files(col("n") >= least).state_machine()
    machine.run_to_terminal()
    return [(s.phase, "stats_parsed" in str(s.plan)) for s in machine.trace][1:]


def test_the_second_way_is_gone_only_where_types_differ(tmp_path: Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    mixed(same, LONG, INT)
    mixed(other, LONG, DOUBLE)
    once = [("CheckpointProbe", True), ("CheckpointReplay", True)]
    assert steps(same, 0) == once
    for least in (0, 90):  # after files of the first sidecar were told, and before
        assert steps(other, least) == [*once, ("CheckpointReplay", False)]


def test_files_that_were_told_are_not_told_again_whose_path_is_unknown(tmp_path: Path) -> None:
    mixed(tmp_path, LONG, DOUBLE)
    files = delta_table(tmp_path).files(col("n") >= 0, columns=["size"])
    with pytest.raises(CheckpointError, match="which can't be read as long"):
        files.to_arrow()
    # Nothing was told before.
    assert len(delta_table(tmp_path).files(col("n") >= 90, columns=["size"])) == 1


def test_a_sidecar_that_is_broken_is_named_all_the_same(tmp_path: Path) -> None:
    mixed(tmp_path, LONG, LONG)
    broken = tmp_path / "_delta_log" / "_sidecars" / "1.parquet"
    broken.write_bytes(b"PAR1")
    with pytest.raises(CheckpointError, match=r"1\.parquet"):
        found(tmp_path, 0)
    broken.unlink()
    with pytest.raises(CheckpointError, match=r"1\.parquet"):
        found(tmp_path, 0)


def test_which_failures_have_a_second_way(tmp_path: Path) -> None:
    mixed(tmp_path, LONG, LONG)
    snapshot = delta_table(tmp_path).snapshot
    scan = ScanBuilder(snapshot).with_columns("path").with_predicate(col("n") > 1).build()
    sidecars = (File("/x"), File("/y"))
    misfit = SourceError("of another type", engine="x", path="/x")
    gone = SourceError("not there", engine="x", path="/x", missing=True)
    handed = [pa.record_batch({"path": ["a"]}), pa.record_batch({"path": ["b"]})]

    replay = CheckpointReplay("/t", scan, None, sidecars, parsed=True)
    assert replay.remembered == ("path",)
    state = replay.resume(misfit, handed)
    assert isinstance(state, PartialResult)
    again = state.phase
    assert isinstance(again, CheckpointReplay)
    assert again.handed is not None
    assert again.handed.to_pydict() == {"path": ["a", "b"]}
    assert not again.parsed
    assert again.remembered == ()
    for error in (gone, PlanError("no")):
        assert replay.instead(error) is None
        assert replay.resume(error, handed) is None
    assert again.instead(misfit) is None
    assert again.resume(misfit, []) is None

    nameless = CheckpointError("no path", table="/t")
    for state in (replay.instead(nameless), again.resume(nameless, [])):
        assert isinstance(state, Consume)
        assert isinstance(state.phase, NamelessAdd)

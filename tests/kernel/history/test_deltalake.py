"""The naive model against `deltalake`: what tests hold the kernel to is what others read too."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.kernel.history.compare import bag
from tests.kernel.history.generate import APPS, Shape, random_history
from tests.kernel.history.layout import random_layout
from tests.kernel.history.write import write_history

from millpond import col, delta_table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(16))
def test_files_and_rows_of_every_version(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    history = random_history(rng, commits=8)
    layout = random_layout(rng, history)
    path = write_history(history, tmp_path / "table", layout)

    for version in range(layout.first, history.latest + 1):
        table = DeltaTable(str(path), version=version)
        state = history.state(version)
        files = sorted(f"{path}/{unquote(name)}" for name, _ in state.live)
        assert sorted(table.file_uris()) == files, version
        assert bag(_rows(table.scan())) == bag(history.rows(version)), version
        known = {app: one["version"] for app, one in state.transactions.items()}
        assert {app: table.transaction_version(app) for app in APPS} == dict.fromkeys(APPS) | known
        assert table.metadata().configuration == state.metadata["configuration"]
        assert table.protocol().min_reader_version == state.protocol["minReaderVersion"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("features", [False, True])
def test_changes(seed: int, features: bool, tmp_path: Path) -> None:
    shape = Shape(features=features, change_feed=True, plain=True)
    history = random_history(Random(seed), commits=8, shape=shape)
    path = write_history(history, tmp_path / "table")

    for start, end in ((0, history.latest), (2, 5)):
        feed = DeltaTable(str(path)).load_cdf(start, end)
        expected = history.changes(start, end)
        columns = {"_change_type", "_commit_version", *history.state(end).stored_names()}
        later = set(_names(feed)) - columns  # of the newest schema, which theirs is always read in
        found = _rows(feed)
        assert all(row[name] is None for row in found for name in later - {"_commit_timestamp"})
        assert bag(found, without=tuple(later)) == bag(expected)


@pytest.mark.parametrize("engine", ["arrow", pytest.param("spark", marks=pytest.mark.spark)])
def test_rows_that_deltalake_has_changed(engine: str, tmp_path: Path) -> None:
    """It writes texts of changed rows as views, and says so in the file."""
    write_deltalake(tmp_path, pa.table({"text": ["a", None, "zz"], "n": [1, 2, 3]}))
    DeltaTable(tmp_path).update(updates={"text": "'changed'"}, predicate="text is null")

    found = delta_table(tmp_path).scan(predicate=col("n") <= 2).to_arrow(engine=engine)

    assert bag(found.to_pylist()) == bag([{"text": "a", "n": 1}, {"text": "changed", "n": 2}])


def test_a_seed_gives_a_history() -> None:
    one, other = (random_history(Random(7), commits=9) for _ in range(2))

    assert one == other
    assert one != random_history(Random(8), commits=9)


def test_histories_and_layouts_have_everything_in_them() -> None:
    """What no history has, no test sees."""
    kinds, checkpoints, hints, decoys = set(), set(), set(), set()
    vectors, stats = set(), set()
    for seed in range(60):
        rng = Random(seed)
        history = random_history(rng, commits=8)
        layout = random_layout(rng, history)
        hints.add(layout.hint)
        checkpoints |= {(one.kind, one.files > 0, one.stats) for one in layout.checkpoints}
        decoys |= {kind for _, kind in layout.decoys}
        for action in (action for actions in history.commits for action in actions):
            kinds |= set(action)
            vectors |= {action.get("add", {}).get("deletionVector", {}).get("storageType")}
            stats |= {"stats" in action["add"]} if "add" in action else set()

    assert kinds >= {"add", "remove", "metaData", "protocol", "txn", "domainMetadata", "cdc"}
    assert {kind for kind, _, _ in checkpoints} == {"classic", "multi", "v2_json", "v2_parquet"}
    assert {("v2_json", True), ("v2_json", False)} <= {one[:2] for one in checkpoints}
    assert {("v2_parquet", True), ("v2_parquet", False)} <= {one[:2] for one in checkpoints}
    assert {one[2] for one in checkpoints} == {"json", "both", "parsed"}
    assert hints == {"missing", "right", "older", "garbage", "empty", "elsewhere"}
    assert len(decoys) == 4
    assert vectors == {None, "i", "u"}
    assert stats == {True, False}


def _names(reader: Any) -> list[str]:
    return [field.name for field in reader.schema]


def _rows(reader: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(reader).read_all().to_pylist()
    return found

"""Faults in a log: a reader fails with a clear error or gets it right, and never anything else."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from tests.kernel.history.compare import bag
from tests.kernel.history.faults import inject
from tests.kernel.history.generate import Shape, random_history
from tests.kernel.history.layout import Checkpoint, Layout
from tests.kernel.history.readings import readings
from tests.kernel.history.strategies import SEEDS, cases
from tests.kernel.history.write import write_history

from millpond import delta_table
from millpond.base.errors import CheckpointError, CorruptLogError, MillpondError

if TYPE_CHECKING:
    from collections import Counter

    from pyspark.sql import SparkSession
    from tests.kernel.history.layout import Kind
    from tests.kernel.history.strategies import Case

FAULTS = 6


@given(cases(most_commits=6), SEEDS)
def test_a_fault_gives_an_error_or_what_the_log_says(table: Case, seed: int) -> None:
    rng = Random(seed)
    with table.written() as path:
        log = Path(path) / "_delta_log"
        whole = {file: file.read_bytes() for file in log.rglob("*") if file.is_file()}
        for _ in range(FAULTS):
            fault = inject(log, rng)
            found = _read(path)
            assert found is None or found in readings(table.history, log, fault), fault
            for file, content in whole.items():
                file.write_bytes(content)


@pytest.mark.parametrize("kind", ["classic", "multi", "v2_json", "v2_parquet"])
@pytest.mark.parametrize("content", [b"PAR1", b"not a file of its kind", bytes(500)])
def test_a_checkpoint_that_cannot_be_read_is_named(
    kind: Kind, content: bytes, tmp_path: Path
) -> None:
    history = random_history(Random(1), commits=4, shape=Shape())
    layout = Layout(checkpoints=(Checkpoint(3, kind, files=2),), first=3)
    path = write_history(history, tmp_path / "table", layout)
    files = [*path.rglob("*.checkpoint.*"), *path.rglob("_sidecars/*")]

    for file in files:
        before = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=re.escape(file.name)):
            delta_table(path).files().to_arrow()
        file.write_bytes(before)
    assert len(files) == {"classic": 1, "multi": 2}.get(kind, 3)
    assert bag(delta_table(path).scan().to_arrow().to_pylist()) == bag(history.rows(3))


def test_a_path_in_a_checkpoint_that_is_no_utf8_is_an_error(tmp_path: Path) -> None:
    history = random_history(Random(1), commits=4, shape=Shape())
    layout = Layout(checkpoints=(Checkpoint(3, "classic"),), first=3)
    path = write_history(history, tmp_path / "table", layout)
    (checkpoint,) = path.rglob("*.checkpoint.*")
    actions = pq.read_table(checkpoint)
    add = actions.column("add").combine_chunks()
    texts = [
        None if one is None else b"\xff" + one.encode() for one in add.field("path").to_pylist()
    ]
    children = [add.field(i) for i in range(add.type.num_fields)]
    children[add.type.get_field_index("path")] = pa.array(texts, pa.binary()).view(pa.string())
    broken = pa.StructArray.from_arrays(children, fields=list(add.type), mask=add.is_null())
    at = actions.schema.get_field_index("add")
    pq.write_table(actions.set_column(at, actions.schema.field(at), broken), checkpoint)

    with pytest.raises(CheckpointError, match=rf"{re.escape(checkpoint.name)} .*no UTF-8"):
        delta_table(path).files().to_arrow()


def test_an_empty_commit_is_no_commit_without_actions(tmp_path: Path) -> None:
    path = write_history(random_history(Random(1), commits=4), tmp_path / "table")
    (path / "_delta_log" / f"{3:020}.json").write_bytes(b"")

    with pytest.raises(CorruptLogError, match=r"00003\.json of .* is empty"):
        delta_table(path).files().to_arrow()
    assert delta_table(path, version=2).files().to_arrow() is not None


def _removal(text: bytes, tmp_path: Path, engine: str = "arrow") -> int:
    """How many files are live after the only file was removed by such a line."""
    path = write_history(random_history(Random(5), commits=1), tmp_path / "table")
    log = path / "_delta_log"
    head = [x for x in (log / f"{0:020}.json").read_bytes().splitlines() if b'"add"' not in x]
    add = b'{"add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, '
    (log / f"{0:020}.json").write_bytes(b"\n".join([*head, add + b'"dataChange": true}}']))
    (log / f"{1:020}.json").write_bytes(text)
    return len(delta_table(path).files(engine=engine).to_arrow())


def test_a_removal_removes(tmp_path: Path) -> None:
    assert _removal(b'{"remove": {"path": "a", "dataChange": true}}', tmp_path) == 0


MISFITS = [
    b'{"remove": -1}',
    b'{"remove": {"path": ["a"], "dataChange": true}}',
    b'{"remove": {"path": "a\xe2", "dataChange": true}}',
]


@pytest.mark.parametrize("text", MISFITS)
def test_an_action_that_does_not_fit_is_an_error(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(CorruptLogError, match=r"line 1 of .*00001\.json"):
        _removal(text, tmp_path)


@pytest.mark.spark
def test_an_action_that_does_not_fit_is_an_error_on_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    assert _removal(b'{"remove": {"path": "a", "dataChange": true}}', tmp_path, "spark") == 0
    for number, text in enumerate(MISFITS):
        with pytest.raises(CorruptLogError, match=r"line (1 )?of .*00001\.json"):
            _removal(text, tmp_path / str(number), "spark")


@pytest.mark.parametrize("name", ["schemaString", "partitionColumns", "configuration"])
def test_metadata_without_what_readers_need_is_an_error(name: str, tmp_path: Path) -> None:
    path = write_history(random_history(Random(1), commits=1), tmp_path / "table")
    commit = path / "_delta_log" / f"{0:020}.json"
    commit.write_bytes(commit.read_bytes().replace(name.encode(), b"other"))

    with pytest.raises(CorruptLogError, match=f"{name} is missing"):
        delta_table(path)


def test_a_sidecar_is_read_once_and_has_a_name(tmp_path: Path) -> None:
    history = random_history(Random(1), commits=4, shape=Shape())
    layout = Layout(checkpoints=(Checkpoint(3, "v2_json", files=2),), first=3)
    path = write_history(history, tmp_path / "table", layout)
    manifest = next((path / "_delta_log").glob("*.checkpoint.*.json"))
    lines = manifest.read_bytes().splitlines()
    manifest.write_bytes(b"\n".join([*lines, *(x for x in lines if b'"sidecar"' in x)]))

    assert bag(delta_table(path).scan().to_arrow().to_pylist()) == bag(history.rows(3))

    manifest.write_bytes(b"\n".join([*lines, b'{"sidecar": {"sizeInBytes": 1}}']))
    with pytest.raises(CheckpointError, match=rf"{re.escape(manifest.name)} has no path"):
        delta_table(path).files().to_arrow()


def _read(path: str) -> Counter[str] | None:
    """The rows; None if there was an error that says so."""
    try:
        table = delta_table(path)
        table.files().to_arrow()
        return bag(table.scan().to_arrow(engine="arrow").to_pylist())
    except MillpondError:
        return None

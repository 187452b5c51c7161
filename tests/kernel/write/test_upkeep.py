"""Seals and hashes of what is written; files that are written anew and hold the same rows."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from blake3 import blake3
from tests.kernel.write.tables import FEED, MARKS, actions, append, ids, new_table, ours, theirs

import millpond as mp
from millpond.base.errors import CommitError, CorruptLogError, VersionNotFoundError
from millpond.base.textseals import (
    SEAL,
    UNSEALED,
    check_commit,
    is_intact,
    seal_of,
    sealed,
)
from millpond.kernel.table import delta_table
from millpond.kernel.write import clean_log, write_checkpoint
from millpond.kernel.write.seal import DIGEST
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_every_text_of_a_log_is_sealed(tmp_path: Path) -> None:
    table = append(append(new_table(tmp_path), ids(3)), ids(3, 10))
    write_checkpoint(table)
    files = [file for file in (tmp_path / "_delta_log").iterdir() if file.is_file()]
    texts = [file for file in files if file.suffix != ".parquet"]
    assert {file.suffix for file in texts} == {".json", ".crc", ""}
    for file in texts:
        text = file.read_bytes()
        if file.suffix == ".json":
            check_commit(text, str(file))
            assert seal_of(text) is not None
        else:
            assert is_intact(text)
    assert theirs(tmp_path) == ours(table)


def test_a_text_without_its_own_seal_is_not_intact() -> None:
    member = f'"{SEAL}":"{UNSEALED}"'
    assert is_intact(b"{}") is None
    assert is_intact(f"{{{member},{member}}}".encode()) is None
    assert is_intact(f"{{{member}}}".encode()) is False
    assert is_intact(sealed(f'{{"a":"{UNSEALED}",{member}}}'.encode())) is True


def test_data_files_and_checkpoints_have_their_hashes_noted(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration={**MARKS, **FEED})
    table = append(table, ids(10))
    with table.transaction() as tx:
        tx.delete(mp.col("id") == 3)
    with table.update().transaction() as tx:
        tx.overwrite(ids(2))
    table = table.update()
    for version in range(1, 4):
        for kind in ("add", "remove", "cdc"):
            for action in actions(tmp_path, version).get(kind, ()):
                content = (tmp_path / action["path"]).read_bytes()
                assert action["tags"][DIGEST] == blake3(content).hexdigest()
    checksum = tmp_path / "_delta_log" / f"{3:020}.crc"
    before = json.loads(checksum.read_bytes())
    (path,) = write_checkpoint(table).paths
    text = checksum.read_bytes()
    noted = json.loads(text)[DIGEST]
    assert is_intact(text)
    assert {**json.loads(text), SEAL: ""} == {**before, DIGEST: noted, SEAL: ""}
    assert noted == {path: blake3((tmp_path / path).read_bytes()).hexdigest()}
    files = delta_table(tmp_path).files()["tags"].to_pylist()
    assert all(dict(tags)[DIGEST] for tags in files)


def test_files_are_rearranged(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration={**MARKS, **FEED})
    for number in range(5):
        table = append(table, ids(2, 10 * number))
    with table.transaction() as tx:
        tx.delete(mp.col("id") == 21)
    table = table.update()
    files = table.files(columns=("path", "modificationTime")).to_arrow().to_pylist()
    files.sort(key=lambda file: file["modificationTime"])
    before = table.scan().oldest_first().to_arrow()
    with table.transaction() as tx:
        assert tx.rearrange(file["path"] for file in files[1:4]) == 1
    newer = table.update()
    assert len(newer.files()) == 3
    assert newer.scan().oldest_first().to_arrow().equals(before)
    done = actions(tmp_path, newer.version)
    assert [action["dataChange"] for action in done["add"] + done["remove"]] == [False] * 4
    assert done["commitInfo"][0]["operation"] == "OPTIMIZE"
    assert sorted(map(str, theirs(tmp_path))) == sorted(map(str, ours(newer)))
    assert newer.files()["deletionVector"].null_count == 3
    # Whoever reads changes sees none.
    assert newer.changes(newer.version).to_arrow().num_rows == 0
    with pytest.raises(CommitError, match="is no live file"), newer.transaction() as tx:
        tx.rearrange([files[1]["path"]])


def test_partitions_and_names_of_columns_stay_when_files_are_rearranged(tmp_path: Path) -> None:
    schema = Struct.of(id=LONG, site=STRING)
    table = new_table(tmp_path, schema, {"delta.columnMapping.mode": "name"}, ["site"])
    for number in range(3):
        table = append(table, [*ids(2, 10 * number, site="a"), *ids(1, 90 + number, site="b")])
    with table.transaction() as tx:
        assert tx.rearrange(table.files()["path"].to_pylist()) == 2
    newer = table.update()
    assert sorted(map(str, ours(newer))) == sorted(map(str, ours(table)))
    assert len(newer.files(mp.col("site") == "b")) == 1


def test_a_rearrangement_goes_behind_appends_and_not_behind_deletions(tmp_path: Path) -> None:
    table = append(append(new_table(tmp_path), ids(2)), ids(2, 10))
    paths = table.files()["path"].to_pylist()
    tx = table.transaction()
    tx.rearrange(paths)
    append(table, ids(2, 20))
    assert tx.commit().attempts == 2
    assert sorted(row["id"] for row in ours(table.update())) == [0, 1, 10, 11, 20, 21]
    table = table.update()
    tx = table.transaction()
    tx.rearrange(table.files()["path"].to_pylist())
    with table.transaction() as other:
        other.delete(mp.col("id") == 0)
    with pytest.raises(CommitError):
        tx.commit()


@pytest.fixture
def far_west(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as there:
        there.setenv("TZ", "Pacific/Honolulu")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_west")
def test_a_log_is_cleaned_up_to_a_time(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table = append(table, ids(1, number))
    write_checkpoint(table)
    now = datetime.now(UTC)
    assert clean_log(table, before=now - timedelta(hours=1)).paths == ()
    assert clean_log(table, before=now.replace(tzinfo=None) - timedelta(hours=1)).paths == ()
    with pytest.raises(VersionNotFoundError, match="no timestamp"):
        clean_log(table, before="soon")  # type: ignore[arg-type]
    assert len(clean_log(table, before=now + timedelta(hours=1)).paths) > 3
    assert sorted(row["id"] for row in ours(delta_table(tmp_path))) == [0, 1, 2]


def test_who_reads_a_version_that_was_cleaned_up_is_told_so(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table = append(table, ids(1, number))
        if number:
            write_checkpoint(table)
    old = [delta_table(tmp_path, version=number) for number in (1, 2)]
    clean_log(table, before=datetime.now(UTC) + timedelta(hours=1))
    for stale in old:  # one is read by commits, one by a checkpoint
        with pytest.raises(CorruptLogError, match="open it anew"):
            ours(stale)
        assert sorted(row["id"] for row in ours(stale.update())) == [0, 1, 2]

"""Damaged logs of our own tables: what is read is what was written, or there is an error."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.write.tables import FEED, append, ids, new_table

from millpond import delta_table
from millpond.base.errors import CorruptLogError, MillpondError
from millpond.base.store import open_store
from millpond.kernel.commits import commits_since, parse_commit, read_commit
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.kernel.write.commit import encode_commit
from millpond.kernel.write.compact import compact_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millpond.kernel.table import DeltaTable


def made(path: Path) -> DeltaTable:
    """A table whose log has files of every kind of text, and a removed file."""
    table = append(append(new_table(path, configuration=FEED), ids(2)), ids(2, 10))
    with table.transaction() as tx:
        tx.overwrite(ids(1, 20))
    table = append(append(table.update(), ids(1, 30)), ids(1, 40))
    write_checkpoint(delta_table(path, 3))
    return append(table, ids(1, 50))


def read(path: Path, *, changes: bool = True) -> Any:
    """All that is read out of a log, by the paths that read it in different ways."""
    table = delta_table(path)
    store = open_store(table.location)
    found = [
        sorted(table.files(columns=("path", "size", "stats")).to_arrow().to_pylist(), key=str),
        str(table.schema),
        table.version,
        table.metadata.configuration,
        [(h["version"], h["operation"], h["txnId"]) for h in table.history()],
        [(c.version, c.actions.get("add"), c.info["txnId"]) for c in commits_since(store, 0, "t")],
    ]
    if changes:
        table.changes(1).state_machine().run_to_terminal()
    return found


def texts(path: Path) -> list[Path]:
    """The texts of a log."""
    return sorted(f for f in (path / "_delta_log").iterdir() if f.suffix != ".parquet")


def flipped(content: bytes) -> Iterator[bytes]:
    """One bit of every eleventh byte, each another one."""
    for place in range(0, len(content), 11):
        bit = 1 << (place // 11 % 8)
        yield content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def cut(content: bytes) -> Iterator[bytes]:
    """The beginnings of a content, one that ends with each line among them."""
    lines = content.splitlines(keepends=True)
    yield from (b"".join(lines[:count]) for count in range(len(lines)))
    yield from (content[:size] for size in range(1, len(content), 97))
    yield content[:-1]


@pytest.mark.parametrize("damage", [flipped, cut])
def test_damage_to_a_text_of_the_log_is_never_silently_wrong(
    tmp_path: Path, damage: Callable[[bytes], Iterator[bytes]]
) -> None:
    made(tmp_path)
    truth, found = read(tmp_path), 0
    for file in texts(tmp_path):
        content = file.read_bytes()
        for damaged in damage(content):
            file.write_bytes(damaged)
            try:
                answer = read(tmp_path, changes=False)
            except MillpondError as error:
                assert file.suffix == ".json", f"{file.name}: {error}"  # noqa: PT017
                found += 1
            else:
                assert answer == truth, f"{file.name}: {damaged!r}"
        file.write_bytes(content)
    assert found > 100
    assert read(tmp_path) == truth


def test_an_action_whose_name_was_damaged_is_an_error_on_every_way(tmp_path: Path) -> None:
    made(tmp_path)
    file = tmp_path / "_delta_log" / f"{5:020}.json"
    file.write_bytes(file.read_bytes().replace(b'"add"', b'"`dd"'))
    table = delta_table(tmp_path)
    ways: list[Callable[[], object]] = [
        lambda: table.files().to_arrow(),
        lambda: table.scan().to_arrow(),
        lambda: table.history(),
        lambda: table.changes(5).to_arrow(),
        lambda: table.app_transactions,
        lambda: read_commit(open_store(table.location), 5, table.location),
        lambda: write_checkpoint(table),
    ]
    for way in ways:
        with pytest.raises(CorruptLogError, match="its content does not fit its seal"):
            way()


def test_a_commit_that_others_have_changed_has_no_seal_to_fit(tmp_path: Path) -> None:
    table = made(tmp_path)
    file = tmp_path / "_delta_log" / f"{6:020}.json"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["commitInfo"] = {"engineInfo": "another writer"}
    file.write_text("\n".join(map(json.dumps, [*lines, {"unknown": {}}])))
    assert len(delta_table(tmp_path).files()) == len(table.files())
    assert read_commit(open_store(table.location), 6, table.location).seal is None


def test_a_large_commit_is_checked_before_its_first_row_is_given(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    adds = [
        {"path": f"{number:0200}", "partitionValues": {}, "size": 1, "modificationTime": 1}
        for number in range(12_000)
    ]
    with table.transaction() as tx:
        tx.add_files(adds)
    assert len(delta_table(tmp_path).files()) == len(adds)
    file = tmp_path / "_delta_log" / f"{1:020}.json"
    content = file.read_bytes()
    assert len(content) > 2 << 20
    file.write_bytes(content[:-3] + b"]}\n")
    rows: list[Any] = []
    with pytest.raises(CorruptLogError, match="does not fit its seal"):
        rows.extend(delta_table(tmp_path).files().batches())
    assert not rows


def test_commits_that_changed_places_are_found(tmp_path: Path) -> None:
    made(tmp_path)
    one, other = (tmp_path / "_delta_log" / f"{n:020}.json" for n in (5, 6))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    with pytest.raises(CorruptLogError, match="does not fit its seal"):
        delta_table(tmp_path).files().to_arrow()


def test_a_commit_knows_the_one_before_it(tmp_path: Path) -> None:
    table = made(tmp_path)
    store = open_store(table.location)
    commits = list(commits_since(store, 0, table.location))
    assert [commit.version for commit in commits] == list(range(7))
    for before, commit in pairwise(commits):
        assert before.seal is not None
        assert commit.info["millpondPrevious"] == before.seal
    file = tmp_path / "_delta_log" / f"{5:020}.json"
    info = {**commits[5].info, "timestamp": 1}
    others = [(k, a) for k, found in commits[5].actions.items() for a in found if k != "commitInfo"]
    file.write_bytes(encode_commit([("commitInfo", info), *others], 5))
    with pytest.raises(CorruptLogError, match="version 6 was put on top of another commit"):
        list(commits_since(store, 0, table.location))


def test_a_compaction_is_sealed(tmp_path: Path) -> None:
    table = made(tmp_path)
    file = tmp_path / compact_log(table, 4, 6)
    assert len(delta_table(tmp_path).files()) == len(table.files())
    file.write_bytes(file.read_bytes().replace(b'"add"', b'"`dd"', 1))
    with pytest.raises(CorruptLogError, match=r"compaction .* does not fit its seal"):
        delta_table(tmp_path).files().to_arrow()


def test_a_commit_without_any_action_is_an_error() -> None:
    for text in (b"", b"\n \n"):
        with pytest.raises(CorruptLogError, match="it holds no action"):
            parse_commit(text, 3, "/t", f"_delta_log/{3:020}.json")


@pytest.mark.spark
def test_spark_reads_no_damaged_commit(tmp_path: Path) -> None:
    made(tmp_path)
    copy = shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-copy")
    assert len(delta_table(copy).files(engine="spark").to_arrow()) == 4
    file = copy / "_delta_log" / f"{6:020}.json"
    content = file.read_bytes()
    for damaged in (content.replace(b'"add"', b'"`dd"'), content.splitlines(keepends=True)[0]):
        file.write_bytes(damaged)
        with pytest.raises(CorruptLogError, match="does not fit its seal"):
            delta_table(copy).files(engine="spark").to_arrow()

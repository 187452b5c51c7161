"""Delta's conflict rules: for each a commit in between that disturbs, and one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.write.tables import (
    MARKS,
    PLAIN,
    append,
    data_files,
    id_list,
    ids,
    known_files,
    new_table,
    ours,
    theirs,
)

import millpond as mp
from millpond.base.errors import ConflictError, SchemaError
from millpond.kernel.commits import Commit
from millpond.kernel.write.conflicts import Mine, Reads, check_conflict
from millpond.plan.types import LONG, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.kernel.table import DeltaTable
    from millpond.kernel.write import Transaction

    Step = Callable[[Transaction], Any]


@pytest.fixture(params=[{}, MARKS], ids=["rewriting", "marking"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> DeltaTable:
    """Two files: ids 0 to 4 of site a, ids 10 to 14 of site b."""
    made = new_table(tmp_path, configuration=request.param, partition_by=["site"])
    return append(append(made, ids(5, site="a")), ids(5, 10, site="b"))


def delete(predicate: Any) -> Step:
    return lambda tx: tx.delete(predicate)


def add(*rows: dict[str, Any]) -> Step:
    return lambda tx: tx.append(list(rows))


def rearrange(tx: Transaction) -> None:
    """Write a live file's rows anew without a change, as compaction does."""
    (old,) = tx.table.files(mp.col("site") == "a").to_arrow().to_pylist(maps_as_pydicts="strict")
    tx.append(ours(tx.table, predicate=mp.col("site") == "a"))
    for action in tx.pending.adds.values():
        action["dataChange"] = False
    tx.remove_files([old["path"]], data_change=False)


def race(table: DeltaTable, first: Step, second: Step, **how: Any) -> list[int]:
    """The second one began before the first one committed; the ids that are there in the end."""
    slow, fast = table.transaction(**how), table.transaction()
    second(slow)
    first(fast)
    fast.commit()
    slow.commit()
    found = table.update()
    assert slow.result is not None
    assert (slow.result.version, slow.result.attempts) == (table.version + 2, 2)
    assert id_list(theirs(table.location)) == id_list(ours(found))
    return id_list(ours(found))


def refused(table: DeltaTable, first: Step, second: Step, what: str, **how: Any) -> None:
    """The second one is refused, and leaves nothing behind."""
    slow, fast = table.transaction(**how), table.transaction()
    second(slow)
    first(fast)
    fast.commit()
    with pytest.raises(ConflictError, match=what) as caught:
        slow.commit()
    assert caught.value.version == table.version + 1
    after = table.update()
    assert after.version == table.version + 1
    assert data_files(_path(table)) == known_files(after)


def _path(table: DeltaTable) -> Path:
    from pathlib import Path

    return Path(table.location)


SERIAL = {"isolation": "Serializable"}
ROW = {"id": 99, "site": "a"}


def test_appends_disturb_nobody(table: DeltaTable) -> None:
    assert race(table, add(ROW), add({"id": 100})) == [*range(5), *range(10, 15), 99, 100]


def test_files_that_both_remove(table: DeltaTable) -> None:
    refused(table, delete(mp.col("id") == 1), delete(mp.col("id") == 2), "which this one removes")


def test_files_that_each_removes_one_of(table: DeltaTable) -> None:
    left = race(table, delete(mp.col("id") == 1), delete(mp.col("id") == 12))
    assert left == [0, 2, 3, 4, 10, 11, 13, 14]


def test_a_file_that_was_read_is_removed(table: DeltaTable) -> None:
    # Both files may hold ids above 3 by their statistics, but only one does.
    second = delete((mp.col("id") + 0) >= 12)
    refused(table, delete(mp.col("site") == "a"), second, "which this one has read")


def test_a_file_that_was_not_read_is_removed(table: DeltaTable) -> None:
    assert race(table, delete(mp.col("site") == "a"), delete(mp.col("id") >= 12)) == [10, 11]


def test_blind_appends_come_second_unless_serializable(table: DeltaTable) -> None:
    second = delete(mp.col("site") == "a")
    assert race(table, add(ROW), second) == [*range(10, 15), 99]


def test_blind_appends_disturb_serializable_readers(table: DeltaTable) -> None:
    refused(table, add(ROW), delete(mp.col("site") == "a"), "has looked for rows", **SERIAL)


def test_blind_appends_elsewhere_disturb_nobody(table: DeltaTable) -> None:
    other = add({"id": 98, "site": "c"})
    assert race(table, other, delete(mp.col("site") == "a"), **SERIAL) == [*range(10, 15), 98]


def test_the_table_says_how_strict_it_is(table: DeltaTable) -> None:
    with table.transaction() as tx:
        tx.set_metadata(configuration={"delta.isolationLevel": "Serializable"})
    strict = table.update()
    assert strict.transaction().isolation == "Serializable"
    refused(strict, add(ROW), delete(mp.col("site") == "a"), "has looked for rows")


def test_appends_that_read_disturb_who_looks_there(table: DeltaTable) -> None:
    def first(tx: Transaction) -> None:
        tx.delete(mp.col("site") == "b")
        tx.append([ROW])

    refused(table, first, delete(mp.col("site") == "a"), "has looked for rows")


def test_appends_that_read_disturb_nobody_who_looks_elsewhere(table: DeltaTable) -> None:
    def first(tx: Transaction) -> None:
        tx.delete(mp.col("site") == "b")
        tx.append([{"id": 97, "site": "b"}])

    assert race(table, first, delete(mp.col("site") == "a")) == [97]


def test_predicates_go_by_statistics(table: DeltaTable) -> None:
    def first(tx: Transaction) -> None:
        tx.delete(mp.col("site") == "b")
        tx.append([{"id": 1000, "site": "a"}])

    assert race(table, first, delete(mp.col("id") < 3)) == [3, 4, 1000]


def test_who_reads_everything_sees_every_append(table: DeltaTable) -> None:
    refused(table, add(ROW), delete(None), "has looked for rows", **SERIAL)
    assert race(table.update(), add({"id": 1}), delete(None)) == [1]


def test_metadata_and_protocol(table: DeltaTable) -> None:
    def rename(tx: Transaction) -> None:
        tx.set_metadata(name="new")

    refused(table, rename, add(ROW), "changed the table's metadata")
    table = table.update()
    assert race(table, add(ROW), rename)[-1] == 99
    table = table.update()

    def upgrade(tx: Transaction) -> None:
        tx.domain_metadata("d", "1")

    refused(table, upgrade, add(ROW), "changed the protocol")


def test_who_changes_metadata_minds_blind_appends_where_it_read(table: DeltaTable) -> None:
    def second(tx: Transaction) -> None:
        tx.set_metadata(schema=Struct((*PLAIN.fields, Field("v", LONG))))
        tx.delete(mp.col("site") == "a")

    refused(table, add(ROW), second, "has looked for rows")


def test_domains(tmp_path: Path) -> None:
    def set_domain(name: str) -> Step:
        return lambda tx: tx.domain_metadata(name, "x")

    table = new_table(tmp_path, configuration={"delta.feature.domainMetadata": "supported"})
    assert race(table, set_domain("one"), set_domain("two")) == []
    refused(table.update(), set_domain("one"), set_domain("one"), "the same domain 'one'")


def test_app_transactions(tmp_path: Path) -> None:
    def app(name: str, version: int) -> Step:
        return lambda tx: tx.app_transaction(name, version)

    table = new_table(tmp_path)
    assert race(table, app("one", 1), app("two", 1)) == []
    refused(table.update(), app("one", 2), app("one", 3), "the same application 'one'")


def test_rearranged_files_disturb_who_removes_them(table: DeltaTable) -> None:
    refused(table, rearrange, delete(mp.col("id") == 1), "which this one removes")
    refused(table.update(), delete(mp.col("id") == 1), rearrange, "which this one removes")


def test_rearranging_minds_no_appends(table: DeltaTable) -> None:
    assert race(table, add(ROW), rearrange, **SERIAL) == [*range(5), *range(10, 15), 99]
    info = table.update().history(1)[0]
    assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", False)


def winner(*adds: dict[str, Any], blind: bool | None = None) -> Commit:
    info = {} if blind is None else {"isBlindAppend": blind}
    return Commit(7, {"commitInfo": [info], "add": list(adds)})


@pytest.mark.parametrize(
    ("isolation", "change", "blind", "metadata", "conflicts"),
    [
        ("Serializable", True, True, False, True),
        ("Serializable", False, False, False, True),
        ("WriteSerializable", True, True, False, False),
        ("WriteSerializable", True, True, True, True),
        ("WriteSerializable", True, False, False, True),
        ("WriteSerializable", True, None, False, True),
        ("WriteSerializable", False, False, False, False),
        ("SnapshotIsolation", True, False, False, False),
        ("SnapshotIsolation", True, True, True, False),
    ],
)
def test_added_files_by_isolation(
    isolation: Any, change: bool, blind: bool | None, metadata: bool, conflicts: bool
) -> None:
    reads = Reads(matches=[lambda adds: [True] * len(adds)])
    mine = Mine(frozenset(), frozenset(), frozenset(), changes_metadata=metadata)
    theirs = winner({"path": "f", "dataChange": change}, blind=blind)
    if conflicts:
        with pytest.raises(ConflictError, match="added f, where"):
            check_conflict(theirs, mine, reads, isolation, "t")
    else:
        check_conflict(theirs, mine, reads, isolation, "t")
    check_conflict(theirs, mine, Reads(), isolation, "t")


def test_one_vector_is_not_another() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1}
    removed = Commit(7, {"remove": [{"path": "file:/a", "deletionVector": vector}]})
    mine = Mine(frozenset({("/a", "ux@1")}), frozenset(), frozenset(), changes_metadata=False)
    with pytest.raises(ConflictError, match="removed /a"):
        check_conflict(removed, mine, Reads(), "WriteSerializable", "t")
    other = Mine(frozenset({("/a", None)}), frozenset(), frozenset(), changes_metadata=False)
    check_conflict(removed, other, Reads(), "WriteSerializable", "t")


def test_an_old_version_goes_on_behind_all_others(table: DeltaTable) -> None:
    latest = table
    for number in range(12):  # past a checkpoint
        latest = append(latest, [{"id": 100 + number, "site": "c"}])
    with table.transaction() as tx:
        assert tx.delete(mp.col("site") == "a") == 5
    assert tx.result is not None
    assert tx.result.version == latest.version + 1
    assert id_list(ours(table.update())) == [*range(10, 15), *range(100, 112)]


def test_a_schema_that_changed_meanwhile_is_a_conflict_not_a_loss(table: DeltaTable) -> None:
    slow = table.transaction()
    slow.append([{"id": 5, "site": "a"}])
    with table.transaction() as tx:
        tx.set_metadata(schema=Struct((*PLAIN.fields, Field("v", LONG))))
    with pytest.raises(ConflictError, match="metadata"):
        slow.commit()
    with pytest.raises(SchemaError, match="no column 'v'"):
        table.transaction().append([{"id": 5, "v": 1}])
    append(table.update(), [{"id": 5, "v": 1}])

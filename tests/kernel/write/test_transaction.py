"""Transactions on one table: what each step does, and what a commit says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.kernel.handmade import rewrite
from tests.kernel.write.tables import (
    FEED,
    MARKS,
    PLAIN,
    actions,
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
from millpond.base.errors import (
    CommitError,
    DataFileMissingError,
    PlanError,
    RepeatedTransactionError,
    SchemaError,
    StoreError,
    TypeMismatchError,
    UnsupportedFeatureError,
)
from millpond.kernel.table import delta_table
from millpond.kernel.write import create_table
from millpond.kernel.write.pending import Pending
from millpond.plan.types import BINARY, DATE, INTEGER, LONG, NULL, STRING, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.kernel.table import DeltaTable
    from millpond.kernel.write import Transaction
    from millpond.plan.expr import Expr

BOTH = pytest.mark.parametrize("configuration", [{}, MARKS], ids=["rewriting", "marking"])


def same_for_both(table: DeltaTable) -> list[int]:
    found = id_list(ours(table))
    assert id_list(theirs(table.location)) == found
    return found


@BOTH
def test_delete_by_predicate(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = append(new_table(tmp_path, configuration=configuration), ids(10))
    with table.transaction() as tx:
        assert tx.delete(mp.col("id") < 3) == 3
    table = table.update()
    assert same_for_both(table) == list(range(3, 10))
    (add,) = actions(tmp_path, 2)["add"]
    stats = json.loads(add["stats"])
    if configuration:
        assert add["deletionVector"]["cardinality"] == 3
        assert (stats["numRecords"], stats["tightBounds"]) == (10, False)
        assert stats["minValues"]["id"] == 0, "wide, but right"
    else:
        assert "deletionVector" not in add
        assert (stats["numRecords"], stats["tightBounds"]) == (7, True)
        assert stats["minValues"]["id"] == 3
    with table.transaction() as tx:
        assert tx.delete(mp.col("id") < 5) == 2
        assert tx.delete(mp.col("id") == 77) == 0
    table = table.update()
    assert same_for_both(table) == list(range(5, 10))
    with table.transaction() as tx:
        assert tx.delete(mp.col("id") >= 5) == 5
    table = table.update()
    assert same_for_both(table) == []
    assert len(table.files()) == 0
    assert "add" not in actions(tmp_path, 4)


@BOTH
def test_steps_of_one_transaction_see_each_other(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = append(new_table(tmp_path, configuration=configuration), ids(10))
    with table.transaction() as tx:
        tx.append(ids(10, 10))
        assert tx.delete(mp.col("id") % 2 == 0) == 10
        assert tx.delete(mp.col("id") % 3 == 0) == 3  # 3, 9, 15
        assert tx.delete(mp.col("id") == 1) == 1
        tx.append(ids(2, 100))
        assert tx.delete(mp.col("id") == 101) == 1
    table = table.update()
    assert same_for_both(table) == [5, 7, 11, 13, 17, 19, 100]
    assert data_files(tmp_path) == known_files(table)


@BOTH
@pytest.mark.parametrize("never", [mp.lit(False), mp.lit(None).cast("boolean")])
def test_a_predicate_that_is_never_true(
    tmp_path: Path, configuration: dict[str, str], never: Expr
) -> None:
    table = append(new_table(tmp_path, configuration=configuration), ids(3))
    assert ours(table, predicate=never) == ours(table, predicate=never & (mp.col("id") == 1)) == []
    assert len(table.files(never)) == 0
    with table.transaction() as tx:
        assert tx.delete(never) == 0
        tx.overwrite([], never)
    assert same_for_both(table.update()) == [0, 1, 2]


@BOTH
def test_delete_everything_counts_rows(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = append(new_table(tmp_path, configuration=configuration), ids(10))
    with table.transaction() as tx:
        tx.delete(mp.col("id") < 4)
        tx.append(ids(3, 20))
        assert tx.delete() == 9
    table = table.update()
    assert same_for_both(table) == []
    assert data_files(tmp_path) == known_files(table)


def test_rows_are_counted_where_statistics_do_not_tell(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration=MARKS), ids(10))
    with table.transaction() as tx:
        tx.delete(mp.col("id") < 4)
    table = table.update()
    (add,) = table.files().to_arrow().to_pylist(maps_as_pydicts="strict")
    with table.transaction() as tx:
        tx.remove_files([add["path"]])
        tx.add_files([{**add, "stats": None}])
    table = table.update()
    tx = table.transaction()
    assert tx.delete() == 6
    tx.rollback()


@BOTH
def test_overwrite(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = append(new_table(tmp_path, configuration=configuration), ids(10, site="a"))
    with table.transaction() as tx:
        tx.overwrite(ids(2, 5), mp.col("id") >= 5)
    table = table.update()
    assert same_for_both(table) == [0, 1, 2, 3, 4, 5, 6]
    with table.transaction() as tx:
        # Computed from the rows that it takes the place of.
        tx.overwrite(table.scan().plan().with_columns(id=mp.col("id") + 100))
    table = table.update()
    assert same_for_both(table) == [100, 101, 102, 103, 104, 105, 106]
    with table.transaction() as tx:
        tx.overwrite([])
    table = table.update()
    assert same_for_both(table) == []


def test_an_overwrite_refuses_rows_beside_its_predicate(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(3))
    before = data_files(tmp_path)
    with pytest.raises(SchemaError, match="does not satisfy"), table.transaction() as tx:
        tx.overwrite([{"id": 1}, {"id": None}], mp.col("id") > 0)
    assert table.update().version == 1
    assert data_files(tmp_path) == before


def changes(table: DeltaTable, version: int) -> list[tuple[str, int]]:
    rows = table.changes(version, version).to_arrow().to_pylist()
    return sorted((row["_change_type"], row["id"]) for row in rows)


@BOTH
def test_the_change_feed_tells_all_that_a_commit_did(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = new_table(tmp_path, configuration={**configuration, **FEED})
    table = append(append(table, ids(4)), ids(4, 10))
    table = append(table, ids(2, 20))
    with table.transaction() as tx:
        tx.delete(mp.col("id") <= 1)  # part of a file
        tx.delete(mp.col("id").isin([2, 3]))  # the rest of it
        tx.delete(mp.col("id") == 10)
        (path,) = (row["path"] for row in table.files(mp.col("id") == 20).to_arrow().to_pylist())
        tx.remove_files([path])
        tx.append(ids(3, 30))
        tx.delete(mp.col("id") == 31)  # came and went within the transaction
    table = table.update()
    expected = [("delete", i) for i in (0, 1, 2, 3, 10, 20, 21)]
    assert changes(table, 4) == [*expected, ("insert", 30), ("insert", 32)]
    assert same_for_both(table) == [11, 12, 13, 30, 32]
    assert data_files(tmp_path) == known_files(table)
    with table.transaction() as tx:
        tx.overwrite(ids(2, 11), mp.col("id") < 13)
    table = table.update()
    told = [("delete", 11), ("delete", 12), ("insert", 11), ("insert", 12)]
    assert changes(table, 5) == told
    with table.transaction() as tx:
        tx.delete(mp.col("id") == 30)
        tx.overwrite(ids(1, 99))
    table = table.update()
    gone = [("delete", i) for i in (11, 12, 13, 30, 32)]
    assert changes(table, 6) == [*gone, ("insert", 99)]
    assert "cdc" not in actions(tmp_path, 6)
    assert data_files(tmp_path) == known_files(table)


def test_change_data_is_read_by_others(tmp_path: Path) -> None:
    from deltalake import DeltaTable as RustTable

    table = append(new_table(tmp_path, configuration=FEED, partition_by=["site"]), ids(5, site="a"))
    with table.transaction() as tx:
        tx.overwrite(
            [{"id": 50, "site": "b"}, {"id": 0, "site": "a"}], mp.col("id").isin([0, 1, 50])
        )
    rows = pa.table(RustTable(str(tmp_path)).load_cdf(2).read_all()).to_pylist()
    found = sorted((row["_change_type"], row["id"], row["site"]) for row in rows)
    assert found == [
        ("delete", 0, "a"),
        ("delete", 1, "a"),
        ("insert", 0, "a"),
        ("insert", 50, "b"),
    ]


def test_remove_and_add_files(tmp_path: Path) -> None:
    table = append(append(new_table(tmp_path), ids(3)), ids(3, 10))
    files = table.files().to_arrow().to_pylist(maps_as_pydicts="strict")
    gone = next(f for f in files if json.loads(f["stats"])["minValues"]["id"] == 0)
    with table.transaction() as tx:
        tx.remove_files([gone["path"]])
    table = table.update()
    assert same_for_both(table) == [10, 11, 12]
    with table.transaction() as tx:
        tx.add_files([gone])
    table = table.update()
    assert same_for_both(table) == [0, 1, 2, 10, 11, 12]
    with pytest.raises(CommitError, match="nowhere is no live file"):
        table.transaction().remove_files([gone["path"], "nowhere"])


FILE: dict[str, Any] = {
    "path": "a",
    "size": 1,
    "modificationTime": 1,
    "stats": '{"numRecords":1}',
    "partitionValues": {"site": None, "day": "2024-05-31"},
}


@pytest.mark.parametrize(
    ("add", "message"),
    [
        ({"path": "a", "size": 1, "modificationTime": 1, "colour": 1}, "no member 'colour'"),
        ({"path": "a", "size": 1}, "needs a modificationTime"),
        ({"size": 1, "modificationTime": 1}, "needs a path"),
        ({"path": "a", "size": 1, "modificationTime": 1}, "partition values for"),
        (
            {"path": "a", "size": 1, "modificationTime": 1, "partitionValues": {"x": "1"}},
            "partition values for",
        ),
        ({"path": 5, "size": 1, "modificationTime": 1}, "no add action"),
        ({"path": "a", "size": 1, "modificationTime": 1, "stats": {}}, "no add action"),
        (5, "no add action"),
        ({**FILE, "partitionValues": {"site": "a", "day": "soon"}}, "'soon' for 'day'.*no date"),
        ({**FILE, "stats": "[1]"}, "no JSON object"),
        ({**FILE, "stats": '{"numRecords":NaN}'}, "no JSON object"),
        ({**FILE, "deletionVector": {"storageType": "i"}}, "does not allow"),
    ],
)
def test_add_actions_are_checked(tmp_path: Path, add: dict[str, Any], message: str) -> None:
    schema = Struct.of(id=LONG, site=STRING, day=DATE)
    table = new_table(tmp_path, schema, partition_by=["site", "day"])
    table.transaction().add_files([FILE])
    with pytest.raises(SchemaError, match=message):
        table.transaction().add_files([add])


def test_append_only(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration={"delta.appendOnly": "true"}), ids(3))
    before = data_files(tmp_path)
    steps: list[Callable[[Transaction], Any]] = [
        lambda tx: tx.delete(mp.col("id") == 1),
        lambda tx: tx.delete(),
        lambda tx: tx.overwrite(ids(1)),
        lambda tx: tx.remove_files([table.files()["path"][0].as_py()]),
    ]
    for step in steps:
        with pytest.raises(CommitError, match="append-only"), table.transaction() as tx:
            step(tx)
    assert data_files(tmp_path) == before
    table = append(table, ids(3, 10))
    with table.transaction() as tx:
        tx.set_metadata(configuration={"delta.appendOnly": "false"})
        assert tx.delete(mp.col("id") < 2) == 2
    assert same_for_both(table.update()) == [2, 10, 11, 12]


def test_app_transactions_are_taken_once(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as tx:
        tx.append(ids(1))
        tx.app_transaction("job", 3)
    fresh = table.update()
    for opened in (table, fresh):  # the repetition is in the log, or comes to light in the race
        for number in (2, 3):
            tx = opened.transaction()
            tx.append(ids(1))
            tx.app_transaction("job", number)
            with pytest.raises(
                RepeatedTransactionError, match="has version 3 of the application 'job'"
            ):
                tx.commit()
            tx = opened.transaction()
            tx.append(ids(1))
            tx.app_transaction("job", number)
            result = tx.commit(on_repeated="skip")
            assert (result.skipped, result.version, tx.result) == (True, 1, result)
    assert fresh.update().version == 1
    assert data_files(tmp_path) == known_files(fresh)
    with fresh.transaction() as tx:
        tx.app_transaction("job", 4)
        tx.app_transaction("other", 1)
    found = fresh.update().app_transactions
    assert {app: txn.version for app, txn in found.items()} == {"job": 4, "other": 1}


def test_domains(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as tx:
        tx.domain_metadata("mine", '{"a": 1}')
        tx.domain_metadata("yours", "x")
    table = table.update()
    assert table.protocol.writes("domainMetadata")
    assert table.protocol.writes("appendOnly"), "what the version before stood for is kept"
    with table.transaction() as tx:
        tx.domain_metadata("yours", removed=True)
    table = table.update()
    assert {d.domain: d.configuration for d in table.domain_metadata.values()} == {
        "mine": '{"a": 1}'
    }
    with pytest.raises(CommitError, match="Delta's own"):
        table.transaction().domain_metadata("delta.mine")
    assert theirs(tmp_path) == []


def test_commit_info(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["site"])
    created = actions(tmp_path, 0)["commitInfo"][0]
    assert created["operation"] == "CREATE TABLE"
    assert created["operationParameters"] == {"partitionBy": '["site"]'}
    info = {"pond": "p1", "txnId": "can't be forged", "isBlindAppend": "nor this"}
    table = append(table, ids(3, site="a"), info=info, user_metadata="why")
    with table.transaction(operation="MERGE") as tx:
        tx.delete(mp.col("id") == 1)
    first, second = (actions(tmp_path, v)["commitInfo"][0] for v in (1, 2))
    assert first["operation"] == "WRITE"
    assert first["operationParameters"] == {"mode": "Append"}
    assert (first["isBlindAppend"], first["readVersion"]) == (True, 0)
    assert (first["pond"], first["userMetadata"]) == ("p1", "why")
    assert first["operationMetrics"] == {
        "numAddedFiles": "1",
        "numRemovedFiles": "0",
        "numOutputRows": "3",
    }
    assert first["engineInfo"].startswith("Millpond/")
    assert len(first["txnId"]) == 36
    assert (second["operation"], second["isBlindAppend"]) == ("MERGE", False)
    assert second["operationParameters"] == {"predicate": '["(id = 1)"]'}
    assert second["operationMetrics"]["numOutputRows"] == "2"


NONE = pa.array([], pa.int64())


@pytest.mark.parametrize(
    "rows", [[], pa.table({"id": NONE}), pa.RecordBatch.from_pydict({"id": NONE})]
)
def test_no_rows_are_no_files(tmp_path: Path, rows: Any) -> None:
    for partition_by in ([], ["site"]):
        path = tmp_path / f"by{len(partition_by)}"
        table = append(new_table(path, partition_by=partition_by), rows)
        assert (table.version, len(table.files()), ours(table)) == (1, 0, [])
        assert theirs(path) == []


def test_what_rows_may_be(tmp_path: Path) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    table = new_table(tmp_path)
    frame = pd.DataFrame({"id": [5], "site": ["p"]})
    given = [
        [{"id": 1}],
        pa.table({"site": ["x"], "id": pa.array([2], pa.int8())}),
        pa.RecordBatch.from_pydict({"id": [3]}),
        mp.values([{"id": 4}]),
        frame,
        pa.table({"id": [6], "site": pa.array(["d"]).dictionary_encode()}).to_reader(),
    ]
    for rows in given:
        table = append(table, rows)
    assert same_for_both(table) == [1, 2, 3, 4, 5, 6]
    refused: list[tuple[Any, str]] = [
        (7, "can't be made of a int"),
        ([{"id": "7"}], "does not fit"),
        ([{"ids": 7}], "no column 'ids'"),
        (pa.table({"id": ["7"]}), "is string in the rows and long in the table"),
        (pa.table({"id": [7.0]}), "is double in the rows and long in the table"),
        (pa.table({"id": pa.array([2**63], pa.uint64())}), "'id' is uint64"),
        (pa.table({"nope": [7]}), "no column 'nope'"),
        (pa.table([[1], [2]], names=["id", "id"]), "stands twice"),
    ]
    for rows, message in refused:
        with pytest.raises(SchemaError, match=message), table.transaction() as tx:
            tx.append(rows)
    assert data_files(tmp_path) == known_files(table)


NESTED = Struct(
    (
        Field("id", LONG, nullable=False),
        Field("x", Struct((Field("a", LONG, nullable=False), Field("b", STRING)))),
        Field("l", List(LONG, contains_null=False)),
        Field("m", Map(STRING, Struct.of(c=LONG), contains_null=False)),
    )
)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"x": None}, "'id' is null"),
        ({"id": None}, "'id' is null"),
        ({"id": 1, "x": {"b": "y"}}, "'x.a' is null"),
        ({"id": 1, "l": [1, None]}, "'l.element' is null"),
        ({"id": 1, "m": [("k", None)]}, "'m.value' is null"),
        ({"id": 1, "x": {"a": 1, "zz": 1}}, "no column 'x.zz'"),
    ],
)
def test_nulls_where_none_may_be(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    table = new_table(tmp_path, NESTED)
    with pytest.raises(SchemaError, match=message), table.transaction() as tx:
        tx.append([{"id": 0, "x": {"a": 1, "b": "z"}}, row])
    assert data_files(tmp_path) == set()


def test_nested_rows_that_fit(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "x": {"a": 1, "b": None}, "l": [1, 2], "m": {"k": {"c": None}}},
        {"id": 2, "x": None, "l": None, "m": None},
        {"id": 3, "x": {"a": 2, "b": "y"}, "l": [], "m": {}},
    ]
    table = new_table(tmp_path, NESTED)
    plain = pa.Table.from_pylist(
        [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows],
        pa.schema(
            {
                "l": pa.large_list(pa.int16()),
                "x": pa.struct({"b": pa.large_string(), "a": pa.int32()}),
                "id": pa.int32(),
                "m": pa.map_(pa.string(), pa.struct({"c": pa.null()})),
            }
        ),
    )
    table = append(table, plain)
    table = append(table, plain.slice(1))
    assert sorted(ours(table), key=lambda r: r["id"]) == [rows[0], *[rows[1]] * 2, *[rows[2]] * 2]
    assert len(theirs(tmp_path)) == 5


def test_very_wide_rows(tmp_path: Path) -> None:
    schema = Struct(tuple(Field(f"c{i}", LONG if i % 2 else STRING) for i in range(3000)))
    row: dict[str, Any] = {f"c{i}": i if i % 2 else str(i) for i in range(3000)}
    table = append(new_table(tmp_path, schema), [row, {}])
    stats = json.loads(table.files()["stats"][0].as_py())
    assert len(stats["nullCount"]) == 32
    assert ours(table) == [row, dict.fromkeys(row)]


def test_a_long_row_is_written_whole(tmp_path: Path) -> None:
    text = "é" * 5_000_000
    table = append(new_table(tmp_path), [{"id": 1, "site": text}])
    assert ours(table) == [{"id": 1, "site": text}]


def test_partition_values_that_make_no_directory(tmp_path: Path) -> None:
    sites = ["a/b", "", "..", "x" * 5000, "ü%20 =", "line\nbreak", "\x01", None]
    table = new_table(tmp_path, partition_by=["site"])
    table = append(table, [{"id": i, "site": site} for i, site in enumerate(sites)])
    assert {row["id"]: row["site"] for row in ours(table)} == dict(enumerate(sites))
    assert len(table.files(mp.col("site") == "..")) == 1
    with table.transaction() as tx:
        assert tx.delete(mp.col("site") == "x" * 5000) == 1
    assert same_for_both(table.update()) == [0, 1, 2, 4, 5, 6, 7]


def test_many_partitions_at_once(tmp_path: Path) -> None:
    schema = Struct.of(a=INTEGER, b=STRING, c=LONG, v=LONG)
    rows = [{"a": i % 7, "b": str(i % 11), "c": i % 2, "v": i} for i in range(600)]
    table = append(new_table(tmp_path, schema, partition_by=["a", "b", "c"]), rows)
    assert len(table.files()) == 7 * 11 * 2, "more than are written side by side"
    found = ours(table)
    assert sorted(found, key=lambda r: r["v"]) == rows
    assert len(theirs(tmp_path)) == 600


def test_partition_values_that_delta_can_not_hold(tmp_path: Path) -> None:
    for type_ in (Struct.of(a=LONG), List(LONG), Map(STRING, LONG)):
        with pytest.raises(SchemaError, match="can't be partitioned by 'p'"):
            create_table(tmp_path, Struct.of(id=LONG, p=type_), partition_by=["p"])
    table = new_table(tmp_path, Struct.of(id=LONG, p=BINARY), partition_by=["p"])
    with pytest.raises(TypeMismatchError, match="not UTF-8"), table.transaction() as tx:
        tx.append([{"id": 1, "p": b"fine"}, {"id": 2, "p": b"\xff"}])
    assert data_files(tmp_path) == set()
    table = new_table(tmp_path / "days", Struct.of(id=LONG, p=DATE), partition_by=["p"])
    late = pa.array([2_932_897], pa.int32()).cast(pa.date32())  # in the year 10000
    with pytest.raises(TypeMismatchError, match="'p' is out of bounds"), table.transaction() as tx:
        tx.append(pa.table({"id": [1], "p": late}))


def test_create_refuses_what_can_not_be(tmp_path: Path) -> None:
    cases: list[tuple[Struct, list[str], str]] = [
        (Struct(), [], "at least one column"),
        (Struct.of(a=LONG, A=LONG), [], "upper and lower case"),
        (Struct.of(a=LONG), ["a"], "by all of its columns"),
        (Struct.of(a=LONG, b=NULL), ["b"], "can't be partitioned by 'b', which is a void"),
        (Struct.of(a=LONG, b=LONG, c=LONG), ["a", "a"], "twice"),
        (Struct.of(a=LONG, b=LONG), ["c"], "no column 'c'"),
    ]
    for schema, partition_by, message in cases:
        with pytest.raises(SchemaError, match=message):
            create_table(tmp_path, schema, partition_by=partition_by)
    assert not (tmp_path / "_delta_log").exists()
    new_table(tmp_path)
    with pytest.raises(CommitError, match="already"):
        new_table(tmp_path)
    with pytest.raises(PlanError, match="is not known here"):
        create_table(tmp_path / "x", PLAIN, configuration={"delta.feature.magic": "supported"})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"partition_by": None}, "list of names"),
        ({"partition_by": iter(["id"])}, "list of names"),
        ({"name": 5}, "takes a text"),
        ({"info": {"a": object()}}, "as JSON"),
    ]
    for how, message in wrong:
        with pytest.raises(PlanError, match=message):
            create_table(tmp_path / "x", PLAIN, **how)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "step",
    [
        lambda t: t.transaction(operation=5),
        lambda t: t.transaction(user_metadata={"a": 1}),
        lambda t: t.transaction(info={"a": object()}),
        lambda t: t.transaction(info={"a": float("nan")}),
        lambda t: t.transaction(info={"a": "\ud800"}),
        lambda t: t.transaction().app_transaction(5, 1),
        lambda t: t.transaction().app_transaction("job", "1"),
        lambda t: t.transaction().app_transaction("job", 1.5),
        lambda t: t.transaction().app_transaction("job", 2**63),
        lambda t: t.transaction().domain_metadata(5),
        lambda t: t.transaction().domain_metadata("mine", {"a": 1}),
        lambda t: t.transaction().set_metadata(name=5),
        lambda t: t.transaction().delete("id = 1"),
        lambda t: t.transaction().overwrite(ids(1), True),
        lambda t: t.transaction().overwrite(ids(1), mp.col("id")),
        lambda t: t.transaction().remove_files(None),
        lambda t: t.history("all"),
    ],
)
def test_arguments_that_would_spoil_the_log(tmp_path: Path, step: Callable[..., Any]) -> None:
    table = append(new_table(tmp_path), ids(3))
    with pytest.raises(TypeMismatchError):
        step(table)


def test_a_transaction_ends_once(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    tx = table.transaction()
    tx.append(ids(1))
    tx.rollback()
    for step in (lambda: tx.append(ids(1)), tx.commit, tx.stage):
        with pytest.raises(CommitError, match="is over"):
            step()
    assert data_files(tmp_path) == set()
    tx = table.transaction()
    tx.append(ids(2))
    tx.commit()
    tx.rollback()  # too late
    assert same_for_both(table.update()) == [0, 1]
    before = data_files(tmp_path)
    tx = table.update().transaction()
    tx.append(ids(1))
    with pytest.raises(ZeroDivisionError), tx:
        1 / 0  # noqa: B018
    assert data_files(tmp_path) == before
    with pytest.raises(PlanError, match="unknown isolation"):
        table.transaction(isolation="Chaos")


def test_tables_with_rules_that_nobody_checks_here(tmp_path: Path) -> None:
    from deltalake import DeltaTable as RustTable

    append(new_table(tmp_path), ids(1))
    RustTable(str(tmp_path)).alter.add_constraint({"positive": "id >= 0"})
    table = delta_table(tmp_path)
    with pytest.raises(UnsupportedFeatureError, match="check constraints"):
        table.transaction()
    create_table(tmp_path / "other", Struct.of(x=Struct.of(b=LONG)))
    first = tmp_path / "other" / "_delta_log" / f"{0:020}.json"
    rule = r"{\"delta.generationExpression\":\"1\"}"
    plain = r"\"nullable\":true,\"metadata\":"
    assert first.read_text().count(f"{plain}{{}}") == 2
    rewrite(first, f"{plain}{{}}", f"{plain}{rule}")
    first.with_suffix(".crc").unlink()
    with pytest.raises(UnsupportedFeatureError, match="generated columns"):
        delta_table(tmp_path / "other").transaction()


@pytest.mark.parametrize(
    ("field", "configuration", "message"),
    [
        (Field("b", LONG), {"delta.constraints.positive": "b > 0"}, "check constraints"),
        (
            Field("b", LONG).with_metadata({"delta.generationExpression": "1"}),
            {},
            "generated columns",
        ),
    ],
)
def test_tables_with_such_rules_are_not_made(
    tmp_path: Path, field: Field, configuration: dict[str, str], message: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        create_table(tmp_path / "t", Struct((field,)), configuration=configuration)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_step_that_fails_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str
) -> None:
    settings = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = append(new_table(tmp_path, configuration=settings), ids(6))
    tx = table.transaction(engine="arrow")
    calls = []

    def fails(*_: object) -> None:
        calls.append(1)
        raise StoreError("the disk is full", path="x")

    with monkeypatch.context() as patched:
        patched.setattr(Pending, "remove", fails)  # the last thing that a delete does
        for step in (lambda: tx.delete(mp.col("id") == 2), lambda: tx.overwrite(ids(1))):
            with pytest.raises(StoreError):
                step()
    assert len(calls) == 2
    assert tx.delete(mp.col("id") == 2) == 1
    tx.commit()
    left = [0, 1, 3, 4, 5]
    assert id_list(ours(delta_table(tmp_path))) == left == id_list(theirs(tmp_path))
    used = set(delta_table(tmp_path).files()["path"].to_pylist())
    assert set(data_files(tmp_path)) >= used


def test_properties_are_written_as_delta_spells_them(tmp_path: Path) -> None:
    given = {"delta.columnMapping.mode": "NAME", "delta.appendOnly": "TRUE", "mine": "AsItIs"}
    table = append(new_table(tmp_path, configuration=given), ids(2))
    found = {key: table.metadata.configuration[key] for key in given}
    assert found == {
        "delta.columnMapping.mode": "name",
        "delta.appendOnly": "true",
        "mine": "AsItIs",
    }
    assert id_list(theirs(tmp_path)) == [0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modificationTime": 1.5e12}, "as its modificationTime"),
        ({"size": 1000.0}, "as its size"),
        ({"size": -1}, "as its size"),
        ({"size": True}, "no add action"),
        ({"path": ""}, "empty path"),
        ({"stats": '{"numRecords":"x"}'}, "numRecords"),
        ({"stats": '{"numRecords":1.5}'}, "numRecords"),
    ],
)
def test_given_files_are_told_of_in_numbers_that_logs_hold(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    table = new_table(tmp_path)
    add = {"path": "a.parquet", "size": 10, "modificationTime": 5, "partitionValues": {}} | change
    with pytest.raises(SchemaError, match=message), table.transaction() as tx:
        tx.add_files([add])
    assert table.update().version == 0


def test_a_live_file_that_is_gone_is_named(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(3))
    (file,) = data_files(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(DataFileMissingError, match=f"{file} is a live file of"):
        table.transaction().delete(mp.col("id") == 1)


def test_rows_of_partitioned_tables_are_counted(tmp_path: Path) -> None:
    """Where no column is needed, the one that stands for a row is asked for below, too."""
    schema = Struct.of(id=LONG, p=STRING)
    table = create_table(tmp_path / "t", schema, partition_by=["p"])
    with table.transaction(engine="arrow") as tx:
        tx.append([{"id": n, "p": "ab"[n % 2]} for n in range(5)])
    rows = table.update().scan().plan()
    assert rows.aggregate(n=mp.agg.count()).to_pylist(engine="arrow") == [{"n": 5}]
    odd = rows.filter(mp.col("id") > 3).aggregate(n=mp.agg.count())
    assert odd.to_pylist(engine="arrow") == [{"n": 1}]

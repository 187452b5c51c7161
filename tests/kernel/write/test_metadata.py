"""The table itself changes: schemas by Delta's rules, properties, and the protocol they need."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.write.tables import PLAIN, actions, append, ids, new_table, ours, theirs

import millpond as mp
from millpond.base.errors import CommitError, PlanError, SchemaError, TypeMismatchError
from millpond.kernel import create_table
from millpond.kernel.actions import Protocol
from millpond.kernel.mapping import PHYSICAL_NAME
from millpond.kernel.write.evolve import TYPE_CHANGES, evolved, is_wider
from millpond.kernel.write.protocol import needed_protocol
from millpond.plan.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.kernel.table import DeltaTable
    from millpond.plan.types import DataType

NAME = {"delta.columnMapping.mode": "name"}
WIDEN = {"delta.enableTypeWidening": "true"}
INNER = Struct.of(id=LONG, x=Struct.of(a=LONG, b=List(Struct.of(c=STRING))))


def change(table: DeltaTable, **how: Any) -> DeltaTable:
    with table.transaction() as tx:
        tx.set_metadata(**how)
    return table.update()


@pytest.mark.parametrize("type_", [VARIANT, List(VARIANT), Struct.of(v=VARIANT)])
def test_variants_are_not_written(type_: DataType, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="variants can be read here, but not written"):
        create_table(tmp_path / "new", Struct.of(id=LONG, v=type_))
    assert not (tmp_path / "new" / "_delta_log").exists()
    table = new_table(tmp_path / "old")
    with pytest.raises(SchemaError, match="variants can be read here, but not written"):
        change(table, schema=Struct((*table.schema.fields, Field("v", type_))))
    assert table.update().version == table.version


def test_a_new_column_is_null_in_old_rows(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), ids(1))
    table = change(table, schema=Struct((*table.schema.fields, Field("v", DOUBLE))))
    table = append(table, [{"id": 1, "v": 0.5}])
    expected = [{"id": 0, "site": None, "v": None}, {"id": 1, "site": None, "v": 0.5}]
    for rows in (ours(table), theirs(tmp_path)):
        assert sorted(rows, key=lambda r: r["id"]) == expected
    assert ours(table, predicate=mp.col("v").is_null()) == expected[:1]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_added_renamed_and_dropped(tmp_path: Path, mode: str) -> None:
    table = new_table(tmp_path, INNER, {"delta.columnMapping.mode": mode})
    table = append(table, [{"id": 1, "x": {"a": 7, "b": [{"c": "z"}]}}])
    before = table.snapshot.schema
    # A plain schema, as users have it: nothing of the mapping is lost.
    wider = Struct((*table.schema.fields, Field("v", LONG)))
    table = change(table, schema=wider)
    assert table.snapshot.schema.fields[:2] == before.fields
    table = append(table, [{"id": 2, "v": 5}])
    renamed = Struct.of(key=LONG, x=Struct.of(a=LONG, b=List(Struct.of(d=STRING))), v=LONG)
    table = change(table, schema=renamed, renamed={"id": "key", "x.b.element.c": "d"})
    table = append(table, [{"key": 3, "x": {"a": 1, "b": [{"d": "y"}]}}])
    rows = sorted(ours(table), key=lambda r: r["key"])
    assert rows == [
        {"key": 1, "x": {"a": 7, "b": [{"d": "z"}]}, "v": None},
        {"key": 2, "x": None, "v": 5},
        {"key": 3, "x": {"a": 1, "b": [{"d": "y"}]}, "v": None},
    ]
    assert ours(table, columns=["v"], predicate=mp.col("key") == 2) == [{"v": 5}]
    table = change(table, schema=Struct.of(key=LONG, v=LONG))
    # The same name again is another column.
    table = change(table, schema=Struct.of(key=LONG, v=LONG, x=STRING))
    assert {row["x"] for row in ours(table)} == {None}
    assert sorted(row["key"] for row in theirs(tmp_path)) == [1, 2, 3]
    ids_ = [f.metadata_dict()["delta.columnMapping.id"] for f in table.snapshot.schema]
    assert len(set(ids_)) == 3
    assert int(table.metadata.configuration["delta.columnMapping.maxColumnId"]) == max(ids_)


def test_names_are_swapped_by_ids(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, configuration=NAME), [{"id": 1, "site": "a"}])
    first, second = table.snapshot.schema.fields
    from dataclasses import replace

    swapped = Struct((replace(first, name="site"), replace(second, name="id")))
    table = change(table, schema=swapped)
    assert ours(table) == theirs(tmp_path) == [{"site": 1, "id": "a"}]


def test_another_tables_schema_brings_no_names_along(tmp_path: Path) -> None:
    table = append(new_table(tmp_path / "a", configuration=NAME), [{"id": 1, "site": "a"}])
    wider = Struct((*PLAIN.fields, Field("v", LONG)))
    other = new_table(tmp_path / "b", wider, NAME)
    before = table.snapshot.schema
    table = change(table, schema=other.snapshot.schema)
    assert table.snapshot.schema.fields[:2] == before.fields
    assert ours(table) == theirs(tmp_path / "a") == [{"id": 1, "site": "a", "v": None}]


def test_mapping_begins_with_the_names_of_files(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, INNER), [{"id": 1, "x": {"a": 7, "b": [{"c": "z"}]}}])
    with table.transaction() as tx:
        tx.set_metadata(configuration=NAME)
        tx.append([{"id": 2}])
        assert tx.delete(mp.path("x.a") == 7) == 1
    table = table.update()
    assert [f.metadata_dict()[PHYSICAL_NAME] for f in table.snapshot.schema] == ["id", "x"]
    assert table.protocol.reads("columnMapping")
    assert ours(table) == theirs(tmp_path) == [{"id": 2, "x": None}]
    table = change(table, schema=Struct.of(id=LONG))
    assert ours(table) == [{"id": 2}]
    for mode in ("none", "id"):
        with pytest.raises(SchemaError, match=f"can't change from name to {mode}"):
            change(table, configuration={"delta.columnMapping.mode": mode})


def test_a_partition_column_is_renamed_but_not_dropped(tmp_path: Path) -> None:
    table = new_table(tmp_path, PLAIN, NAME, partition_by=["site"])
    table = append(table, [{"id": 1, "site": "a"}, {"id": 2, "site": None}])
    with pytest.raises(SchemaError, match="partitioned by 'site'"):
        change(table, schema=Struct.of(id=LONG))
    table = change(table, schema=Struct.of(id=LONG, place=STRING), renamed={"site": "place"})
    assert table.partition_columns == ("place",)
    table = append(table, [{"id": 3, "place": "b"}])
    expected = [
        {"id": 1, "place": "a"},
        {"id": 2, "place": None},
        {"id": 3, "place": "b"},
    ]
    for rows in (ours(table), theirs(tmp_path)):
        assert sorted(rows, key=lambda r: r["id"]) == expected
    assert len(table.files(mp.col("place") == "a")) == 1


def test_statistics_are_kept_of_named_columns_by_their_physical_names(tmp_path: Path) -> None:
    settings = {**NAME, "delta.dataSkippingStatsColumns": "`a.b`, x.c"}
    schema = Struct((Field("id", LONG), Field("a.b", LONG), Field("x", Struct.of(c=LONG, d=LONG))))
    table = append(new_table(tmp_path, schema, settings), [{"id": 1, "a.b": 2, "x": {"c": 3}}])
    import json

    stats = json.loads(table.files()["stats"][0].as_py())
    inner = table.snapshot.columns
    assert stats["minValues"] == {
        inner.physical_path(["a.b"])[0]: 2,
        inner.physical_path(["x"])[0]: {inner.physical_path(["x", "c"])[1]: 3},
    }
    assert len(table.files(mp.path('"a.b"') > 2)) == 0
    assert len(table.files(mp.col("id") > 2)) == 1, "nothing is known of it"


WIDER = [
    *((BYTE, t) for t in (SHORT, INTEGER, LONG, DOUBLE, Decimal(10, 0), Decimal(12, 2))),
    *((SHORT, t) for t in (INTEGER, LONG, DOUBLE, Decimal(10, 0))),
    *((INTEGER, t) for t in (LONG, DOUBLE, Decimal(11, 1))),
    *((LONG, t) for t in (Decimal(20, 0), Decimal(38, 18))),
    (FLOAT, DOUBLE),
    (Decimal(5, 2), Decimal(5 + 3, 2 + 3)),
    (Decimal(5, 2), Decimal(6, 2)),
    (DATE, TIMESTAMP_NTZ),
]
NOT_WIDER = [
    (LONG, INTEGER),
    (INTEGER, BYTE),
    (LONG, DOUBLE),
    (LONG, FLOAT),
    (DOUBLE, FLOAT),
    (DOUBLE, LONG),
    (INTEGER, Decimal(9, 0)),
    (INTEGER, Decimal(10, 1)),
    (LONG, Decimal(19, 0)),
    (Decimal(5, 2), Decimal(5, 3)),
    (Decimal(5, 2), Decimal(4, 2)),
    (Decimal(5, 2), Decimal(6, 4)),
    (Decimal(5, 0), LONG),
    (DATE, TIMESTAMP),
    (TIMESTAMP, TIMESTAMP_NTZ),
    (STRING, LONG),
    (LONG, STRING),
    (BOOLEAN, BYTE),
    (LONG, Struct.of(a=LONG)),
    (List(LONG), LONG),
]


@pytest.mark.parametrize(("old", "new"), WIDER, ids=str)
def test_wider_types(old: DataType, new: DataType) -> None:
    assert is_wider(old, new)
    made, _ = evolved(Struct.of(a=old), Struct.of(a=new), may_widen=True)
    assert made.field("a").metadata_dict() == {
        TYPE_CHANGES: [{"fromType": str(old), "toType": str(new)}]
    }


@pytest.mark.parametrize(("old", "new"), NOT_WIDER, ids=str)
def test_types_that_do_not_fit(old: DataType, new: DataType) -> None:
    for before, after, where in (
        (Struct.of(a=old), Struct.of(a=new), "a"),
        (Struct.of(a=List(old)), Struct.of(a=List(new)), "a.element"),
        (Struct.of(a=Map(STRING, old)), Struct.of(a=Map(STRING, new)), "a.value"),
        (Struct.of(a=Struct.of(b=old)), Struct.of(a=Struct.of(b=new)), "a.b"),
    ):
        with pytest.raises(SchemaError) as caught:
            evolved(before, after, may_widen=True, is_mapped=True)
        assert f"{where!r} can't change from {old} to {new}" in caught.value.message


def test_changes_of_nested_types_are_noted_where_delta_looks() -> None:
    old = Struct.of(
        l=List(List(BYTE)), m=Map(SHORT, INTEGER), s=Struct.of(a=FLOAT), k=List(Struct.of(b=BYTE))
    )
    new = Struct.of(
        l=List(List(LONG)), m=Map(LONG, LONG), s=Struct.of(a=DOUBLE), k=List(Struct.of(b=SHORT))
    )
    made, _ = evolved(old, new, may_widen=True)
    noted = {f.name: f.metadata_dict().get(TYPE_CHANGES) for f in made}
    assert noted == {
        "l": [{"fromType": "byte", "toType": "long", "fieldPath": "element.element"}],
        "m": [
            {"fromType": "short", "toType": "long", "fieldPath": "key"},
            {"fromType": "integer", "toType": "long", "fieldPath": "value"},
        ],
        "s": None,
        "k": None,
    }
    assert isinstance(s := made.field("s").type, Struct)
    assert s.field("a").metadata_dict() == {
        TYPE_CHANGES: [{"fromType": "float", "toType": "double"}]
    }
    longer, _ = evolved(Struct.of(a=BYTE), Struct.of(a=SHORT), may_widen=True)
    longer, _ = evolved(longer, Struct.of(a=LONG), may_widen=True)
    assert longer.field("a").metadata_dict()[TYPE_CHANGES] == [
        {"fromType": "byte", "toType": "short"},
        {"fromType": "short", "toType": "long"},
    ]


def test_widened_columns_are_read(tmp_path: Path) -> None:
    schema = Struct.of(id=INTEGER, d=Decimal(4, 1), day=DATE, l=List(BYTE))
    row = {"id": 1, "d": D("1.5"), "day": dt.date(2024, 5, 1), "l": [1, 2]}
    table = append(new_table(tmp_path, schema, WIDEN), [row])
    with table.transaction() as tx:
        tx.set_metadata(
            schema=Struct.of(id=LONG, d=Decimal(10, 3), day=TIMESTAMP_NTZ, l=List(INTEGER))
        )
        tx.append([{"id": 2**40, "l": [1 << 20]}])
    table = table.update()
    assert table.protocol.reads("typeWidening")
    assert table.protocol.reads("timestampNtz")
    rows = sorted(ours(table), key=lambda r: r["id"])
    day = dt.datetime(2024, 5, 1)  # noqa: DTZ001
    assert rows == [
        {"id": 1, "d": D("1.500"), "day": day, "l": [1, 2]},
        {"id": 2**40, "d": None, "day": None, "l": [1 << 20]},
    ]
    assert ours(table, columns=["id"], predicate=mp.col("d") == D("1.5")) == [{"id": 1}]
    with table.transaction() as tx:
        assert tx.delete(mp.col("id") == 1) == 1
    assert [row["id"] for row in ours(table.update())] == [2**40]


def test_widening_has_to_be_allowed(tmp_path: Path) -> None:
    table = new_table(tmp_path, Struct.of(a=INTEGER))
    with pytest.raises(SchemaError, match="from integer to long") as caught:
        change(table, schema=Struct.of(a=LONG))
    assert "delta.enableTypeWidening" in str(caught.value)
    table = change(table, schema=Struct.of(a=LONG), configuration=WIDEN)
    assert table.schema == Struct.of(a=LONG)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Struct.of(id=LONG), "lacks the column 'site'"),
        (Struct.of(id=LONG, place=STRING), "lacks the column 'site'"),
        (Struct((*PLAIN.fields, Field("v", LONG, nullable=False))), "'v' is not null"),
        (Struct((Field("id", LONG, nullable=False), Field("site", STRING))), "'id' can't become"),
        (Struct.of(id=LONG, site=STRING, SITE=LONG), "upper and lower case"),
        (Struct.of(id=LONG, site=LONG), "'site' can't change from string to long"),
    ],
)
def test_what_old_files_forbid(tmp_path: Path, schema: Struct, message: str) -> None:
    table = new_table(tmp_path)
    with pytest.raises(SchemaError, match=message):
        change(table, schema=schema)
    assert table.update().version == 0


def test_nulls_may_be_allowed_but_not_forbidden() -> None:
    strict = Struct((Field("a", List(LONG, contains_null=False), nullable=False),))
    loose = Struct.of(a=List(LONG))
    assert evolved(strict, loose)[0] == loose
    with pytest.raises(SchemaError, match="can't become not null"):
        evolved(loose, strict)
    with pytest.raises(SchemaError, match="what 'a' holds can't become not null"):
        evolved(loose, Struct.of(a=List(LONG, contains_null=False)))


def test_renaming_what_is_not_there() -> None:
    old = Struct.of(a=LONG)
    with pytest.raises(SchemaError, match="no column 'b' to be renamed"):
        evolved(old, Struct.of(a=LONG, c=LONG), renamed={"b": "c"}, is_mapped=True)
    with pytest.raises(SchemaError, match="'a' can't be renamed to 'c'"):
        evolved(old, Struct.of(c=LONG), renamed={"a": "c"})
    for given in (["a"], {1: "c"}, {"a": 1}):
        with pytest.raises(TypeMismatchError, match="renamed= takes"):
            evolved(old, Struct.of(c=LONG), renamed=given, is_mapped=True)  # type: ignore[arg-type]


def test_metadata_comes_first(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    tx = table.transaction()
    tx.append(ids(1))
    with pytest.raises(CommitError, match="before rows are written"):
        tx.set_metadata(name="late")
    tx.rollback()
    with pytest.raises(SchemaError, match="need a schema"):
        change(table, renamed={"id": "key"})


def test_name_description_and_properties(tmp_path: Path) -> None:
    table = new_table(tmp_path, configuration={"a": "1", "b": "2"})
    with table.transaction() as tx:
        tx.set_metadata(name="n", configuration={"a": None})
        tx.set_metadata(description="d", configuration={"c": "3"})
    table = table.update()
    assert (table.metadata.name, table.metadata.description) == ("n", "d")
    assert table.metadata.configuration == {"b": "2", "c": "3"}
    assert set(actions(tmp_path, 1)) == {"commitInfo", "metaData"}
    assert actions(tmp_path, 1)["metaData"][0]["id"] == table.metadata.id


def test_properties_bring_their_features(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.protocol == Protocol(1, 2)
    table = change(table, configuration={"delta.enableChangeDataFeed": "true"})
    assert table.protocol == Protocol(1, 7, None, ("appendOnly", "changeDataFeed", "invariants"))
    table = change(table, configuration={"delta.enableDeletionVectors": "true"})
    assert table.protocol.reader_features == ("deletionVectors",)
    table = change(table, configuration={"delta.feature.domainMetadata": "supported"})
    assert table.protocol.writes("domainMetadata")
    assert not [k for k in table.metadata.configuration if k.startswith("delta.feature")]
    with pytest.raises(PlanError, match="can only be 'supported'"):
        change(table, configuration={"delta.feature.domainMetadata": "off"})
    assert theirs(tmp_path) == []


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"delta.appendOnly": True}, "takes a text, not True"),
        ({"delta.appendOnly": "maybe"}, "delta.appendOnly is 'maybe'\n.*true, false"),
        ({"delta.checkpointInterval": 5}, "takes a text, not 5"),
        ({"delta.checkpointInterval": "²"}, "a whole number"),
        ({"delta.checkpointInterval": "0"}, "from 1 on"),
        ({"delta.checkpointInterval": "-3"}, "from 1 on"),
        ({"delta.columnMapping.maxColumnId": "x"}, "a whole number"),
        ({"delta.columnMapping.mode": "names"}, "one of none, name, id"),
        ({"delta.logRetentionDuration": "a week"}, "not a duration"),
        ({"delta.enableRowTracking": "true"}, "can't be written here"),
        ({5: "a"}, "names of properties"),
        (["delta.appendOnly"], "not a list"),
    ],
)
def test_properties_that_mean_nothing(tmp_path: Path, configuration: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        create_table(tmp_path / "new", PLAIN, configuration=configuration)
    assert not (tmp_path / "new").exists()
    table = new_table(tmp_path)
    with pytest.raises(PlanError, match=message):
        change(table, configuration=configuration)
    assert table.update().version == 0


@pytest.mark.parametrize(
    ("column", "type_", "message"),
    [
        ("x", Struct.of(a=LONG, A=LONG), "upper and lower case"),
        ("x", List(Struct.of(a=LONG, A=LONG)), "upper and lower case"),
        ("ID", LONG, "upper and lower case"),
        ("x", Map(STRING, Struct()), "without members"),
        ("_change_type", LONG, "of its own"),
        ("_Commit_Version", LONG, "of its own"),
    ],
)
def test_schemas_that_nobody_could_read(
    tmp_path: Path, column: str, type_: DataType, message: str
) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    schema = Struct((*PLAIN.fields, Field(column, type_)))
    with pytest.raises(SchemaError, match=message):
        create_table(tmp_path / "new", schema, configuration=feed)
    assert not (tmp_path / "new").exists()
    table = new_table(tmp_path, configuration=feed)
    with pytest.raises(SchemaError, match=message):
        change(table, schema=schema)
    assert table.update().version == 0


@pytest.mark.parametrize(
    ("old", "listed"),
    [
        (Protocol(1, 1), set()),
        (Protocol(1, 3), {"appendOnly", "invariants", "checkConstraints"}),
        (
            Protocol(2, 6),
            {
                *("appendOnly", "invariants", "checkConstraints", "changeDataFeed"),
                *("generatedColumns", "columnMapping", "identityColumns"),
            },
        ),
    ],
)
def test_an_upgrade_keeps_what_the_version_stood_for(old: Protocol, listed: set[str]) -> None:
    assert needed_protocol(PLAIN, {}, old=old) == old
    new = needed_protocol(PLAIN, {"delta.enableDeletionVectors": "true"}, old=old)
    assert set(new.writer_features or ()) == {*listed, "deletionVectors"}
    mapped = {"columnMapping"} if old.min_reader_version == 2 else set()
    assert set(new.reader_features or ()) == {*mapped, "deletionVectors"}


@pytest.mark.parametrize("kind", ["struct", "list"])
def test_schemas_are_as_deep_as_files_can_be_read(tmp_path: Path, kind: str) -> None:
    def nested(levels: int) -> Struct:
        type_: Any = LONG
        for _ in range(levels):
            type_ = Struct.of(x=type_) if kind == "struct" else List(type_)
        return Struct.of(c=type_, n=LONG)

    most = 98 if kind == "struct" else 49
    table = create_table(str(tmp_path / "a"), nested(most))
    tx = table.transaction()
    tx.append([{"c": None, "n": 1}])
    tx.commit()
    assert mp.delta_table(table.location).scan().to_arrow().to_pylist() == [{"c": None, "n": 1}]
    with pytest.raises(SchemaError, match="'c' is nested deeper than readers of Parquet go"):
        create_table(str(tmp_path / "b"), nested(most + 1))

"""Column mapping: names and ids for statistics, partition values and files; what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millpond.base.errors import CorruptLogError, SchemaError, UnsupportedFeatureError
from millpond.kernel.mapping import FIELD_ID, PHYSICAL_NAME, TableColumns
from millpond.plan.stored_fields import STORED_ID, STORED_NAME, check_stored, logical
from millpond.plan.typejson import schema_from_json, schema_to_json
from millpond.plan.types import LONG, STRING, DataType, Field, List, Map, Struct


def mapped(name: str, type_: DataType, number: Any, stored: Any, **more: Any) -> Field:
    return Field(name, type_).with_metadata({PHYSICAL_NAME: stored, FIELD_ID: number, **more})


INNER = Struct((mapped("x", LONG, 4, "c4"), mapped("y y", STRING, 5, "c5")))
SCHEMA = Struct(
    (
        mapped("a", LONG, 1, "c1", comment="kept"),
        mapped("o", INNER, 2, "c2"),
        mapped(
            "l",
            List(Struct((mapped("z", LONG, 6, "c6"),))),
            3,
            "c3",
            **{"delta.columnMapping.nested.ids": {"c3.element": 9}},
        ),
        mapped("m", Map(STRING, Struct((mapped("w", LONG, 8, "same"),))), 7, "same"),
    )
)


def test_name_mode() -> None:
    columns = TableColumns.of(SCHEMA, "name", table="t")
    assert columns.physical_path(("o", "y y")) == ("c2", "c5")
    assert columns.physical_path(("m",)) == ("same",)
    scanned = columns.scan_columns()
    assert scanned.names == SCHEMA.names
    assert scanned.field("a").metadata_dict() == {STORED_NAME: "c1", "comment": "kept"}
    assert scanned.field("m").metadata_dict() == {STORED_NAME: "same"}
    inner = scanned.field("o").type
    assert isinstance(inner, Struct)
    assert inner.field("x").metadata_dict() == {STORED_NAME: "c4"}
    assert "delta." not in schema_to_json(scanned)
    for stored in ("c6", "same"):
        assert f'"{STORED_NAME}":"{stored}"' in schema_to_json(scanned)


def test_id_mode() -> None:
    columns = TableColumns.of(SCHEMA, "id", table="t")
    assert columns.physical_path(("o", "x")) == ("c2", "c4")
    scanned = columns.scan_columns(["l", "a"])
    assert scanned.names == ("l", "a")
    assert scanned.field("a").metadata_dict() == {
        STORED_ID: 1,
        STORED_NAME: "c1",
        "comment": "kept",
    }
    element = scanned.field("l").type
    assert isinstance(element, List)
    assert isinstance(element.element, Struct)
    assert element.element.field("z").metadata_dict() == {STORED_ID: 6, STORED_NAME: "c6"}


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_scans_take_these_columns(mode: str) -> None:
    scanned = TableColumns.of(SCHEMA, mode, table="t").scan_columns()
    check_stored(scanned)
    assert logical(scanned).names == SCHEMA.names
    assert "stored" not in schema_to_json(logical(scanned))


@pytest.mark.parametrize("mode", [None, "none", "NONE"])
def test_stale_annotations_mean_nothing_without_mapping(mode: str | None) -> None:
    stale = Struct(
        (
            mapped("a", LONG, 1, "same", **{STORED_ID: 1, STORED_NAME: "q"}),
            mapped("b", LONG, 1, "same"),
        )
    )
    columns = TableColumns.of(stale, mode, table="t")
    assert columns.mode == "none"
    assert columns.physical_path(("a",)) == ("a",)
    assert columns.scan_columns() == Struct.of(a=LONG, b=LONG)
    assert columns.stored_schema() == Struct.of(a=LONG, b=LONG)


def test_a_physical_name_that_is_the_logical_one_is_not_said() -> None:
    columns = TableColumns.of(Struct((mapped("a", LONG, 1, "a"),)), "name", table="t")
    assert columns.scan_columns() == Struct.of(a=LONG)


@pytest.mark.parametrize("mode", ["name", "id", "Name"])
def test_new_files_have_physical_names_and_ids(mode: str) -> None:
    stored = TableColumns.of(SCHEMA, mode, table="t").stored_schema()
    assert stored.names == ("c1", "c2", "c3", "same")
    assert stored.field("c1").metadata_dict() == {STORED_ID: 1}
    inner = stored.field("c2").type
    assert isinstance(inner, Struct)
    assert inner.names == ("c4", "c5")
    assert inner.field("c5").metadata_dict() == {STORED_ID: 5}


def test_nested_fields_of_different_parents_may_share_a_physical_name() -> None:
    schema = Struct((mapped("a", Struct((mapped("x", LONG, 2, "x"),)), 1, "x"),))
    assert TableColumns.of(schema, "name", table="t").physical_path(("a", "x")) == ("x", "x")


def nested(field: Field) -> Struct:
    return Struct((mapped("top", Map(STRING, List(Struct((field,)))), 1, "t"),))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Struct.of(a=LONG), "'a' has no delta.columnMapping.physicalName"),
        (Struct((mapped("a", LONG, 1, ""),)), "'a' has no delta.columnMapping.physicalName"),
        (Struct((mapped("a", LONG, None, "x"),)), "'a' has no delta.columnMapping.id"),
        (Struct((mapped("a", LONG, "1", "x"),)), "'a' has no delta.columnMapping.id"),
        (Struct((mapped("a", LONG, True, "x"),)), "'a' has no delta.columnMapping.id"),
        (
            Struct((mapped("a", LONG, 1, "x"), mapped("b", LONG, 2, "x"))),
            "'a' and 'b' are both stored as 'x'",
        ),
        (
            Struct((mapped("a", LONG, 1, "x"), mapped("b", LONG, 1, "y"))),
            "'a' and 'b' both have the id 1",
        ),
        (nested(mapped("x", LONG, 1, "x")), "'top' and 'top.value.element.x' both have the id 1"),
        (nested(Field("x", LONG)), "'top.value.element.x' has no delta.columnMapping.physicalName"),
    ],
)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_broken_mappings_are_refused(schema: Struct, message: str, mode: str) -> None:
    with pytest.raises(CorruptLogError, match=message.replace(".", r"\.")) as caught:
        TableColumns.of(schema, mode, table="some/table")
    assert caught.value.table == "some/table"
    assert "some/table" in caught.value.message


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="mode 'both'") as caught:
        TableColumns.of(SCHEMA, "both", table="t")
    assert caught.value.features == ("columnMapping",)


@pytest.mark.parametrize("path", [("b",), ("o", "b"), ("a", "x")])
def test_an_unknown_path_is_an_error(path: tuple[str, ...]) -> None:
    with pytest.raises(SchemaError, match="no column"):
        TableColumns.of(SCHEMA, "name", table="t").physical_path(path)


def test_a_schema_as_a_log_has_it() -> None:
    text = schema_to_json(SCHEMA)
    assert TableColumns.of(schema_from_json(text), "id", table="t") == TableColumns.of(
        SCHEMA, "id", table="t"
    )

"""What a protocol asks of readers: what is known, what is refused and by which name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.handmade import NUMBERS, add, commit, metadata, protocol

from millpond import delta_table
from millpond.base.errors import CorruptLogError, UnsupportedFeatureError
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.features import (
    CATALOG_MANAGED,
    READER_FEATURES,
    check_metadata,
    check_protocol,
    mapping_mode,
)
from millpond.plan.types import TIMESTAMP_NTZ, VARIANT, DataType, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("version", [1, 2])
def test_reader_versions_without_features(version: int) -> None:
    check_protocol(Protocol(version, 2), "t")


@pytest.mark.parametrize("feature", sorted(READER_FEATURES))
def test_every_known_feature_is_let_in(feature: str) -> None:
    check_protocol(Protocol(3, 7, (feature,), (feature, "rowTracking", "of-writers-alone")), "t")


def test_a_feature_of_writers_alone_keeps_no_reader_away() -> None:
    check_protocol(Protocol(3, 7, (), ("columnMapping", "icebergCompatV9")), "t")
    check_protocol(Protocol(1, 7, None, ("appendOnly",)), "t")
    check_protocol(Protocol(2, 9), "t")


def test_unknown_features_are_all_named() -> None:
    with pytest.raises(UnsupportedFeatureError, match="seven, six") as caught:
        check_protocol(Protocol(3, 7, ("six", "deletionVectors", "seven"), ()), "t")
    assert caught.value.features == ("seven", "six")
    assert caught.value.hint


def test_a_reader_version_that_is_not_known() -> None:
    with pytest.raises(UnsupportedFeatureError, match="reader version 4; versions 1 to 3"):
        check_protocol(Protocol(4, 8), "t")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Protocol(0, 2), "reader version 0"),
        (Protocol(3, 7), "lists no reader features"),
        (Protocol(2, 5, ("deletionVectors",)), "reader version 2 does not have"),
        (Protocol(3, 5, ("deletionVectors",), ("deletionVectors",)), "writer version 5"),
        (Protocol(3, 7, ("deletionVectors",)), "writer version 7 without features"),
        (Protocol(3, 7, ("deletionVectors",), ("appendOnly",)), "asks deletionVectors of readers"),
    ],
)
def test_protocols_that_break_their_own_rules(broken: Protocol, message: str) -> None:
    with pytest.raises(CorruptLogError, match=message) as caught:
        check_protocol(broken, "t")
    assert caught.value.hint


@pytest.mark.parametrize("place", ["plain", "in a list", "in a struct", "as a map's value"])
@pytest.mark.parametrize(
    ("type_", "features"),
    [
        (TIMESTAMP_NTZ, ("timestampNtz", "timestampWithoutTimezone")),
        (VARIANT, ("variantType", "variantType-preview")),
    ],
)
def test_types_that_need_a_feature(type_: DataType, features: tuple[str, str], place: str) -> None:
    nested: dict[str, DataType] = {
        "plain": type_,
        "in a list": List(type_),
        "in a struct": Struct.of(m=type_),
        "as a map's value": Map(TIMESTAMP_NTZ, type_) if type_ == TIMESTAMP_NTZ else type_,
    }
    schema, plain = Struct.of(c=nested[place]), Metadata("", "")
    for feature in features:
        check_metadata(Protocol(3, 7, (feature,), (feature,)), plain, schema, "t")
    with pytest.raises(CorruptLogError, match=f"{type_}.*lacks the feature {features[0]}"):
        check_metadata(Protocol(1, 2), plain, schema, "t")


@pytest.mark.parametrize("feature", CATALOG_MANAGED)
def test_a_catalogs_table_has_in_commit_timestamps(feature: str) -> None:
    managed = Protocol(3, 7, (feature,), (feature,))
    stating = Metadata("", "", configuration={"delta.enableInCommitTimestamps": "true"})
    check_metadata(managed, stating, NUMBERS, "t")
    with pytest.raises(CorruptLogError, match="no in-commit timestamps"):
        check_metadata(managed, Metadata("", ""), NUMBERS, "t")


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (Protocol(1, 2), "none"),
        (Protocol(2, 5), "name"),
        (Protocol(3, 7, ("columnMapping",), ("columnMapping",)), "name"),
        (Protocol(3, 7, (), ("columnMapping",)), "none"),
    ],
)
def test_column_mapping_counts_only_where_the_protocol_has_it(given: Protocol, mode: str) -> None:
    mapped = Metadata("", "", configuration={"delta.columnMapping.mode": "name"})
    assert mapping_mode(given, mapped) == mode
    assert mapping_mode(given, Metadata("", "")) == "none"


def _schema(*fields: Any) -> str:
    import json

    shown = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]
    return json.dumps({"type": "struct", "fields": shown})


def test_the_feature_is_named_before_the_type_that_comes_with_it(tmp_path: Path) -> None:
    shape = metadata(_schema(("where", "geometry(4326)")))
    commit(tmp_path, 0, protocol(features=["geospatial"]), shape)
    with pytest.raises(UnsupportedFeatureError, match="geospatial"):
        delta_table(tmp_path)


def test_before_the_feature_came_the_table_can_be_read(tmp_path: Path) -> None:
    commit(tmp_path, 0, protocol(), metadata(), add("a"))
    commit(tmp_path, 1, protocol(features=["from-the-future"]))
    with pytest.raises(UnsupportedFeatureError, match="before the feature was enabled"):
        delta_table(tmp_path)
    assert delta_table(tmp_path, version=0).files()["path"].to_pylist() == ["a"]


_STRUCT = {"type": "struct", "fields": [{"name": n, "type": "long"} for n in ("b", "B")]}


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (metadata(_schema(("a", "long"), ("A", "long"))), "names 'A' twice"),
        (metadata(_schema(("a", "long"), ("a", "long"))), "'a' stands twice"),
        (metadata(_schema(("s", _STRUCT))), "names 'B' twice"),
        (metadata(_schema(("l", {"type": "array", "elementType": _STRUCT}))), "names 'B' twice"),
        (metadata(_schema(("a", "decimal(39,2)"))), "39"),
        (metadata(_schema(("a", "hologram"))), "unknown type 'hologram'"),
        (metadata("{"), "not valid JSON"),
        (metadata(partitions=["p"]), "partitioned by 'p', which its schema lacks"),
    ],
)
def test_schemas_that_can_not_be(tmp_path: Path, shape: dict[str, Any], message: str) -> None:
    commit(tmp_path, 0, protocol(), shape)
    with pytest.raises(CorruptLogError, match=message) as caught:
        delta_table(tmp_path)
    assert caught.value.hint


def test_other_formats_than_parquet(tmp_path: Path) -> None:
    shape = metadata()
    shape["metaData"]["format"]["provider"] = "orc"
    commit(tmp_path, 0, protocol(), shape)
    with pytest.raises(CorruptLogError, match="'orc' files; only parquet"):
        delta_table(tmp_path)

"""Tables that others have clustered: what the protocol asks of every writer of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import SchemaError
from millpond.kernel.mapping import PHYSICAL_NAME
from millpond.kernel.table import delta_table
from millpond.kernel.write import create_table
from millpond.plan.types import LONG, Field, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.kernel.table import DeltaTable

MANY = Struct(tuple(Field(f"c{number}", LONG) for number in range(40)))


def clustered(path: Path, by: str, *, mode: str = "none") -> DeltaTable:
    settings = {
        "delta.feature.clustering": "supported",
        "delta.feature.domainMetadata": "supported",
        "delta.columnMapping.mode": mode,
    }
    table = create_table(path, MANY, configuration=settings)
    stored = table.metadata.schema.field(by).metadata_dict().get(PHYSICAL_NAME, by)
    told = json.dumps({"clusteringColumns": [[stored]]})
    domain = {"domain": "delta.clustering", "configuration": told, "removed": False}
    commit = path / "_delta_log" / f"{1:020}.json"
    commit.write_text(json.dumps({"domainMetadata": domain}) + "\n")
    return delta_table(path)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_statistics_tell_of_the_columns(tmp_path: Path, mode: str) -> None:
    table = clustered(tmp_path, "c39", mode=mode)
    with table.transaction(engine="arrow") as tx:
        tx.append([{"c0": 1, "c38": 2, "c39": 3}])
    (text,) = table.update().files()["stats"].to_pylist()
    names = {
        name: table.metadata.schema.field(name).metadata_dict().get(PHYSICAL_NAME, name)
        for name in ("c0", "c38", "c39")
    }
    smallest = json.loads(text)["minValues"]
    assert [names[name] in smallest for name in names] == [True, False, True]
    assert smallest[names["c39"]] == 3


def test_the_columns_are_not_dropped(tmp_path: Path) -> None:
    table = clustered(tmp_path, "c39", mode="name")
    schema = table.metadata.schema
    with pytest.raises(SchemaError, match="clustered by"):
        table.transaction().set_metadata(schema=Struct(schema.fields[:-1]))
    with table.transaction(engine="arrow") as tx:
        tx.set_metadata(schema=Struct(schema.fields[1:]))
    assert len(table.update().schema) == 39


def test_a_domain_that_says_nothing_is_told(tmp_path: Path) -> None:
    table = clustered(tmp_path, "c1")
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    domain = {"domain": "delta.clustering", "configuration": "[", "removed": False}
    commit.write_text(json.dumps({"domainMetadata": domain}) + "\n")
    with pytest.raises(SchemaError, match="by which columns it is clustered"):
        delta_table(tmp_path).transaction(engine="arrow").append([{"c0": 1}])
    assert table.version == 1

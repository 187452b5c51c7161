"""What is given as rows: nothing of it is lost on the way into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import SchemaError
from millpond.kernel import create_table
from millpond.plan.types import LONG, STRING, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Struct.of(id=LONG, o=Struct.of(n=LONG), l=List(LONG), m=Map(STRING, LONG))


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ({"id": 1.5}, "id"),
        ({"o": {"n": 0.5}}, "o.n"),
        ({"l": [1, 2.5]}, "l.element"),
        ({"m": {"a": 3.25}}, "m.value"),
    ],
)
def test_fractions_are_not_cut_off(tmp_path: Path, row: dict[str, Any], where: str) -> None:
    table = create_table(tmp_path / "t", SCHEMA)
    with pytest.raises(SchemaError, match=rf"in '{where}' is no long"), table.transaction() as tx:
        tx.append([row])
    assert table.update().version == 0


def test_whole_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA)
    with table.transaction() as tx:
        tx.append([{"id": 2.0, "o": {"n": 3.0}, "l": [4.0], "m": {"a": 5.0}}])
    rows = table.update().scan().to_arrow().to_pylist(maps_as_pydicts="strict")
    assert rows == [{"id": 2, "o": {"n": 3}, "l": [4], "m": {"a": 5}}]


def test_a_schema_may_be_given_by_names(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", {"id": "long", "site": "string"})
    assert str(table.schema) == "struct<id: long, site: string>"
    with table.transaction() as tx:
        tx.set_metadata(schema={"id": "long", "site": "string", "level": "double"})
    assert table.update().schema.names == ("id", "site", "level")
    assert repr(table.files()) == f"LiveFiles({table.location!r}, version=0)"
    assert "id, site" in repr(table.scan())
    assert repr(table.changes(0)).endswith("0 to 0)")

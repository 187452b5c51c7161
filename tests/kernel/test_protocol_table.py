"""The table of features in docs/delta.md is what the code does: every row is tried here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.kernel.handmade import NUMBERS, commit, data, info, metadata, numbers, protocol

from millpond import delta_table
from millpond.base.errors import CommitError, UnsupportedFeatureError
from millpond.kernel.features import CATALOG_MANAGED, READER_FEATURES
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.table import DeltaTable
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.kernel.write.features import UPKEEP_FEATURES, WRITER_FEATURES
from millpond.plan.types import LONG, VARIANT, Field, Struct

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parents[1] / "docs" / "delta.md"
USES: Final[dict[str, dict[str, object]]] = {
    "invariants": {"delta.invariants": "n > 0"},
    "generatedColumns": {"delta.generationExpression": "1"},
    "identityColumns": {"delta.identity.start": 1},
    "allowColumnDefaults": {"CURRENT_DEFAULT": "7"},
}
"""What the metadata of a column says that uses a feature."""
OTHER: Final = "any other of "


class Row(NamedTuple):
    """A row of the table: a feature, what it says of it, and the tests that it names."""

    feature: str
    read: str
    written: str
    words: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    """The rows of the page, one for each feature."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 5 or cells[0] == "feature" or set(cells[0]) <= {"-"}:
            continue
        names = re.findall(r"`([^`]+)`", cells[0]) or [cells[0]]
        words = cells[3].partition(" (`")[0]
        tests = tuple(re.findall(r"`([^`]+)`", cells[4]))
        found += [Row(name, cells[1], cells[2], words, tests) for name in names]
    return found


ROWS: Final = rows()
KNOWN: Final = [row for row in ROWS if not row.feature.startswith(OTHER)]


def begun(path: Path, feature: str, *, is_used: bool) -> None:
    """A table with three rows whose protocol lists a feature; it may use it."""
    features = [feature] if feature in READER_FEATURES else []
    needed = {"columnMapping": {"columnMapping.mode": "none"}}.get(feature, {})
    settings = {**needed, "enableInCommitTimestamps": str(feature in CATALOG_MANAGED).lower()}
    schema, file = NUMBERS, numbers(path, "a.parquet", 1, 2, 3)
    if is_used and feature == "checkConstraints":
        settings["constraints.positive"] = "n > 0"
    elif is_used and feature == "appendOnly":
        settings["appendOnly"] = "true"
    elif is_used and feature in USES:
        schema = Struct((Field("n", LONG, metadata=json.dumps(USES[feature])),))
    elif is_used and feature.startswith("variant"):
        schema = Struct((*NUMBERS.fields, Field("v", VARIANT)))
        kind = "variantType-preview" if feature.endswith("-preview") else "variantType"
        features = sorted({feature, kind})
    writers = sorted({feature, *features})
    commit(
        path,
        0,
        info(inCommitTimestamp=1),
        protocol(features=features, writer_features=writers),
        metadata(schema, **settings),
        file,
    )


def opened(path: Path, feature: str) -> DeltaTable:
    """The table, by its catalog where it has one."""
    if feature not in CATALOG_MANAGED:
        return delta_table(path)
    return DeltaTable(SnapshotBuilder(path).with_log_tail([]).build())


def numbers_of(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["n"]).to_arrow()["n"].to_pylist())


def test_the_page_has_each_feature_that_the_code_knows_once() -> None:
    names = [row.feature for row in KNOWN]
    assert sorted(names) == sorted(READER_FEATURES | WRITER_FEATURES | UPKEEP_FEATURES)
    assert [row.feature for row in ROWS if row not in KNOWN] == [
        "any other of writers",
        "any other of readers",
    ]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.feature)
def test_a_table_with_the_feature_is_read(row: Row, tmp_path: Path) -> None:
    begun(tmp_path, row.feature, is_used=True)
    if row.read == "with the catalog's answer":
        with pytest.raises(UnsupportedFeatureError, match=re.escape(row.words)):
            delta_table(tmp_path)
    else:
        assert row.read == "yes"
    table = opened(tmp_path, row.feature)
    assert numbers_of(table) == [1, 2, 3]
    if row.feature in UPKEEP_FEATURES - set(CATALOG_MANAGED):
        write_checkpoint(table)
        assert numbers_of(opened(tmp_path, row.feature)) == [1, 2, 3]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.feature)
def test_a_table_with_the_feature_is_written_or_refused(row: Row, tmp_path: Path) -> None:
    begun(tmp_path, row.feature, is_used=row.written != "yes")
    table = opened(tmp_path, row.feature)
    if row.written == "staged":
        tx = table.transaction()
        tx.append([{"n": 4}])
        with pytest.raises(CommitError, match="has to ratify commits"):
            tx.commit()
        staged = tx.stage()
        assert numbers_of(table.update(log_tail=[staged.ratified()])) == [1, 2, 3, 4]
        return
    if row.written != "yes":
        with pytest.raises(UnsupportedFeatureError, match=re.escape(row.words)):
            table.transaction()
        assert row.written in ("no", "if unused")
    if row.written != "no":
        unused = tmp_path / "unused"
        begun(unused, row.feature, is_used=False)
        table = opened(unused, row.feature)
        with table.transaction() as tx:
            tx.append([{"n": 4}])
        assert numbers_of(table.update()) == [1, 2, 3, 4]


def test_rows_of_a_table_that_is_append_only_are_not_removed(tmp_path: Path) -> None:
    begun(tmp_path, "appendOnly", is_used=True)
    (row,) = [row for row in KNOWN if row.feature == "appendOnly"]
    table = delta_table(tmp_path)
    with table.transaction() as tx:
        tx.append([{"n": 4}])
    with (
        pytest.raises(CommitError, match=re.escape(row.words)),
        table.update().transaction() as tx,
    ):
        tx.overwrite([{"n": 5}])


@pytest.mark.parametrize("who", ["readers", "writers"])
def test_a_feature_that_is_not_known(who: str, tmp_path: Path) -> None:
    (row,) = [row for row in ROWS if row.feature == OTHER + who]
    file = data(tmp_path, "a.parquet", {"n": [1]})
    features = ["of-tomorrow"] if who == "readers" else []
    given = protocol(features=features, writer_features=["of-tomorrow"])
    commit(tmp_path, 0, given, metadata(), file)
    if who == "writers":
        assert (row.read, row.written) == ("yes", "no")
        assert numbers_of(delta_table(tmp_path)) == [1]
    else:
        assert (row.read, row.written) == ("no", "no")
    with pytest.raises(UnsupportedFeatureError, match=f"{row.words}.*: of-tomorrow"):
        delta_table(tmp_path).transaction()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.feature)
def test_the_tests_that_the_page_names_are_there(row: Row) -> None:
    assert row.tests
    for name in row.tests:
        assert list(TESTS.rglob(name)), name

"""Random histories: what the kernel says of every version is what the naive replay says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.history.compare import bag
from tests.kernel.history.generate import NAMES, PARTITION_TEXTS, VALUES, Shape
from tests.kernel.history.strategies import case, cases
from tests.kernel.history.write import time_of

from millpond import col, delta_table, values
from millpond.base.errors import VersionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    from pyspark.sql import SparkSession
    from tests.kernel.history.model import State
    from tests.kernel.history.strategies import Case

    from millpond.plan.expr import Expr

FILE: Final = ("path", "partitionValues", "size", "modificationTime", "tags")
VECTOR: Final = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


@given(cases())
def test_live_files_of_every_version(table: Case) -> None:
    with table.written() as path:
        for version in table.versions:
            _assert_files(path, version, table, engine="arrow")


@given(cases())
def test_rows_of_every_version(table: Case) -> None:
    with table.written() as path:
        for version in table.versions:
            found = delta_table(path, version=version).scan().to_arrow(engine="arrow").to_pylist()
            assert bag(found) == bag(table.history.rows(version)), version


@given(cases())
def test_everything_else_of_every_version(table: Case) -> None:
    with table.written() as path:
        for version in table.versions:
            found = delta_table(path, version=version)
            assert found.version == version
            _assert_settings(found, table.history.state(version))


@given(cases())
def test_history_has_the_commits_that_are_there(table: Case) -> None:
    with table.written() as path:
        found = delta_table(path).history()

    assert [one["version"] for one in found] == list(reversed(table.versions))
    for one in found:
        about = _commit_info(table, one["version"]) or {}
        expected = {"version": one["version"], "timestamp": time_of(one["version"])}
        assert one == about | expected


@given(cases())
def test_moments_have_the_version_that_was_the_latest_then(table: Case) -> None:
    with table.written() as path:
        for version in table.versions:
            for later in (0, 59_999):
                found = delta_table(path, timestamp=time_of(version) + later)
                assert found.version == version
        with pytest.raises(VersionNotFoundError):
            delta_table(path, timestamp=time_of(table.versions[0]) - 1)


@given(cases())
def test_versions_that_are_not_there(table: Case) -> None:
    with table.written() as path:
        for version in (table.versions[0] - 1, table.versions[-1] + 1):
            with pytest.raises(VersionNotFoundError):
                delta_table(path, version=version)


@given(cases(most_commits=6))
def test_updates_from_every_version(table: Case) -> None:
    with table.written() as path:
        for version in table.versions:
            found = delta_table(path, version=version).update()
            assert found.version == table.history.latest
            _assert_settings(found, table.history.state(found.version))
            expected = _files(table.history.state(found.version).live.values(), table)
            assert _files(found.files().to_arrow().to_pylist(maps_as_pydicts="strict"), table) == (
                expected
            )


@given(cases(), st.data())
def test_a_predicate_never_loses_a_row(table: Case, data: st.DataObject) -> None:
    state = table.history.state(table.history.latest)
    wanted = data.draw(_predicates(list(state.metadata["partitionColumns"])))
    with table.written() as path:
        found = delta_table(path)
        every = found.scan().to_arrow(engine="arrow")
        some = found.scan(predicate=wanted).to_arrow(engine="arrow").to_pylist()

    assert bag(some) == bag(values(every).filter(wanted).to_pylist(engine="arrow"))


@pytest.mark.spark
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
def test_spark_sees_the_same(seed: int, spark: SparkSession) -> None:
    table = case(seed, seed + 100, 6)
    with table.written() as path:
        for version in {table.versions[0], table.versions[-1]}:
            _assert_files(path, version, table, engine="spark")
            found = delta_table(path, version=version, engine="spark")
            _assert_settings(found, table.history.state(version))
            rows = found.scan().to_arrow(engine="spark").to_pylist()
            assert bag(rows) == bag(table.history.rows(version)), version


@given(cases(shape=Shape(change_feed=True)))
@settings(max_examples=15)
def test_changes_between_every_two_versions(table: Case) -> None:
    with table.written() as path:
        latest = delta_table(path)
        for start in table.versions:
            for end in range(start, table.history.latest + 1):
                found = latest.changes(start, end).to_arrow(engine="arrow").to_pylist()
                expected = table.history.changes(start, end)
                assert bag(found, without=("_commit_timestamp",)) == bag(expected), (start, end)


def _assert_files(path: str, version: int, table: Case, *, engine: str) -> None:
    found = delta_table(path, version=version, engine=engine).files(engine=engine).to_arrow()
    live = table.history.state(version).live.values()
    assert _files(found.to_pylist(maps_as_pydicts="strict"), table) == _files(live, table), version


def _files(adds: Iterable[Mapping[str, Any]], table: Case) -> Any:
    """Adds as a multiset, with the text of statistics where the layout keeps it."""
    names = (*FILE, "stats") if table.layout.keeps_stats else FILE
    return bag(
        {name: add.get(name) for name in names}
        | {f"vector.{name}": (add.get("deletionVector") or {}).get(name) for name in VECTOR}
        for add in adds
    )


def _assert_settings(found: Any, state: State) -> None:
    protocol, metadata = state.protocol, state.metadata
    assert found.protocol.min_reader_version == protocol["minReaderVersion"]
    assert found.protocol.min_writer_version == protocol["minWriterVersion"]
    assert sorted(found.protocol.reader_features or ()) == sorted(
        protocol.get("readerFeatures", ())
    )
    assert sorted(found.protocol.writer_features or ()) == sorted(
        protocol.get("writerFeatures", ())
    )
    assert found.metadata.id == metadata["id"]
    assert found.metadata.schema_string == metadata["schemaString"]
    assert found.metadata.configuration == metadata["configuration"]
    assert found.metadata.description == metadata.get("description")
    assert list(found.partition_columns) == metadata["partitionColumns"]
    assert [field.name for field in found.schema] == [one["name"] for one in state.fields]
    transactions = {
        app: (one.version, one.last_updated) for app, one in found.app_transactions.items()
    }
    assert transactions == {
        app: (one["version"], one.get("lastUpdated")) for app, one in state.transactions.items()
    }
    domains = {name: one.configuration for name, one in found.domain_metadata.items()}
    assert domains == state.live_domains()


def _commit_info(table: Case, version: int) -> Any:
    actions = table.history.commits[version]
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), None)


def _predicates(partitions: list[str]) -> st.SearchStrategy[Expr]:
    """Comparisons of columns with values that are there, and what can be made of two of them."""
    pools: dict[str, tuple[Any, ...]] = {
        "id": tuple(range(12)),
        "name": tuple(name for name in NAMES if name is not None),
        "val": tuple(value for value in VALUES if value is not None),
    }
    pools |= {"p": tuple(p for p in PARTITION_TEXTS if p is not None)} if "p" in partitions else {}
    pools |= {"q": (0, -3, 7)} if "q" in partitions else {}

    def one(name: str) -> st.SearchStrategy[Expr]:
        column = col(name)
        value = st.sampled_from(pools[name])
        return st.one_of(
            value.map(lambda v: column == v),
            value.map(lambda v: column != v),
            value.map(lambda v: column < v),
            value.map(lambda v: column >= v),
            st.sampled_from([column.is_null(), column.is_not_null()]),
        )

    leaves = st.sampled_from(sorted(pools)).flatmap(one)
    pairs = st.tuples(leaves, leaves)
    return st.one_of(
        leaves,
        leaves.map(lambda a: ~a),
        pairs.map(lambda both: both[0] & both[1]),
        pairs.map(lambda both: both[0] | both[1]),
        pairs.map(lambda both: ~(both[0] & ~both[1])),
    )

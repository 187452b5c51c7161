"""The tables behind nodes: what columns may become, what comes in, and commits of others."""

from __future__ import annotations

import decimal
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.steward.deeds import measured, seen
from tests.steward.places import At
from tests.steward.wholeness import check_tables, rubbish

import millpond as mp
from millpond.base.errors import (
    IntegrityError,
    PathTypeError,
    PlanError,
    SchemaError,
    VersionNotFoundError,
    WriteConflictError,
)
from millpond.kernel.table import delta_table
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope


@pytest.fixture
def pond(place: str) -> Pond:
    return mp.open(place)


def committed(pond: Pond, change: Callable[[WriteScope], Any]) -> int:
    with pond.write() as tx:
        change(tx)
        return tx.commit().txn_seq


def rows_at(pond: Pond, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pond.read().to_arrow(path).to_pylist()
    return rows


def types_at(pond: Pond, path: str) -> dict[str, str]:
    return {field.name: str(field.type) for field in pond.read()[path].schema}


# What columns may become


def test_new_columns_are_added(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"extra": 1.5, "id": 2, "name": "two"}]))
    assert types_at(pond, "/t") == {"id": "long", "name": "string", "extra": "double"}
    assert rows_at(pond, "/t") == [{"id": 2, "name": "two", "extra": 1.5}]
    assert rows_at(pond, "/t@v1") == [{"id": 1, "name": "one"}]
    committed(pond, lambda tx: tx.append_series("/s", [{**measured(9)[0], "flag": True}]))
    assert [row["flag"] for row in rows_at(pond, "/s")] == [None, None, None, True]
    assert "flag" not in types_at(pond, "/s@v1")
    check_tables(mp.open(place))


def test_columns_that_rows_lack_are_null(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"name": "two"}]))
    assert rows_at(pond, "/t") == [{"id": None, "name": "two"}]
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    table = pa.table({"a": [1], "b": ["x"]}, schema=strict)
    committed(pond, lambda tx: tx.write_table("/strict", table))
    committed(pond, lambda tx: tx.write_table("/strict", [{"b": "y"}]))
    assert rows_at(pond, "/strict") == [{"a": None, "b": "y"}]
    check_tables(mp.open(place))


WIDER = [
    (pa.int8(), pa.int32(), "integer"),
    (pa.int16(), pa.int64(), "long"),
    (pa.int32(), pa.int64(), "long"),
    (pa.int32(), pa.float64(), "double"),
    (pa.float32(), pa.float64(), "double"),
    (pa.decimal128(6, 2), pa.decimal128(10, 3), "decimal(10,3)"),
    (pa.date32(), pa.timestamp("us"), "timestamp_ntz"),
    (pa.list_(pa.int32()), pa.list_(pa.int64()), "list<long>"),
]


@pytest.mark.parametrize(("narrow", "wide", "expected"), WIDER, ids=[str(w[1]) for w in WIDER])
def test_types_become_wider_and_stay_so(
    place: str, pond: Pond, narrow: pa.DataType, wide: pa.DataType, expected: str
) -> None:
    value: Any = [1] if pa.types.is_list(narrow) else 1
    if pa.types.is_date(narrow):
        value = 1
    old = pa.array([value], narrow) if not pa.types.is_decimal(narrow) else decimals(narrow)
    new = pa.array([value], wide) if not pa.types.is_decimal(wide) else decimals(wide)
    times = pa.array([0], pa.timestamp("us", "UTC"))
    committed(pond, lambda tx: tx.append_series("/x", pa.table({"time": times, "v": old})))
    committed(pond, lambda tx: tx.append_series("/x", pa.table({"time": times, "v": new})))
    assert types_at(pond, "/x")["v"] == expected
    committed(pond, lambda tx: tx.append_series("/x", pa.table({"time": times, "v": old})))
    assert types_at(pond, "/x")["v"] == expected
    values = {str(row["v"]) for row in rows_at(pond, "/x") if row["v"]}
    assert len(rows_at(pond, "/x")) == 3
    assert values
    assert rows_at(pond, "/x@v1")[0]["v"] == old[0].as_py()


def decimals(type_: pa.DataType) -> pa.Array:
    return pa.array([decimal.Decimal("1.25").quantize(decimal.Decimal(10) ** -type_.scale)], type_)


def test_whole_numbers_in_a_column_of_fractions(pond: Pond) -> None:
    """They are looked at one by one: none may lose a digit."""
    committed(pond, lambda tx: tx.append_series("/s", [{**measured(9)[0], "level": 7}]))
    assert sorted(row["level"] for row in rows_at(pond, "/s")) == [0.0, 1.0, 2.0, 7.0]
    with pond.write() as tx, pytest.raises(SchemaError, match="'level' is int64 in the rows"):
        tx.append_series("/s", [{**measured(9)[0], "level": 2**53 + 1}])
    assert len(rows_at(pond, "/s")) == 4


def test_members_of_structs_and_lists_evolve(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/x", [{"a": {"b": 1}, "l": [{"m": 1}]}]))
    more = [{"a": {"b": 2, "c": "x"}, "l": [{"m": 2, "n": True}]}]
    committed(pond, lambda tx: tx.write_table("/x", more))
    assert rows_at(pond, "/x") == more
    committed(pond, lambda tx: tx.write_table("/x", [{"a": {"c": "y"}, "l": None}]))
    assert rows_at(pond, "/x") == [{"a": {"b": None, "c": "y"}, "l": None}]
    assert rows_at(pond, "/x@v1") == [{"a": {"b": 1}, "l": [{"m": 1}]}]
    with pond.write() as tx, pytest.raises(SchemaError, match=r"'a\.c' is string .* long in"):
        tx.write_table("/x", [{"a": {"c": 5}}])
    check_tables(mp.open(place))


def test_a_column_without_values_gets_its_type_later(place: str, pond: Pond) -> None:
    committed(pond, with_column(20, late=None, never=None))
    assert types_at(pond, "/s")["late"] == "void"
    committed(pond, with_column(21, late=[1.5], never=None))
    committed(pond, with_column(22, late=None))
    found = {int(row["level"]): row["late"] for row in rows_at(pond, "/s")}
    assert found == {0: None, 1: None, 2: None, 20: None, 21: [1.5], 22: None}
    assert types_at(pond, "/s")["late"] == "list<double>"
    check_tables(mp.open(place))


def test_a_conflict_names_both_types_and_both_versions(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 2, "name": "two"}]))
    with pond.write() as tx, pytest.raises(SchemaError) as caught:
        tx.write_table("/t", [{"id": "three", "name": "three"}])
    assert caught.value.message == (
        "/t: the column 'id' is long in version 2 and string in version 3"
    )
    assert "cast" in str(caught.value.hint)
    with pond.write() as tx, pytest.raises(SchemaError, match=r"/s: the column 'level' is double"):
        tx.append_series("/s", [{**measured(9)[0], "level": "high"}])


def test_columns_get_other_names(place: str, pond: Pond) -> None:
    committed(
        pond,
        lambda tx: tx.append_series(
            "/s", [{"timestamp": measured(9)[0]["timestamp"], "height": 9.0}],
            renamed={"level": "height"},
        ),
    )  # fmt: skip
    assert sorted(row["height"] for row in rows_at(pond, "/s")) == [0.0, 1.0, 2.0, 9.0]
    assert [row["level"] for row in rows_at(pond, "/s@v1")] == [0.0, 1.0, 2.0]
    # The old name can be used anew, and means something else.
    committed(
        pond,
        lambda tx: tx.append_series(
            "/s", [{"timestamp": measured(10)[0]["timestamp"], "height": 10.0, "level": "low"}]
        ),
    )
    assert [row["level"] for row in rows_at(pond, "/s")] == [None] * 4 + ["low"]
    check_tables(mp.open(place))


def test_the_time_of_a_series_gets_another_name(pond: Pond) -> None:
    when = measured(9)[0]["timestamp"]
    with pond.write() as tx, pytest.raises(SchemaError, match="'timestamp' is no column"):
        tx.append_series("/s", [{"when": when, "level": 9.0}])
    with pond.write() as tx, pytest.raises(PathTypeError, match="is in 'timestamp', not in 'when'"):
        tx.append_series("/s", [{"when": when, "level": 9.0}], time_column="when")
    renamed = {"timestamp": "when"}
    committed(
        pond, lambda tx: tx.append_series("/s", [{"when": when, "level": 9.0}], renamed=renamed)
    )
    stat = pond["/s"].stat()
    assert (stat.time_column, stat.max_event_time) == ("when", when)
    assert pond.read().to_arrow("/s", time_start=when).num_rows == 1
    assert pond.read().to_arrow("/s@v1", time_start=when).num_rows == 0
    committed(pond, lambda tx: tx.restore("/s@v1"))
    assert pond["/s"].stat().time_column == "timestamp"
    assert pond.read().to_arrow("/s", time_end=when).num_rows == 3


def test_columns_are_dropped(place: str, pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 2}], dropped=["name"]))
    assert rows_at(pond, "/t") == [{"id": 2}]
    assert rows_at(pond, "/t@v1") == [{"id": 1, "name": "one"}]
    committed(pond, lambda tx: tx.write_table("/t", [{"id": 3, "name": 3.5}]))
    assert rows_at(pond, "/t") == [{"id": 3, "name": 3.5}], "the name is free for another type"
    committed(
        pond,
        lambda tx: tx.append_series(
            "/s", [{"timestamp": measured(9)[0]["timestamp"], "level": "low"}], dropped=["level"]
        ),
    )
    assert [row["level"] for row in rows_at(pond, "/s")] == [None, None, None, "low"]
    check_tables(mp.open(place))


def test_columns_that_swap_their_names(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/x", [{"a": 1, "b": "x", "odd.name": 1.5}]))
    names = {"a": "b", "b": "a", "odd.name": 'odder "name"'}
    rows = [{"a": "y", "b": 2, 'odder "name"': 2.5}]
    committed(pond, lambda tx: tx.write_table("/x", rows, renamed=names))
    assert rows_at(pond, "/x") == [{"b": 2, "a": "y", 'odder "name"': 2.5}]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("unknown to rename", {"renamed": {"nam": "x"}}, "no column 'nam' to be renamed"),
    ("unknown to drop", {"dropped": ["nam"]}, "no column 'nam' to be dropped"),
    ("both", {"renamed": {"name": "x"}, "dropped": ["name"]}, "both renamed and dropped"),
    ("taken", {"renamed": {"name": "id"}}, "there is a column 'id' already"),
]


@pytest.mark.parametrize(("how", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_reshaping_that_is_refused(pond: Pond, how: dict[str, Any], message: str) -> None:
    with pond.write() as tx, pytest.raises(SchemaError, match=f"/t: .*{message}") as caught:
        tx.write_table("/t", [{"id": 2}], **how)
    assert caught.value.hint


def test_what_else_is_refused(pond: Pond) -> None:
    with pond.write() as tx:
        with pytest.raises(SchemaError, match="/x is new"):
            tx.write_table("/x", [{"a": 1}], dropped=["b"])
        with pytest.raises(SchemaError, match="'timestamp' is the time of the series"):
            tx.append_series("/s", measured(9), dropped=["timestamp"])
        with pytest.raises(SchemaError, match="upper and lower case"):
            tx.write_table("/t", [{"ID": 5}])


def test_a_refused_step_changes_neither_tables_nor_columns(place: str, pond: Pond) -> None:
    """What was refused is not committed with what came before and after."""
    before = types_at(pond, "/t")
    with pond.write() as tx:
        tx.append_series("/s", measured(9))
        with pytest.raises(SchemaError):
            tx.write_table("/t", [{"id": "x", "fresh": 1}])
        with pytest.raises(SchemaError):
            tx.append_series("/s", [{**measured(10)[0], "fresh": 1, "level": "x"}])
        with pytest.raises(SchemaError):  # found only when the rows are there
            tx.append_series("/s", [{**measured(10)[0], "fresh": 1, "level": 2**53 + 1}])
        with pytest.raises(PlanError):
            tx.write_table("/fresh", pa.table({"a": [1], "A": [2]}))
        tx.write_bytes("/after", b"1")
        tx.commit()
    assert types_at(pond, "/t") == before
    assert list(types_at(pond, "/s")) == ["timestamp", "level"]
    assert len(rows_at(pond, "/s")) == 4
    assert not pond["/fresh"].exists()
    assert pond["/t"].stat().version == 1
    assert rubbish(place) == []
    check_tables(mp.open(place))


def test_columns_change_between_two_writes_of_a_transaction(place: str, pond: Pond) -> None:
    with pond.write() as tx:
        tx.append_series("/s", [{**measured(9)[0], "a": 1}])
        tx.append_series("/s", [{**measured(10)[0], "b": "x"}])
        tx.write_table("/t", [{"id": 2, "c": 1}])
        tx.write_table("/t", [{"id": 3, "d": True}])
        with pytest.raises(SchemaError, match="'a' is long in version 2 and string in version 2"):
            tx.append_series("/s", [{**measured(10)[0], "a": "x"}])
        tx.commit()
    assert types_at(pond, "/s") == {
        "timestamp": "timestamp", "level": "double", "a": "long", "b": "string",
    }  # fmt: skip
    assert len(rows_at(pond, "/s@v2")) == 2
    assert rows_at(pond, "/t") == [{"id": 3, "name": None, "c": None, "d": True}]
    check_tables(mp.open(place))
    assert rubbish(place) == []


# Two writers and columns


def race(place: str, mine: Callable[[WriteScope], Any], theirs: Callable[[WriteScope], Any]) -> Any:
    tx = mp.open(place).write()
    mine(tx)
    committed(mp.open(place), theirs)
    return tx.commit()


def with_column(number: int, **more: Any) -> Callable[[WriteScope], Any]:
    return lambda tx: tx.append_series("/s", [{**measured(number)[0], **more}])


@pytest.mark.parametrize("is_mapped", [False, True], ids=["plain", "mapped"])
def test_columns_that_one_of_two_writers_adds(place: str, is_mapped: bool) -> None:
    if is_mapped:
        dropped = [{"timestamp": measured(8)[0]["timestamp"], "level": 8.0}]
        first = mp.open(place)
        committed(first, with_column(8, gone=1))
        committed(first, lambda tx: tx.append_series("/s", dropped, dropped=["gone"]))
    count = len(rows_at(mp.open(place), "/s"))
    race(place, with_column(20, mine="x"), with_column(21))
    race(place, with_column(22), with_column(23, theirs=1.5))
    race(place, with_column(24, wide=1.5), with_column(25, mine="y"))
    found = rows_at(mp.open(place), "/s")
    assert len(found) == count + 6
    by_level = {int(row["level"]): row for row in found}
    assert by_level[20]["mine"] == "x"
    assert by_level[25]["mine"] == "y"
    assert by_level[23]["theirs"] == 1.5
    assert by_level[24]["wide"] == 1.5
    check_tables(mp.open(place))
    assert rubbish(place) == []


def test_a_column_that_both_writers_add(place: str) -> None:
    race(place, with_column(20, new=1.5), with_column(21, new=2.5))
    found = {int(row["level"]): row["new"] for row in rows_at(mp.open(place), "/s")}
    assert found == {0: None, 1: None, 2: None, 20: 1.5, 21: 2.5}


CLASHES: list[tuple[str, Callable[[WriteScope], Any], Callable[[WriteScope], Any]]] = [
    (
        "another name for a column",
        with_column(20),
        lambda tx: tx.append_series(
            "/s",
            [{"timestamp": measured(9)[0]["timestamp"], "height": 1.0}],
            renamed={"level": "height"},
        ),
    ),
    (
        "a column that is dropped",
        with_column(20),
        lambda tx: tx.append_series(
            "/s", [{"timestamp": measured(9)[0]["timestamp"]}], dropped=["level"]
        ),
    ),
    ("other columns of both", with_column(20, mine="x"), with_column(21, theirs=1)),
    ("one name, two types", with_column(20, new="x"), with_column(21, new=1)),
]


@pytest.mark.parametrize(("mine", "theirs"), [c[1:] for c in CLASHES], ids=[c[0] for c in CLASHES])
def test_columns_that_clash(
    place: str, mine: Callable[[WriteScope], Any], theirs: Callable[[WriteScope], Any]
) -> None:
    """Rows would lose a column, or be read as something else: the second writer is told."""
    with pytest.raises(WriteConflictError, match="/s was changed meanwhile"):
        race(place, mine, theirs)
    pond = mp.open(place)
    assert len(rows_at(pond, "/s")) == 4
    assert rubbish(place) == []
    check_tables(pond)


# What comes in


def arrivals() -> dict[str, Any]:
    import pandas as pd  # type: ignore[import-untyped]

    table = pa.table({"a": [1, 2], "b": ["x", None]})
    return {
        "dictionaries": table.to_pylist(),
        "tuple": tuple(table.to_pylist()),
        "table": table,
        "batch": table.to_batches()[0],
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "pandas": pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        "plan": mp.values(table),
        "chunked": pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    }


@pytest.mark.parametrize("kind", sorted(arrivals()))
def test_rows_come_in_many_shapes(pond: Pond, kind: str) -> None:
    rows = arrivals()[kind]
    committed(pond, lambda tx: tx.write_table("/x", rows))
    assert rows_at(pond, "/x") == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_rows_of_another_path_come_in(pond: Pond) -> None:
    committed(pond, lambda tx: tx.write_table("/copy", pond["/t"]))
    assert rows_at(pond, "/copy") == rows_at(pond, "/t")
    # Also of the path that is written, and of what the transaction has written to it.
    with pond.write() as tx:
        tx.write_table("/t", tx["/t"].plan().with_columns(id=mp.col("id") + 1))
        tx.write_table("/t", tx["/t"].plan().with_columns(id=mp.col("id") * 10))
        tx.commit()
    assert rows_at(pond, "/t") == [{"id": 20, "name": "one"}]


@pytest.mark.parametrize("rows", [5, "text", {"a": 1}, None, NotImplemented], ids=repr)
def test_what_has_no_rows_is_refused(pond: Pond, rows: Any) -> None:
    with pond.write() as tx, pytest.raises(PathTypeError, match=f"a {type(rows).__name__} has no"):
        tx.write_table("/x", rows)


def test_a_column_alone_has_no_rows(pond: Pond) -> None:
    column = arrivals()["pandas"]["a"]
    with pond.write() as tx, pytest.raises(PathTypeError, match="a Series has no rows"):
        tx.write_table("/x", column)


def test_no_rows_at_all(pond: Pond) -> None:
    empty = pa.schema([("time", pa.timestamp("us", "UTC")), ("a", pa.int64())]).empty_table()
    committed(pond, lambda tx: tx.append_series("/x", empty))
    assert rows_at(pond, "/x") == []
    assert pond["/x"].stat().min_event_time is None
    committed(pond, lambda tx: tx.write_table("/t", pa.table({"id": pa.array([], pa.int64())})))
    assert rows_at(pond, "/t") == []
    with pond.write() as tx, pytest.raises(PlanError):
        tx.write_table("/y", [])


# The tables themselves


def test_tables_get_checkpoints(place: str, pond: Pond) -> None:
    for number in range(12):
        committed(pond, with_column(100 + number))
    row = pond.read().row("/s")
    log = Path(place) / "tables" / row.node_id / "_delta_log"
    hint = json.loads((log / "_last_checkpoint").read_text())
    assert hint["version"] == 10
    assert len(rows_at(mp.open(place), "/s")) == 15
    check_tables(mp.open(place))


def test_a_published_commit_that_has_left_the_log(place: str, pond: Pond) -> None:
    """Maintenance cleans logs; the last transaction of the pond may name such a commit."""
    for number in range(9):
        committed(pond, with_column(100 + number))
    row = pond.read().row("/s")
    assert row.delta_version == 10
    log = Path(place) / "tables" / row.node_id / "_delta_log"
    for version in range(11):
        (log / f"{version:020d}.json").unlink()
    again = mp.open(place)
    assert len(rows_at(again, "/s")) == 12
    assert again.recover().is_clean
    with pytest.raises(VersionNotFoundError, match="version 10 of s has brought is not kept"):
        again.read().to_arrow("/s@v10")
    committed(again, with_column(200))
    assert len(rows_at(mp.open(place), "/s")) == 13


def test_a_commit_that_is_lost_is_told(
    place: str, pond: Pond, caplog: pytest.LogCaptureFixture
) -> None:
    committed(pond, with_column(100))
    row = pond.read().row("/s")
    log = Path(place) / "tables" / row.node_id / "_delta_log"
    (log / f"{row.delta_version:020d}.json").unlink()
    with caplog.at_level(logging.WARNING):
        again = mp.open(place)
    assert "is not published" in caplog.text
    assert again.read().read_bytes("/a/file") == b"old"
    with pytest.raises(IntegrityError, match="is lost"):
        again.read().to_arrow("/s")
    with pytest.raises(IntegrityError, match="is lost"):
        again.recover()
    with pytest.raises(IntegrityError, match="is lost"):
        committed(again, with_column(200))
    # Whatever else is in the pond can be written, and the damaged node can go.
    caplog.clear()
    committed(again, lambda tx: tx.write_bytes("/a/file", b"new"))
    assert "can't be published" in caplog.text
    committed(again, lambda tx: tx.remove("/s"))
    assert mp.open(place)["/a/file"].read_bytes() == b"new"
    assert not again["/s"].exists()


def test_what_is_behind_a_damaged_table_is_published(
    place: str, pond: Pond, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger's commit comes between the moment and the publishing."""
    rows = {path: pond.read().row(path) for path in ("/t", "/s")}
    stranger = f"{place}/tables/{rows['/t'].node_id}"

    def intrude() -> None:
        write_deltalake(stranger, pa.table({"id": [66], "name": ["stranger"]}), mode="append")

    def both(tx: WriteScope) -> None:
        tx.write_table("/t", [{"id": 2, "name": "two"}])
        tx.append_series("/s", measured(9))

    steps.observe(At("before:publish", 1, intrude))
    with caplog.at_level(logging.WARNING):
        committed(pond, both)
    assert "holds another commit" in caplog.text
    again = mp.open(place)
    assert len(rows_at(again, "/s")) == 4
    committed(again, with_column(10))
    assert len(rows_at(mp.open(place), "/s")) == 5


def test_a_writer_that_goes_round_the_pond(
    place: str, pond: Pond, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of the pond is lost: what others wrote to a table of its own is not in the pond."""
    row = pond.read().row("/t")
    table = f"{place}/tables/{row.node_id}"
    write_deltalake(table, pa.table({"id": [66], "name": ["stranger"]}), mode="append")
    assert rows_at(mp.open(place), "/t") == [{"id": 1, "name": "one"}]
    before = seen(mp.open(place).read())
    with pond.write() as tx:
        tx.write_bytes("/new", b"1")
        tx.write_table("/t", [{"id": 2, "name": "two"}])
        with pytest.raises(WriteConflictError, match="/t") as caught:
            tx.commit()
    assert "round the pond" in caught.value.message
    assert seen(mp.open(place).read()) == before
    assert delta_table(table).version == 2
    committed(pond, lambda tx: tx.write_bytes("/new", b"1"))
    assert pond["/new"].read_bytes() == b"1"

"""Columns that Parquet files hold under other names or by field id, on both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import PlanError, SchemaError, SourceError
from millpond.plan import codec
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named
from millpond.plan.sources import STORED_ID, STORED_NAME, File, Scan
from millpond.plan.tree import topological
from millpond.plan.types import LONG, STRING, DataType, Field, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan


def rows(plan: Plan, engine: Executor) -> list[dict[str, Any]]:
    run = engine.execute(plan)
    found: list[dict[str, Any]] = pa.Table.from_batches(list(run), schema=run.schema).to_pylist()
    return found


def named(name: str, type_: DataType, stored: str) -> Field:
    return Field(name, type_).with_metadata({STORED_NAME: stored})


def numbered(name: str, type_: DataType, number: int, stored: str | None = None) -> Field:
    keys: dict[str, Any] = {STORED_ID: number}
    return Field(name, type_).with_metadata(
        keys if stored is None else {**keys, STORED_NAME: stored}
    )


def arrow_field(name: str, type_: pa.DataType, number: int | None = None) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)} if number else None)


def write(folder: Path, name: str, table: pa.Table, **options: Any) -> File:
    pq.write_table(table, folder / name, **options)
    return File(str(folder / name))


PLACE = Struct((named("x", LONG, "c2"), named("y", STRING, "c3")))
NESTED = Struct(
    (
        Field("id", LONG),
        named("place", PLACE, "c1"),
        named("trips", List(Struct((named("to", PLACE, "c5"),))), "c4"),
        named("by key", Map(STRING, Struct((named("n", LONG, "c7"),))), "c6"),
        named("of", Map(Struct((named("k", LONG, "c9"),)), LONG), "c8"),
    )
)


def nested_table() -> pa.Table:
    place = pa.struct([("c2", pa.int64()), ("c3", pa.string())])
    return pa.table(
        {
            "id": [1, 2, 3],
            "c1": pa.array([{"c2": 10, "c3": "a"}, None, {"c2": None, "c3": "b"}], place),
            "c4": pa.array(
                [[{"c5": {"c2": 5, "c3": "q"}}, {"c5": None}], [], None],
                pa.list_(pa.struct([("c5", place)])),
            ),
            "c6": pa.array(
                [[("k", {"c7": 1}), ("l", None)], None, []],
                pa.map_(pa.string(), pa.struct([("c7", pa.int64())])),
            ),
            "c8": pa.array(
                [[({"c9": 3}, 4)], [], None],
                pa.map_(pa.struct([("c9", pa.int64())]), pa.int64()),
            ),
        }
    )


NESTED_ROWS = [
    {
        "id": 1,
        "place": {"x": 10, "y": "a"},
        "trips": [{"to": {"x": 5, "y": "q"}}, {"to": None}],
        "by key": [("k", {"n": 1}), ("l", None)],
        "of": [({"k": 3}, 4)],
    },
    {"id": 2, "place": None, "trips": [], "by key": None, "of": []},
    {"id": 3, "place": {"x": None, "y": "b"}, "trips": None, "by key": [], "of": None},
]


def test_names_at_any_depth(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", nested_table())
    plan = Scan("parquet", (file,), NESTED)
    assert STORED_NAME not in str(plan.schema.fields)
    assert rows(plan, engine) == NESTED_ROWS
    listed = values([{"path": file.path}], Struct.of(path=STRING)).dynamic_scan(NESTED)
    assert listed.schema == plan.schema
    assert rows(listed, engine) == NESTED_ROWS


def test_expressions_over_renamed_members(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", nested_table())
    plan = Scan("parquet", (file,), NESTED)
    wanted = plan.filter(path("place.x") > 5).select(
        y=path("place.y"), to=path("trips[*].to.x"), n=path('"by key".k.n')
    )
    for form in (wanted, optimize(wanted), codec.loads(codec.dumps(optimize(wanted)))):
        assert rows(form, engine) == [{"y": "a", "to": [5, None], "n": 1}]
    found = rows(optimize(plan.filter(path("place.y") == "b").select("place")), engine)
    assert found == [{"place": {"x": None, "y": "b"}}]


def test_members_stored_under_each_others_names(engine: Executor, tmp_path: Path) -> None:
    inner = pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    file = write(tmp_path, "a.parquet", pa.table({"a": [3], "b": [4], "s": inner}))
    swapped = (named("a", LONG, "b"), named("b", LONG, "a"))
    plan = Scan("parquet", (file,), Struct((*swapped, Field("s", Struct(swapped)))))
    assert rows(plan, engine) == [{"a": 4, "b": 3, "s": {"a": 2, "b": 1}}]
    assert rows(optimize(plan.filter(col("a") == 4).select("b")), engine) == [{"b": 3}]
    assert rows(optimize(plan.filter(path("s.a") == 1).select("b")), engine) == []


def test_a_stored_name_is_the_only_name(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", pa.table({"v": [1], "w": [2]}))
    plan = Scan("parquet", (file,), Struct((named("v", LONG, "c1"), Field("w", LONG))))
    assert rows(plan, engine) == [{"v": None, "w": 2}]


def with_ids(place: tuple[int, int], name: int, other: int) -> pa.Schema:
    members = [arrow_field("p", pa.int64(), place[0]), arrow_field("q", pa.string(), place[1])]
    return pa.schema(
        [
            arrow_field("name", pa.list_(pa.struct(members)), name),
            arrow_field("other", pa.int64(), other),
        ]
    )


BY_ID = Struct(
    (
        numbered("name", LONG, 4),
        numbered("s", List(Struct((numbered("q", STRING, 2), numbered("z", LONG, 9)))), 3),
        numbered("gone", LONG, 77, stored="other"),
    )
)


def test_files_with_ids_are_asked_for_ids_alone(engine: Executor, tmp_path: Path) -> None:
    data = {"name": [[{"p": 1, "q": "a"}], None], "other": [7, 8]}
    file = write(tmp_path, "ids.parquet", pa.table(data, schema=with_ids((1, 2), 3, 4)))
    plan = Scan("parquet", (file,), BY_ID)
    expected = [
        {"name": 7, "s": [{"q": "a", "z": None}], "gone": None},
        {"name": 8, "s": None, "gone": None},
    ]
    assert rows(plan, engine) == expected
    assert rows(optimize(plan.filter(col("name") == 8).select("name")), engine) == [{"name": 8}]
    assert rows(optimize(plan.filter(col("gone").is_null()).select("name")), engine) == [
        {"name": 7},
        {"name": 8},
    ]


def test_files_without_ids_are_asked_for_names(engine: Executor, tmp_path: Path) -> None:
    old = pa.table({"name": [5], "other": [6], "s": pa.array([[{"q": "o"}]])})
    new = pa.table({"name": [None], "other": [9]}, schema=with_ids((1, 2), 3, 4))
    files = (write(tmp_path, "old.parquet", old), write(tmp_path, "new.parquet", new))
    plan = Scan("parquet", files, BY_ID)
    assert rows(plan, engine) == [
        {"name": 5, "s": [{"q": "o", "z": None}], "gone": 6},
        {"name": 9, "s": None, "gone": None},
    ]
    many = Scan("parquet", files * 20, BY_ID).select("name")
    assert [row["name"] for row in rows(optimize(many), engine)] == [5, 9] * 20


def test_constants_and_deleted_rows_beside_renamed_columns(
    engine: Executor, tmp_path: Path
) -> None:
    named_files = []
    for number in range(20):
        table = pa.table({"c1": [number, number + 100, number + 200]})
        file = write(tmp_path, f"{number}.parquet", table)
        named_files.append({"path": file.path, "p": number, "gone": [1] if number % 2 else None})
    listed = values(named_files, Struct.of(path=STRING, p=LONG, gone=List(LONG)))
    columns = Struct((Field("p", LONG), named("v", LONG, "c1")))
    plan = listed.dynamic_scan(columns, constants=["p"], deleted="gone")
    left = {n: (0, 200) if n % 2 else (0, 100, 200) for n in range(20)}
    expected = [{"p": n, "v": n + more} for n in range(20) for more in left[n]]
    assert rows(plan, engine) == expected
    kept = optimize(plan.filter((col("p") > 17) & (col("v") > 100)))
    assert rows(kept, engine) == [row for row in expected if row["p"] > 17 and row["v"] > 100]


def test_the_optimizer_and_the_wire_keep_stored_names(tmp_path: Path) -> None:
    plan = Scan("parquet", (File("a.parquet"),), NESTED)
    narrow = optimize(plan.select(x=path("place.x")))
    (scan,) = (node for node in topological(narrow) if isinstance(node, Scan))
    inner = Struct((named("x", LONG, "c2"),))
    assert scan.columns == Struct((named("place", inner, "c1"),))
    assert scan.schema == Struct.of(place=Struct.of(x=LONG))
    again = codec.loads(codec.dumps(narrow))
    assert again == narrow
    plain = replace(plan, columns=plan.schema)
    assert plain.digest != plan.digest


def test_skipping_under_other_names(tmp_path: Path) -> None:
    inner = pa.StructArray.from_arrays([pa.array(range(100)), pa.array(range(100))], ["i", "j"])
    kinds = pa.array([f"k{n // 10}" for n in range(100)])
    table = pa.table({"c1": range(100), "c2": inner, "c3": kinds})
    file = write(tmp_path, "a.parquet", table, row_group_size=10)
    member = Struct((named("a", LONG, "j"), named("b", LONG, "i")))
    columns = (named("v", LONG, "c1"), named("s", member, "c2"), named("t", STRING, "c3"))
    plan = Scan("parquet", (file,), Struct(columns))
    arrow = engine_named("arrow")
    for predicate in (col("v") == 42, path("s.a") == 42, (col("t") == "k4") & (col("v") == 42)):
        run = arrow.execute(optimize(plan.filter(predicate).select("v")))
        assert [batch.to_pylist() for batch in run] == [[{"v": 42}]]
        assert run.counters.batches_pruned == 9
        assert run.counters.batches_decoded == 1
    run = arrow.execute(optimize(plan.sort(col("v").desc()).head(2)))
    assert [row["s"] for batch in run for row in batch.to_pylist()] == [
        {"a": 99, "b": 99},
        {"a": 98, "b": 98},
    ]
    assert run.counters.batches_pruned >= 8
    run = arrow.execute(optimize(plan.tail(1).select(b=path("s.b"))))
    assert [batch.to_pylist() for batch in run] == [[{"b": 99}]]
    assert (run.counters.columns_decoded, run.counters.batches_decoded) == (1, 1)


def test_a_misfit_is_told_by_the_name_in_the_plan(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", pa.table({"c1": ["x"]}))
    plan = Scan("parquet", (file,), Struct((named("v", LONG, "c1"),)))
    with pytest.raises(SourceError, match=r"a\.parquet"):
        rows(plan, engine)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((named("a", LONG, "c"), named("b", LONG, "c")), "both stored as 'c'"),
        ((named("a", LONG, "b"), Field("b", LONG)), "both stored as 'b'"),
        ((numbered("a", LONG, 1), numbered("b", LONG, 1)), "both stored as 1"),
        ((Field("a", LONG).with_metadata({STORED_NAME: 3}),), "is a text, not 3"),
        ((Field("a", LONG).with_metadata({STORED_ID: "3"}),), "is a whole number, not '3'"),
    ],
)
def test_names_that_can_not_be(fields: tuple[Field, ...], message: str) -> None:
    for columns in (Struct(fields), Struct.of(s=List(Struct(fields)))):
        with pytest.raises(SchemaError, match=message):
            Scan("parquet", (), columns)


def test_only_parquet_has_other_names() -> None:
    with pytest.raises(PlanError, match="holds no columns under other names"):
        Scan("json", (), Struct((named("a", LONG, "b"),)))

"""Whatever is given for whatever argument: it works, or an error of ours says what to give."""

from __future__ import annotations

import contextlib
import datetime as dt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import millpond as mp
from millpond import agg, col
from millpond import types as t
from millpond.base.errors import MillpondError, PlanError, SchemaError, TypeMismatchError
from millpond.plan.aggregates import Measure
from millpond.plan.expr import Expr, Named, SortKey
from millpond.plan.make import values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROWS = values(
    [{"a": 1, "b": "q", "li": [1], "j": "{}", "at": dt.datetime(2026, 3, 1, tzinfo=dt.UTC)}]
)
OTHER = values([{"a": 1, "z": 2}])
NAMES = ROWS.select(path=col("b"))
SCHEMA = t.Struct.of(a=t.LONG)
A = col("a")


class Keep:
    """A row filter that keeps everything."""

    name = "keep"
    columns = ("a",)
    config: Mapping[str, Any] = MappingProxyType({})

    def open(self) -> Any:
        return self

    def apply(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array([True] * batch.num_rows)

    def finish(self) -> None:
        return None


class Count:
    """A stateful function that gives its argument."""

    name = "count"
    config: Mapping[str, Any] = MappingProxyType({})

    def return_type(self, input_types: tuple[t.DataType, ...]) -> t.DataType:
        return t.LONG

    def create_instance(self) -> Any:
        return self

    def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
        return 1

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        return None


ODD: dict[str, Any] = {
    "None": None,
    "5": 5,
    "-1": -1,
    "1.5": 1.5,
    "nan": float("nan"),
    "True": True,
    "empty text": "",
    "unknown text": "zzz",
    "bytes": b"x",
    "empty list": [],
    "list of None": [None],
    "list of 5": [5],
    "three names": ("a", "b", "c"),
    "empty dict": {},
    "dict": {"a": "int"},
    "object": object(),
    "class": int,
    "function": lambda row: row,
    "expression": A,
    "sort key": A.desc(),
    "plan": ROWS,
    "arrow schema": pa.schema([("a", pa.int64())]),
    "type": t.LONG,
}

METHODS: dict[str, list[Any]] = {
    "same_as": [1],
    "div": [1],
    "isin": [[1]],
    "between": [1, 2],
    "coalesce": [1],
    "any": [A > 1],
    "all": [A > 1],
    "contains": [1],
    "starts_with": ["a"],
    "ends_with": ["a"],
    "like": ["a"],
    "replace_text": ["a", "b"],
    "substr": [0, 1],
    "concat": ["a"],
    "date_part": ["year"],
    "date_trunc": ["day"],
    "time_bucket": [dt.timedelta(minutes=5)],
    "parse_json": [SCHEMA],
    "alias": ["a"],
}
Call = tuple[Any, list[Any], dict[str, Any]]
RUN: dict[str, Any] = {"engine": "arrow", "scope": None}
CALLS: dict[str, Call] = {
    "values": (mp.values, [[{"a": 1}], SCHEMA], {}),
    "values of arrow": (mp.values, [pa.table({"a": [1]}), SCHEMA], {}),
    "stored": (mp.stored, ["/a", SCHEMA], {}),
    "sql": (mp.sql, ["select a from r"], {"schema": SCHEMA, "r": ROWS}),
    "col": (mp.col, ["a"], {}),
    "path": (mp.path, ["a"], {}),
    "lit": (mp.lit, [1, t.LONG], {}),
    "if_else": (mp.if_else, [A > 1, 1, 2], {}),
    "from_epoch_micros": (mp.from_epoch_micros, [1], {}),
    "filter": (ROWS.filter, [A > 1], {}),
    "filter_ordered": (ROWS.filter_ordered, [Keep()], {}),
    "select": (ROWS.select, ["a"], {"z": A}),
    "with_columns": (ROWS.with_columns, [], {"z": A}),
    "drop": (ROWS.drop, ["a"], {}),
    "rename": (ROWS.rename, [{"b": "y"}], {"a": "z"}),
    "distinct": (ROWS.distinct, ["a"], {}),
    "parse_json": (ROWS.parse_json, ["j", SCHEMA], {"output": "o"}),
    "union": (ROWS.union, [ROWS], {}),
    "join": (ROWS.join, [OTHER], {"on": "a", "how": "inner", "nulls_equal": False, "suffix": "_r"}),
    "join by pairs": (ROWS.join, [OTHER], {"on": [("a", "a")], "how": "semi"}),
    "aggregate": (ROWS.aggregate, ["a"], {"n": agg.count()}),
    "sort": (ROWS.sort, ["a"], {}),
    "top_k": (ROWS.top_k, [1, "a"], {}),
    "head": (ROWS.head, [1], {}),
    "tail": (ROWS.tail, [1], {}),
    "take": (ROWS.take, [[0]], {}),
    "sample": (ROWS.sample, [1], {"seed": 1}),
    "sample a fraction": (ROWS.sample, [], {"fraction": 0.5, "seed": 1}),
    "shuffle": (ROWS.shuffle, [], {"seed": 1}),
    "dynamic_scan": (
        NAMES.dynamic_scan,
        [SCHEMA],
        {"format": "parquet", "path_column": "path", "constants": (), "deleted": None},
    ),
    "stateful": (ROWS.stateful, ["n", Count(), "a"], {"where": None, "partition_by": "a"}),
    "window": (
        ROWS.window,
        ["n", "sum", "a"],
        {"partition_by": (), "order_by": "a", "rows": (None, 0), "offset": 1},
    ),
    "execute": (ROWS.execute, [], {**RUN, "optimize": True, "ordered": True}),
    "to_arrow": (ROWS.to_arrow, [], RUN),
    "to_pylist": (ROWS.to_pylist, [], RUN),
    "to_pandas": (ROWS.to_pandas, [], RUN),
    "count of a plan": (ROWS.count, [], RUN),
    "show": (ROWS.show, [1], RUN),
    "explain": (ROWS.explain, [], {**RUN, "format": "text"}),
    "explain_analyze": (
        ROWS.explain_analyze,
        [],
        {**RUN, "format": "text", "max_rows": 1, "time_budget_ms": 1},
    ),
    **{name: (getattr(agg, name), ["a"], {"where": None}) for name in ("count", "sum", "first")},
    "Struct.of": (t.Struct.of, [], {"a": t.LONG}),
    "Struct": (t.Struct, [()], {}),
    "Field": (t.Field, ["a", t.LONG], {}),
    "List": (t.List, [t.LONG], {}),
    "Map": (t.Map, [t.STRING, t.LONG], {}),
    "Decimal": (t.Decimal, [3, 1], {}),
    **{f"Expr.{name}": (getattr(A, name), args, {}) for name, args in METHODS.items()},
    "Expr.cast": (A.cast, ["long"], {"on_error": "error"}),
    "Expr.asc": (A.asc, [], {"nulls": "last"}),
    "Expr.desc": (A.desc, [], {"nulls": "last"}),
}


def use(made: Any) -> None:
    """Go on with what was built: what it holds may break something further on."""
    if isinstance(made, Named):
        use(ROWS.select(made))
    elif isinstance(made, SortKey):
        use(ROWS.sort(made))
    elif isinstance(made, Measure):
        use(ROWS.aggregate("a", n=made))
    elif isinstance(made, Expr):
        assert repr(made)
        use(ROWS.select(made=made))
    elif isinstance(made, mp.Plan):
        assert str(made)
        assert repr(made)
        assert made.digest
        made.to_arrow(engine="arrow")


def tolerant(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Any error but ours fails the test."""
    with contextlib.suppress(MillpondError):
        use(function(*args, **kwargs))


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument(name: str) -> None:
    function, args, kwargs = CALLS[name]
    for odd in ODD.values():
        for at in range(len(args)):
            tolerant(function, [*args[:at], odd, *args[at + 1 :]], kwargs)
        for key in kwargs:
            if (name, key) == ("sql", "schema") and odd is None:
                continue  # not odd: Spark is started and asked
            tolerant(function, args, {**kwargs, key: odd})


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_argument_of_those_that_touch_files(odd: str, tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_text("a\n1\n")
    mp.scan(csv)
    for key in ("format", "schema", "columns", "csv"):
        tolerant(mp.scan, [csv], {key: ODD[odd]})
    tolerant(mp.scan, [ODD[odd]], {})
    tolerant(mp.scan, [[csv, ODD[odd]]], {})
    tolerant(mp.list_files, [ODD[odd]], {})
    tolerant(mp.list_files, [tmp_path], {"start_from": ODD[odd]})


def test_the_calls_are_right_but_for_the_odd_argument() -> None:
    only_built = {"dynamic_scan", "show", "sql", "stored", "window"}
    for name, (function, args, kwargs) in CALLS.items():
        made = function(*args, **kwargs)
        assert (made is None) == (name == "show"), name
        if not name.startswith("Expr.") and name not in only_built:
            use(made)


mp_: Any = mp
rows: Any = ROWS
a: Any = A
SAID: dict[str, Any] = {
    "scan() takes a path, a URL, a pattern or a list of them, not None": lambda: mp_.scan(None),
    "scan() takes a path or URL, not ''": lambda: mp_.scan(""),
    "values() takes a list of dictionaries or an Arrow table, not 5": lambda: mp_.values(5),
    "values(schema=...) takes a schema, not 5": lambda: mp_.values([], 5),
    "col() takes a column's name, not 5": lambda: mp_.col(5),
    "path() takes a path's text, not 5": lambda: mp_.path(5),
    "sql(r=...) takes a plan, not None": lambda: mp_.sql("select 1", r=None),
    "isin() takes a list of values, not 5": lambda: a.isin(5),
    "isin() takes a list of values, not an expression": lambda: a.isin(a),
    "time_bucket() takes a timedelta, not '5 minutes'": lambda: a.time_bucket("5 minutes"),
    "cast() takes a type or its name, not the class int": lambda: a.cast(int),
    "window(rows=...) takes (start, end)": lambda: rows.window("n", "sum", "a", rows=5),
    "union() takes a plan, not an expression": lambda: rows.union(a),
    "join(on=...) takes a column's name, or a list": lambda: rows.join(OTHER, on=a),
    "drop() takes columns' names, one by one, not a list": lambda: rows.drop(["a"]),
    "takes a row filter, not the class Keep": lambda: rows.filter_ordered(Keep),
    "engine takes 'auto', an engine's name or an engine, not 5": lambda: rows.to_arrow(engine=5),
}


@pytest.mark.parametrize("message", SAID)
def test_what_is_said(message: str) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        SAID[message]()
    assert message in caught.value.message


def test_a_choice_that_is_not_there() -> None:
    with pytest.raises(PlanError, match=r"date_part\(\) does not know 'upper'"):
        col("b").date_part("upper")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"cast\(on_error=...\) does not know 'ignore'"):
        A.cast("long", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"asc\(nulls=...\) does not know 'middle'"):
        A.asc(nulls="middle")  # type: ignore[arg-type]


class TestSchemas:
    """A schema is a struct, types by name, or Arrow's."""

    @pytest.mark.parametrize(
        "schema",
        [SCHEMA, {"a": "long"}, {"a": t.LONG}, {"a": pa.int64()}, pa.schema([("a", pa.int64())])],
        ids=str,
    )
    def test_are_one_and_the_same(self, schema: Any, tmp_path: Path) -> None:
        file = tmp_path / "a.csv"
        file.write_text("a\n1\n")
        assert mp.scan(file, schema=schema).schema == SCHEMA
        assert mp.values([{"a": 1}], schema).schema == SCHEMA
        assert mp.stored("/a", schema).schema == SCHEMA
        assert mp.sql("select 1 as a", schema=schema).schema == SCHEMA
        assert ROWS.parse_json("j", schema, output="o").schema.field("o").type == SCHEMA

    def test_an_unknown_type_is_named(self) -> None:
        with pytest.raises(SchemaError, match="unknown type 'int'") as caught:
            mp.values([{"a": 1}], {"a": "int"})
        assert "integer" in str(caught.value.hint)

    def test_arrow_types_without_a_counterpart_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="uint64"):
            mp.values([{"a": 1}], pa.schema([("a", pa.uint64())]))


class TestCsvOptions:
    """How a CSV file is written, as an object or as a dictionary."""

    def test_either_form(self, tmp_path: Path) -> None:
        file = tmp_path / "a.csv"
        file.write_text("a;b\n1;x\n")
        plan = mp.scan(file, csv=mp.CsvOptions(delimiter=";"))
        assert plan == mp.scan(file, csv={"delimiter": ";"})
        assert plan.to_pylist(engine="arrow") == [{"a": 1, "b": "x"}]

    def test_what_is_not_an_option(self, tmp_path: Path) -> None:
        file = tmp_path / "a.csv"
        file.write_text("a\n1\n")
        with pytest.raises(PlanError, match="unknown CSV option 'sep'"):
            mp.scan(file, csv={"sep": ";"})
        with pytest.raises(PlanError, match="a CSV delimiter is one character, not '::'"):
            mp.scan(file, csv={"delimiter": "::"})

    def test_do_not_fit_other_formats(self, tmp_path: Path) -> None:
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
        with pytest.raises(PlanError, match="CSV options do not fit a parquet scan"):
            mp.scan(tmp_path / "a.parquet", csv={"delimiter": ";"})


def test_one_column_is_not_its_letters(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ab,c\n1,2\n")
    assert mp.scan(file, columns="ab").schema.names == ("ab",)


def test_no_engine_is_the_default() -> None:
    assert ROWS.to_arrow(engine=None) == ROWS.to_arrow(engine="auto")
    assert ROWS.explain(engine=None) == ROWS.explain()


def test_a_scope_that_is_none() -> None:
    with pytest.raises(TypeMismatchError, match="scope takes a pinned version of a pond, not 5"):
        mp.stored("/a", SCHEMA).to_arrow(scope=5)  # type: ignore[arg-type]

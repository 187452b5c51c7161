"""Visitors that build the very plan again from the calls they get: nothing may be lost on the way.

Only statistics of columns are not carried, which serve estimates alone.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

from millpond.plan import bound as b
from millpond.plan import order, rows, sources, streams
from millpond.plan import types as t
from millpond.plan.aggregates import BoundMeasure
from millpond.plan.paths import Each, Index, Name
from millpond.plan.stored_fields import logical
from millpond.plan.visitor import ExpressionVisitor, PlanVisitor, SchemaVisitor

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Lists:
    """Lists by ids that are not their positions, so that a wrong id is found out."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.lists: list[list[Any]] = []

    def make(self, reserve: int) -> int:
        assert reserve >= 0
        self.lists.append([])
        return self.start + 7 * (len(self.lists) - 1)

    def __getitem__(self, list_id: int) -> list[Any]:
        position, rest = divmod(list_id - self.start, 7)
        assert rest == 0, f"{list_id} is no list"
        return self.lists[position]


def _primitive(kind: str) -> Any:
    def visit(
        self: Schemas, sibling_list_id: int, name: str, nullable: bool, metadata: str
    ) -> None:
        field = t.Field(name, t.Primitive(kind), nullable, metadata)
        self.lists[sibling_list_id].append(field)

    return visit


class Schemas(SchemaVisitor):
    def __init__(self) -> None:
        self.lists = Lists(1000)

    def make_field_list(self, reserve: int) -> int:
        return self.lists.make(reserve)

    def type(self, type_id: int) -> t.DataType:
        (field,) = self.lists[type_id]
        assert field.name == ""
        found: t.DataType = field.type
        return found

    def struct(self, list_id: int) -> t.Struct:
        return t.Struct(tuple(self.lists[list_id]))

    def visit_decimal(
        self, to: int, name: str, nullable: bool, metadata: str, precision: int, scale: int
    ) -> None:
        self.lists[to].append(t.Field(name, t.Decimal(precision, scale), nullable, metadata))

    def visit_struct(self, to: int, name: str, nullable: bool, metadata: str, below: int) -> None:
        self.lists[to].append(t.Field(name, self.struct(below), nullable, metadata))

    def visit_list(self, to: int, name: str, nullable: bool, metadata: str, below: int) -> None:
        (element,) = self.lists[below]
        assert element.name == "element"
        list_ = t.List(element.type, element.nullable)
        self.lists[to].append(t.Field(name, list_, nullable, metadata))

    def visit_map(self, to: int, name: str, nullable: bool, metadata: str, below: int) -> None:
        key, value = self.lists[below]
        assert (key.name, key.nullable, value.name) == ("key", False, "value")
        map_ = t.Map(key.type, value.type, value.nullable)
        self.lists[to].append(t.Field(name, map_, nullable, metadata))


for _kind in t.PRIMITIVE_NAMES:
    setattr(Schemas, f"visit_{_kind}", _primitive(_kind))


def _literal(type_: t.DataType, value_of: Any = lambda value: value) -> Any:
    def visit(self: Expressions, sibling_list_id: int, value: Any) -> None:
        self.lists[sibling_list_id].append(b.BoundLiteral(value_of(value), type_))

    return visit


class Expressions(ExpressionVisitor):
    schemas: Schemas

    def __init__(self) -> None:
        self.schemas = Schemas()
        self.lists = Lists(2000)
        self.shared = 0

    def make_expression_list(self, reserve: int) -> int:
        return self.lists.make(reserve)

    def one(self, list_id: int) -> Any:
        (found,) = self.lists[list_id]
        return found

    def maybe(self, list_id: int | None) -> Any:
        return None if list_id is None else self.one(list_id)

    def visit_shared(self, to: int, shared: int) -> None:
        self.shared += 1
        self.lists[to].append(self.one(shared))

    def visit_path(
        self, to: int, steps: Sequence[str | int | None], in_element: bool, type_id: int
    ) -> None:
        made = tuple(
            Each() if s is None else Name(s) if isinstance(s, str) else Index(s) for s in steps
        )
        scope: Any = "element" if in_element else "row"
        self.lists[to].append(b.BoundPath(made, self.schemas.type(type_id), scope))

    def visit_literal_null(self, to: int, type_id: int) -> None:
        self.lists[to].append(b.BoundLiteral(None, self.schemas.type(type_id)))

    def visit_literal_decimal(self, to: int, unscaled: int, precision: int, scale: int) -> None:
        value = decimal.Decimal(f"{unscaled}E-{scale}")
        self.lists[to].append(b.BoundLiteral(value, t.Decimal(precision, scale)))

    visit_literal_boolean = _literal(t.BOOLEAN)
    visit_literal_byte = _literal(t.BYTE)
    visit_literal_short = _literal(t.SHORT)
    visit_literal_integer = _literal(t.INTEGER)
    visit_literal_long = _literal(t.LONG)
    visit_literal_float = _literal(t.FLOAT)
    visit_literal_double = _literal(t.DOUBLE)
    visit_literal_string = _literal(t.STRING)
    visit_literal_binary = _literal(t.BINARY)
    visit_literal_date = _literal(t.DATE, lambda n: _EPOCH.date() + dt.timedelta(days=n))
    visit_literal_timestamp = _literal(t.TIMESTAMP, lambda n: _EPOCH + dt.timedelta(microseconds=n))
    visit_literal_timestamp_ntz = _literal(
        t.TIMESTAMP_NTZ, lambda n: _EPOCH.replace(tzinfo=None) + dt.timedelta(microseconds=n)
    )

    def visit_call(self, to: int, function: str, type_id: int, below: int) -> None:
        args, type_ = tuple(self.lists[below]), self.schemas.type(type_id)
        self.lists[to].append(b.BoundCall(function, args, type_))

    def visit_cast(self, to: int, null_on_error: bool, type_id: int, below: int) -> None:
        mode: Any = "null" if null_on_error else "error"
        self.lists[to].append(b.BoundCast(self.one(below), self.schemas.type(type_id), mode))

    def visit_parse_json(self, to: int, type_id: int, below: int) -> None:
        self.lists[to].append(b.BoundParseJson(self.one(below), self.schemas.type(type_id)))

    def visit_any(self, to: int, below: int) -> None:
        self.lists[to].append(b.BoundQuantifier("any", *self.lists[below]))

    def visit_all(self, to: int, below: int) -> None:
        self.lists[to].append(b.BoundQuantifier("all", *self.lists[below]))

    def visit_named(self, to: int, name: str, below: int) -> None:
        self.lists[to].append(b.BoundNamed(name, self.one(below)))

    def visit_sort_key(self, to: int, descending: bool, nulls_first: bool, below: int) -> None:
        self.lists[to].append(b.BoundSortKey(self.one(below), descending, nulls_first))

    def visit_measure(
        self, to: int, name: str, function: str, type_id: int, arg: int | None, where: int | None
    ) -> None:
        made = (self.maybe(arg), self.schemas.type(type_id), self.maybe(where))
        self.lists[to].append(BoundMeasure(name, function, *made))

    def visit_window_call(
        self, to: int, name: str, function: str, type_id: int, arg: int | None, *rest: Any
    ) -> None:
        by, keys, start, end, offset = rest
        head = (name, function, self.schemas.type(type_id), self.maybe(arg))
        lists = (tuple(self.lists[by]), tuple(self.lists[keys]))
        self.lists[to].append(streams.WindowCall(*head, *lists, start, end, offset))

    def visit_stateful_mapping(
        self, to: int, name: str, function_name: str, function: Any, type_id: int, *rest: Any
    ) -> None:
        args, where, by = rest
        assert function.name == function_name
        head = (name, function, tuple(self.lists[args]), self.schemas.type(type_id))
        made = streams.StatefulMapping(*head, self.maybe(where), tuple(self.lists[by]))
        self.lists[to].append(made)


class Plans(PlanVisitor):
    expressions: Expressions

    def __init__(self) -> None:
        self.expressions = Expressions()
        self.lists = Lists(3000)
        self.files = Lists(4000)
        self.visits: list[str] = []
        self.shared = 0

    def make_plan_list(self, reserve: int) -> int:
        return self.lists.make(reserve)

    def make_file_list(self, reserve: int) -> int:
        return self.files.make(reserve)

    def _put(self, to: int, schema: int, plan: Any) -> None:
        """Put a plan into its list; the schema that was told is the one it has."""
        assert logical(self.expressions.schemas.struct(schema)) == plan.schema
        self.visits.append(plan.kind)
        self.lists[to].append(plan)

    def _on(self, below: int) -> Any:
        (plan,) = self.lists[below]
        return plan

    def _parts(self, list_id: int) -> Any:
        return tuple(self.expressions.lists[list_id])

    def visit_shared(self, to: int, shared: int) -> None:
        self.shared += 1
        self.lists[to].append(self._on(shared))

    def visit_file(
        self, to: int, path: str, size: int | None, count: int | None, constants: int
    ) -> None:
        values = tuple(literal.value for literal in self._parts(constants))
        self.files[to].append(sources.File(path, size, count, values))

    def visit_list_files(self, to: int, schema: int, path: str, start_from: str | None) -> None:
        self._put(to, schema, sources.ListFiles(path, start_from))

    def visit_scan(self, to: int, schema: int, kind: Any, files: int, *rest: Any) -> None:
        constants, delimiter, quote, header, strict, on_error = rest
        csv = sources.CsvOptions(delimiter, quote, header) if kind == "csv" else None
        columns = self.expressions.schemas.struct(schema)
        head = (kind, tuple(self.files[files]), columns, tuple(constants), csv)
        made = sources.Scan(*head, strict=strict, on_error=on_error)
        self._put(to, schema, made)

    def visit_dynamic_scan(self, to: int, schema: int, kind: Any, *rest: Any) -> None:
        path, constants, deleted, on_error, below = rest
        columns = self.expressions.schemas.struct(schema)
        head = (self._on(below), kind, columns, path, tuple(constants), deleted)
        self._put(to, schema, sources.DynamicScan(*head, on_error=on_error))

    def visit_values(self, to: int, schema: int, data: Any) -> None:
        self._put(to, schema, sources.Values(data))

    def visit_stored(self, to: int, schema: int, path: str) -> None:
        self._put(to, schema, sources.Stored(path, self.expressions.schemas.struct(schema)))

    def visit_filter(self, to: int, schema: int, predicate: int, below: int) -> None:
        self._put(to, schema, rows.Filter(self._on(below), self.expressions.one(predicate)))

    def visit_filter_ordered(self, to: int, schema: int, name: str, *rest: Any) -> None:
        columns, row_filter, below = rest
        assert (name, columns) == (row_filter.name, row_filter.columns)
        self._put(to, schema, rows.FilterOrdered(self._on(below), row_filter))

    def visit_project(self, to: int, schema: int, columns: int, below: int) -> None:
        self._put(to, schema, rows.Project(self._on(below), self._parts(columns)))

    def visit_parse_json(self, to: int, schema: int, column: str, *rest: Any) -> None:
        parsed, output, below = rest
        struct = self.expressions.schemas.struct(parsed)
        self._put(to, schema, rows.ParseJson(self._on(below), column, struct, output))

    def visit_union(self, to: int, schema: int, below: int) -> None:
        self._put(to, schema, rows.Union(tuple(self.lists[below])))

    def visit_join(self, to: int, schema: int, how: Any, *rest: Any) -> None:
        left, right, nulls_equal, below = rest
        keys = tuple(zip(self._parts(left), self._parts(right), strict=True))
        first, second = self.lists[below]
        self._put(to, schema, rows.Join(first, second, how, keys, nulls_equal))

    def visit_aggregate(self, to: int, schema: int, keys: int, measures: int, below: int) -> None:
        made = rows.Aggregate(self._on(below), self._parts(keys), self._parts(measures))
        self._put(to, schema, made)

    def visit_sort(self, to: int, schema: int, keys: int, below: int) -> None:
        self._put(to, schema, order.Sort(self._on(below), self._parts(keys)))

    def visit_top_k(self, to: int, schema: int, n: int, keys: int, below: int) -> None:
        self._put(to, schema, order.TopK(self._on(below), self._parts(keys), n))

    def visit_head(self, to: int, schema: int, n: int, below: int) -> None:
        self._put(to, schema, order.Head(self._on(below), n))

    def visit_tail(self, to: int, schema: int, n: int, below: int) -> None:
        self._put(to, schema, order.Tail(self._on(below), n))

    def visit_take(self, to: int, schema: int, indices: Sequence[int], below: int) -> None:
        self._put(to, schema, order.Take(self._on(below), tuple(indices)))

    def visit_sample(self, to: int, schema: int, seed: int, *rest: Any) -> None:
        n, fraction, below = rest
        self._put(to, schema, order.Sample(self._on(below), seed, n, fraction))

    def visit_shuffle(self, to: int, schema: int, seed: int, below: int) -> None:
        self._put(to, schema, order.Shuffle(self._on(below), seed))

    def visit_stateful_function(self, to: int, schema: int, mappings: int, below: int) -> None:
        made = streams.StatefulFunction(self._on(below), self._parts(mappings))
        self._put(to, schema, made)

    def visit_window(self, to: int, schema: int, calls: int, below: int) -> None:
        self._put(to, schema, streams.Window(self._on(below), self._parts(calls)))

    def visit_sql(self, to: int, schema: int, text: str, names: Any, below: int) -> None:
        columns = self.expressions.schemas.struct(schema)
        made = streams.Sql(text, tuple(names), tuple(self.lists[below]), columns)
        self._put(to, schema, made)

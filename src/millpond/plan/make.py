"""Where plans begin: `values`, `list_files`, `stored`, `sql`. `millpond.scan` opens files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from millpond.base.errors import SchemaError
from millpond.plan.arguments import path_of, plan_of, schema_of, text_of, wrong
from millpond.plan.arrow import conform, to_arrow_schema
from millpond.plan.frames import check_alike, check_polars, is_pandas_frame, table_of_pandas
from millpond.plan.sources import ListFiles, Stored, Values
from millpond.plan.sqltext import check_sql
from millpond.plan.streams import Sql
from millpond.plan.types import DATE, is_integral

if TYPE_CHECKING:
    import os

    from millpond.plan.arguments import AnySchema
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


def values(rows: Any, schema: AnySchema | None = None) -> Plan:
    """Rows in memory: an Arrow table, a frame of pandas or Polars, or dictionaries.

    Anything with `__arrow_c_stream__` will do. A named index of pandas becomes columns.

    >>> values([{"a": 1}, {"a": 2}]).head(1).to_pylist(engine="arrow")
    [{'a': 1}]
    """
    import pyarrow as pa

    wanted = None if schema is None else schema_of(schema, "values(schema=...)")
    if isinstance(rows, pa.Table):
        table = rows
    elif isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif is_pandas_frame(rows):
        table = table_of_pandas(rows)
    elif hasattr(rows, "__arrow_c_stream__"):
        table = _from_stream(rows)
    elif isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        check_polars(rows)
        hint = "columns by name are a table: values(pyarrow.table({...}))"
        raise wrong("values()", "a list of dictionaries or an Arrow table", rows, hint=hint)
    else:
        return Values(_from_dicts(list(rows), wanted))
    return Values(table if wanted is None else conform(table, wanted))


def _from_stream(rows: Any) -> Any:
    import pyarrow as pa

    check_polars(rows)
    try:
        return pa.table(rows)
    except (pa.ArrowException, TypeError) as error:
        raise SchemaError(
            f"a {type(rows).__name__} is not a table: {error}",
            hint="give a table or a frame, not one of its columns",
        ) from error


def _from_dicts(rows: list[Any], schema: Struct | None) -> Any:
    import pyarrow as pa

    if not rows and schema is None:
        raise SchemaError("no rows and no schema", hint="give schema=Struct.of(...)")
    names = _names(rows, schema)
    if not (names if schema is None else schema.names):
        # Arrow counts rows by their columns; a table that had one still knows how many it has.
        return pa.table({"": pa.nulls(len(rows))}).select([])
    columns = (
        {} if schema is not None else {name: [row.get(name) for row in rows] for name in names}
    )
    for name, column in columns.items():
        check_alike(column, f"column {name!r}")
    try:
        if schema is not None:
            _check_whole(rows, schema)
            return pa.Table.from_pylist(rows, schema=to_arrow_schema(schema))
        # Arrow alone would take the names of the first row and drop all others.
        return pa.table(columns)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise SchemaError(f"these rows do not make a table: {error}") from error


def _check_whole(rows: list[Any], schema: Struct) -> None:
    """Refuse fractions among whole numbers and hours among dates, which Arrow would cut off."""
    for field in schema:
        if not is_integral(field.type) and field.type != DATE:
            continue
        for number, row in enumerate(rows):
            value = row.get(field.name)
            is_fraction = isinstance(value, float) and not value.is_integer()
            has_time = isinstance(value, dt.datetime) and value.time() != dt.time.min
            if is_fraction or (has_time and field.type == DATE):
                raise SchemaError(
                    f"row {number}: {value} in {field.name!r} is not a {field.type}",
                    hint="declare another type, or convert the value",
                )


def _names(rows: list[Any], schema: Struct | None) -> dict[str, None]:
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SchemaError(
                f"row {number} is a {type(row).__name__}, not a dictionary",
                hint="give dictionaries, or an Arrow table",
            )
        names.update(dict.fromkeys(row))
        unknown = None if schema is None else next((n for n in row if n not in schema), None)
        if schema is not None and unknown is not None:
            raise SchemaError(
                f"row {number} has {unknown!r}, the schema has not", hint=schema.near(str(unknown))
            )
    return names


def list_files(path: str | os.PathLike[str], *, start_from: str | None = None) -> Plan:
    """The files right below a path, in the order of their names."""
    if start_from is not None:
        text_of(start_from, "list_files(start_from=...)", "a file's name")
    return ListFiles(path_of(path, "list_files()"), start_from)


def stored(path: str, columns: AnySchema) -> Plan:
    """The rows of a path of a pond, bound to a scope when it is executed."""
    return Stored(text_of(path, "stored()", "a path of a pond"), schema_of(columns, "stored()"))


def sql(text: str, *, schema: AnySchema | None = None, **inputs: Plan) -> Plan:
    """A query over named plans. Without a schema, Spark is asked for it (which starts it).

    It may read its inputs and call functions that compute, unless the setting `sql.allow` is
    `session`: then it may do what this process's session can do.
    """
    from millpond.base.settings import Settings

    allow = Settings.load().sql.allow
    text_of(text, "sql()", "a query's text")
    members = tuple(plan_of(given, f"sql({name}=...)") for name, given in inputs.items())
    if schema is not None:
        check_sql(text)
        columns = schema_of(schema, "sql(schema=...)")
    else:
        from millpond.plan.run import engine_named

        spark: Any = engine_named("spark")
        columns = spark.sql_schema(
            text, {name: plan.schema for name, plan in inputs.items()}, allow=allow
        )
    return Sql(text, tuple(inputs), members, columns, allow)

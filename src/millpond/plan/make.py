"""Where plans begin: `values`, `list_files`, `stored`, `sql`. `millpond.scan` opens files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import SchemaError
from millpond.plan.arrow import conform, to_arrow_schema
from millpond.plan.sources import ListFiles, Stored, Values
from millpond.plan.sqltext import check_sql
from millpond.plan.streams import Sql
from millpond.plan.types import is_integral

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


def values(rows: Any, schema: Struct | None = None) -> Plan:
    """Rows in memory: an Arrow table, anything with `__arrow_c_stream__`, or dictionaries.

    >>> values([{"a": 1}, {"a": 2}]).head(1).to_pylist(engine="arrow")
    [{'a': 1}]
    """
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        table = rows
    elif isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif hasattr(rows, "__arrow_c_stream__"):
        table = pa.table(rows)
    else:
        return Values(_from_dicts(list(rows), schema))
    return Values(table if schema is None else conform(table, schema))


def _from_dicts(rows: list[Any], schema: Struct | None) -> Any:
    import pyarrow as pa

    if not rows and schema is None:
        raise SchemaError("no rows and no schema", hint="give schema=Struct.of(...)")
    names = _names(rows, schema)
    try:
        if schema is not None:
            _check_whole(rows, schema)
            return pa.Table.from_pylist(rows, schema=to_arrow_schema(schema))
        # Arrow alone would take the names of the first row and drop all others.
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise SchemaError(f"these rows do not make a table: {error}") from error


def _check_whole(rows: list[Any], schema: Struct) -> None:
    """Refuse fractions in columns of whole numbers, which Arrow would cut off."""
    for field in schema:
        if is_integral(field.type):
            for number, row in enumerate(rows):
                value = row.get(field.name)
                if isinstance(value, float) and not value.is_integer():
                    raise SchemaError(f"row {number}: {value} in {field.name!r} is no {field.type}")


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


def list_files(path: str, *, start_from: str | None = None) -> Plan:
    """The files right below a path, in the order of their names."""
    return ListFiles(path, start_from)


def stored(path: str, columns: Struct) -> Plan:
    """The rows of a path of a pond, bound to a scope when it is executed."""
    return Stored(path, columns)


def sql(text: str, *, schema: Struct | None = None, **inputs: Plan) -> Plan:
    """A query over named plans. Without a schema, Spark is asked for it (which starts it)."""
    names: Sequence[str] = tuple(inputs)
    # Before anyone else sees the text: Spark runs commands while it analyses them.
    check_sql(text)
    if schema is None:
        from millpond.plan.run import engine_named

        spark: Any = engine_named("spark")
        schema = spark.sql_schema(text, {name: plan.schema for name, plan in inputs.items()})
    assert schema is not None
    return Sql(text, tuple(names), tuple(inputs.values()), schema)

"""Where plans begin: `values`, `list_files`, `stored`, `sql`. Files are opened by `millpond.scan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import SchemaError
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import ListFiles, Stored, Values
from millpond.plan.streams import Sql

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
    return Values(table if schema is None else table.cast(to_arrow_schema(schema)))


def _from_dicts(rows: list[Any], schema: Struct | None) -> Any:
    import pyarrow as pa

    try:
        if schema is not None:
            return pa.Table.from_pylist(rows, schema=to_arrow_schema(schema))
        if not rows:
            raise SchemaError("no rows and no schema", hint="give schema=Struct.of(...)")
        return pa.Table.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"these rows do not make a table: {error}") from error


def list_files(path: str, *, start_from: str | None = None) -> Plan:
    """The files right below a path, in the order of their names."""
    return ListFiles(path, start_from)


def stored(path: str, columns: Struct) -> Plan:
    """The rows of a path of a pond, bound to a scope when it is executed."""
    return Stored(path, columns)


def sql(text: str, *, schema: Struct | None = None, **inputs: Plan) -> Plan:
    """A query over named plans. Without a schema, Spark is asked for it (which starts it)."""
    names: Sequence[str] = tuple(inputs)
    if schema is None:
        from millpond.plan.run import engine_named

        spark: Any = engine_named("spark")
        schema = spark.sql_schema(text, {name: plan.schema for name, plan in inputs.items()})
    assert schema is not None
    return Sql(text, tuple(names), tuple(inputs.values()), schema)

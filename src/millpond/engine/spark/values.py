"""Rows in memory and listings: small tables go to Spark as they are, large ones through a file."""

from __future__ import annotations

import datetime as dt
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.engine.spark.api import is_single_node
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.types import to_spark_schema
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import LISTING
from millpond.plan.types import NULL, DataType, List, Map, Struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millpond.engine.spark.context import Context
    from millpond.plan.sources import ListFiles, Values

_DIRECT_BYTES = 16 << 20
_ROW_GROUP_ROWS = 1 << 18


def compile_values(node: Values, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """The table's rows, in its order."""
    del inputs, ordered
    return Frame(table_frame(node.data, node.schema, context), node.schema, natural=True)


def compile_list_files(
    node: ListFiles, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """The listing is taken here and now, by the driver."""
    del inputs, ordered
    table = list_files(node) if context.reads else to_arrow_schema(LISTING).empty_table()
    return Frame(table_frame(table, LISTING, context), LISTING, natural=True)


def table_frame(table: pa.Table, schema: Struct, context: Context) -> DataFrame:
    """A table as a DataFrame whose partitions are in the table's order."""
    if table.nbytes > _DIRECT_BYTES and is_single_node(context.session) and _has_file_form(schema):
        return _through_file(table, schema, context)
    # One chunk: PySpark makes a partition of each.
    return context.session.createDataFrame(table.combine_chunks(), to_spark_schema(schema))


def _has_file_form(schema: DataType) -> bool:
    """Whether Parquet can hold it: it has no type for values that can only be null."""
    if isinstance(schema, Struct):
        return len(schema) > 0 and all(_has_file_form(field.type) for field in schema)
    if isinstance(schema, List):
        return _has_file_form(schema.element)
    if isinstance(schema, Map):
        return _has_file_form(schema.key) and _has_file_form(schema.value)
    return schema != NULL


def _through_file(table: pa.Table, schema: Struct, context: Context) -> DataFrame:
    """Spark would keep the table in the driver's heap and in every plan that has it."""
    import pyarrow.parquet as pq

    folder = context.resources.enter_context(tempfile.TemporaryDirectory(prefix="millpond-values-"))
    file = Path(folder) / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(
        table, file, row_group_size=_ROW_GROUP_ROWS, compression="lz4", store_schema=False
    )
    reader = context.session.read.schema(to_spark_schema(schema)).option("__globPaths__", "false")
    return reader.parquet(f"file:{file}")


def list_files(node: ListFiles) -> pa.Table:
    """The files right below the path, by name."""
    import pyarrow as pa

    from millpond.base.store import open_store
    from millpond.base.store.children import children

    root = node.path.rstrip("/") or "/"
    store = open_store(root)
    rows = [
        {
            "path": f"{root.rstrip('/')}/{meta.path}",
            "size": meta.size,
            "modified": meta.modified.astimezone(dt.UTC),
        }
        for meta in children(store, start_from=node.start_from)
    ]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(LISTING))

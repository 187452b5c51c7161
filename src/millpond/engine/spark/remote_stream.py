"""Ordered Arrow batches over Spark Connect, in bounded memory on both sides.

A Connect server pushes a result as fast as it is computed, and keeps in its heap what the client
has not read. So only results that Spark itself expects to be small come that way. Others go through
a temporary table on the server: rows are numbered in their order, written as Parquet, and fetched
in ranges of that number, for which the server reads only the row groups that hold them. The client
needs no access to the server's disk, and dropping the table removes the files.
"""

# ruff: noqa: SLF001 - the client's Arrow iterator and the plan's statistics have no public name

from __future__ import annotations

import contextlib
import re
import uuid
from typing import TYPE_CHECKING, Any

from millpond.engine.spark.errors import translated

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_DIRECT_BYTES = 64 << 20
_RANGE_BYTES = 32 << 20
_ROW = "millpond_row"
# `monotonically_increasing_id` is the partition's number above these bits and the row's below.
_ROW_BITS = 33
_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}
_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.]+(?:E\+?\d+)?) (\w+)")


def remote_batches(
    df: DataFrame, schema: pa.Schema, *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a Connect DataFrame in order; see `stream.arrow_batches`."""
    with translated():
        size = estimated_bytes(_explain_cost(df))
        small = size is not None and size <= _DIRECT_BYTES
        direct = small or not _all_have_members(schema)
        made = _direct(df) if direct else _through_table(df, batch_rows)
        with contextlib.closing(made) as tables:
            for table in tables:
                named = _as_declared(table, schema)
                yield from (b for b in named.to_batches(batch_rows) if b.num_rows)


def _as_declared(table: pa.Table, schema: pa.Schema) -> pa.Table:
    # Without columns, a cast would forget how many rows there are.
    return table.rename_columns(schema.names).cast(schema) if schema.names else table


def _all_have_members(schema: pa.Schema) -> bool:
    """Whether each struct has members: Parquet, other than Spark, has none without.

    Such rows are rare, and come as small ones do.
    """
    import pyarrow as pa

    types = list(schema.types)
    while types:
        type_ = types.pop()
        if pa.types.is_struct(type_) and not type_.num_fields:
            return False
        types += [type_.field(i).type for i in range(type_.num_fields)]
    return True


def estimated_bytes(plan: str) -> int | None:
    """What Spark expects of the optimised plan's root; None when it does not say.

    >>> estimated_bytes("== Optimized Logical Plan ==\\nRange, Statistics(sizeInBytes=1.5 KiB)")
    1536
    >>> estimated_bytes("no statistics") is None
    True
    """
    found = _SIZE.search(plan.partition("== Optimized Logical Plan ==")[2])
    if found is None or found[2] not in _UNITS:
        return None
    return int(float(found[1]) * (1 << _UNITS[found[2]]))


def _explain_cost(df: Any) -> str:
    return str(df._explain_string(mode="cost"))


def _direct(df: Any) -> Generator[pa.Table]:
    import pyarrow as pa

    client = df.sparkSession.client
    plan = df._plan
    answers = client.to_table_as_iterator(plan.to_proto(client), plan.observations)
    with contextlib.closing(answers):
        for answer in answers:
            if isinstance(answer, pa.Table):
                yield answer


def _through_table(df: DataFrame, batch_rows: int) -> Generator[pa.Table]:
    session = df.sparkSession
    name = f"millpond_stream_{uuid.uuid4().hex}"
    # Columns are numbered, since a result may name two alike and a table may not.
    numbered = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    numbered = numbered.selectExpr("*", f"monotonically_increasing_id() AS {_ROW}")
    try:
        numbered.write.format("parquet").saveAsTable(name)
        yield from _ranges(session, name, rows=batch_rows)
    finally:
        with contextlib.suppress(Exception):
            session.sql(f"DROP TABLE IF EXISTS {name}").collect()


def _ranges(session: SparkSession, name: str, *, rows: int) -> Iterator[pa.Table]:
    counts = session.sql(
        f"SELECT shiftright({_ROW}, {_ROW_BITS}) AS part, count(*) AS n "
        f"FROM {name} GROUP BY 1 ORDER BY 1"
    ).collect()
    for part, n in counts:
        start, end = part << _ROW_BITS, (part << _ROW_BITS) + n
        while start < end:
            stop = min(start + rows, end)
            chosen = session.table(name).where(f"{_ROW} >= {start} AND {_ROW} < {stop}")
            table = chosen.toArrow().sort_by(_ROW).drop_columns([_ROW])
            yield table
            start = stop
            # Rows are as wide as they turn out to be: fetch as many as fit the budget.
            per_row = max(1, table.nbytes // max(1, table.num_rows))
            rows = max(1, _RANGE_BYTES // per_row)

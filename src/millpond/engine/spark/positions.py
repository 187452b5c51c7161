"""Take, Sample and Shuffle: nodes that need each row's position in the whole input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.expressions.literals import long
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.order import compile_head
from millpond.engine.spark.values import table_frame
from millpond.plan.order import Head
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.plan.order import Sample, Shuffle, Take

_LIMIT_MAX = (1 << 31) - 1
_HASH_SHIFT, _HASH_UNIT = 11, float(1 << 53)


def compile_take(node: Take, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """A list of positions, each looked up among the numbered rows; one that is not there fails."""
    import pyarrow as pa

    del ordered
    f = context.functions
    if not node.indices:
        return Frame(inputs[0].visible(context).limit(0), node.schema, natural=True)
    first = Head(node.input, max(node.indices) + 1)
    head = compile_head(first, inputs, context, ordered=True)
    rows, position = _numbered(head, context)
    wanted, place = context.hidden(), context.hidden()
    table = pa.table(
        {
            wanted: pa.array(node.indices, pa.int64()),
            place: pa.array(range(len(node.indices)), pa.int64()),
        }
    )
    asked = table_frame(table, Struct.of(**{wanted: LONG, place: LONG}), context)
    found = context.column(position)
    joined = asked.join(rows, context.column(wanted) == found, "left")
    text = f.concat(f.lit("there is no row at position "), context.column(wanted).cast("string"))
    missing = f.when(found.isNull(), f.raise_error(text).cast("boolean")).otherwise(f.lit(True))
    df = joined.filter(missing).select(*context.columns((*node.schema.names, place)))
    return Frame(df, node.schema, keys=(place,))


def compile_sample(node: Sample, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """Rows by the hash of their position, back in their order."""
    del ordered
    df, position = _numbered(inputs[0], context)
    hashed = _hash(node.seed, position, context)
    if node.fraction is not None:
        f = context.functions
        chance = f.shiftrightunsigned(hashed, _HASH_SHIFT).cast("double") / f.lit(_HASH_UNIT)
        return Frame(df.filter(chance < f.lit(node.fraction)), node.schema, keys=(position,))
    assert node.n is not None
    chosen = df.orderBy(hashed, context.column(position)).limit(min(node.n, _LIMIT_MAX))
    return Frame(chosen, node.schema, keys=(position,))


def compile_shuffle(
    node: Shuffle, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """Rows in the order of the hash of their position; no work when nobody looks at the order."""
    if not ordered:
        return inputs[0]
    df, position = _numbered(inputs[0], context)
    hidden = context.hidden()
    df = df.withColumn(hidden, _hash(node.seed, position, context))
    return Frame(df, node.schema, keys=(hidden, position))


def _hash(seed: int, position: str, context: Context) -> Column:
    hashed: Column = context.functions.xxhash64(long(seed, context.api), context.column(position))
    return hashed


def _numbered(frame: Frame, context: Context) -> tuple[DataFrame, str]:
    """The rows with their position from 0 in a hidden column. All pass through one task."""
    keyed = frame.keyed(context)
    position = context.hidden()
    window = context.api.window_by([]).orderBy(*context.ascending(keyed.keys))
    number = context.functions.row_number().over(window).cast("bigint") - long(1, context.api)
    df = keyed.df.select(*context.columns(frame.schema.names), number.alias(position))
    return df, position

"""Filter, Project, ParseJson and Union."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.expressions.json import parse_json
from millpond.engine.spark.frame import Frame
from millpond.plan.bound import BoundPath
from millpond.plan.paths import Name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.expressions import Expressions
    from millpond.plan.bound import BoundNamed
    from millpond.plan.rows import Filter, ParseJson, Project, Union


def compile_filter(node: Filter, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """A native filter; a chain of them becomes one."""
    del ordered
    return inputs[0].where(context.over(node.schema).condition(node.predicate))


def compile_project(
    node: Project, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """A native projection that carries hidden keys along."""
    del ordered
    frame = inputs[0]
    over = context.over(frame.schema)
    columns = [_named(column, over) for column in node.columns]
    df = frame.df.select(*columns, *context.columns(frame.keys))
    return Frame(df, node.schema, frame.natural, frame.keys)


def _named(column: BoundNamed, over: Expressions) -> Column:
    found = over.column(column.expr)
    if isinstance(column.expr, BoundPath) and column.expr.steps == (Name(column.name),):
        return found  # it has this name already
    return found.alias(column.name)


def compile_parse_json(
    node: ParseJson, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """One more column, by Spark's own JSON reader."""
    del ordered
    frame = inputs[0]
    parsed = parse_json(context.column(node.column), node.parsed, context.api)
    names = context.columns(frame.schema.names)
    df = frame.df.select(*names, parsed.alias(node.output), *context.columns(frame.keys))
    return Frame(df, node.schema, frame.natural, frame.keys)


def compile_union(node: Union, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """Input after input, each of them sorted first where it has to be."""
    members = [frame.in_order(context) if ordered else frame.visible(context) for frame in inputs]
    return Frame(union_all(members), node.schema, natural=ordered)


def union_all(members: list[DataFrame]) -> DataFrame:
    """One after the other, as a tree of little depth: Spark walks plans recursively."""
    while len(members) > 1:
        pairs = [members[i].union(members[i + 1]) for i in range(0, len(members) - 1, 2)]
        members = pairs + members[len(pairs) * 2 :]
    return members[0]

"""Texts of Parquet files that are no UTF-8: a strict scan refuses them and names the file.

Spark's reader takes the bytes of a text as they are, and whoever gets the rows can't decode them.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from millpond.engine.spark.api import balanced
from millpond.engine.spark.faults import PATH, fault
from millpond.engine.spark.lambdas import each
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context


def with_valid_texts(rows: DataFrame, columns: t.Struct, path: str, context: Context) -> DataFrame:
    """The rows, or an error; `path` is the column that says of which file a row is."""
    f = context.functions
    checks = []
    for field in columns:
        if not _has_text(field.type):
            continue
        # One message a column: Spark would move what two conditions have in common to the front.
        failed = fault(
            context,
            context.column(path),
            f.lit(f"column {field.name} of {PATH} holds text that is no UTF-8"),
            hint="the file is damaged: write it anew, or restore it",
        )
        checks.append(
            _is_valid(context.column(field.name), field.type, context) | failed.cast("boolean")
        )
    return rows.filter(balanced(checks, operator.and_)) if checks else rows


def _is_valid(value: Column, type_: t.DataType, context: Context) -> Column:
    """Whether all texts of a value, of which there are some, are UTF-8; nulls are."""
    f = context.functions
    checks = [f.coalesce(check, f.lit(True)) for check in _checks(value, type_, context)]
    return balanced(checks, operator.and_)


def _checks(value: Column, type_: t.DataType, context: Context) -> Iterator[Column]:
    """Conditions that hold, or are null, where all texts of a value are UTF-8."""
    f = context.functions
    if type_ == t.STRING:
        yield f.is_valid_utf8(value)
    elif isinstance(type_, t.Struct):
        for field in type_:
            yield from _checks(value.getField(field.name), field.type, context)
    elif isinstance(type_, t.List):
        yield from _each(value, type_.element, context)
    elif isinstance(type_, t.Map):
        yield from _each(f.map_keys(value), type_.key, context)
        yield from _each(f.map_values(value), type_.value, context)


def _each(values: Column, element: t.DataType, context: Context) -> Iterator[Column]:
    if _has_text(element):
        yield each(context.api, "forall", values, lambda one: _is_valid(one, element, context))


def _has_text(type_: t.DataType) -> bool:
    if isinstance(type_, t.Struct):
        return any(_has_text(field.type) for field in type_)
    if isinstance(type_, t.List):
        return _has_text(type_.element)
    if isinstance(type_, t.Map):
        return _has_text(type_.key) or _has_text(type_.value)
    return type_ == t.STRING

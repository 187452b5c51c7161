"""Paths into columns: struct members, map values, list elements, every element.

`a[*].b` right below a list of structs is Spark's own field access of a list, because that prunes
the columns that are read; a lambda does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.lambdas import each
from millpond.plan.paths import Each, Index, Name, Step
from millpond.plan.types import DataType, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api

    _Apply: TypeAlias = Callable[[Column], Column]


def follow(column: Column, type_: DataType, steps: Sequence[Step], api: Api) -> Column:
    """The place at the end of the steps, from a column of this type."""
    *before, last = _segments(type_, steps)
    apply = _one(*last, api)
    if before and _members_only(*last):
        apply = _members(*before.pop(), last[1], api)
    for start, segment in reversed(before):
        apply = _each(start, segment, apply, api)
    return apply(column)


def _segments(type_: DataType, steps: Sequence[Step]) -> list[tuple[DataType, list[Step]]]:
    """The steps cut behind each `[*]`, each piece with the type it starts from."""
    segments: list[tuple[DataType, list[Step]]] = [(type_, [])]
    current = type_
    for step in steps:
        current = _next_type(current, step)
        if isinstance(step, Each):
            segments.append((current, []))
        else:
            segments[-1][1].append(step)
    return segments


def _next_type(current: DataType, step: Step) -> DataType:
    if isinstance(step, Name):
        if isinstance(current, Struct):
            return current.field(step.name).type
        assert isinstance(current, Map)
        return current.value
    assert isinstance(current, List)
    return current.element


def _one(type_: DataType, steps: list[Step], api: Api) -> _Apply:
    return lambda column: _steps(column, type_, steps, api)


def _each(type_: DataType, steps: list[Step], inner: _Apply, api: Api) -> _Apply:
    def apply(column: Column) -> Column:
        return each(api, "transform", _steps(column, type_, steps, api), inner)

    return apply


def _members(type_: DataType, steps: list[Step], members: list[Step], api: Api) -> _Apply:
    def apply(column: Column) -> Column:
        reached = _steps(column, type_, steps, api)
        for step in members:
            assert isinstance(step, Name)
            reached = reached.getField(step.name)
        return reached

    return apply


def _members_only(type_: DataType, steps: list[Step]) -> bool:
    """Whether every step (or none at all) reads a member of a struct."""
    for step in steps:
        if not isinstance(step, Name) or not isinstance(type_, Struct):
            return False
        type_ = _next_type(type_, step)
    return True


def _steps(column: Column, type_: DataType, steps: list[Step], api: Api) -> Column:
    f = api.functions
    for step in steps:
        if isinstance(step, Index):
            if step.index < 0:
                column = f.try_element_at(column, f.lit(step.index))
            else:
                column = f.get(column, f.lit(step.index))
        elif isinstance(type_, Struct):
            assert isinstance(step, Name)
            column = column.getField(step.name)
        else:
            assert isinstance(step, Name)
            column = f.try_element_at(column, f.lit(step.name))
        type_ = _next_type(type_, step)
    return column

"""Rows of several plans as one, by the names of their columns: missing ones are null.

>>> from millpond.plan.make import values
>>> parts = {"a": values([{"x": 1}]), "b": values([{"x": 2, "y": "new"}])}
>>> union_by_name(parts).to_pylist(engine="arrow")
[{'x': 1, 'y': None}, {'x': 2, 'y': 'new'}]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.base.errors import SchemaError
from millpond.plan import types as t
from millpond.plan.casts import can_cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.expr import Named
    from millpond.plan.node import Plan


def union_by_name(parts: Mapping[str, Plan]) -> Plan:
    """All rows of all parts. Types become wider where that loses nothing; else both are named."""
    from millpond.plan.rows import Union

    if not parts:
        raise SchemaError("there is nothing to unite", hint="give one plan at least")
    plans = tuple(fitted_by_name(parts).values())
    if len(plans) == 1:
        return plans[0]
    return _one_scan(plans) or Union(plans)


def _one_scan(plans: tuple[Plan, ...]) -> Plan | None:
    """Scans that differ in their files alone are one: a thousand plans take long to optimize."""
    from millpond.plan.sources import Scan

    scans = [plan for plan in plans if isinstance(plan, Scan) and not plan.stats]
    if len(scans) < len(plans):
        return None
    first = scans[0]
    if any(replace(scan, files=first.files) != first for scan in scans[1:]):
        return None
    return replace(first, files=tuple(file for scan in scans for file in scan.files))


def fitted_by_name(parts: Mapping[str, Plan]) -> dict[str, Plan]:
    """All parts with the same columns, in the same order."""
    first = next(iter(parts.values()))
    if all(plan.schema == first.schema for plan in parts.values()):
        return dict(parts)
    wanted = united_schema({name: plan.schema for name, plan in parts.items()})
    for name, plan in parts.items():
        for field in plan.schema:
            if not can_cast(field.type, wanted.field(field.name).type):
                raise misfit(field.name, (field, name), _another(parts, field))
    return {name: fitted(plan, wanted) for name, plan in parts.items()}


def united_schema(schemas: Mapping[str, t.Struct], *, texts: bool = False) -> t.Struct:
    """The columns of all, in the order in which they come.

    With `texts` the types were guessed from text: whole numbers and fractions are fractions then,
    where `may_round` says that the values have to be looked at.
    """
    united: dict[str, tuple[t.Field, str]] = {}
    for name, schema in schemas.items():
        for field in schema:
            known = united.get(field.name)
            if known is None:
                united[field.name] = (field, name)
                continue
            type_ = united_type(known[0].type, field.type)
            if type_ is None and texts:
                type_ = _united_numbers(known[0].type, field.type)
            if type_ is None:
                raise misfit(field.name, known, (field, name))
            nullable = known[0].nullable or field.nullable
            where = known[1] if type_ == known[0].type else name  # whose type it is
            united[field.name] = (t.Field(field.name, type_, nullable), where)
    everywhere = set.intersection(*(set(schema.names) for schema in schemas.values()))
    return t.Struct(
        tuple(
            t.Field(f.name, f.type, f.nullable or f.name not in everywhere)
            for f, _ in united.values()
        )
    )


def united_type(left: t.DataType, right: t.DataType) -> t.DataType | None:
    """The type as which both can be read without loss: the wider one, member by member."""
    if left == right:
        return left
    if isinstance(left, t.Struct) and isinstance(right, t.Struct):
        return _united_structs(left, right)
    if isinstance(left, t.List) and isinstance(right, t.List):
        element = united_type(left.element, right.element)
        nullable = left.contains_null or right.contains_null
        return None if element is None else t.List(element, nullable)
    if isinstance(left, t.Map) and isinstance(right, t.Map):
        key, value = united_type(left.key, right.key), united_type(left.value, right.value)
        if key is None or value is None:
            return None
        return t.Map(key, value, left.contains_null or right.contains_null)
    if {left, right} == {t.DATE, t.TIMESTAMP}:
        return None
    found = t.common_type(left, right)
    longs = t.LONG in (left, right) and found == t.DOUBLE
    # A long does not widen to a double, nor do decimals.
    decimals = found == t.DOUBLE and any(isinstance(x, t.Decimal) for x in (left, right))
    return None if longs or decimals else found


def _united_numbers(left: t.DataType, right: t.DataType) -> t.DataType | None:
    """The type of whole numbers and fractions together, alone or in lists."""
    pair = {innermost(left), innermost(right)}
    is_mixed = t.LONG in pair and any(map(t.is_fractional, pair))
    return t.common_type(left, right) if is_mixed else None


def may_round(given: t.DataType, wanted: t.DataType) -> bool:
    """Whether whole numbers of 64 bits become fractions, which hold only those of 53 exactly.

    >>> may_round(t.LONG, t.DOUBLE), may_round(t.INTEGER, t.DOUBLE)
    (True, False)
    """
    return innermost(given) == t.LONG and innermost(wanted) == t.DOUBLE


def refuse_rounding(
    united: t.Struct, files: Mapping[str, t.Struct], large: Mapping[str, Mapping[str, int]]
) -> None:
    """Refuse whole numbers that would lose digits, since another file has fractions.

    `large` names one such number for each file and column that has some.
    """
    for file, numbers in large.items():
        for name, number in numbers.items():
            mine = files[file].field(name)
            if may_round(mine.type, united.field(name).type):
                there, other = next(
                    (field, where)
                    for where, columns in files.items()
                    if (field := columns.get(name)) and t.is_fractional(innermost(field.type))
                )
                why = f", and {number} is beyond what a double holds exactly"
                raise misfit(name, (mine, file), (there, other), why=why)


def settled(columns: t.Struct) -> t.Struct:
    """Take columns of which nothing is known for text."""
    return t.Struct(
        tuple(t.Field(f.name, t.STRING if f.type == t.NULL else f.type) for f in columns)
    )


def innermost(type_: t.DataType) -> t.DataType:
    """What lists, and lists of lists, hold in the end.

    >>> print(innermost(t.List(t.List(t.LONG))), innermost(t.DATE))
    long date
    """
    while isinstance(type_, t.List):
        type_ = type_.element
    return type_


def _united_structs(left: t.Struct, right: t.Struct) -> t.Struct | None:
    fields = []
    for field in left:
        other = right.get(field.name)
        type_ = field.type if other is None else united_type(field.type, other.type)
        if type_ is None:
            return None
        nullable = field.nullable or other is None or other.nullable
        fields.append(t.Field(field.name, type_, nullable))
    added = (t.Field(f.name, f.type) for f in right if f.name not in left)
    return t.Struct((*fields, *added))


def fitted(plan: Plan, wanted: t.Struct) -> Plan:
    """The rows with exactly these columns: missing ones are null, narrower ones are widened."""
    if plan.schema == wanted:
        return plan
    return plan.select(*(_column(plan.schema.get(field.name), field) for field in wanted))


def _column(mine: t.Field | None, wanted: t.Field) -> Named:
    from millpond.plan.expr import col, lit

    value = lit(None) if mine is None else col(wanted.name)
    is_same = mine is not None and mine.type == wanted.type
    return (value if is_same else value.cast(wanted.type)).alias(wanted.name)


def _another(parts: Mapping[str, Plan], field: t.Field) -> tuple[t.Field, str]:
    """The first part in which a column is of another type."""
    found = ((plan.schema.get(field.name), name) for name, plan in parts.items())
    return next((f, name) for f, name in found if f is not None and f.type != field.type)


def misfit(
    name: str, one: tuple[t.Field, str], other: tuple[t.Field, str], *, why: str = ""
) -> SchemaError:
    """The error for a column whose two types can't be one; each comes with where it is found."""
    here, there = (f"{field.type} in {where}" for field, where in (one, other))
    return SchemaError(
        f"column {name!r} is {here} and {there}{why}",
        hint="read them apart, or cast the column in one of them",
    )

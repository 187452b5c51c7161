"""Which leaf columns of a Parquet file hold the columns that a plan wants.

Leaves are numbered in the order of the schema, depth first, as Parquet numbers them. A column or
member that the file lacks needs no leaf; of a struct none of whose wanted members exist, one leaf
is read all the same, since it tells where the struct itself is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as at

from millpond.base.errors import SourceError
from millpond.engine.arrow.source.conform import check_fits, is_list
from millpond.engine.arrow.source.files import ENGINE, unfit
from millpond.engine.arrow.source.misfit import Misfit
from millpond.engine.arrow.source.names import Names, stored_steps
from millpond.plan.stored_fields import is_renamed
from millpond.plan.types import DataType, List, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column of a file: its type and the number of its first leaf."""

    type: pa.DataType
    first_leaf: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a leaf is that no list or map is around."""

    steps: tuple[str, ...]
    """The names that lead to it."""
    levels: tuple[int, ...]
    """From which definition level on each of them is there."""
    type: pa.DataType


class Layout:
    """The columns of one file and where their leaves are."""

    def __init__(
        self, path: str, schema: pa.Schema, leaf_count: int, wanted: Struct | None = None
    ) -> None:
        self.path = path
        self.wanted = wanted
        """All columns that the plan wants, in whose names it asks for `steps`."""
        self.columns: dict[str, Column] = {}
        self._names = Names(schema)
        self.leaf_count = leaf_count
        self.together: tuple[range, ...] = ()
        """Leaves that have to be read at once by one reader: `merge` puts no maps together."""
        number = 0
        for field in schema:
            # Of two columns of one name the first counts, as in every other reader.
            self.columns.setdefault(field.name, Column(field.type, number, field.nullable))
            self.together += tuple(_together(field.type, number))
            number += leaf_count_of(field.type)
        if not leaf_count:
            raise SourceError(
                f"{path} holds no columns",
                engine=ENGINE,
                path=path,
                hint="leave the file out, or write it with a column",
            )
        if number != leaf_count:
            raise SourceError(
                f"{path} has {leaf_count} leaf columns, its schema shows {number}",
                engine=ENGINE,
                path=path,
                hint="the file is damaged: write it again, or restore it",
            )

    def in_file(self, wanted: Struct) -> Struct:
        """These columns under the names that they and their members have in this file."""
        return self._names.in_file(wanted)

    def require(self, wanted: Struct) -> None:
        """Refuse a file that lacks a column which is never null."""
        for field, stored in zip(wanted, self.in_file(wanted), strict=True):
            if not field.nullable and stored.name not in self.columns:
                raise unfit(self.path, field.name, "is missing, and it never should be null")

    def steps(self, steps: tuple[str, ...]) -> tuple[str, ...]:
        """A path of member names as the plan has them, under their names in this file."""
        if self.wanted is None or self._stored is None:
            return steps
        return stored_steps(steps, self.wanted, self._stored)

    @cached_property
    def _stored(self) -> Struct | None:
        """The wanted columns under their names in this file; None if those are the plan's own."""
        # Once: to find what is known of a struct takes longer than to walk a path through it.
        if self.wanted is None or not is_renamed(self.wanted):
            return None
        return self.in_file(self.wanted)

    def select(self, wanted: Struct) -> tuple[int, ...]:
        """The leaves that hold these columns, in order; a misfit is an error that names it."""
        found: list[int] = []
        for field, stored in zip(wanted, self.in_file(wanted), strict=True):
            column = self.columns.get(stored.name)
            if column is not None:
                try:
                    found += _select(column.type, column.first_leaf, stored.type, field.name)
                except Misfit as misfit:
                    raise unfit(self.path, misfit.column, misfit.reason) from None
        return tuple(found)

    def leaf(self, steps: tuple[str, ...]) -> int | None:
        """The leaf at the end of a path of member names (`[]` for elements).

        None if there is none, or if what is there has members of its own.
        """
        column = self.columns.get(steps[0])
        if column is None:
            return None
        type_, number = column.type, column.first_leaf
        for step in steps[1:]:
            if at.is_map(type_):
                number += leaf_count_of(type_.key_type)
            elif at.is_struct(type_):
                index = type_.get_field_index(step)
                number += sum(leaf_count_of(type_.field(i).type) for i in range(max(index, 0)))
            child = _child(type_, step)
            if child is None:
                return None
            type_ = child
        return None if at.is_nested(type_) else number

    def place(self, leaf: int) -> Place | None:
        """The place of a leaf to which structs alone lead; None for others."""
        name = max(
            (name for name, column in self.columns.items() if column.first_leaf <= leaf),
            key=lambda name: self.columns[name].first_leaf,
        )
        column = self.columns[name]
        type_, number = column.type, column.first_leaf
        steps, levels = [name], [int(column.nullable)]
        while at.is_struct(type_):
            for i in range(type_.num_fields):
                member = type_.field(i)
                behind = number + leaf_count_of(member.type)
                if leaf < behind:
                    break
                number = behind
            else:
                return None  # a leaf of a second column of the same name
            type_ = member.type
            steps.append(member.name)
            levels.append(levels[-1] + member.nullable)
        if at.is_nested(type_) or number != leaf:
            return None
        return Place(tuple(steps), tuple(levels), type_)

    def passes_map(self, steps: tuple[str, ...]) -> bool:
        """Whether a path looks up a key on its way, which may be missing."""
        type_ = self.columns[steps[0]].type
        for step in steps[1:]:
            if at.is_map(type_):
                return True
            child = _child(type_, step)
            if child is None:
                return False
            type_ = child
        return False

    def lacks(self, steps: tuple[str, ...]) -> bool:
        """Whether a place does not exist in this file, so that all is null there.

        What should have members and has none may hold anything: who reads it sees that.
        """
        column = self.columns.get(steps[0])
        if column is None:
            return True
        type_ = column.type
        for step in steps[1:]:
            child = _child(type_, step)
            if child is None:
                return bool(at.is_struct(type_))
            type_ = child
        return False


def _child(type_: pa.DataType, step: str) -> pa.DataType | None:
    if at.is_map(type_):
        return type_.item_type
    if at.is_struct(type_):
        return type_.field(step).type if type_.get_field_index(step) >= 0 else None
    return type_.value_type if is_list(type_) and step == "[]" else None


def _children(type_: pa.DataType) -> Mapping[str, pa.DataType]:
    if isinstance(type_, pa.BaseExtensionType):
        return _children(type_.storage_type)
    if at.is_struct(type_):
        return {type_.field(i).name: type_.field(i).type for i in range(type_.num_fields)}
    if at.is_map(type_):
        return {"key": type_.key_type, "value": type_.item_type}
    if is_list(type_):
        return {"element": type_.value_type}
    return {}


@cache
def leaf_count_of(type_: pa.DataType) -> int:
    """How many leaves a type has in a file."""
    children = _children(type_)
    return sum(map(leaf_count_of, children.values())) if children else 1


def _together(type_: pa.DataType, first: int) -> Iterator[range]:
    """The leaves of each map, and of each list of the rarer kinds."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if at.is_struct(type_) or at.is_list(type_):
        for child in _children(type_).values():
            yield from _together(child, first)
            first += leaf_count_of(child)
    elif at.is_nested(type_):
        yield range(first, first + leaf_count_of(type_))


def _select(type_: pa.DataType, first: int, wanted: DataType, column: str) -> list[int]:
    """The leaves of one column or member that hold what is wanted of it."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if isinstance(wanted, Struct) and at.is_struct(type_):
        return _select_members(type_, first, wanted, column)
    if isinstance(wanted, List) and at.is_list(type_):
        return _select(type_.value_type, first, wanted.element, f"{column}[]")
    # Maps and the rarer kinds of lists are read whole: parts of them could not be merged later.
    check_fits(type_, wanted, column)
    return list(range(first, first + leaf_count_of(type_)))


def _select_members(type_: pa.DataType, first: int, wanted: Struct, column: str) -> list[int]:
    found: list[int] = []
    number = first
    for i in range(type_.num_fields):
        member = type_.field(i)
        field = wanted.get(member.name)
        if field is not None:
            found += _select(member.type, number, field.type, f"{column}.{member.name}")
        number += leaf_count_of(member.type)
    return found or [first]

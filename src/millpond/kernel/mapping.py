"""Column mapping: which name or id the files of a table use for a column of its schema.

A table's schema has logical names. In the modes `name` and `id` each field carries the name by
which statistics, partition values and (mode `name`) Parquet files know it, and the id by which
(mode `id`) Parquet files do. `TableColumns` is checked once, when a snapshot is made.

>>> from millpond.plan.types import LONG, Field, Struct
>>> field = Field("a", LONG).with_metadata({PHYSICAL_NAME: "col-7", FIELD_ID: 7})
>>> columns = TableColumns.of(Struct((field,)), "name", table="t")
>>> columns.physical_path(("a",))
('col-7',)
>>> columns.scan_columns().field("a").metadata_dict()
{'millpond.stored.name': 'col-7'}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from millpond.base.errors import CorruptLogError, UnsupportedFeatureError
from millpond.plan.stored_fields import STORED_ID, STORED_NAME
from millpond.plan.types import DataType, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Mode: TypeAlias = Literal["none", "name", "id"]
MODES: Final[tuple[Mode, ...]] = ("none", "name", "id")

PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
FIELD_ID: Final = "delta.columnMapping.id"
_DELTA: Final = "delta."


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A table's logical schema and how its files name the columns; see `of`."""

    schema: Struct
    mode: Mode
    table: str

    @classmethod
    def of(cls, schema: Struct, mode: str | None, *, table: str) -> TableColumns:
        """The columns of a table in this mode; None, as where the setting is missing, is `none`.

        In a mapped mode every field, nested ones too, needs a name and an id of its own. In mode
        `none` such annotations are what an earlier mode left behind: they mean nothing.
        """
        known = "none" if mode is None else mode.lower()
        if known not in MODES:
            raise UnsupportedFeatureError(
                f"{table} has the unknown column mapping mode {mode!r}",
                table=table,
                features=("columnMapping",),
                hint=f"delta.columnMapping.mode is one of {', '.join(MODES)}",
            )
        if known != "none":
            _check(schema, table)
        return cls(schema, known, table)

    def physical_name(self, field: Field) -> str:
        """The name by which statistics and partition values know a field of the schema."""
        if self.mode == "none":
            return field.name
        name: str = field.metadata_dict()[PHYSICAL_NAME]
        return name

    def physical_path(self, path: Iterable[str]) -> tuple[str, ...]:
        """The physical names along a path of struct members; an unknown one is an error."""
        current: DataType = self.schema
        names: list[str] = []
        for name in path:
            if not isinstance(current, Struct):
                current = Struct()  # its error says that there is nothing below
            field = current.field(name)
            names.append(self.physical_name(field))
            current = field.type
        return tuple(names)

    def scan_columns(self, names: Iterable[str] | None = None) -> Struct:
        """The columns for a scan of data files: logical names that say how files name them."""
        wanted = self.schema if names is None else self.schema.select(names)
        return cast("Struct", _rebuilt(wanted, self._scanned))

    def stored_schema(self) -> Struct:
        """The schema that a new data file gets: physical names, with ids in a mapped mode."""
        return cast("Struct", _rebuilt(self.schema, self._stored))

    def _scanned(self, field: Field) -> Field:
        metadata = _without_ours(field)
        if self.mode == "id":
            metadata[STORED_ID] = field.metadata_dict()[FIELD_ID]
        # In mode `id` too: scans ask files without ids for a name, never for the logical one.
        if self.physical_name(field) != field.name:
            metadata[STORED_NAME] = self.physical_name(field)
        return field.with_metadata(metadata)

    def _stored(self, field: Field) -> Field:
        metadata: dict[str, Any] = {}
        if self.mode != "none":
            metadata[STORED_ID] = field.metadata_dict()[FIELD_ID]
        return replace(field, name=self.physical_name(field)).with_metadata(metadata)


def _without_ours(field: Field) -> dict[str, Any]:
    """A field's metadata without the keys that Delta and this module give a meaning to."""
    return {
        key: value
        for key, value in field.metadata_dict().items()
        if not key.startswith(_DELTA) and key not in (STORED_NAME, STORED_ID)
    }


def _rebuilt(type_: DataType, change: Callable[[Field], Field]) -> DataType:
    """A type with each field changed, at every depth. Delta's schemas are of bounded depth."""
    if isinstance(type_, Struct):
        return Struct(
            tuple(replace(change(field), type=_rebuilt(field.type, change)) for field in type_)
        )
    if isinstance(type_, List):
        return replace(type_, element=_rebuilt(type_.element, change))
    if isinstance(type_, Map):
        key, value = (_rebuilt(inner, change) for inner in (type_.key, type_.value))
        return replace(type_, key=key, value=value)
    return type_


def _check(schema: Struct, table: str) -> None:
    """Refuse fields without a physical name or an id, and those that share one."""
    ids: dict[int, str] = {}
    for where, struct in _structs(schema):
        taken: dict[str, str] = {}
        for field in struct:
            shown = ".".join((*where, field.name))
            metadata = field.metadata_dict()
            name, number = metadata.get(PHYSICAL_NAME), metadata.get(FIELD_ID)
            if not isinstance(name, str) or not name:
                raise _broken(f"the column {shown!r} has no {PHYSICAL_NAME}", table)
            if not isinstance(number, int) or isinstance(number, bool):
                raise _broken(f"the column {shown!r} has no {FIELD_ID}", table)
            if taken.setdefault(name, shown) != shown:
                raise _broken(f"{taken[name]!r} and {shown!r} are both stored as {name!r}", table)
            if ids.setdefault(number, shown) != shown:
                raise _broken(f"{ids[number]!r} and {shown!r} both have the id {number}", table)


def _structs(schema: Struct) -> Iterator[tuple[tuple[str, ...], Struct]]:
    """Every struct of a schema, and the names that lead to it."""
    todo: list[tuple[tuple[str, ...], DataType]] = [((), schema)]
    while todo:
        where, type_ = todo.pop()
        if isinstance(type_, Struct):
            yield where, type_
            todo.extend(((*where, field.name), field.type) for field in reversed(type_.fields))
        elif isinstance(type_, List):
            todo.append(((*where, "element"), type_.element))
        elif isinstance(type_, Map):
            todo.append(((*where, "value"), type_.value))
            todo.append(((*where, "key"), type_.key))


def _broken(problem: str, table: str) -> CorruptLogError:
    return CorruptLogError(
        f"the column mapping of {table} is broken: {problem}",
        table=table,
        hint="its data can't be told apart; rewrite metaData with the tool that wrote it",
    )

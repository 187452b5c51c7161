"""Schema changes that old files allow: new columns, wider types, and, where columns are mapped,
other names and fewer columns. Everything else is refused with both types in the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError
from millpond.kernel.write.mapped import ANNOTATIONS, unmapped
from millpond.plan.arguments import text_of, wrong
from millpond.plan.paths import Name, parse_path
from millpond.plan.types import (
    BYTE,
    DATE,
    DIGITS,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    NULL,
    SHORT,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPE_CHANGES: Final = "delta.typeChanges"
WIDENING: Final = "delta.enableTypeWidening"

Path = tuple[str, ...]


def evolved(
    old: Struct,
    new: Struct,
    *,
    partition_columns: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    is_mapped: bool = False,
    may_widen: bool = False,
) -> tuple[Struct, tuple[str, ...]]:
    """The new schema with what Delta notes beside the old one's fields, and the partition columns.

    A field of the new schema is the old one of the same id and physical name, or the one that
    `renamed` says (old path to new name), or the one of the same name; otherwise it is new.

    >>> from millpond.plan.types import LONG
    >>> evolved(Struct.of(a=INTEGER), Struct.of(a=LONG))
    Traceback (most recent call last):
    ...
    millpond.base.errors.SchemaError: the column 'a' can't change from integer to long
      hint: set delta.enableTypeWidening to true, now or before
    """
    if not isinstance(renamed, Mapping | None):
        raise wrong("renamed=", "new names by old path", renamed, hint="such as {'lvl': 'level'}")
    names = {
        _path(path): text_of(name, "renamed=", "a column's new name")
        for path, name in (renamed or {}).items()
    }
    change = _Change(names, is_mapped, may_widen, frozenset(partition_columns))
    made = change.struct(old, new, ())
    unused = sorted(".".join(path) for path in names if path not in change.used)
    if unused:
        raise SchemaError(
            f"there is no column {unused[0]!r} to be renamed, or its new name is not in the schema",
            hint="give old path to new name, and the schema with the new name",
        )
    return made, tuple(change.new_names.get(name, name) for name in partition_columns)


def _path(text: str) -> Path:
    steps = parse_path(text_of(text, "renamed=", "a column's old path"))
    return tuple(step.name for step in steps if isinstance(step, Name))


@dataclass(slots=True)
class _Change:
    renamed: Mapping[Path, str]
    is_mapped: bool
    may_widen: bool
    partitions: frozenset[str]
    used: set[Path] = field(default_factory=set)
    new_names: dict[str, str] = field(default_factory=dict)
    """Of renamed columns at the top."""

    def struct(self, old: Struct, new: Struct, where: Path) -> Struct:
        left = {f.name: f for f in old}
        fields = []
        for item in new:
            before = self._before(item, old, where)
            if before is None:
                fields.append(self._added(item, where))
                continue
            if before.name not in left:
                raise SchemaError(
                    f"two columns of the new schema are the old {_shown(where, before)}",
                    hint="leave the annotations of a copied column out",
                )
            del left[before.name]
            fields.append(self._field(before, item, where))
        for gone in left.values():
            self._check_drop((*where, gone.name))
        return Struct(tuple(fields))

    def _before(self, item: Field, old: Struct, where: Path) -> Field | None:
        identity = _identity(item)
        for known in old:
            if identity is not None and _identity(known) == identity:
                return known
            if self.renamed.get((*where, known.name)) == item.name:
                self.used.add((*where, known.name))
                return known
        known_by_name = old.get(item.name)
        moved = known_by_name is not None and (*where, item.name) in self.renamed
        return None if moved else known_by_name

    def _added(self, item: Field, where: Path) -> Field:
        if not item.nullable:
            raise SchemaError(
                f"the new column {_shown(where, item)} is not null, but there are rows without it",
                hint="add it as a nullable column",
            )
        return unmapped(item)

    def _check_drop(self, path: Path) -> None:
        shown = repr(".".join(path))
        if len(path) == 1 and path[0] in self.partitions:
            raise SchemaError(
                f"the table is partitioned by {shown}, which the new schema lacks",
                hint="a partition column can't be dropped",
            )
        if not self.is_mapped:
            raise SchemaError(
                f"the new schema lacks the column {shown}, which files hold by that name",
                hint="set delta.columnMapping.mode to name, then they can be dropped and renamed",
            )

    def _field(self, old: Field, new: Field, where: Path) -> Field:
        here = (*where, old.name)
        if old.name != new.name:
            self._check_rename(old, new, where)
        if old.nullable and not new.nullable:
            raise SchemaError(
                f"the column {_shown(where, old)} can't become not null: it may hold nulls",
                hint="keep it nullable",
            )
        changes: list[dict[str, Any]] = []
        type_ = self._type(old.type, new.type, here, (), changes)
        known = old.metadata_dict()
        names: tuple[str, ...] = (*ANNOTATIONS, TYPE_CHANGES)
        kept = {name: known[name] for name in names if name in known}
        metadata: dict[str, Any] = {**known, **new.metadata_dict(), **kept}
        if changes:
            metadata[TYPE_CHANGES] = [*known.get(TYPE_CHANGES, ()), *changes]
        return replace(new, type=type_).with_metadata(metadata)

    def _check_rename(self, old: Field, new: Field, where: Path) -> None:
        if not self.is_mapped:
            raise SchemaError(
                f"the column {_shown(where, old)} can't be renamed to {new.name!r}: "
                "files hold it by its name",
                hint="set delta.columnMapping.mode to name first",
            )
        if not where:
            self.new_names[old.name] = new.name

    def _type(
        self,
        old: DataType,
        new: DataType,
        where: Path,
        inside: Path,
        changes: list[dict[str, Any]],
    ) -> DataType:
        if isinstance(old, Struct) and isinstance(new, Struct):
            return self.struct(old, new, (*where, *inside))
        if isinstance(old, List) and isinstance(new, List):
            self._check_nulls(old.contains_null, new.contains_null, (*where, *inside))
            element = self._type(old.element, new.element, where, (*inside, "element"), changes)
            return replace(new, element=element)
        if isinstance(old, Map) and isinstance(new, Map):
            self._check_nulls(old.contains_null, new.contains_null, (*where, *inside))
            key = self._type(old.key, new.key, where, (*inside, "key"), changes)
            value = self._type(old.value, new.value, where, (*inside, "value"), changes)
            return replace(new, key=key, value=value)
        if old in (new, NULL):  # what had no type yet holds only nulls
            return new
        self._check_wider(old, new, (*where, *inside))
        change: dict[str, Any] = {"fromType": str(old), "toType": str(new)}
        changes.append({**change, "fieldPath": ".".join(inside)} if inside else change)
        return new

    def _check_nulls(self, before: bool, after: bool, where: Path) -> None:
        if before and not after:
            raise SchemaError(
                f"what {'.'.join(where)!r} holds can't become not null: there may be nulls",
                hint="keep it nullable",
            )

    def _check_wider(self, old: DataType, new: DataType, where: Path) -> None:
        what = f"the column {'.'.join(where)!r} can't change from {old} to {new}"
        if not is_wider(old, new):
            raise SchemaError(what, hint="only wider types can hold what is there; add a column")
        if not self.may_widen:
            raise SchemaError(what, hint=f"set {WIDENING} to true, now or before")


def is_wider(old: DataType, new: DataType) -> bool:
    """Whether Delta lets a column of one type become one of another.

    >>> is_wider(SHORT, INTEGER), is_wider(Decimal(5, 2), Decimal(7, 3)), is_wider(DOUBLE, FLOAT)
    (True, True, False)
    """
    if old in INTEGRAL and new in INTEGRAL:
        return INTEGRAL.index(old) < INTEGRAL.index(new)
    if new == DOUBLE:
        return old in (BYTE, SHORT, INTEGER, FLOAT)
    if isinstance(new, Decimal) and isinstance(old, Decimal):
        scale = new.scale - old.scale
        return scale >= 0 and new.precision - old.precision >= scale
    if isinstance(new, Decimal) and old in INTEGRAL:
        digits = max(DIGITS[old], DIGITS[INTEGER])
        return new.precision - new.scale >= digits
    return old == DATE and new == TIMESTAMP_NTZ


def _identity(item: Field) -> tuple[Any, ...] | None:
    metadata = item.metadata_dict()
    return (
        tuple(metadata[k] for k in ANNOTATIONS) if all(k in metadata for k in ANNOTATIONS) else None
    )


def _shown(where: Path, item: Field) -> str:
    return repr(".".join((*where, item.name)))

"""New rows for a table that is there: its columns become what holds both, or an error says why not.

Columns that are new are added, types become wider where nothing is lost, columns that new rows
lack are null in them. Other names, and columns that are to go, have to be said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millpond.base.errors import SchemaError
from millpond.kernel.write.evolve import WIDENING, is_wider
from millpond.kernel.write.protocol import MAPPING_MODE
from millpond.plan.types import DOUBLE, FLOAT, INTEGRAL, NULL, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.kernel.write.transaction import Transaction
    from millpond.plan.types import DataType, Field
    from millpond.steward.tables.pending import PendingTable


@dataclass(frozen=True, slots=True)
class Reshaping:
    """What is to become of columns that are there."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """From the old name to the new one."""
    dropped: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.renamed or self.dropped)


def ready(
    pending: PendingTable, given: Struct, reshaping: Reshaping, *, versions: tuple[int, int]
) -> Transaction:
    """The open transaction of a table, which fits rows with these columns.

    `versions` are those of the node, before and after these rows are written.
    """
    try:
        tx = _reshaped(pending, reshaping) if reshaping else pending.transaction()
        old = tx.view.plain_schema
        wanted = fitting(old, given, versions=versions)
        if wanted != old:
            tx = _fresh(pending)
            widening: dict[str, str | None] = {WIDENING: "true"}
            tx.set_metadata(
                schema=wanted,
                configuration=widening if _has_other_types(old, wanted) else None,
            )
    except SchemaError as error:
        raise SchemaError(f"{pending.path}: {error.message}", hint=error.hint) from error
    return tx


def _reshaped(pending: PendingTable, reshaping: Reshaping) -> Transaction:
    """The open transaction, with columns that have other names, and without those that go."""
    old = pending.transaction().view.plain_schema
    _check(old, reshaping)
    names = reshaping.renamed
    left = [one for one in old if one.name not in reshaping.dropped]
    tx = _fresh(pending)
    tx.set_metadata(
        schema=Struct(tuple(replace(one, name=names.get(one.name, one.name)) for one in left)),
        renamed={_quoted(old): new for old, new in names.items()} or None,
        configuration={MAPPING_MODE: "name"},
    )
    return tx


def _fresh(pending: PendingTable) -> Transaction:
    """The open transaction, in which no rows are written yet: those before keep their columns."""
    if pending.transaction().pending.has_files:
        pending.stage()
    return pending.transaction()


def fitting(old: Struct, given: Struct, *, versions: tuple[int, int] = (1, 2)) -> Struct:
    """The columns of a table and of new rows together, those of the table first.

    >>> from millpond.plan.types import INTEGER, LONG, STRING
    >>> print(fitting(Struct.of(a=INTEGER, b=STRING), Struct.of(c=STRING, a=LONG)))
    struct<a: long, b: string, c: string>
    >>> fitting(Struct.of(a=INTEGER), Struct.of(a=STRING))
    Traceback (most recent call last):
    ...
    millpond.base.errors.SchemaError: the column 'a' is integer in version 1 and string in version 2
      hint: cast it before it is written, give it another name, or drop the old one
    """
    return _Both(versions).columns(old.fields, given, ())


@dataclass(frozen=True, slots=True)
class _Both:
    """What holds the values of two versions."""

    versions: tuple[int, int]

    def columns(self, old: Sequence[Field], given: Struct, where: tuple[str, ...]) -> Struct:
        fields = []
        for mine in old:
            theirs = given.get(mine.name)
            if theirs is None:
                fields.append(replace(mine, nullable=True))
                continue
            type_ = self.type(mine.type, theirs.type, (*where, mine.name))
            nullable = mine.nullable or theirs.nullable
            fields.append(replace(mine, type=type_, nullable=nullable))
        known = {one.name for one in old}
        fields += [replace(one, nullable=True) for one in given if one.name not in known]
        return Struct(tuple(fields))

    def type(self, old: DataType, new: DataType, where: tuple[str, ...]) -> DataType:
        if isinstance(old, Struct) and isinstance(new, Struct):
            return self.columns(old.fields, new, where)
        if isinstance(old, List) and isinstance(new, List):
            element = self.type(old.element, new.element, (*where, "element"))
            nulls = old.contains_null or new.contains_null
            return replace(old, element=element, contains_null=nulls)
        if isinstance(old, Map) and isinstance(new, Map):
            key = self.type(old.key, new.key, (*where, "key"))
            value = self.type(old.value, new.value, (*where, "value"))
            nulls = old.contains_null or new.contains_null
            return replace(old, key=key, value=value, contains_null=nulls)
        # Whole numbers in a column of fractions are looked at one by one when they are written.
        is_fraction = old in (DOUBLE, FLOAT) and new in INTEGRAL
        if new in (old, NULL) or is_wider(new, old) or is_fraction:
            return old
        if old == NULL or is_wider(old, new):
            return new
        before, after = self.versions
        raise SchemaError(
            f"the column {'.'.join(where)!r} is {old} in version {before} and {new} in version "
            f"{after}",
            hint="cast it before it is written, give it another name, or drop the old one",
        )


def _check(old: Struct, reshaping: Reshaping) -> None:
    for name in (*reshaping.renamed, *reshaping.dropped):
        if name not in old:
            deed = "dropped" if name in reshaping.dropped else "renamed"
            raise SchemaError(f"there is no column {name!r} to be {deed}", hint=old.near(name))
    both = sorted(set(reshaping.renamed) & set(reshaping.dropped))
    if both:
        raise SchemaError(
            f"the column {both[0]!r} can't be both renamed and dropped", hint="choose one of them"
        )
    kept = set(old.names) - {*reshaping.renamed, *reshaping.dropped}
    taken = sorted(kept & set(reshaping.renamed.values()))
    if taken:
        raise SchemaError(
            f"there is a column {taken[0]!r} already", hint="rename or drop that one, too"
        )


def _quoted(name: str) -> str:
    """A column's name as a path that leads to it, whatever is in the name."""
    return '"' + name.replace('"', '""') + '"'


def _has_other_types(old: Struct, new: Struct) -> bool:
    """Whether any type is another one than before, at any depth; more columns are no matter."""
    pairs: list[tuple[DataType, DataType]] = [(old, new)]
    while pairs:
        before, after = pairs.pop()
        if isinstance(before, Struct) and isinstance(after, Struct):
            pairs += [(f.type, after.field(f.name).type) for f in before if f.name in after]
        elif isinstance(before, List) and isinstance(after, List):
            pairs.append((before.element, after.element))
        elif isinstance(before, Map) and isinstance(after, Map):
            pairs += [(before.key, after.key), (before.value, after.value)]
        elif before not in (after, NULL):
            return True
    return False

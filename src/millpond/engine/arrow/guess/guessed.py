"""What is guessed of a file, and of several files together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millpond.base.errors import SchemaError
from millpond.engine.looks import EXACT
from millpond.plan import types as t
from millpond.plan.unite import refuse_rounding, settled, united_schema

if TYPE_CHECKING:
    from collections.abc import Mapping


class Guessed(NamedTuple):
    """The columns of a file; one without any value is of the type NULL."""

    columns: t.Struct
    large: dict[str, int]
    """Of columns of whole numbers that do not all fit a double exactly: one that does not."""

    @classmethod
    def of(cls, types: Mapping[str, t.DataType], largest: Mapping[str, int]) -> Guessed:
        """Make one of types, and of the largest whole numbers of columns that have some."""
        columns = t.Struct(tuple(t.Field(name, type_) for name, type_ in types.items()))
        large = {name: value for name, value in largest.items() if abs(value) > EXACT}
        return cls(columns, large)


def united_guess(files: Mapping[str, Guessed]) -> t.Struct:
    """Return the columns of all files together, by the names of the files; unknown ones are text.

    Files without columns add nothing, if there are others.
    """
    files = {name: one for name, one in files.items() if one.columns.fields} or files
    columns = {name: one.columns for name, one in files.items()}
    united = united_schema(columns, texts=True)
    if not united.fields:
        name = next(iter(files))
        raise SchemaError(f"{name} shows no columns", hint="give schema=Struct.of(...)")
    refuse_rounding(united, columns, {name: one.large for name, one in files.items()})
    return settled(united)

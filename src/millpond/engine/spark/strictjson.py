"""Whether a JSON line fits its columns as it stands: what a strict scan asks of every line.

`from_json` takes any value for a text and gives null for what does not fit. A variant of the same
line remembers what each member really was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.lambdas import each
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api


def is_misfit(line: Column, value: Column, columns: t.Struct, api: Api) -> Column:
    """Whether some member of the line is not what its column says; `value` is what was read."""
    f = api.functions
    whole = f.try_parse_json(line)
    found = whole.isNull() | ~f.is_valid_utf8(line)
    for misfit in _misfits(whole, "$", value, columns, api):
        found = found | misfit
    made: Column = f.coalesce(found, f.lit(False))
    return made


def _misfits(
    whole: Column, above: str, value: Column, struct: t.Struct, api: Api
) -> Iterator[Column]:
    """One condition for each member, at every depth of structs."""
    f = api.functions
    for field in struct:
        path = f"{above}['{field.name}']"
        given = f.try_variant_get(whole, path, "variant")
        kind = f.schema_of_variant(given)
        read = value.getField(field.name)
        is_there = given.isNotNull() & ~f.is_variant_null(given)
        yield is_there & (read.isNull() | ~_may_be(kind, given, field.type, api))
        if isinstance(field.type, t.Struct):
            yield from _misfits(whole, path, read, field.type, api)


def _may_be(kind: Column, given: Column, type_: t.DataType, api: Api) -> Column:
    """Whether a value of this kind may stand for the type; numbers are judged by being read."""
    f = api.functions
    made: Column = f.lit(True)
    if type_ == t.STRING:
        made = kind == f.lit("STRING")
    elif isinstance(type_, t.Struct):
        made = kind.startswith("OBJECT<")
    elif isinstance(type_, t.List) and type_.element == t.STRING:
        made = kind.isin("ARRAY<STRING>", "ARRAY<VOID>", "ARRAY<>")
    elif isinstance(type_, t.Map) and type_.value == t.STRING:
        values = f.map_values(f.try_variant_get(given, "$", "map<string,variant>"))
        texts = each(api, "forall", values, lambda x: f.schema_of_variant(x).isin("STRING", "VOID"))
        made = kind.startswith("OBJECT<") & f.coalesce(texts, f.lit(False))
    return made

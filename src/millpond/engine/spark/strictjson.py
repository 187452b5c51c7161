"""Which member of a JSON line does not fit its column: what a scan asks of every line.

`from_json` takes any value for a text and gives null for what does not fit. A variant of the same
line remembers what each member really was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from millpond.engine.spark.lambdas import each
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api


_PLAIN: Final = re.compile(r"[\w .:/@#$%+-]+")
"""Names that a path into a variant can have."""
_HIGH: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF: Final = rf"(?<!\\)(?:\\\\)*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""Spark makes a question mark of it."""


def misfit_of(
    line: Column,
    value: Column,
    is_misfit: Column,
    columns: t.Struct,
    api: Api,
    *,
    exactly: bool,
) -> Column:
    """Return which member of the line is not what its column says; null if all are.

    `value` is what was read, and `is_misfit` whether something in it was null instead. `exactly`
    also refuses what was only converted: a number as text.
    """
    f = api.functions
    whole = f.try_parse_json(line)
    found = []
    for misfit, member, type_ in _misfits(whole, ("$", ""), value, columns, api, exactly):
        said = f"member {member!r} is not of type {type_}"
        found.append(f.when(misfit, f.lit(said)))
    named = f.coalesce(*found, f.when(is_misfit, f.lit("something is not of its type")))
    has_texts = any(one == t.STRING for one in t.types_in(columns))
    no_text = f.when(~f.is_valid_utf8(line), f.lit("it is not UTF-8"))
    if has_texts:
        half = f.when(line.rlike(_HALF), f.lit("it holds half a surrogate pair"))
        no_text = f.coalesce(no_text, half)
    first = f.coalesce(no_text, f.when(is_misfit, named))
    if exactly and has_texts:
        odd = f.when(whole.isNull(), f.lit("it is JSON of which readers make different things"))
        first = f.coalesce(no_text, odd, named)
    made: Column = first
    return made


def _misfits(
    whole: Column, above: tuple[str, str], value: Column, struct: t.Struct, api: Api, exactly: bool
) -> Iterator[tuple[Column, str, t.DataType]]:
    """One condition for each member, at every depth of structs, innermost first."""
    f = api.functions
    for field in struct:
        path, member = f"{above[0]}['{field.name}']", f"{above[1]}{field.name}"
        if not _PLAIN.fullmatch(field.name):
            continue  # a path can't name it
        given = f.try_variant_get(whole, path, "variant")
        kind = f.schema_of_variant(given)
        read = value.getField(field.name)
        is_there = given.isNotNull() & ~f.is_variant_null(given)
        if isinstance(field.type, t.Struct):
            yield from _misfits(whole, (path, f"{member}."), read, field.type, api, exactly)
        may_be = _may_be(kind, given, field.type, api) if exactly else f.lit(True)
        yield is_there & (read.isNull() | ~may_be), member, field.type


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

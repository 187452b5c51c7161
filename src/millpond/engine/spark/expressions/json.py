"""`parse_json` by Spark's `from_json`, held to the documented meaning.

The text is read as a member of an object, so that any type can be read; a second member follows it,
which is found only where the text is one whole value. Dates and times are read as text first: Spark
takes numbers for them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.engine.spark.expressions.casts import LOCAL_MOMENT, MOMENT, from_text
from millpond.engine.spark.lambdas import each, once
from millpond.engine.spark.types import to_cast, to_spark
from millpond.plan import types as t

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as st

    from millpond.engine.spark.api import Api

_SPACE: Final = " \t\r\n"
_VALUE: Final = "millpond value"
_END: Final = "millpond end"
VALUE: Final = "value"
MISFIT: Final = "misfit"
_ODD: Final = "millpond odd"
"""The text itself, where something in it did not fit, or is not JSON."""
_OPTIONS: Final = {"mode": "PERMISSIVE", "allowSingleQuotes": "false"}
_TELLING: Final = {**_OPTIONS, "columnNameOfCorruptRecord": _ODD}
_TIMES: Final = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


def parse_json(text: Column, type_: t.DataType, api: Api) -> Column:
    """JSON text read as a type."""
    f = api.functions
    if not isinstance(type_, t.Struct):
        return read_json(text, type_, api)
    nulls = _of_nulls(type_, api)

    def read(given: Column) -> Column:
        found: Column = f.when(given.isNotNull(), f.coalesce(read_json(given, type_, api), nulls))
        return found

    return once(text, read, api)


def read_json(text: Column, type_: t.DataType, api: Api) -> Column:
    """JSON text read as a type; null where it is not JSON, or not an object for a struct.

    Each step is computed once, although the next one looks at it many times over.
    """
    value = once(_read(text, type_, api), lambda both: _good(both, api), api)
    if not _needs_work(type_):
        return value
    return once(value, lambda found: _finished(found, type_, api), api)


def tell_json(text: Column, type_: t.DataType, api: Api) -> Column:
    """Read JSON text, and tell whether something in it did not fit: `VALUE` and `MISFIT`."""
    f = api.functions

    def good(both: Column) -> Column:
        odd: Column = both.getField(_ODD).isNotNull()
        made: Column = f.struct(_good(both, api).alias(VALUE), odd.alias(MISFIT))
        return made

    def finished(found: Column) -> Column:
        raw = found.getField(VALUE)
        misfit = found.getField(MISFIT) | _is_lost(raw, type_, api)
        made: Column = f.struct(_finished(raw, type_, api).alias(VALUE), misfit.alias(MISFIT))
        return made

    found = once(_read(text, type_, api), good, api)
    return once(found, finished, api) if _needs_work(type_) else found


def _is_lost(raw: Column, type_: t.DataType, api: Api) -> Column:
    """Whether something that Spark read is null as the type that was asked for."""
    f = api.functions
    made: Column = f.lit(False)
    if isinstance(type_, t.Struct):
        for field in type_:
            if _needs_work(field.type):
                made = made | _is_lost(raw.getField(field.name), field.type, api)
    elif isinstance(type_, t.List | t.Map) and _needs_work(_inside(type_)):
        inside = _inside(type_)
        items = raw if isinstance(type_, t.List) else f.map_values(raw)
        lost = each(api, "exists", items, lambda one: _is_lost(one, inside, api))
        made = f.coalesce(lost, f.lit(False))
    elif type_ in _TIMES or type_ == t.BYTE:
        made = raw.isNotNull() & _finished(raw, type_, api).isNull()
    return made


def _inside(type_: t.List | t.Map) -> t.DataType:
    return type_.element if isinstance(type_, t.List) else type_.value


def _read(text: Column, type_: t.DataType, api: Api) -> Column:
    """What Spark makes of a wrapped text."""
    f = api.functions
    wrapped = f.concat(f.lit(f'{{"{_VALUE}":'), text, f.lit(f',"{_END}":true}}'))
    both: Column = f.from_json(wrapped, _wrapper(_readable(type_), _ODD), _TELLING)
    brackets = _brackets(type_)
    if brackets is not None:
        bare = f.btrim(text, f.lit(_SPACE))
        both = f.when(bare.startswith(brackets[0]) & bare.endswith(brackets[1]), both)
    return both


def _good(both: Column, api: Api) -> Column:
    """The value of a wrapped text, if that is JSON to its end."""
    odd = both.getField(_ODD)
    is_good = both.getField(_END) & (odd.isNull() | _is_json(odd, api))
    value: Column = api.functions.when(is_good, both.getField(_VALUE))
    return value


def _wrapper(value: t.DataType, *more: str) -> st.DataType:
    texts = (t.Field(name, t.STRING) for name in more)
    return to_spark(t.Struct((t.Field(_VALUE, value), t.Field(_END, t.BOOLEAN), *texts)))


def _is_json(wrapped: Column, api: Api) -> Column:
    """Whether a wrapped text is JSON: as text, any value fits.

    Where a value does not fit, Spark goes on behind it; where its parser has stumbled it does the
    same, and finds members that may even be called as ours are.
    """
    both = api.functions.from_json(wrapped, _wrapper(t.STRING), _OPTIONS)
    return once(both, lambda b: b.getField(_VALUE).isNotNull() & b.getField(_END), api)


def _brackets(type_: t.DataType) -> str | None:
    if isinstance(type_, t.List):
        return "[]"
    return "{}" if isinstance(type_, t.Struct | t.Map) else None


def _of_nulls(type_: t.Struct, api: Api) -> Column:
    f = api.functions
    nulls = [f.lit(None).cast(to_cast(field.type)).alias(field.name) for field in type_]
    made: Column = f.struct(*nulls).cast(to_cast(_all_null(type_)))
    return made


def _all_null(type_: t.Struct) -> t.DataType:
    return t.Struct(tuple(t.Field(field.name, field.type) for field in type_))


def _readable(type_: t.DataType) -> t.DataType:
    """The type that Spark reads."""
    if type_ in _TIMES:
        return t.STRING
    if type_ == t.BYTE:
        return t.SHORT  # Spark takes 128 to 255 for bytes, and makes negative numbers of them
    if isinstance(type_, t.List):
        return t.List(_readable(type_.element))
    if isinstance(type_, t.Map):
        return t.Map(type_.key, _readable(type_.value))
    if isinstance(type_, t.Struct):
        return t.Struct(tuple(t.Field(f.name, _readable(f.type)) for f in type_))
    return type_


def _finished(column: Column, type_: t.DataType, api: Api) -> Column:
    """What Spark read, as the type that was asked for."""
    f = api.functions
    made: Column = column
    if type_ in _TIMES:
        pattern = LOCAL_MOMENT if type_ == t.TIMESTAMP_NTZ else MOMENT
        made = from_text(column, type_, on_error="null", api=api, pattern=pattern)
    elif type_ == t.BYTE:
        made = column.try_cast(to_cast(type_))
    elif isinstance(type_, t.Struct) and _needs_work(type_):
        fields = [
            _finished(column.getField(field.name), field.type, api).alias(field.name)
            for field in type_
        ]
        made = f.when(column.isNotNull(), f.struct(*fields))
    elif isinstance(type_, t.List) and _needs_work(type_):
        made = _list(column, type_.element, api)
    elif isinstance(type_, t.Map):
        made = _map(column, type_.value, api)
    return made


def _needs_work(type_: t.DataType) -> bool:
    if isinstance(type_, t.Struct):
        return any(_needs_work(field.type) for field in type_)
    if isinstance(type_, t.List):
        return _needs_work(type_.element)
    return type_ in _TIMES or type_ == t.BYTE or isinstance(type_, t.Map)


def _list(column: Column, element: t.DataType, api: Api) -> Column:
    """Every element; one that does not fit makes the list one that does not fit."""
    f = api.functions

    def is_unfit(one: Column) -> Column:
        return one.isNotNull() & _finished(one, element, api).isNull()

    unfit = each(api, "exists", column, is_unfit)
    finished = each(api, "transform", column, lambda one: _finished(one, element, api))
    made: Column = f.when(~unfit, finished)
    return made


def _map(column: Column, value: t.DataType, api: Api) -> Column:
    """Each key once, with its last value; Spark keeps them all."""
    f = api.functions
    keys, values = f.map_keys(column), f.map_values(column)
    distinct = f.array_distinct(keys)
    backwards = f.reverse(keys)

    def last(key: Column) -> Column:
        found: Column = f.get(
            values, (f.array_size(keys) - f.array_position(backwards, key)).cast("int")
        )
        return found

    single = f.map_from_arrays(distinct, each(api, "transform", distinct, last))
    unique = f.array_size(distinct) == f.array_size(keys)
    made: Column = f.when(unique, column).otherwise(single)
    if _needs_work(value):
        finished = _list(f.map_values(made), value, api)
        made = f.when(finished.isNotNull(), f.map_from_arrays(f.map_keys(made), finished))
    return made

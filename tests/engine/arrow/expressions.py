"""Random expressions of every type and the rows they read, for Hypothesis.

`expressions` builds unbound ones, of which binding refuses some; `rows_for` draws only the columns
that an expression reads.
"""

from __future__ import annotations

import decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from tests.engine.arrow.naive import WIDE

from millpond.plan import expr as e
from millpond.plan.bound import row_paths
from millpond.plan.casts import can_cast
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr

MONEY = Decimal(10, 2)
FINE = Decimal(20, 12)
ITEM = Struct.of(k=LONG, n=STRING, l=List(LONG))
SCHEMA = Struct.of(
    b=BOOLEAN,
    i8=BYTE,
    i16=SHORT,
    i32=INTEGER,
    i64=LONG,
    j64=LONG,
    f32=FLOAT,
    f64=DOUBLE,
    g64=DOUBLE,
    m=MONEY,
    q=FINE,
    s=STRING,
    t=STRING,
    x=BINARY,
    d=DATE,
    at=TIMESTAMP,
    ntz=TIMESTAMP_NTZ,
    longs=List(LONG),
    words=List(STRING),
    o=Struct.of(k=LONG, s=STRING, deep=Struct.of(f=DOUBLE), items=List(ITEM)),
    items=List(ITEM),
    map=Map(STRING, LONG),
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                " ",
                "a",
                "A%b",
                "ß",
                "İx",
                "ΑΣ",
                "😀",
                "a\nb",
                "12",
                " +7\t",
                "-3.5",
                "1e3",
                "nan",
            ),
            *(
                "true",
                "N",
                "2024-05-31",
                "2024-02-30",
                "2024-05-31T12:00:00.5+02:00",
                "0x1",
                "99999999999",
            ),
        ]
    ),
    st.text(st.characters(codec="utf-8"), max_size=4),
)
MICROS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-(10**17), 10**17),
    st.integers(-100_000_000, 100_000_000),
)


def whole(bits: int) -> st.SearchStrategy[int]:
    half = 1 << (bits - 1)
    return st.one_of(
        st.integers(-half, half - 1), st.integers(-3, 3), st.sampled_from([-half, half - 1])
    )


def money(type_: Decimal) -> st.SearchStrategy[decimal.Decimal]:
    most = 10**type_.precision - 1
    return st.one_of(st.integers(-most, most), st.integers(-300, 300)).map(
        lambda n: decimal.Decimal(n).scaleb(-type_.scale, context=WIDE)
    )


def floats(width: int) -> st.SearchStrategy[float]:
    odd = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -2.5, 128.0])
    return st.one_of(odd, st.floats(width=width))  # type: ignore[arg-type]


@cache
def values(type_: DataType) -> st.SearchStrategy[Any]:
    scalars: dict[DataType, st.SearchStrategy[Any]] = {
        BOOLEAN: st.booleans(),
        BYTE: whole(8),
        SHORT: whole(16),
        INTEGER: whole(32),
        LONG: whole(64),
        FLOAT: floats(32),
        DOUBLE: floats(64),
        STRING: TEXTS,
        BINARY: st.binary(max_size=4),
        DATE: st.one_of(whole(32), st.integers(-1000, 30000)),
        TIMESTAMP: MICROS,
        TIMESTAMP_NTZ: MICROS,
    }
    if isinstance(type_, Decimal):
        found: st.SearchStrategy[Any] = money(type_)
    elif isinstance(type_, List):
        found = st.lists(values(type_.element), max_size=3)
    elif isinstance(type_, Map):
        keys = st.sampled_from(["k", "z", ""])
        found = st.dictionaries(keys, values(type_.value), max_size=2).map(lambda d: [*d.items()])
    elif isinstance(type_, Struct):
        found = st.fixed_dictionaries({f.name: values(f.type) for f in type_.fields})
    else:
        found = scalars[type_]
    return st.one_of(st.none(), found, found)


@st.composite
def rows_for(draw: st.DrawFn, expr: BoundExpr) -> list[dict[str, Any]]:
    """Rows with values in the columns that the expression reads."""
    used = {path.steps[0].name for path in row_paths(expr)}  # type: ignore[union-attr]
    columns = {f.name: values(f.type) if f.name in used else st.none() for f in SCHEMA.fields}
    return draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=5))


NUMBERS = (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, MONEY, FINE)
SCALARS = (BOOLEAN, *NUMBERS, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)
ROW_PATHS: dict[DataType, tuple[str, ...]] = {
    BOOLEAN: ("b",),
    BYTE: ("i8",),
    SHORT: ("i16",),
    INTEGER: ("i32",),
    LONG: ("i64", "j64", "o.k", "longs[0]", "longs[-1]", "items[1].k", "map.k", "items[0].l[0]"),
    FLOAT: ("f32",),
    DOUBLE: ("f64", "g64", "o.deep.f"),
    MONEY: ("m",),
    FINE: ("q",),
    STRING: ("s", "t", "o.s", "words[0]", "o.items[-1].n"),
    BINARY: ("x",),
    DATE: ("d",),
    TIMESTAMP: ("at",),
    TIMESTAMP_NTZ: ("ntz",),
    List(LONG): ("longs", "items[*].k", "o.items[*].k", "items[0].l"),
    List(STRING): ("words", "items[*].n"),
    List(ITEM): ("items", "o.items"),
}
ITEM_PATHS: dict[DataType, tuple[str, ...]] = {
    LONG: ("k", "l[0]"),
    STRING: ("n",),
    List(LONG): ("l",),
}


@st.composite
def expressions(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    """An expression of a type; inside a quantifier, `scope` is the element's type."""
    if depth == 0:
        return draw(leaves(type_, scope))
    makers = [maker for kinds, maker in MAKERS if type_ in kinds or kinds == ()]
    make = draw(st.sampled_from([leaves_at, *makers]))
    found: e.Expr = make(draw, type_, depth - 1, scope)
    return found


@cache
def leaves(type_: DataType, scope: DataType | None) -> st.SearchStrategy[e.Expr]:
    options: list[st.SearchStrategy[e.Expr]] = []
    if scope is None:
        options += [st.sampled_from(ROW_PATHS[type_]).map(e.path)] * 2
    elif scope == ITEM and type_ in ITEM_PATHS:
        options += [st.sampled_from(ITEM_PATHS[type_]).map(e.path)] * 2
    elif scope == type_:
        options += [st.just(e.element())] * 2
    if type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(type_, List):
        options.append(st.just(e.lit(None, type_)))
    else:
        options.append(values(type_).map(lambda value: e.lit(value, type_)))
    return st.one_of(options)


def leaves_at(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    return draw(leaves(type_, scope))


def one_of(draw: st.DrawFn, *kinds: DataType) -> DataType:
    return draw(st.sampled_from(kinds))


def part(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    return draw(expressions(type_, depth, scope))


def comparison(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    kind = one_of(draw, *SCALARS)
    names = ["eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"]
    left, right = part(draw, kind, depth, scope), part(draw, kind, depth, scope)
    return e.call(draw(st.sampled_from(names)), left, right)


def junction(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    name = draw(st.sampled_from(["and", "or", "not"]))
    count = 1 if name == "not" else draw(st.integers(1, 3))
    return e.call(name, *(part(draw, BOOLEAN, depth, scope) for _ in range(count)))


def null_test(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    if draw(st.booleans()):
        return e.call("is_nan", part(draw, one_of(draw, FLOAT, DOUBLE), depth, scope))
    kind = one_of(draw, *SCALARS, List(LONG))
    return e.call(draw(st.sampled_from(["is_null", "is_not_null"])), part(draw, kind, depth, scope))


def membership(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    kind = one_of(draw, BYTE, LONG, DOUBLE, STRING, MONEY, BOOLEAN)
    choices = draw(st.lists(values(kind).map(lambda v: e.lit(v, kind)), max_size=3))
    return e.call("in", part(draw, kind, depth, scope), *choices)


def text_test(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    name = draw(st.sampled_from(["contains", "starts_with", "ends_with", "like"]))
    left = part(draw, STRING, depth, scope)
    if name == "like":
        patterns = ["%", "_", "", "a%", "%b", "%a%", r"A\%b", "_%_", "a%b", r"%\\%", "é_", "%%a"]
        return left.like(draw(st.sampled_from(patterns)))
    return e.call(name, left, part(draw, STRING, depth, scope))


def quantifier(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    kinds: list[DataType] = (
        [List(LONG)] if scope == ITEM else [List(LONG), List(STRING), List(ITEM)]
    )
    if scope in (LONG, STRING):
        return draw(leaves(BOOLEAN, scope))
    kind = draw(st.sampled_from(kinds))
    assert isinstance(kind, List)
    predicate = part(draw, BOOLEAN, depth, kind.element)
    return e.QuantifierExpr(
        draw(st.sampled_from(["any", "all"])), part(draw, kind, 0, scope), predicate
    )


def condition(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    one, two = part(draw, type_, depth, scope), part(draw, type_, depth, scope)
    if draw(st.booleans()):
        return e.call("coalesce", one, two)
    return e.if_else(part(draw, BOOLEAN, depth, scope), one, two)


def cast(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    sources = [kind for kind in SCALARS if can_cast(kind, type_)]
    if isinstance(type_, List):
        sources = [kind for kind in (List(LONG), List(STRING)) if can_cast(kind, type_)]  # type: ignore[misc]
    if not sources:
        return draw(leaves(type_, scope))
    source = part(draw, draw(st.sampled_from(sources)), depth, scope)
    return source.cast(type_, on_error=draw(st.sampled_from(["error", "null", "null"])))


def arithmetic(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    name = draw(st.sampled_from(["add", "subtract", "multiply", "negate", "abs", "remainder"]))
    if name in ("negate", "abs"):
        return e.call(name, part(draw, type_, depth, scope))
    if name == "remainder" and type_ in (FLOAT, DOUBLE):
        name = "add"
    return e.call(name, part(draw, type_, depth, scope), part(draw, type_, depth, scope))


def decimal_sum(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    name = draw(st.sampled_from(["add", "subtract", "multiply"]))
    both = e.call(
        name,
        part(draw, one_of(draw, MONEY, FINE, INTEGER), depth, scope),
        part(draw, MONEY, depth, scope),
    )
    return both.cast(type_, on_error="null")


def division(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    kinds = (BYTE, LONG) if type_ == LONG else (DOUBLE, FLOAT, MONEY, INTEGER)
    kind = one_of(draw, *kinds)
    name = "int_divide" if type_ == LONG else "divide"
    return e.call(name, part(draw, kind, depth, scope), part(draw, kind, depth, scope))


def text(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    one = part(draw, STRING, depth, scope)
    name = draw(st.sampled_from(["lower", "upper", "trim", "concat", "replace", "substring"]))
    if name == "concat":
        return one.concat(part(draw, STRING, depth, scope))
    if name == "replace":
        return one.replace_text(draw(st.sampled_from(["a", "ß", "  ", "😀"])), draw(TEXTS))
    if name == "substring":
        return one.substr(draw(st.integers(0, 3)), draw(st.sampled_from([0, 1, 2, (1 << 63) - 1])))
    return e.call(name, one)


def measure(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    name = draw(st.sampled_from(["length", "year", "month", "day", "hour", "minute", "second"]))
    if name == "length":
        return part(draw, one_of(draw, STRING, List(LONG)), depth, scope).len()
    days = [DATE] if name in ("year", "month", "day") else []
    return e.call(name, part(draw, one_of(draw, TIMESTAMP, TIMESTAMP_NTZ, *days), depth, scope))


def truncation(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    units = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
    one = part(draw, type_, depth, scope)
    if draw(st.booleans()):
        return e.call("date_trunc", one, draw(st.sampled_from(units)))
    return e.call("time_bucket", one, draw(st.sampled_from([1, 7, 900_000_000, 10**18])))


def epoch(draw: st.DrawFn, type_: DataType, depth: int, scope: DataType | None) -> e.Expr:
    if type_ == TIMESTAMP:
        return e.from_epoch_micros(part(draw, LONG, depth, scope))
    return part(draw, TIMESTAMP, depth, scope).epoch_micros()


WHOLE = (BYTE, SHORT, INTEGER, LONG)
MAKERS: list[tuple[tuple[DataType, ...], Any]] = [
    ((BOOLEAN,), comparison),
    ((BOOLEAN,), junction),
    ((BOOLEAN,), null_test),
    ((BOOLEAN,), membership),
    ((BOOLEAN,), text_test),
    ((BOOLEAN,), quantifier),
    ((*WHOLE, FLOAT, DOUBLE), arithmetic),
    ((MONEY, FINE), decimal_sum),
    ((LONG, DOUBLE), division),
    ((STRING,), text),
    ((INTEGER,), measure),
    ((TIMESTAMP, TIMESTAMP_NTZ), truncation),
    ((LONG, TIMESTAMP), epoch),
    ((), condition),
    ((*SCALARS, List(LONG), List(STRING)), cast),
]

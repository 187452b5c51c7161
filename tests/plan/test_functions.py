"""Each function's typing: what it takes, what it casts to, what it gives, what it refuses."""

from __future__ import annotations

import pytest

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.bind import bind, bind_call
from millpond.plan.bound import BoundCall, BoundLiteral, BoundPath
from millpond.plan.expr import call, col, lit
from millpond.plan.functions import FUNCTIONS
from millpond.plan.literals import literal
from millpond.plan.paths import Name

SCHEMA = t.Struct.of(
    b=t.BYTE,
    i=t.INTEGER,
    l=t.LONG,
    f=t.FLOAT,
    x=t.DOUBLE,
    p=t.Decimal(10, 2),
    w=t.Decimal(30, 5),
    s=t.STRING,
    y=t.BINARY,
    o=t.BOOLEAN,
    d=t.DATE,
    at=t.TIMESTAMP,
    n=t.TIMESTAMP_NTZ,
    v=t.NULL,
    li=t.List(t.LONG),
    st=t.Struct.of(k=t.LONG),
)
_GOOD = """
eq(i, l) -> boolean: cast(i as long), l
eq(s, s) -> boolean: s, s
eq(d, at) -> boolean: cast(d as timestamp), at
eq(d, n) -> boolean: cast(d as timestamp_ntz), n
lt(p, l) -> boolean: cast(p as decimal(22,2)), cast(l as decimal(22,2))
lt(p, x) -> boolean: cast(p as double), x
eq(v, v) -> boolean: v, v
eq(v, i) -> boolean: cast(v as integer), i
eq_null_safe(f, x) -> boolean: cast(f as double), x
and(o, v) -> boolean: o, cast(v as boolean)
or(o) -> boolean: o
not(o) -> boolean: o
is_null(st) -> boolean: st
is_not_null(li) -> boolean: li
is_nan(f) -> boolean: f
is_nan(v) -> boolean: cast(v as double)
coalesce(i, v, l) -> long: cast(i as long), cast(v as long), l
coalesce(li, li) -> list<long>: li, li
if_else(o, i, x) -> double: o, cast(i as double), x
if_else(v, s, v) -> string: cast(v as boolean), s, cast(v as string)
add(b, i) -> integer: cast(b as integer), i
add(i, f) -> double: cast(i as double), cast(f as double)
add(f, f) -> float: f, f
add(v, v) -> long: cast(v as long), cast(v as long)
add(p, w) -> decimal(31,5): p, w
subtract(p, i) -> decimal(13,2): p, cast(i as decimal(10,0))
multiply(p, p) -> decimal(21,4): p, p
multiply(p, x) -> double: cast(p as double), x
add(p, v) -> decimal(11,2): p, cast(v as decimal(10,2))
divide(i, p) -> double: cast(i as double), cast(p as double)
int_divide(b, i) -> long: cast(b as long), cast(i as long)
remainder(b, i) -> integer: cast(b as integer), i
negate(p) -> decimal(10,2): p
negate(v) -> long: cast(v as long)
abs(f) -> float: f
lower(s) -> string: s
upper(v) -> string: cast(v as string)
trim(s) -> string: s
contains(s, s) -> boolean: s, s
starts_with(s, v) -> boolean: s, cast(v as string)
ends_with(s, s) -> boolean: s, s
concat(s, s, s) -> string: s, s, s
length(s) -> integer: s
length(li) -> integer: li
length(v) -> integer: cast(v as string)
year(d) -> integer: d
day(at) -> integer: at
hour(n) -> integer: n
second(v) -> integer: cast(v as timestamp)
epoch_micros(n) -> long: n
epoch_micros(v) -> long: cast(v as timestamp)
from_epoch_micros(i) -> timestamp: cast(i as long)
from_epoch_micros(v) -> timestamp: cast(v as long)
"""


def _call(text: str) -> tuple[str, list[str]]:
    name, _, rest = text.partition("(")
    return name, [arg.strip() for arg in rest.rstrip(")").split(",") if arg.strip()]


@pytest.mark.parametrize("line", _GOOD.strip().splitlines())
def test_arguments_are_cast_and_the_result_is_typed(line: str) -> None:
    given, _, result = line.partition(" -> ")
    type_, _, args = result.partition(": ")
    name, columns = _call(given)
    bound = bind(call(name, *(col(c) for c in columns)), SCHEMA)
    assert isinstance(bound, BoundCall)
    assert str(bound.type) == type_
    assert ", ".join(map(str, bound.args)) == args
    assert BoundCall(name, bound.args, bound.type) == bound


_BAD = """
eq(s, i): takes arguments of one type, not (string, integer)
eq(o, i): takes arguments of one type
eq(at, n): takes arguments of one type
eq(li, li): takes scalar values, not (list<long>, list<long>)
and(o, i): takes booleans, not (boolean, integer)
not(s): takes booleans
is_nan(i): takes a floating point number, not (integer)
coalesce(i, s): takes arguments of one type
if_else(i, s, s): takes a boolean condition
add(s, i): takes numbers, not (string, integer)
add(d, i): takes numbers
divide(s, i): takes numbers
int_divide(x, i): takes whole numbers, not (double, integer)
remainder(p, i): takes whole numbers
negate(s): takes a number, not (string)
lower(i): takes strings, not (integer)
concat(s, i): takes strings
contains(y, s): takes strings
length(i): takes a string or a list, not (integer)
hour(d): takes a timestamp, not (date)
year(s): takes a date or timestamp, not (string)
epoch_micros(d): takes a timestamp
from_epoch_micros(x): takes a whole number
"""


@pytest.mark.parametrize("line", _BAD.strip().splitlines())
def test_wrong_types_are_refused(line: str) -> None:
    given, _, message = line.partition(": ")
    name, columns = _call(given)
    with pytest.raises(TypeMismatchError) as error:
        bind(call(name, *(col(c) for c in columns)), SCHEMA)
    assert f"{name} {message}" in error.value.message
    assert error.value.hint == "cast one side first"


def test_decimals_that_would_need_too_many_digits_are_refused() -> None:
    with pytest.raises(TypeMismatchError, match="needs 61 digits, 38 is the most") as error:
        bind(col("w") * col("w"), SCHEMA)
    assert "narrower decimal" in str(error.value.hint)


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("eq", 1, "eq takes 2 arguments, not 1"),
        ("eq", 3, "eq takes 2 arguments, not 3"),
        ("not", 0, "not takes 1 argument, not 0"),
        ("contains", 0, "contains takes 2 arguments, not 0"),
        ("concat", 0, "concat takes at least 1 argument, not 0"),
        ("if_else", 2, "if_else takes 3 arguments, not 2"),
    ],
)
def test_the_number_of_arguments_counts(name: str, count: int, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        bind(call(name, *([col("o")] * count)), SCHEMA)


def test_an_unknown_function_is_an_error_that_helps() -> None:
    with pytest.raises(PlanError, match="unknown function 'lenght'") as error:
        bind(call("lenght", col("s")), SCHEMA)
    assert error.value.hint == "near: length"
    with pytest.raises(PlanError) as error:
        bind(call("zzzzzz"), SCHEMA)
    assert error.value.hint is None


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (call("like", col("s"), col("s")), "argument 2 of like has to be a literal, not s"),
        (call("like", col("s"), None), "argument 2 of like has to be a literal"),
        (call("replace", col("s"), "a", col("s")), "argument 3 of replace has to be a literal"),
        (col("s").replace_text("", "x"), "replace needs a text to look for"),
        (call("substring", col("s"), 0, col("l")), "argument 3 of substring"),
        (col("s").substr(-1, 2), "a substring starts at 0"),
        (col("s").substr(0, -2), "a substring starts at 0"),
        (call("date_trunc", col("at"), "fortnight"), "knows no unit 'fortnight'"),
        (call("time_bucket", col("at"), 0), "at least one microsecond"),
        (col("l").isin([1, col("l")]), "isin takes literals"),
        (col("l").isin([lit("5").cast(t.LONG)]), "isin takes literals"),
    ],
    ids=str,
)
def test_literal_arguments_are_checked(expr: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        bind(expr, SCHEMA)  # type: ignore[arg-type]


def test_a_wrongly_typed_call_can_not_be_built() -> None:
    a, s = BoundPath((Name("a"),), t.LONG), BoundPath((Name("s"),), t.STRING)
    for function, args, type_ in (
        ("eq", (a, s), t.BOOLEAN),
        ("eq", (a, a), t.LONG),
        ("add", (a, BoundLiteral(None, t.NULL)), t.LONG),
        ("divide", (a, a), t.DOUBLE),
        ("in", (a,), t.BOOLEAN),
        ("nope", (a,), t.BOOLEAN),
    ):
        with pytest.raises(PlanError):
            BoundCall(function, args, type_)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_takes_nulls(name: str) -> None:
    """A path that a schema lacks binds to a null without a type; no function stumbles over it."""
    function = FUNCTIONS[name]
    given: dict[int, object] = {
        "like": {1: "%"},
        "replace": {1: "a", 2: "b"},
        "substring": {1: 0, 2: 1},
        "date_trunc": {1: "day"},
        "time_bucket": {1: 1},
    }.get(name, {})  # type: ignore[assignment]
    args = tuple(
        literal(given.get(at)) if at in given else literal(None) for at in range(function.min_args)
    )
    bound = bind_call(name, args)
    assert not isinstance(bound, BoundPath)

"""Random plans over a few small columns, for properties that hold for every plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from millpond.plan import aggregates as agg
from millpond.plan.expr import Expr, col, element, if_else, lit, path
from millpond.plan.make import values
from millpond.plan.types import DOUBLE, LONG, STRING, DataType, List, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.node import Plan

ITEM = Struct.of(p=LONG, q=STRING)
OWNER = Struct.of(x=LONG, y=STRING)
SCHEMA = Struct.of(a=LONG, b=LONG, f=DOUBLE, s=STRING, o=OWNER, v=List(ITEM))

longs = st.one_of(st.none(), st.integers(-3, 3), st.just(2**63 - 1))
texts = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab%", "Ä"]))
floats = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]))
items = st.one_of(st.none(), st.fixed_dictionaries({"p": longs, "q": texts}))
rows = st.fixed_dictionaries(
    {
        "a": longs,
        "b": longs,
        "f": floats,
        "s": texts,
        "o": st.one_of(st.none(), st.fixed_dictionaries({"x": longs, "y": texts})),
        "v": st.one_of(st.none(), st.lists(items, max_size=3)),
    }
)
tables = st.lists(rows, max_size=12).map(lambda given: values(given, SCHEMA))


@st.composite
def plans(draw: st.DrawFn, *, steps: int = 6) -> Plan:
    """A source with some nodes on top."""
    plan = draw(tables)
    earlier = [plan]
    for _ in range(draw(st.integers(0, steps))):
        plan = draw(st.sampled_from(STEPS))(draw, plan, earlier)
        earlier.append(plan)
    return plan


def _paths(schema: Struct, wanted: DataType) -> list[Expr]:
    """Every place of this type: a column, or a member of a struct."""
    found: list[Expr] = [col(f.name) for f in schema if f.type == wanted]
    for field in schema:
        if isinstance(field.type, Struct):
            found += [path(f"{field.name}.{m.name}") for m in field.type if m.type == wanted]
    return found


def _number(draw: st.DrawFn, schema: Struct) -> Expr:
    given = [*_paths(schema, LONG), lit(draw(st.integers(-2, 2)))]
    one = draw(st.sampled_from(given))
    other = draw(st.sampled_from(given))
    shapes: list[Callable[[], Expr]] = [
        lambda: one,
        lambda: one,
        lambda: one + other,
        lambda: one % other,
        lambda: one.coalesce(other),
        lambda: if_else(one > other, one, lit(3) * 2),
    ]
    return draw(st.sampled_from(shapes))()


def _test(draw: st.DrawFn, schema: Struct) -> Expr:
    number = _number(draw, schema)
    tests: list[Expr] = [number > draw(st.integers(-2, 2)), number == 1, number.is_null()]
    tests.append(lit(draw(st.sampled_from([True, False, None]))) | (number != 2))
    for text in _paths(schema, STRING):
        tests += [text == "a", text.like("a%"), text.is_not_null(), text.cast(LONG) == 1]
    for fraction in _paths(schema, DOUBLE):
        tests += [fraction > 1, fraction.cast(STRING) == "0.0"]
    for many in _paths(schema, List(ITEM)):
        tests += [many.any(path("p") > 0), many.all(path("q") == "a"), many.len() > 1]
        tests.append(many.any(element().is_null()))
    tests += [one.is_not_null() for one in _paths(schema, OWNER)]
    return draw(st.sampled_from(tests))


def _predicate(draw: st.DrawFn, schema: Struct) -> Expr:
    found = _test(draw, schema)
    for _ in range(draw(st.integers(0, 2))):
        other = _test(draw, schema)
        found = draw(st.sampled_from([found & other, found | other, ~found & other]))
    return found


def _filter(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    return plan.filter(_predicate(draw, plan.schema))


def _select(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    names = draw(st.lists(st.sampled_from(plan.schema.names), min_size=1, unique=True))
    moved = draw(st.permutations(names))
    swap = dict(zip(names, moved, strict=True))
    columns: list[Any] = [col(n).alias(swap[n]) for n in names]
    if draw(st.booleans()):
        columns.append(_number(draw, plan.schema).alias(f"n{len(plan.schema)}"))
    owners, lists = _paths(plan.schema, OWNER)[:1], _paths(plan.schema, List(ITEM))[:1]
    columns += [path(f"{owner}.x").alias(f"x{len(plan.schema)}") for owner in owners]
    columns += [path(f"{many}[*].p").alias(f"p{len(plan.schema)}") for many in lists]
    seen: dict[str, Any] = {item.name: item for item in columns}
    return plan.select(*seen.values())


def _keys(draw: st.DrawFn, plan: Plan) -> list[Any]:
    orderable = [f.name for f in plan.schema if f.type in (LONG, STRING, DOUBLE)]
    if not orderable:
        return [lit(1)]
    names = draw(st.lists(st.sampled_from(orderable), min_size=1, max_size=2, unique=True))
    return [col(n).desc() if draw(st.booleans()) else col(n).asc(nulls="first") for n in names]


def _sort(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    return plan.sort(*_keys(draw, plan))


def _cut(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    n = draw(st.integers(0, 5))
    return draw(st.sampled_from([plan.head(n), plan.head(n), plan.tail(n), plan.sample(n, seed=3)]))


def _union(draw: st.DrawFn, plan: Plan, earlier: list[Plan]) -> Plan:
    fitting = [other for other in earlier if other.schema == plan.schema]
    return plan.union(draw(st.sampled_from([*fitting, plan])))


def _join(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    keys = _paths(plan.schema, LONG)
    if not keys or "k" in plan.schema or "w" in plan.schema:
        return plan
    right = values([{"k": k, "w": f"w{k}"} for k in (0, 1, 1, None)], Struct.of(k=LONG, w=STRING))
    if draw(st.booleans()):
        right = right.filter(col("w") != "w0")
    how: Any = draw(st.sampled_from(["inner", "left", "full", "semi", "anti"]))
    return plan.join(right, on=[(draw(st.sampled_from(keys)), "k")], how=how)


def _aggregate(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    keys = [f.name for f in plan.schema if f.type in (LONG, STRING, DOUBLE)]
    by = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)) if keys else []
    measures = {"n": agg.count(), "m": agg.first(plan.schema.names[0])}
    wanted = {f"{k}{len(plan.schema)}": v for k, v in measures.items()}
    return plan.aggregate(by, **{k: v for k, v in wanted.items() if k not in by})


def _window(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    keys = [f.name for f in plan.schema if f.type in (LONG, STRING, DOUBLE)]
    name = f"r{len(plan.schema)}"
    if not keys or name in plan.schema:
        return plan
    by = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))
    return plan.window(name, "row_number", partition_by=by, order_by=_keys(draw, plan))


def _shuffle(draw: st.DrawFn, plan: Plan, _: list[Plan]) -> Plan:
    return plan.shuffle(seed=draw(st.integers(0, 3)))


STEPS: list[Callable[[st.DrawFn, Plan, list[Plan]], Plan]] = [
    *(_filter, _filter, _filter, _select, _select, _sort, _cut, _cut, _union, _join),
    *(_aggregate, _window, _shuffle),
]

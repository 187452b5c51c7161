"""Plans that every engine runs over every edge table: each node, each group of functions.

A case is a function from a source plan (with `data.SCHEMA`) to a plan. `test_every_node_has_a_case`
fails when a node has no case.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING

from millpond.plan import aggregates as agg
from millpond.plan.expr import col, element, from_epoch_micros, if_else, lit, path
from millpond.plan.make import sql
from millpond.plan.types import (
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
    Struct,
)
from millpond.testing.engine.parts import FirstOfKey, RunningSum

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan


def _select(**columns: Expr) -> Callable[[Plan], Plan]:
    return lambda p: p.select("id", **columns)


def _compare(name: str, value: object) -> Callable[[Plan], Plan]:
    column = col(name)
    return _select(
        eq=column == value,
        ne=column != value,
        lt=column < value,
        le=column <= value,
        gt=column > value,
        ge=column >= value,
        safe=column.same_as(value),
        among=column.isin([value, None]),
    )


def _columns_compared(left: Expr, right: Expr) -> Callable[[Plan], Plan]:
    return _select(eq=left == right, lt=left < right, ge=left >= right, safe=left.same_as(right))


def _try_casts(name: str, *types: DataType) -> Callable[[Plan], Plan]:
    given = {f"to_{i}": col(name).cast(t, on_error="null") for i, t in enumerate(types)}
    return _select(**given)


_NUMBERS: tuple[DataType, ...] = (
    BYTE,
    SHORT,
    INTEGER,
    LONG,
    FLOAT,
    DOUBLE,
    Decimal(12, 2),
    Decimal(38, 0),
    BOOLEAN,
)

EXPRESSIONS: dict[str, Callable[[Plan], Plan]] = {
    "compare_long": _compare("big", 0),
    "compare_integer": _compare("num", 50),
    "compare_byte": _compare("tiny", -128),
    "compare_double": _compare("real", 0.0),
    "compare_double_nan": _compare("real", float("nan")),
    "compare_float": _compare("single", 0.1),
    "compare_decimal": _compare("price", D("1.5")),
    "compare_string": _compare("name", "name-11"),
    "compare_binary": _compare("blob", b"\x00\xff\xfe"),
    "compare_boolean": _compare("flag", True),
    "compare_date": _compare("day", dt.date(2024, 1, 20)),
    "compare_timestamp": _compare("at", dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)),
    "compare_wall": _compare("wall", dt.datetime(2024, 1, 1, 0, 30)),  # noqa: DTZ001
    "compare_columns": _columns_compared(col("big"), col("real")),
    "compare_floats": _columns_compared(col("single"), col("real")),
    "compare_decimals": _columns_compared(col("price"), col("num")),
    "compare_times": _columns_compared(col("day"), col("at")),
    "logic": _select(
        a=(col("flag") & (col("real") > 0)),
        o=(col("flag") | (col("real") > 0)),
        n=~col("flag"),
        three=col("flag") & (col("num") > 3) & (col("name") > "name-05"),
        null=col("flag") & lit(None),
        isnull=col("real").is_null(),
        there=col("place").is_not_null(),
        nan=col("real").is_nan(),
    ),
    "choice": _select(
        c=col("name").coalesce("none"),
        d=col("big").coalesce(col("num"), 7),
        i=if_else(col("flag"), col("num"), col("big")),
        guarded=if_else(col("num") == 0, -1.0, lit(100) / if_else(col("num") == 0, 1, col("num"))),
    ),
    "float_arithmetic": _select(
        add=col("real") + 1.5,
        sub=col("real") - col("single"),
        mul=col("real") * col("real"),
        neg=-col("real"),
        abs=abs(col("real")),
        div=col("real") / 4,
    ),
    "decimal_arithmetic": _select(
        add=col("price") + col("price"),
        sub=col("price") - 1,
        mul=col("price") * lit(2).cast(Decimal(3, 1)),
        neg=-col("price"),
        abs=abs(col("price")),
        mixed=col("price") + col("num"),
        ratio=col("price") / 3,
    ),
    "whole_arithmetic": _select(
        add=col("small").cast(LONG) + col("num"),
        mul=col("small").cast(INTEGER) * col("tiny").cast(INTEGER),
        div=col("big").div(7),
        mod=col("big") % 7,
        negmod=col("num") % lit(-4).cast(INTEGER),
        ratio=col("num") / 8,
    ),
    "overflow_add": _select(x=col("big") + 1),
    "overflow_byte": _select(x=col("tiny") + lit(100).cast(BYTE)),
    "overflow_mul": _select(x=col("num") * col("num")),
    "overflow_neg": _select(x=-col("big")),
    "overflow_abs": _select(x=abs(col("small"))),
    "overflow_div": _select(x=col("big").div(lit(-1))),
    "zero_div": _select(x=lit(1) / col("num")),
    "zero_mod": _select(x=lit(1) % col("big")),
    "zero_real": _select(x=col("real") / col("real")),
    "cast_narrow": _select(x=col("big").cast(INTEGER)),
    "cast_real_long": _select(x=col("real").cast(LONG)),
    "casts_long": _try_casts("big", *_NUMBERS, STRING),
    "casts_double": _try_casts("real", *_NUMBERS, Decimal(38, 18)),
    "casts_float": _try_casts("single", *_NUMBERS),
    "casts_text": _select(
        # Java before 19 writes the smallest numbers with a digit too many.
        r=if_else(abs(col("real")) > 1e-300, col("real"), 0.0).cast(STRING),
        s=if_else(abs(col("single")) > 1e-30, col("single"), lit(0.0, FLOAT)).cast(STRING),
    ),
    "casts_decimal": _try_casts("price", *_NUMBERS, Decimal(20, 2), Decimal(30, 6), STRING),
    "casts_boolean": _try_casts("flag", *_NUMBERS, STRING),
    "casts_string": _try_casts("name", *_NUMBERS, DATE, TIMESTAMP, TIMESTAMP_NTZ),
    "casts_digits": lambda p: p.select(
        "id", t=col("num").cast(STRING).concat(if_else(col("flag"), "", ".5"))
    ).select(
        "id", **{f"to_{i}": col("t").cast(t, on_error="null") for i, t in enumerate(_NUMBERS)}
    ),
    "casts_time": _select(
        d=col("at").cast(DATE),
        t=col("day").cast(TIMESTAMP),
        n=col("at").cast(TIMESTAMP_NTZ),
        u=col("wall").cast(TIMESTAMP),
        ds=col("day").cast(STRING),
        ts=col("at").cast(STRING),
        ws=col("wall").cast(STRING),
    ),
    "casts_list": _select(x=col("nums").cast(List(FLOAT)), y=col("tags").cast(List(STRING))),
    "strings": _select(
        lower=col("name").lower(),
        upper=col("name").upper(),
        trim=col("name").trim(),
        len=col("name").len(),
        sub=col("name").substr(1, 3),
        cat=col("name").concat("-", col("name")),
        rep=col("name").replace_text("a", "bb"),
    ),
    "string_tests": _select(
        has=col("name").contains("0"),
        starts=col("name").starts_with("name"),
        ends=col("name").ends_with("1"),
        empty=col("name").contains(""),
        like=col("name").like("%e-_1"),
        escaped=col("name").like("\\%\\_\\\\"),
        column=col("name").contains(path("place.deep.z")),
    ),
    "dates": _select(
        y=col("at").date_part("year"),
        mo=col("at").date_part("month"),
        d=col("day").date_part("day"),
        h=col("at").date_part("hour"),
        mi=col("wall").date_part("minute"),
        s=col("wall").date_part("second"),
        dy=col("day").date_part("year"),
    ),
    "truncation": _select(
        **{
            f"t_{unit}": col("at").date_trunc(unit)
            for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
        },
        wall=col("wall").date_trunc("hour"),
        bucket=col("at").time_bucket(dt.timedelta(minutes=15)),
        wall_bucket=col("wall").time_bucket(dt.timedelta(seconds=7)),
        micros=col("at").epoch_micros(),
        back=from_epoch_micros(col("at").epoch_micros()),
    ),
    "paths": _select(
        x=path("place.x"),
        z=path("place.deep.z"),
        w0=path("place.deep.w[0]"),
        last=path("place.deep.w[-1]"),
        far=path("tags[7]"),
        ks=path("items[*].k"),
        k0=path("items[0].k"),
        qs=path("items[*].sub[*].q"),
        a=path("attrs.a"),
        missing=path("attrs.nope"),
        whole=col("place"),
    ),
    "lists": _select(
        any=col("tags").any(element() == "p0"),
        all=col("tags").all(element() > "p0"),
        has=col("tags").contains("p1"),
        big=col("nums").any(element() > 3),
        nan=col("nums").any(element().is_nan()),
        equal_nan=col("nums").any(element() == float("nan")),
        equal_zero=col("nums").any(element() == 0.0),
        ks=col("items").any((path("k") == "k1") & (path("v") > 1)),
        every=col("items").all(path("v") > 1),
        one=col("items").any(path("v") == 2),
        one_text=col("items").any(path("k").starts_with("k")),
        one_missing=col("items").any(path("k").is_null()),
        nested=col("items").any(path("sub").any(path("q") > 1)),
        each=path("items[*].v").any(element() > 5),
        len=col("tags").len(),
        nulls=col("tags").any(element().is_null()),
    ),
    "odd_names": lambda p: p.select(
        **{"Site.Temp.C": col("real"), "a b`c": col("num"), 'q"u': col("name"), "ID": col("id")}
    ).filter((col("Site.Temp.C") > 1) | col("a b`c").is_not_null() | (col('q"u') == "x")),
}

_STATS = Struct.of(n=LONG, s=STRING, d=DOUBLE, sub=Struct.of(k=LONG), li=List(LONG))


def _json_text(p: Plan) -> Plan:
    text = lit('{"n": ').concat(col("num").cast(STRING), ', "s": "é", "sub": {"k": 1}, "x": []}')
    return p.select("id", text=text).parse_json("text", _STATS, output="parsed")


def _broken_json(p: Plan) -> Plan:
    text = if_else(col("flag"), '{"n": "x", "d": 1, "li": [1, 2]}', "not json")
    return p.select("id", text=text).parse_json("text", _STATS, output="parsed")


def _joined(how: str, *, nulls_equal: bool = False) -> Callable[[Plan], Plan]:
    def case(p: Plan) -> Plan:
        left = p.select("id", "name", k=path("place.x"))
        right = p.select(other=col("id"), k=path("place.x"), r=col("real")).filter(
            col("other") < 20
        )
        return left.join(right, on="k", how=how, nulls_equal=nulls_equal)  # type: ignore[arg-type]

    return case


NODES: dict[str, Callable[[Plan], Plan]] = {
    "source": lambda p: p,
    "filter": lambda p: p.filter((col("real") > 0) | (col("name") == "name-02")),
    "filter_nested": lambda p: p.filter(
        (path("place.x") > 1) & col("items").any(path("k") == "k1")
    ),
    "filter_all": lambda p: p.filter(col("id") >= 0),
    "filter_none": lambda p: p.filter(col("id") < 0),
    "filter_null": lambda p: p.filter(lit(None)),
    "filters": lambda p: p.filter(col("num") > 10).filter(col("big") > 0).select("id"),
    "filter_ordered": lambda p: p.filter_ordered(FirstOfKey("name")),
    "filter_ordered_inside": lambda p: p.filter_ordered(FirstOfKey("num")).aggregate(n=agg.count()),
    "project": lambda p: p.select("name", "id", twice=col("real") * 2),
    "union": lambda p: p.select("id", "name").union(p.select("id", "name").filter(col("id") > 3)),
    "parse_json": _json_text,
    "parse_json_broken": _broken_json,
    **{f"join_{how}": _joined(how) for how in ("inner", "left", "full", "semi", "anti", "right")},
    **{f"join_nulls_{how}": _joined(how, nulls_equal=True) for how in ("inner", "full", "anti")},
    "join_null_group": lambda p: (
        p.select(k=path("place.x"))
        .aggregate("k")
        .join(
            p.select("id", o=if_else(col("flag"), 1000, path("place.x"))),
            on=[("k", "o")],
            how="full",
            nulls_equal=True,
        )
    ),
    "join_cross": lambda p: (
        p.select("id", "name").tail(4).join(p.select("id").head(3), how="cross", suffix="_r")
    ),
    "distinct": lambda p: p.select("flag", k=path("place.x")).distinct(),
    "count": lambda p: p.filter(col("id") > 2).select().aggregate(rows=agg.count()),
    "join_real": lambda p: p.select("id", "real").join(
        p.select(o=col("id"), q=col("real")), on=[(col("real"), col("q"))]
    ),
    "aggregate": lambda p: p.aggregate(
        "name",
        n=agg.count(),
        nn=agg.count("real"),
        total=agg.sum("num"),
        money=agg.sum("price"),
        mean=agg.mean("small"),
        lo=agg.min("real"),
        hi=agg.max("real"),
        first=agg.first("big"),
        last=agg.last("flag"),
        kinds=agg.count_distinct("num"),
    ),
    "aggregate_all": lambda p: p.aggregate(
        n=agg.count(),
        big=agg.max("big"),
        s=agg.min("name"),
        t=agg.max("at"),
        d=agg.min("day"),
        p=agg.max("price"),
        f=agg.first("place"),
        some=agg.count(where=col("num") > 5),
        zero=agg.max("real", where=col("real").cast(STRING) == "-0.0"),
        least=agg.min("single", where=col("single") == 0),
        few=agg.sum("num", where=col("flag")),
    ),
    "aggregate_real_key": lambda p: p.aggregate("real", n=agg.count(), ids=agg.min("id")),
    "aggregate_zero_key": lambda p: p.aggregate("real", n=agg.count()).filter(
        col("real").cast(STRING) == "0.0"
    ),
    "join_zero_key": lambda p: (
        p.select("id", "real")
        .filter(col("real").cast(STRING) == "0.0")
        .join(p.select(o=col("id"), q=col("real")), on=[(col("real"), col("q"))])
    ),
    "aggregate_keys": lambda p: p.aggregate(
        ["flag", path("place.x"), col("day")], n=agg.count(), k=agg.count_distinct("real")
    ),
    "aggregate_overflow": lambda p: p.filter(col("big") > 0).aggregate(total=agg.sum("big")),
    "sort": lambda p: p.sort(col("name").desc(), "num"),
    "sort_real": lambda p: p.sort("real").select("id", "real"),
    "sort_real_desc": lambda p: p.sort(col("real").desc(nulls="first")).select("id", "real"),
    "sort_many": lambda p: p.sort("flag", col("day").desc(), path("place.x")).select("id"),
    "sort_ties": lambda p: p.sort(path("place.x").asc(nulls="first")).select("id"),
    "sort_binary": lambda p: p.sort("blob", col("at").desc(), "price").select("id"),
    "top_k": lambda p: p.top_k(7, col("real").desc(), "name"),
    "top_k_ties": lambda p: p.top_k(5, "flag").select("id"),
    "top_k_all": lambda p: p.top_k(1000, col("num").desc()).select("id"),
    "top_k_none": lambda p: p.top_k(0, "num"),
    "head": lambda p: p.head(3),
    "head_none": lambda p: p.head(0),
    "head_filtered": lambda p: p.filter(col("num") > 20).head(4).select("id"),
    "tail": lambda p: p.tail(4),
    "tail_sorted": lambda p: p.sort(col("big")).tail(3).select("id"),
    "take": lambda p: p.head(2).union(p.tail(1)).head(1).take([0, 0]),
    "take_past_end": lambda p: p.take([1_000]),
    "take_mixed": lambda p: p.sort("name").take([0]).select("id"),
    "sample": lambda p: p.sample(5, seed=7).select("id", "name"),
    "sample_fraction": lambda p: p.sample(fraction=0.4, seed=-3).select("id"),
    "shuffle": lambda p: p.shuffle(seed=42).select("id", "real"),
    "stateful": lambda p: p.stateful("total", RunningSum(), "num").select("id", "total"),
    "stateful_keys": lambda p: p.stateful(
        "total", RunningSum(5), "num", where=col("flag"), partition_by=["name"]
    ).select("id", "total"),
    "long_chain": lambda p: (
        p.filter(col("id") >= 0)
        .with_columns(y=col("num").cast(LONG) + 1)
        .filter(col("y") > 3)
        .sort(col("y").desc(), "id")
        .select("id", "y", "place")
        .head(10)
        .filter(path("place.x") > 0)
        .select("id", z=path("place.deep.z"))
    ),
}

WITHOUT_PEER: dict[str, Callable[[Plan], Plan]] = {
    "window": lambda p: (
        p.window("n", "row_number", partition_by=["flag"], order_by=[col("num").desc()])
        .window("before", "lag", "name", order_by=["id"])
        .window("mean", "mean", "small", order_by=["id"], rows=(-2, 2))
        .select("id", "n", "before", "mean")
    ),
    "sql": lambda p: sql(
        'SELECT "id", upper("name") AS n FROM source WHERE "num" > 5 ORDER BY "id" DESC',
        schema=Struct.of(id=LONG, n=STRING),
        source=p,
    ),
}
"""Nodes that the reference engine does not run: an engine runs them, or refuses them by name."""

CASES: dict[str, Callable[[Plan], Plan]] = {
    **{f"node_{name}": case for name, case in {**NODES, **WITHOUT_PEER}.items()},
    **{f"expr_{name}": case for name, case in EXPRESSIONS.items()},
}

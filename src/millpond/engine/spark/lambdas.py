"""Functions that take a lambda for each element of a list, such as `exists` and `transform`.

PySpark numbers the variables of lambdas through, and Spark writes their names into the code that it
generates: the same query, asked again, would be other code, compiled once more and slow until the
JVM has seen enough of it. Here a variable is named by how deep it stands, so the code is the same.
"""

from __future__ import annotations

from contextvars import ContextVar
from inspect import signature
from typing import TYPE_CHECKING, Any

from millpond.plan.types import BINARY, BOOLEAN, NULL, STRING, VARIANT, Decimal, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api
    from millpond.plan.types import DataType

_DEPTH: ContextVar[int] = ContextVar("_DEPTH", default=0)
_VARIABLES = ("element", "other")
_NO_NUMBERS = (BOOLEAN, STRING, BINARY, NULL, VARIANT)
_MOST_ELEMENTS = (1 << 31) - 1


def each(api: Api, name: str, elements: Column, function: Callable[..., Column]) -> Column:
    """Spark's function of this name over a list or map, with a lambda of one variable or more."""
    from millpond.engine.spark.api import is_classic

    depth = _DEPTH.get() + 1
    token = _DEPTH.set(depth)
    names = [
        f"{variable}_{depth}" for variable in _VARIABLES[: len(signature(function).parameters)]
    ]
    try:
        made = _classic if is_classic(api.session) else _remote
        return made(api, name, elements, function, names)
    finally:
        _DEPTH.reset(token)


def once(value: Column, function: Callable[[Column], Column], api: Api) -> Column:
    """A function of a value that is computed once, however often the function mentions it.

    What is mentioned twice below a condition Spark computes twice.
    """
    f = api.functions
    made: Column = f.get(each(api, "transform", f.array(value), function), f.lit(0))
    return made


def safe(elements: Column, element: DataType, api: Api) -> Column:
    """A list over which a lambda can go.

    Spark's generated code takes a number out of its list before it asks whether it is null. In a
    Parquet file, where a null stands may be the number of a word that a later row group's
    dictionary does not have, and the job fails. A copy of the list has no dictionary.
    """
    if not isinstance(element, Primitive | Decimal) or element in _NO_NUMBERS:
        return elements
    f = api.functions
    copied: Column = f.slice(elements, f.lit(1), f.lit(_MOST_ELEMENTS))
    return copied


def _classic(
    api: Api, name: str, elements: Any, function: Callable[..., Any], names: list[str]
) -> Column:
    from pyspark.sql.classic.column import Column

    session: Any = api.session
    jvm = session.sparkContext._jvm  # noqa: SLF001 - no public way leads to a variable's name
    nodes = jvm.org.apache.spark.sql.internal
    origin = getattr(nodes.UnresolvedNamedLambdaVariable, "apply$default$2")()
    made = [
        jvm.org.apache.spark.sql.Column(nodes.UnresolvedNamedLambdaVariable(variable, origin))
        for variable in names
    ]
    body = function(*map(Column, made))
    utils = jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    to_seq = jvm.PythonUtils.toSeq
    applied = utils.lambdaFunction(body._jc, to_seq(made))  # noqa: SLF001
    return Column(utils.fn(name, to_seq([elements._jc, applied])))  # noqa: SLF001


def _remote(
    api: Api, name: str, elements: Any, function: Callable[..., Any], names: list[str]
) -> Column:
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.expressions import (
        LambdaFunction,
        UnresolvedFunction,
        UnresolvedNamedLambdaVariable,
    )

    del api
    made = [UnresolvedNamedLambdaVariable([variable]) for variable in names]
    body: Any = function(*map(Column, made))
    applied = LambdaFunction(body._expr, made)  # noqa: SLF001
    return Column(UnresolvedFunction(name, [elements._expr, applied]))  # noqa: SLF001

"""A value that made an expression fail, in our words: what happened, in which expression, a hint.

Spark advises its own functions and settings that do not hold here. In SQL texts its functions are
the user's too; elsewhere ours are named.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from millpond.base.errors import EvaluationError
from millpond.engine.spark.expressions.origin import MARK
from millpond.plan.bound import BoundCall, BoundCast
from millpond.plan.codec import parts_of
from millpond.plan.raising import raises_itself
from millpond.plan.rows import Aggregate
from millpond.plan.text import format_expr
from millpond.plan.tree import topological
from millpond.plan.types import is_integral

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.plan.node import Plan

_ENGINE = "spark"
_OURS: Final = re.compile(rf'== DataFrame ==\n"(.*?)" was called from\n{MARK}\b', re.DOTALL)
_SQL: Final = re.compile(r"== SQL[^\n]*\(line (\d+), position (\d+)\) ==\n((?:[^\n]+\n?)*)")
_ADVICE: Final = re.compile(r"\s*(?:Use|To return NULL instead, use|Correct the value)\b[^.]*\.")
_SUFFIX: Final = re.compile(r"(?<=[\d.])(?:BD|[LSYDF])$")
_TYPES: Final = {"TINYINT": "byte", "SMALLINT": "short", "INT": "integer", "BIGINT": "long"}
_SHOWN: Final = 100
_WORDS: Final = {
    "CAST_INVALID_INPUT": "{expression} is not a {targetType}",
    "CAST_OVERFLOW": "'{value}' is not a {targetType}",
    "NUMERIC_VALUE_OUT_OF_RANGE": "'{value}' is not a decimal({precision},{scale})",
    "BINARY_ARITHMETIC_OVERFLOW": "{value1} and {value2} overflow",
    "ARITHMETIC_OVERFLOW": "{message}",
}
_DIVISIONS: Final = ("divide", "int_divide", "remainder")
_FIELD: Final = re.compile(r"\{(\w+)\}")
_MOST_SUSPECTS: Final = 3
"""More of them would not help."""


def evaluation_error(
    condition: str,
    parameters: Mapping[str, str],
    *,
    said: str,
    text: str,
    plan: Plan | None,
) -> EvaluationError:
    """The error of a condition: its parameters, its sentence, and all that Spark said.

    Of some conditions Spark does not tell the expression, and of none where PySpark's debugging is
    on, as in an adopted session; those of the plan that it can be are named then.
    """
    family = condition.partition(".")[0]
    what = _what(family, parameters, said)
    where, in_sql = _place(text)
    if not where and plan is not None:
        where = _suspected(family, parameters, plan)
    hint = _hint(family, what, in_sql=in_sql)
    return EvaluationError(what + where, engine=_ENGINE, hint=hint)


def _what(family: str, parameters: Mapping[str, str], said: str) -> str:
    if family.endswith("_BY_ZERO"):
        return "division by zero"
    given = {name: _ours(name, value) for name, value in parameters.items()}
    words = _WORDS.get(family)
    if words is None or not given.keys() >= set(_FIELD.findall(words)):
        return _ADVICE.sub("", said).strip().rstrip(".")
    return words.format_map(given)


def _ours(name: str, value: str) -> str:
    if name == "targetType":
        return _type(value)
    return value.lower() if name == "message" else _number(value)


def _type(spark: str) -> str:
    name = spark.strip('"')
    return _TYPES.get(name, name.lower())


def _number(spark: str) -> str:
    """A number without the letter that tells its type.

    >>> [_number(text) for text in ("2147483648L", "1.0E300D", "-5S", "7")]
    ['2147483648', '1.0E300', '-5', '7']
    """
    return _SUFFIX.sub("", spark)


def _place(text: str) -> tuple[str, bool]:
    """` in ...` with the expression or the part of the query, and whether it is a query."""
    if found := _OURS.search(text):
        return f" in {found[1]}", False
    if found := _SQL.search(text):
        part = _underlined(found[3].splitlines())
        return (f" in {part}" if part else "") + f" (line {found[1]}, column {found[2]})", True
    return "", False


def _underlined(lines: list[str]) -> str:
    """What carets stand under.

    >>> _underlined(["SELECT 1 / (id - 5)", "       ^^^^^^^^^^^^"])
    '1 / (id - 5)'
    """
    parts = []
    for line, below in pairwise(lines):
        if below.strip() and not below.strip("^ "):
            start = len(below) - len(below.lstrip())
            parts.append(line[start : len(below.rstrip())].strip())
    return " ".join(parts)


def _hint(family: str, what: str, *, in_sql: bool) -> str | None:
    if "ZERO" in family:
        if in_sql:
            return "guard the divisor with nullif(x, 0), or use try_divide or try_mod"
        return "guard the divisor: if_else(divisor == 0, ..., x / divisor)"
    bad_cast = family.startswith(("CAST", "CONVERSION", "CANNOT_PARSE", "NUMERIC_VALUE"))
    if bad_cast or (family == "USER_RAISED_EXCEPTION" and " is not a " in what):
        if in_sql:
            return "use try_cast where a value may not fit"
        return 'use cast(..., on_error="null") to get null for such values'
    if "OVERFLOW" in family or "RANGE" in family:
        return "cast to a wider type first, for example to decimal or double"
    if in_sql and "ARRAY_INDEX" in family:
        return "use get or try_element_at where an element may be missing"
    return None


def _suspected(family: str, parameters: Mapping[str, str], plan: Plan) -> str:
    found = list(dict.fromkeys(_suspects(family, parameters, plan)))
    if not 0 < len(found) <= _MOST_SUSPECTS:
        return ""
    return f" in {found[0]}" if len(found) == 1 else f" in one of {'; '.join(found)}"


def _suspects(family: str, parameters: Mapping[str, str], plan: Plan) -> Iterator[str]:
    """Casts to the type of the condition; divisions; or whole numbers' sums and arithmetic."""
    target = _type(parameters.get("targetType", ""))
    for node in topological(plan):
        if isinstance(node, Aggregate) and family == "ARITHMETIC_OVERFLOW":
            yield from (str(m) for m in node.measures if m.function == "sum")
        for part in parts_of(node):
            if not raises_itself(part):
                continue
            if isinstance(part, BoundCast):
                is_it = family.startswith("CAST") and str(part.type) == target
            elif family.endswith("_BY_ZERO"):
                is_it = isinstance(part, BoundCall) and part.function in _DIVISIONS
            else:
                is_it = "ARITHMETIC" in family and is_integral(part.type)
            if is_it:
                yield format_expr(part, limit=_SHOWN)

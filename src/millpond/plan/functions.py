"""The functions of expressions: for each, which types it takes and gives.

One table, `FUNCTIONS`. A rule maps argument types to the types they are cast to and the result's
type. What the functions *mean* is docs/expressions.md; engines map the names to their own kernels.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    as_decimal,
    common_type,
    is_fractional,
    is_integral,
    is_numeric,
    is_orderable,
)

Types: TypeAlias = tuple[DataType, ...]
Resolved: TypeAlias = tuple[Types, DataType]
Rule: TypeAlias = Callable[[str, Types], Resolved]


@dataclass(frozen=True, slots=True)
class Function:
    """A function's arity, typing rule, and which arguments have to be literals."""

    rule: Rule
    min_args: int
    max_args: int | None
    literal_args: frozenset[int] = frozenset()
    unifies: bool = False
    """Whether arguments meet in one type, so that literals adapt to columns."""

    def check_arity(self, name: str, count: int) -> None:
        """Refuse too few or too many arguments."""
        if self.min_args <= count and (self.max_args is None or count <= self.max_args):
            return
        least = "" if self.max_args == self.min_args else "at least "
        plural = "" if self.min_args == 1 else "s"
        raise PlanError(f"{name} takes {least}{self.min_args} argument{plural}, not {count}")


def _refuse(function: str, types: Types, wants: str) -> TypeMismatchError:
    shown = ", ".join(str(type_) for type_ in types)
    return TypeMismatchError(f"{function} takes {wants}, not ({shown})", hint="cast one side first")


def _unify(function: str, types: Types) -> DataType:
    found: DataType = NULL
    for type_ in types:
        wider = common_type(found, type_)
        if wider is None:
            raise _refuse(function, types, "arguments of one type")
        found = wider
    return found


def _compare(function: str, types: Types) -> Resolved:
    found = _unify(function, types)
    if found != NULL and not is_orderable(found):
        raise _refuse(function, types, "scalar values")
    return (found,) * len(types), BOOLEAN


def _boolean(function: str, types: Types) -> Resolved:
    if any(type_ not in (BOOLEAN, NULL) for type_ in types):
        raise _refuse(function, types, "booleans")
    return (BOOLEAN,) * len(types), BOOLEAN


def _any_to_boolean(function: str, types: Types) -> Resolved:
    del function
    return types, BOOLEAN


def _nan(function: str, types: Types) -> Resolved:
    if not is_fractional(types[0]) and types[0] != NULL:
        raise _refuse(function, types, "a floating point number")
    return (DOUBLE if types[0] == NULL else types[0],), BOOLEAN


def _coalesce(function: str, types: Types) -> Resolved:
    found = _unify(function, types)
    return (found,) * len(types), found


def _if_else(function: str, types: Types) -> Resolved:
    if types[0] not in (BOOLEAN, NULL):
        raise _refuse(function, types, "a boolean condition")
    found = _unify(function, types[1:])
    return (BOOLEAN, found, found), found


def _arithmetic(function: str, types: Types) -> Resolved:
    if not all(is_numeric(type_) or type_ == NULL for type_ in types):
        raise _refuse(function, types, "numbers")
    exact = [type_ for type_ in types if isinstance(type_, Decimal)]
    if exact and not any(is_fractional(type_) for type_ in types):
        return _decimal_arithmetic(function, tuple(exact[0] if t == NULL else t for t in types))
    found = _unify(function, types)
    if found == NULL:
        found = LONG
    return (found,) * len(types), found


def _decimal_arithmetic(function: str, types: Types) -> Resolved:
    a, b = (as_decimal(type_) for type_ in types)
    if function == "multiply":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    if precision > 38 or scale > 38:
        raise TypeMismatchError(
            f"{function} of {a} and {b} needs {precision} digits, 38 is the most",
            hint="cast one side to a narrower decimal, or both to double",
        )
    return (a, b), Decimal(precision, scale)


def _divide(function: str, types: Types) -> Resolved:
    if not all(is_numeric(type_) or type_ == NULL for type_ in types):
        raise _refuse(function, types, "numbers")
    return (DOUBLE, DOUBLE), DOUBLE


def _whole(function: str, types: Types) -> Resolved:
    found = _unify(function, types)
    if found != NULL and not is_integral(found):
        raise _refuse(function, types, "whole numbers")
    found = LONG if function == "int_divide" or found == NULL else found
    return (found,) * len(types), found


def _same_number(function: str, types: Types) -> Resolved:
    if not is_numeric(types[0]) and types[0] != NULL:
        raise _refuse(function, types, "a number")
    found = LONG if types[0] == NULL else types[0]
    return (found,), found


def _strings(result: DataType) -> Rule:
    def rule(function: str, types: Types) -> Resolved:
        if any(type_ not in (STRING, NULL) for type_ in types):
            raise _refuse(function, types, "strings")
        return (STRING,) * len(types), result

    return rule


def _substring(function: str, types: Types) -> Resolved:
    if types[0] not in (STRING, NULL) or not all(is_integral(type_) for type_ in types[1:]):
        raise _refuse(function, types, "a string, a start and a length")
    return (STRING, LONG, LONG), STRING


def _length(function: str, types: Types) -> Resolved:
    if types[0] not in (STRING, NULL) and not isinstance(types[0], List):
        raise _refuse(function, types, "a string or a list")
    return (STRING if types[0] == NULL else types[0],), INTEGER


def _date_part(function: str, types: Types) -> Resolved:
    days = function in ("year", "month", "day")
    found = _moment(types[0])
    if found not in (TIMESTAMP, TIMESTAMP_NTZ) and not (days and found == DATE):
        raise _refuse(function, types, "a date or timestamp" if days else "a timestamp")
    return (found,), INTEGER


def _moment(type_: DataType) -> DataType:
    return TIMESTAMP if type_ == NULL else type_


def _trunc(function: str, types: Types) -> Resolved:
    second = STRING if function == "date_trunc" else LONG
    found = _moment(types[0])
    if found not in (TIMESTAMP, TIMESTAMP_NTZ) or types[1] != second:
        raise _refuse(function, types, f"a timestamp and a {second}")
    return (found, types[1]), found


def _epoch_micros(function: str, types: Types) -> Resolved:
    found = _moment(types[0])
    if found not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise _refuse(function, types, "a timestamp")
    return (found,), LONG


def _from_epoch_micros(function: str, types: Types) -> Resolved:
    if not is_integral(types[0]) and types[0] != NULL:
        raise _refuse(function, types, "a whole number")
    return (LONG,), TIMESTAMP


def _fixed(rule: Rule, args: int, *literals: int) -> Function:
    return Function(rule, args, args, frozenset(literals))


_COMPARISON = Function(_compare, 2, 2, unifies=True)
_ARITHMETIC = Function(_arithmetic, 2, 2, unifies=True)
_WHOLE = Function(_whole, 2, 2, unifies=True)
_TEXT_TEST = _fixed(_strings(BOOLEAN), 2)

FUNCTIONS: Final[Mapping[str, Function]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"), _COMPARISON),
    "in": Function(_compare, 2, None, unifies=True),
    "and": Function(_boolean, 1, None),
    "or": Function(_boolean, 1, None),
    "not": _fixed(_boolean, 1),
    "is_null": _fixed(_any_to_boolean, 1),
    "is_not_null": _fixed(_any_to_boolean, 1),
    "is_nan": _fixed(_nan, 1),
    "coalesce": Function(_coalesce, 1, None, unifies=True),
    "if_else": Function(_if_else, 3, 3, unifies=True),
    **dict.fromkeys(("add", "subtract", "multiply"), _ARITHMETIC),
    "divide": _fixed(_divide, 2),
    **dict.fromkeys(("int_divide", "remainder"), _WHOLE),
    **dict.fromkeys(("negate", "abs"), _fixed(_same_number, 1)),
    **dict.fromkeys(("lower", "upper", "trim"), _fixed(_strings(STRING), 1)),
    **dict.fromkeys(("contains", "starts_with", "ends_with"), _TEXT_TEST),
    "like": _fixed(_strings(BOOLEAN), 2, 1),
    "replace": _fixed(_strings(STRING), 3, 1, 2),
    "concat": Function(_strings(STRING), 1, None),
    "substring": _fixed(_substring, 3, 1, 2),
    "length": _fixed(_length, 1),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second"), _fixed(_date_part, 1)),
    **dict.fromkeys(("date_trunc", "time_bucket"), _fixed(_trunc, 2, 1)),
    "epoch_micros": _fixed(_epoch_micros, 1),
    "from_epoch_micros": _fixed(_from_epoch_micros, 1),
}


def function_named(name: str) -> Function:
    """The function of this name; an unknown one is an error that names what is near."""
    function = FUNCTIONS.get(name)
    if function is None:
        near = difflib.get_close_matches(name, FUNCTIONS, n=3)
        raise PlanError(
            f"unknown function {name!r}", hint=f"near: {', '.join(near)}" if near else None
        )
    return function

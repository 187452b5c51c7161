"""Binding: an expression meets a schema and becomes typed, or an error that names the trouble.

>>> from millpond.plan.expr import col
>>> from millpond.plan.types import INTEGER, STRING, Struct
>>> schema = Struct.of(a=INTEGER, s=STRING)
>>> bind(col("a") / 2 > 1.5, schema)
((cast(a as double) / 2.0) > 1.5)
>>> bind(col("a") > col("s"), schema)
Traceback (most recent call last):
...
millpond.base.errors.TypeMismatchError: gt takes arguments of one type, not (integer, string)
  hint: cast one side first
"""

from __future__ import annotations

import difflib

from millpond.base.errors import MillpondError, PlanError, SchemaError, TypeMismatchError
from millpond.plan import expr as e
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundNamed,
    BoundParseJson,
    BoundPath,
    BoundQuantifier,
    BoundSortKey,
)
from millpond.plan.casts import can_cast
from millpond.plan.functions import FUNCTIONS
from millpond.plan.literals import adapt, literal
from millpond.plan.paths import Each, Name, Step, format_path
from millpond.plan.tree import topological
from millpond.plan.types import (
    BOOLEAN,
    NULL,
    STRING,
    DataType,
    List,
    Map,
    Struct,
    common_type,
)


def bind(expr: e.Expr, schema: Struct) -> BoundExpr:
    """The expression with types, over rows of this schema."""
    values: list[BoundExpr] = []
    todo: list[tuple[str, e.Expr, DataType | None]] = [("visit", expr, None)]
    while todo:
        action, node, scope = todo.pop()
        if action == "visit":
            _expand(node, scope, schema, todo, values)
        elif action == "enter":
            assert isinstance(node, e.QuantifierExpr)
            todo.append(("visit", node.predicate, _element_type(values[-1])))
        else:
            count = len(node.children)
            args = tuple(values[len(values) - count :])
            del values[len(values) - count :]
            values.append(_build(node, args))
    return values[0]


def _expand(
    node: e.Expr,
    scope: DataType | None,
    schema: Struct,
    todo: list[tuple[str, e.Expr, DataType | None]],
    values: list[BoundExpr],
) -> None:
    if isinstance(node, e.PathExpr):
        values.append(_bind_path(node, scope, schema))
    elif isinstance(node, e.LiteralExpr):
        values.append(literal(node.value, node.type))
    else:
        todo.append(("build", node, scope))
        if isinstance(node, e.QuantifierExpr):
            todo.append(("enter", node, scope))
            todo.append(("visit", node.list, scope))
        else:
            todo.extend(("visit", child, scope) for child in reversed(node.children))


def _element_type(bound: BoundExpr) -> DataType:
    if not isinstance(bound.type, List):
        raise TypeMismatchError(f"any and all look into lists; {bound} is a {bound.type}")
    return bound.type.element


def _build(node: e.Expr, args: tuple[BoundExpr, ...]) -> BoundExpr:
    if isinstance(node, e.CallExpr):
        return bind_call(node.function, args)
    if isinstance(node, e.CastExpr):
        return cast_to(args[0], node.to, on_error=node.on_error)
    if isinstance(node, e.ParseJsonExpr):
        if args[0].type not in (STRING, NULL):
            raise TypeMismatchError(f"parse_json reads strings, not {args[0].type}")
        return BoundParseJson(cast_to(args[0], STRING), node.to)
    assert isinstance(node, e.QuantifierExpr)
    if args[1].type not in (BOOLEAN, NULL):
        raise TypeMismatchError(f"{node.kind} takes a boolean predicate, not {args[1].type}")
    return BoundQuantifier(node.kind, args[0], cast_to(args[1], BOOLEAN))


def _bind_path(node: e.PathExpr, scope: DataType | None, schema: Struct) -> BoundExpr:
    if scope is None and not node.steps:
        raise PlanError("element() stands outside any() and all()")
    root: DataType = schema if scope is None else scope
    try:
        type_ = resolve_path(node.steps, root)
    except SchemaError:
        if node.optional:
            return BoundLiteral(None, NULL)
        raise
    return BoundPath(node.steps, type_, "row" if scope is None else "element")


def resolve_path(steps: tuple[Step, ...], root: DataType) -> DataType:
    """The type at the end of a path; a missing place or a wrong turn is an error that names it."""
    current, depth = root, 0
    for at, step in enumerate(steps):
        if isinstance(step, Name):
            current = _step_into(current, step, steps[:at])
        elif not isinstance(current, List):
            raise TypeMismatchError(f"{_where(steps[:at])} is a {current}, not a list")
        else:
            current = current.element
            depth += isinstance(step, Each)
    for _ in range(depth):
        current = List(current)
    return current


def _step_into(current: DataType, step: Name, before: tuple[Step, ...]) -> DataType:
    if isinstance(current, Struct):
        if not before:
            return current.field(step.name).type
        found = current.get(step.name)
        if found is None:
            near = difflib.get_close_matches(step.name, current.names, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(current.names)}"
            raise SchemaError(f"{_where(before)} has no member {step.name!r}", hint=hint)
        return found.type
    if isinstance(current, Map) and current.key == STRING:
        return current.value
    hint = "write [*] to look into each element" if isinstance(current, List) else None
    raise TypeMismatchError(
        f"{_where(before)} is a {current}, it has no member {step.name!r}", hint=hint
    )


def _where(steps: tuple[Step, ...]) -> str:
    return format_path(steps) if steps else "the element"


def bind_call(name: str, args: tuple[BoundExpr, ...]) -> BoundExpr:
    """A call over bound arguments: literals adapt, casts are put in, the result's type is found."""
    function = FUNCTIONS.get(name)
    if function is None:
        near = difflib.get_close_matches(name, FUNCTIONS, n=3)
        raise PlanError(f"unknown function {name!r}", hint=f"near: {', '.join(near)}" if near else None)
    if name == "contains" and isinstance(args[0].type, List):
        return _list_contains(args)
    most = len(args) if function.max_args is None else function.max_args
    if not function.min_args <= len(args) <= most:
        raise PlanError(f"{name} takes {function.min_args} arguments, not {len(args)}")
    for index in function.literal_args:
        if not isinstance(args[index], BoundLiteral) or args[index].value is None:  # type: ignore[attr-defined]
            raise PlanError(f"argument {index + 1} of {name} has to be a literal, not {args[index]}")
    if function.unifies:
        args = _adapt_literals(name, args)
    targets, result = function.rule(name, tuple(arg.type for arg in args))
    cast = tuple(cast_to(arg, type_) for arg, type_ in zip(args, targets, strict=True))
    _check_literals(name, cast)
    return BoundCall(name, cast, result)


def _list_contains(args: tuple[BoundExpr, ...]) -> BoundExpr:
    if len(args) != 2 or not isinstance(args[1], BoundLiteral):
        raise PlanError("contains over a list takes one literal", hint="use .any(...) for more")
    assert isinstance(args[0].type, List)
    element = BoundPath((), args[0].type.element, "element")
    return BoundQuantifier("any", args[0], bind_call("eq", (element, args[1])))


def _adapt_literals(name: str, args: tuple[BoundExpr, ...]) -> tuple[BoundExpr, ...]:
    first = 1 if name == "if_else" else 0
    found: DataType = NULL
    for arg in args[first:]:
        if not isinstance(arg, BoundLiteral):
            found = common_type(found, arg.type) or found
    if found == NULL:
        return args
    adapted = (adapt(arg, found) if isinstance(arg, BoundLiteral) else arg for arg in args[first:])
    return (*args[:first], *adapted)


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _check_literals(name: str, args: tuple[BoundExpr, ...]) -> None:
    value = args[1].value if len(args) > 1 and isinstance(args[1], BoundLiteral) else None
    if name == "date_trunc" and value not in _UNITS:
        raise PlanError(f"date_trunc knows no unit {value!r}", hint=f"one of {', '.join(_UNITS)}")
    if name == "time_bucket" and (value is None or value <= 0):
        raise PlanError("a time bucket is at least one microsecond wide")
    if name == "substring" and any(arg.value < 0 for arg in args[1:]):  # type: ignore[attr-defined]
        raise PlanError("a substring starts at 0 or later and is not shorter than 0")
    if name == "replace" and value == "":
        raise PlanError("replace needs a text to look for")
    if name == "in" and not all(isinstance(_uncast(arg), BoundLiteral) for arg in args[1:]):
        raise PlanError("isin takes literals", hint="compare columns with == and combine with |")


def _uncast(expr: BoundExpr) -> BoundExpr:
    return expr.arg if isinstance(expr, BoundCast) else expr


def cast_to(arg: BoundExpr, to: DataType, *, on_error: str = "error") -> BoundExpr:
    """The value as another type; nothing is added where it has that type already."""
    if arg.type == to:
        return arg
    if isinstance(arg, BoundLiteral) and arg.value is None:
        return BoundLiteral(None, to)
    if not can_cast(arg.type, to):
        raise TypeMismatchError(f"{arg.type} can't be cast to {to}")
    if isinstance(arg, BoundLiteral):
        folded = adapt(arg, to)
        if folded.type == to:
            return folded
    return BoundCast(arg, to, "null" if on_error == "null" else "error")


def bind_predicate(expr: e.Expr | BoundExpr, schema: Struct) -> BoundExpr:
    """A condition: bound and boolean."""
    bound = as_bound(expr, schema)
    if bound.type == NULL:
        return BoundLiteral(None, BOOLEAN)
    if bound.type != BOOLEAN:
        raise TypeMismatchError(f"a predicate is boolean; {bound} is a {bound.type}")
    return bound


def as_bound(expr: e.Expr | BoundExpr | str, schema: Struct) -> BoundExpr:
    """Bind what is not bound yet; a string is a column's exact name."""
    if isinstance(expr, BoundExpr):
        return expr
    return bind(e.col(expr) if isinstance(expr, str) else expr, schema)


def bind_key(key: e.SortKey | e.Expr | BoundSortKey | str, schema: Struct) -> BoundSortKey:
    """A sort key: bound, of a type that has an order."""
    if isinstance(key, BoundSortKey):
        return key
    if not isinstance(key, e.SortKey):
        key = e.SortKey(e.col(key) if isinstance(key, str) else key)
    return BoundSortKey(bind(key.expr, schema), key.descending, key.nulls_first)


def bind_named(item: e.Named | e.Expr | BoundNamed | str, schema: Struct) -> BoundNamed:
    """An output column: bound and named. A bare path is named after its last step."""
    if isinstance(item, BoundNamed):
        return item
    if isinstance(item, str):
        item = e.col(item)
    if isinstance(item, e.Named):
        return BoundNamed(item.name, bind(item.expr, schema))
    if isinstance(item, e.PathExpr):
        names = [step.name for step in item.steps if isinstance(step, Name)]
        if names:
            return BoundNamed(names[-1], bind(item, schema))
    raise PlanError(f"the column {item} needs a name", hint='add .alias("name")')


def verify(expr: BoundExpr, schema: Struct) -> None:
    """Check that every path of a bound expression leads, in this schema, to the type it says."""
    for node in topological(expr):
        if isinstance(node, BoundPath) and node.scope == "row":
            try:
                found = resolve_path(node.steps, schema)
            except MillpondError as error:
                raise type(error)(f"{error.message} (in {expr})", hint=error.hint) from None
            if found != node.type:
                raise TypeMismatchError(f"{node} was bound as {node.type} but is a {found}")



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

from typing import Literal, TypeAlias

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import expr as e
from millpond.plan.arguments import wrong
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
from millpond.plan.functions import function_named
from millpond.plan.literals import adapt, fold, literal
from millpond.plan.paths import Each, Name, Step, format_path
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

_Todo: TypeAlias = tuple[Literal["visit", "enter", "build"], e.Expr, DataType | None]


def bind(expr: e.Expr, schema: Struct) -> BoundExpr:
    """The expression with types, over rows of this schema. What is shared in it stays shared."""
    values: list[BoundExpr] = []
    done: dict[tuple[int, int], BoundExpr] = {}
    todo: list[_Todo] = [("visit", expr, None)]
    while todo:
        action, node, scope = todo.pop()
        key = (id(node), id(scope))
        if action == "visit" and key in done:
            values.append(done[key])
        elif action == "visit" and isinstance(node, e.PathExpr | e.LiteralExpr):
            values.append(_bind_leaf(node, scope, schema))
        elif action == "visit":
            todo.extend(_expand(node, scope))
        elif action == "enter" and values[-1].type == NULL:
            # A list that is not there at all: nothing is known about its elements.
            values[-1] = done[key] = BoundLiteral(None, BOOLEAN)
        elif action == "enter":
            assert isinstance(node, e.QuantifierExpr)
            todo.append(("build", node, scope))
            todo.append(("visit", node.predicate, _element_type(values[-1])))
        else:
            count = len(node.children)
            args = tuple(values[len(values) - count :])
            del values[len(values) - count :]
            values.append(_build(node, args))
            done[key] = values[-1]
    return values[0]


def _expand(node: e.Expr, scope: DataType | None) -> list[_Todo]:
    if isinstance(node, e.QuantifierExpr):
        return [("enter", node, scope), ("visit", node.list, scope)]
    visits: list[_Todo] = [("visit", child, scope) for child in reversed(node.children)]
    return [("build", node, scope), *visits]


def _bind_leaf(
    node: e.PathExpr | e.LiteralExpr, scope: DataType | None, schema: Struct
) -> BoundExpr:
    if isinstance(node, e.PathExpr):
        return _bind_path(node, scope, schema)
    return literal(node.value, node.type)


def _element_type(bound: BoundExpr) -> DataType:
    if not isinstance(bound.type, List):
        raise TypeMismatchError(f"any and all look into lists; {bound!r} is a {bound.type}")
    return bound.type.element


def _build(node: e.Expr, args: tuple[BoundExpr, ...]) -> BoundExpr:
    if isinstance(node, e.CallExpr):
        return bind_call(node.function, args)
    if isinstance(node, e.CastExpr):
        return cast_to(args[0], node.to, on_error=node.on_error)
    if isinstance(node, e.ParseJsonExpr):
        return BoundParseJson(_null_as(args[0], STRING), node.to)
    assert isinstance(node, e.QuantifierExpr)
    return BoundQuantifier(node.kind, args[0], _null_as(args[1], BOOLEAN))


def _null_as(arg: BoundExpr, type_: DataType) -> BoundExpr:
    return cast_to(arg, type_) if arg.type == NULL else arg


def _bind_path(node: e.PathExpr, scope: DataType | None, schema: Struct) -> BoundExpr:
    if scope is None and not node.steps:
        raise PlanError("element() stands outside any() and all()")
    place: Literal["row", "element"] = "row" if scope is None else "element"
    try:
        type_ = resolve_path(node.steps, schema if scope is None else scope, scope=place)
    except SchemaError:
        if node.optional:
            return BoundLiteral(None, NULL)
        raise
    return BoundPath(node.steps, type_, place)


def resolve_path(
    steps: tuple[Step, ...], root: DataType, *, scope: Literal["row", "element"] = "row"
) -> DataType:
    """The type at the end of a path; a missing place or a wrong turn is an error that names it."""
    current, depth = root, 0
    for at, step in enumerate(steps):
        if at == 0 and scope == "row" and isinstance(current, Struct) and isinstance(step, Name):
            current = current.field(step.name).type
        elif isinstance(step, Name):
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
        found = current.get(step.name)
        if found is None:
            raise SchemaError(
                f"{_where(before)} has no member {step.name!r}", hint=current.near(step.name)
            )
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
    function = function_named(name)
    if name == "in" and len(args) == 1:
        return BoundLiteral(False, BOOLEAN)
    function.check_arity(name, len(args))
    if name == "contains" and args[0].type == NULL:
        return BoundLiteral(None, BOOLEAN)
    if name == "contains" and isinstance(args[0].type, List):
        return _list_contains(args)
    if function.unifies:
        args = _adapt_literals(name, args)
    targets, result = function.rule(name, tuple(arg.type for arg in args))
    cast = tuple(cast_to(arg, type_) for arg, type_ in zip(args, targets, strict=True))
    return BoundCall(name, cast, result)


def _list_contains(args: tuple[BoundExpr, ...]) -> BoundExpr:
    if not isinstance(args[1], BoundLiteral):
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


def cast_to(arg: BoundExpr, to: DataType, *, on_error: str = "error") -> BoundExpr:
    """The value as another type; nothing is added where it has that type already."""
    if arg.type == to:
        return arg
    folded = fold(arg, to) if isinstance(arg, BoundLiteral) else None
    if folded is not None:
        return folded
    return BoundCast(arg, to, "null" if on_error == "null" else "error")


def bind_predicate(expr: e.Expr | BoundExpr, schema: Struct) -> BoundExpr:
    """A condition: bound and boolean."""
    bound = as_bound(expr, schema)
    if bound.type == NULL:
        return BoundLiteral(None, BOOLEAN)
    if bound.type != BOOLEAN:
        raise TypeMismatchError(f"a predicate is boolean; {bound!r} is a {bound.type}")
    return bound


def as_bound(expr: e.Expr | BoundExpr | str, schema: Struct) -> BoundExpr:
    """Bind an argument of a plan's method: a string is a column's exact name, never a constant."""
    if isinstance(expr, BoundExpr):
        return expr
    return bind(as_expr(expr), schema)


def as_expr(given: e.Expr | str) -> e.Expr:
    """Return the column that a string names; any other plain value is a constant."""
    return e.col(given) if isinstance(given, str) else e.lit(given)


def as_key(given: e.Expr | BoundExpr | str, argument: str) -> e.Expr | BoundExpr | str:
    """Refuse a bare constant as a key: `sort(1)` would order nothing."""
    if not isinstance(given, str | e.Expr | BoundExpr):
        raise wrong(
            argument, "a column's name or an expression", given, hint="a constant is lit(...)"
        )
    return given


def bind_key(key: e.SortKey | e.Expr | BoundSortKey | str, schema: Struct) -> BoundSortKey:
    """A sort key: bound, of a type that has an order."""
    if isinstance(key, BoundSortKey):
        return key
    _check_one(key)
    if not isinstance(key, e.SortKey):
        as_key(key, "a sort key")
        key = e.SortKey(as_expr(key))
    return BoundSortKey(bind(as_expr(key.expr), schema), key.descending, key.nulls_first)


def bind_named(item: e.Named | e.Expr | BoundNamed | str, schema: Struct) -> BoundNamed:
    """An output column: bound and named. A bare path is named after its last step."""
    if isinstance(item, BoundNamed):
        return item
    _check_one(item)
    if isinstance(item, str):
        item = e.col(item)
    if isinstance(item, e.Named):
        return BoundNamed(item.name, as_bound(item.expr, schema))
    if isinstance(item, e.PathExpr):
        names = [step.name for step in item.steps if isinstance(step, Name)]
        if names:
            return BoundNamed(names[-1], bind(item, schema))
    raise PlanError(f"the column {item!r} needs a name", hint='add .alias("name")')


def _check_one(given: object) -> None:
    if isinstance(given, list | tuple):
        raise PlanError(
            f"a column is wanted, not a {type(given).__name__}",
            hint="give columns one by one: select('a', 'b')",
        )


def verify(expr: BoundExpr, schema: Struct) -> None:
    """Check that every path of a bound expression leads, in this schema, to the type it says."""
    seen: set[tuple[int, int]] = set()
    todo: list[tuple[BoundExpr, DataType | None]] = [(expr, None)]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, BoundPath):
            _verify_path(node, scope, schema, expr)
            continue
        if not node.children or (id(node), id(scope)) in seen:
            continue
        seen.add((id(node), id(scope)))
        if isinstance(node, BoundQuantifier):
            todo.extend(((node.predicate, _element_type(node.list)), (node.list, scope)))
        else:
            todo.extend((child, scope) for child in node.children)


def _verify_path(path: BoundPath, scope: DataType | None, schema: Struct, expr: BoundExpr) -> None:
    if (path.scope == "element") != (scope is not None):
        raise PlanError(
            f"inside any() and all(), and only there, paths start at the element: {expr!r}"
        )
    try:
        found = resolve_path(path.steps, schema if scope is None else scope, scope=path.scope)
    except PlanError as error:
        raise type(error)(f"{error.message} (in {expr!r})", hint=error.hint) from None
    if found != path.type:
        raise TypeMismatchError(f"{path!r} was bound as {path.type} but is a {found}")

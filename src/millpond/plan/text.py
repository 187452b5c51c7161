"""Plans and expressions as text: canonical, one line a node, no recursion.

>>> from millpond.plan.expr import col, path
>>> print(format_expr((col("a") > 3) & path("b.c[*]").any(path("x") == "y")))
((a > 3) and any(b.c[*], (x = 'y')))
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

from millpond.plan import bound as b
from millpond.plan import expr as e
from millpond.plan.paths import Step, format_path
from millpond.plan.tree import Tree, topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan

_INFIX = {
    **{"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "<=>"},
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%"},
    **{"int_divide": "div", "and": "and", "or": "or"},
}


def format_expr(expr: Tree) -> str:
    """An expression, bound or not, on one line."""
    done: dict[int, str] = {}
    for node in topological(expr):
        done[id(node)] = _format_one(node, [done[id(child)] for child in node.children])
    return done[id(expr)]


def _format_one(node: Tree, args: list[str]) -> str:
    if isinstance(node, e.PathExpr | b.BoundPath):
        return _format_steps(node.steps)
    if isinstance(node, e.LiteralExpr | b.BoundLiteral):
        return format_value(node.value)
    if isinstance(node, e.CastExpr | b.BoundCast):
        name = "cast" if node.on_error == "error" else "try_cast"
        return f"{name}({args[0]} as {node.to if isinstance(node, e.CastExpr) else node.type})"
    if isinstance(node, e.ParseJsonExpr | b.BoundParseJson):
        return f"parse_json({args[0]} as {node.to if isinstance(node, e.ParseJsonExpr) else node.type})"
    if isinstance(node, e.QuantifierExpr | b.BoundQuantifier):
        return f"{node.kind}({args[0]}, {args[1]})"
    assert isinstance(node, e.CallExpr | b.BoundCall)
    return _format_call(node.function, args)


def _format_call(function: str, args: list[str]) -> str:
    if function in _INFIX and len(args) > 1:
        return f"({f' {_INFIX[function]} '.join(args)})"
    if function == "not":
        return f"not {args[0]}"
    if function == "negate":
        return f"-{args[0]}"
    if function in ("is_null", "is_not_null"):
        return f"{args[0]} {function.replace('_', ' ')}"
    if function == "in":
        return f"{args[0]} in ({', '.join(args[1:])})"
    return f"{function}({', '.join(args)})"


def _format_steps(steps: tuple[Step, ...]) -> str:
    return format_path(steps) if steps else "element"


def format_value(value: Any) -> str:
    """A literal as it would stand in SQL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}d"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat()}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    return repr(value)


def format_plan(plan: Plan) -> str:
    """The canonical text: one numbered line a node, inputs by number, the root last."""
    numbers: dict[int, int] = {}
    lines: list[str] = []
    for node in topological(plan):
        inputs = ", ".join(f"#{numbers[id(child)]}" for child in node.children)
        numbers[id(node)] = len(lines)
        label = node.label()
        lines.append(f"#{len(lines)} {node.kind}{f' {inputs}' if inputs else ''}{f' {label}' if label else ''}")
    return "\n".join(lines)

"""Plans and expressions as text: canonical, one line a node, no recursion.

>>> from millpond.plan.expr import col, path
>>> print(format_expr((col("a") > 3) & path("b.c[*]").any(path("x") == "y")))
((a > 3) and any(b.c[*], (x = 'y')))
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any, Final

from millpond.plan import bound as b
from millpond.plan import expr as e
from millpond.plan.paths import Step, format_path
from millpond.plan.tree import Tree, topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan

_INFIX = {
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq_null_safe": "<=>",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "int_divide": "div",
    "and": "and",
    "or": "or",
}


_MOST_TEXT: Final = 100_000
"""Characters: parts that are mentioned over and over would make a text without end."""


def format_expr(expr: Tree, *, limit: int = _MOST_TEXT) -> str:
    """An expression, bound or not, on one line; beyond `limit` characters it is cut."""
    done: list[str] = []
    length = 0
    todo: list[Tree | str] = [expr]
    while todo:
        part = todo.pop()
        if isinstance(part, Tree):
            todo.extend(reversed(_parts(part)))
            continue
        done.append(part)
        length += len(part)
        if length > limit:
            return "".join(done)[: limit - 1] + "…"
    return "".join(done)


def _parts(node: Tree) -> list[Tree | str]:
    """What an expression's text is made of: pieces of text and the expressions between them."""
    if isinstance(node, e.PathExpr | b.BoundPath):
        return [_format_steps(node.steps)]
    if isinstance(node, e.LiteralExpr | b.BoundLiteral):
        return [format_value(node.value)]
    if isinstance(node, e.CastExpr | b.BoundCast):
        name = "cast" if node.on_error == "error" else "try_cast"
        to = node.to if isinstance(node, e.CastExpr) else node.type
        return [f"{name}(", node.arg, f" as {to})"]
    if isinstance(node, e.ParseJsonExpr | b.BoundParseJson):
        to = node.to if isinstance(node, e.ParseJsonExpr) else node.type
        return ["parse_json(", node.arg, f" as {to})"]
    if isinstance(node, e.QuantifierExpr | b.BoundQuantifier):
        return [f"{node.kind}(", *_between(node.children, ", "), ")"]
    assert isinstance(node, e.CallExpr | b.BoundCall)
    return _call_parts(node.function, node.args)


def _call_parts(function: str, args: tuple[Tree, ...]) -> list[Tree | str]:
    if function in _INFIX and len(args) > 1:
        return ["(", *_between(args, f" {_INFIX[function]} "), ")"]
    if function == "not" and args:
        return ["not ", args[0]]
    if function == "negate" and args:
        return ["-", args[0]]
    if function in ("is_null", "is_not_null") and args:
        return [args[0], f" {function.replace('_', ' ')}"]
    if function == "in" and args:
        return [args[0], " in (", *_between(args[1:], ", "), ")"]
    return [f"{function}(", *_between(args, ", "), ")"]


def _between(args: tuple[Tree, ...], separator: str) -> list[Tree | str]:
    parts: list[Tree | str] = []
    for arg in args:
        if parts:
            parts.append(separator)
        parts.append(arg)
    return parts


def _format_steps(steps: tuple[Step, ...]) -> str:
    return format_path(steps) if steps else "element"


def format_value(value: Any) -> str:
    """A literal as it would stand in SQL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + one_line(value).replace("'", "''") + "'"
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
        label = one_line(node.label())
        lines.append(" ".join(filter(None, (f"#{len(lines)}", node.kind, inputs, label))))
    return "\n".join(lines)


def one_line(text: str) -> str:
    """The text with line ends and other control characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, limit: int = 200) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""Where a template is kept to its budget: whatever can make a value much larger than its parts.

Operators, methods of strings and numbers, and filters are checked before they run; what they make
is charged. Turns of loops, `~`, slices and long literals are changed into calls of the budget when
a template is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, wraps
from string import Formatter
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from millpond.provider.templating.budget import (
    CONTAINERS,
    SIZES,
    TEXTS,
    Budget,
    BudgetError,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WIDEST: Final = 1 << 20
"""The largest width or count that a method or a filter takes."""
MOST_BITS: Final = 1 << 17
"""Of a whole number: the time of arithmetic grows with the square of it."""
_PIECE: Final = 64
"""Bytes of a short string among many."""
_LONG: Final = 4
"""Items of a literal that is charged."""
_PERCENT: Final = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\d+|\*)?(?:\.(\d+|\*))?")
_NUMBER: Final = re.compile(r"\d+")
_BUILT_IN: Final = (*TEXTS, *CONTAINERS, int, float)
_OF_TEXTS: Final = (
    *("attr", "abs", "capitalize", "center", "count", "d", "default", "e", "escape", "first"),
    *("float", "forceescape", "format", "indent", "int", "join", "last", "length", "lower"),
    *("pprint", "replace", "round", "safe", "string", "striptags", "title", "tojson", "trim"),
    *("truncate", "upper", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"),
    "filesizeformat",
)
"""Filters that make no list of a string's characters."""
_SHOWING: Final = (
    *("capitalize", "center", "e", "escape", "forceescape", "format", "indent", "lower", "pprint"),
    *("replace", "string", "striptags", "title", "tojson", "trim", "truncate", "upper"),
    *("urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"),
)
"""Filters that make text of any value."""
_WIDTHS: Final = {
    "batch": "linecount",
    "center": "width",
    "indent": "width",
    "round": "precision",
    "slice": "slices",
    "tojson": "indent",
    "wordwrap": "width",
}
"""Filters whose first argument, or the one of this name, decides how much they make."""
_WIDE_METHODS: Final = ("center", "expandtabs", "ljust", "rjust", "to_bytes", "zfill")


# Operators and calls


def check_operator(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Refuse an operator whose result would be very large."""
    if operator == "%" and isinstance(left, TEXTS):
        _check_percent(budget, left, right)
    elif operator == "*" and isinstance(left, int) != isinstance(right, int):
        times, other = (left, right) if isinstance(left, int) else (right, left)
        budget.check(max(0, times) * size_of(other))
    elif isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
        bits = left.bit_length(), right.bit_length()
        size = bits[0] * abs(right) if operator == "**" and bits[0] > 1 else sum(bits)
        if size > MOST_BITS:
            raise BudgetError("it makes a whole number of too many digits", SIZES)


def check_call(budget: Budget, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse a method that would make something very large; return its arguments."""
    budget.tick()
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if not isinstance(owner, _BUILT_IN):
        return args
    if name == "join" and isinstance(owner, TEXTS) and args:
        return (budget.joinable(args[0], len(owner)), *args[1:])
    if name in _WIDE_METHODS:
        _check_widths(args)
    if isinstance(owner, TEXTS):
        _check_text_method(budget, owner, name, args)
    return args


def _check_text_method(budget: Budget, owner: Any, name: str, args: Sequence[Any]) -> None:
    size, newline = len(owner), "\n" if isinstance(owner, str) else b"\n"
    if name == "replace" and len(args) > 1:
        _check_replace(budget, owner, args[0], args[1])
    elif name == "expandtabs":
        width = next((arg for arg in args if isinstance(arg, int)), 8)
        budget.check(size + width * size)
    elif name == "translate" and args and isinstance(args[0], Mapping):
        budget.check(size * max(map(size_of, args[0].values()), default=1))
    elif name in ("split", "rsplit"):
        is_given = bool(args) and isinstance(args[0], type(owner)) and bool(args[0])
        budget.check(_PIECE * (owner.count(args[0]) if is_given else size // 2))
    elif name == "splitlines":
        budget.check(_PIECE * owner.count(newline))


# Filters


def guarded(name: str, filter_: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """Return a filter that keeps to a budget."""
    # Some are given the environment or a context before the value.
    before = 0 if getattr(filter_, "jinja_pass_arg", None) is None else 1

    @wraps(filter_)  # with the mark by which Jinja knows what to give it
    def run(*given: Any, **named: Any) -> Any:
        value, args = given[before], (*given[before + 1 :], *named.values())
        if name in _WIDTHS:
            _check_widths((*given[before + 1 : before + 2], named.get(_WIDTHS[name])))
        if name == "join" and not hasattr(value, "__html__"):
            between = next((len(arg) for arg in args if isinstance(arg, str)), 0)
            given = (*given[:before], budget.joinable(value, between), *given[before + 1 :])
        _check_filter(budget, name, value, args)
        made = filter_(*given, **named)
        # Some make one item after the other.
        return budget.counted(made) if hasattr(made, "__next__") else budget.spent(made)

    return run


def _check_filter(budget: Budget, name: str, value: Any, args: Sequence[Any]) -> None:
    if name in _SHOWING:
        budget.check(budget.text_size(value))
    if name not in _OF_TEXTS and isinstance(value, TEXTS):
        budget.check(_PIECE * len(value))  # a list of its characters
    if name == "format":
        _check_percent(budget, str(value), args)
    elif name == "replace" and len(args) > 1:
        _check_replace(budget, str(value), str(args[0]), str(args[1]))
    elif name == "sum" and any(isinstance(arg, (*TEXTS, *CONTAINERS)) for arg in args):
        raise BudgetError("sum adds numbers; lists are put together by +", SIZES)
    elif name in ("indent", "wordwrap"):
        text = str(value)
        pieces = len(text) if name == "wordwrap" else 1 + text.count("\n")
        width = max((len(arg) if isinstance(arg, str) else 0 for arg in args), default=0)
        wide = max((arg for arg in args if isinstance(arg, int)), default=4)
        budget.check(len(text) + pieces * max(width, wide if name == "indent" else 0))


# What they are given


def _check_widths(args: Iterable[Any]) -> None:
    for arg in args:
        if isinstance(arg, int) and abs(arg) > WIDEST:
            raise BudgetError(f"a width or count of more than {WIDEST:,} is too large", SIZES)


def _check_replace(budget: Budget, text: Any, old: Any, new: Any) -> None:
    if isinstance(old, type(text)) and isinstance(new, type(text)) and len(new) > len(old):
        budget.check(len(text) + text.count(old) * (len(new) - len(old)))


def _check_percent(budget: Budget, text: Any, given: Any) -> None:
    """Refuse `text % given` if the widths in it are very large together."""
    shown = text if isinstance(text, str) else bytes(text).decode("latin-1")
    fields, widths = _fields_of(shown)
    _check_fields(budget, shown, widths, fields, given)


@lru_cache(maxsize=256)
def _fields_of(text: str) -> tuple[int, tuple[str, ...]]:
    """How many fields a format with % has, and their widths."""
    fields = _PERCENT.findall(text)
    return len(fields), tuple(width for found in fields for width in found if width)


def check_format(budget: Budget, text: str, given: Any) -> None:
    """Refuse `text.format(given)` if the widths in it are very large together."""
    try:
        specs = [spec or "" for _, name, spec, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return  # it fails for the same reason
    widths = [number for spec in specs for number in _NUMBER.findall(spec)]
    widths += ["*" for spec in specs if "{" in spec]
    _check_fields(budget, text, widths, len(specs), given)


def _check_fields(
    budget: Budget, text: str, widths: Sequence[str], fields: int, given: Any
) -> None:
    size = len(text) + fields * budget.text_size(given)
    for width in widths:
        if width == "*":
            _check_widths(_scalars(given))
            size += max((abs(n) for n in _scalars(given) if isinstance(n, int)), default=0)
        else:
            size += int(width[:20])
    budget.check(size)


def _scalars(given: Any) -> Iterator[Any]:
    """The values of a tuple or a mapping, and those of one inside of it."""
    todo = [given]
    for _ in range(2):
        inside = [list(v.values()) if isinstance(v, Mapping) else v for v in todo]
        todo = [item for v in inside for item in (v if isinstance(v, list | tuple) else [v])]
    return iter(todo)


# Parsed templates


def charged(tree: nodes.Template) -> nodes.Template:
    """Change what no hook of Jinja sees into calls of the budget."""
    for node in list(tree.find_all(nodes.Node)):
        for name, value in node.iter_fields():
            if isinstance(value, nodes.Expr):
                setattr(node, name, _spent(value))
            elif isinstance(value, list):
                value[:] = [_spent(v) if isinstance(v, nodes.Expr) else v for v in value]
        if isinstance(node, nodes.Concat):
            node.nodes = [_called("measured", node.lineno, each) for each in node.nodes]
        elif isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock):
            # To look at this property is all that it takes.
            turn = nodes.ExprStmt(nodes.EnvironmentAttribute("turn"))
            node.body = [turn.set_lineno(node.lineno), *node.body]
    return tree


def _spent(node: nodes.Expr) -> nodes.Expr:
    is_slice = isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
    is_long = isinstance(node, nodes.List) and len(node.items) > _LONG
    return _called("spent", node.lineno, node) if is_slice or is_long else node


def _called(method: str, line: int, *args: nodes.Expr) -> nodes.Expr:
    """A call of a method of the budget, which the environment has under the same name."""
    function = nodes.EnvironmentAttribute(method)
    call = nodes.Call(function, list(args), [], None, None)
    call.set_lineno(line)
    return call

"""Strings by code point. ASCII text goes through Arrow's kernels, full case mapping through Python.

Arrow maps case letter by letter (`ß` to `ẞ`); Unicode's full mapping, which Java and Python follow,
may change a string's length (`ß` to `SS`), so other text is mapped once for each different value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.like import like
from millpond.engine.arrow.eval.values import (
    Kernel,
    Value,
    all_true,
    as_columns,
    is_scalar,
    map_unique,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.bound import BoundExpr

_MOST = (1 << 62) - 1


def _case(ascii_kernel: Callable[[Value], Value], full: Callable[[str], str]) -> Kernel:
    def kernel(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        column = args[0]
        if all_true(pc.string_is_ascii(column)):
            return ascii_kernel(column)
        return map_unique(full, column, pa.string())

    return kernel


def _trim(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    return pc.ascii_trim(args[0], " ")


def _text_test(kernel: Callable[[Value, str], Value], test: Callable[[str, str], bool]) -> Kernel:
    """A test against a text, which is a literal in practice; a column of texts goes row by row."""

    def run(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        column, text = args
        if is_scalar(text):
            if not text.is_valid:
                return pa.nulls(len(column), pa.bool_())
            return kernel(column, text.as_py())
        rows = zip(*(arg.to_pylist() for arg in as_columns(args)), strict=True)
        found = [None if None in row else test(*row) for row in rows]
        return pa.array(found, pa.bool_())

    return run


def _replace(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    column, old, new = args
    return pc.replace_substring(column, _text(old), _text(new))


def _concat(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    return pc.binary_join_element_wise(*args, "", null_handling="emit_null")


def _substring(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    column = args[0]
    start, length = (int(_literal(arg)) for arg in args[1:])  # type: ignore[call-overload]
    start, length = min(start, _MOST), min(length, _MOST)
    return pc.utf8_slice_codeunits(column, start, start + length)


def _length(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    column = args[0]
    if pa.types.is_string(column.type):
        return pc.utf8_length(column)
    return pc.list_value_length(column)


def _like(expr: BoundExpr, args: Sequence[Value]) -> Value:
    return like(expr, args[0], _text(args[1]))


def _literal(value: Value) -> object:
    """A literal argument, which is a column of one where all arguments are literals."""
    return (value if is_scalar(value) else value[0]).as_py()


def _text(value: Value) -> str:
    return str(_literal(value))


KERNELS: Final[Mapping[str, Kernel]] = {
    "lower": _case(pc.ascii_lower, str.lower),
    "upper": _case(pc.ascii_upper, str.upper),
    "trim": _trim,
    "contains": _text_test(pc.match_substring, lambda text, part: part in text),
    "starts_with": _text_test(pc.starts_with, str.startswith),
    "ends_with": _text_test(pc.ends_with, str.endswith),
    "like": _like,
    "replace": _replace,
    "concat": _concat,
    "substring": _substring,
    "length": _length,
}

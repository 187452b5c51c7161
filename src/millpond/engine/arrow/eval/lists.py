"""`any` and `all` over lists: the predicate runs once over all elements, then lists are summed up.

Where the predicate fails on some element, lists are looked at element by element instead, and each
only up to the element that decides it, as Spark does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval.elements import spread
from millpond.engine.arrow.eval.values import is_scalar, null_mask, to_array, true_count

if TYPE_CHECKING:
    from collections.abc import Generator

    from millpond.engine.arrow.eval.frame import Frame
    from millpond.engine.arrow.eval.values import Value
    from millpond.plan.bound import BoundExpr, BoundQuantifier

    Steps = Generator[tuple[BoundExpr, Frame], Value, Value]
    Numbers = np.ndarray[Any, Any]

_FEW = 0.03
"""Below this share of hits, looking up the list of each is cheaper than counting them all."""


def quantify(expr: BoundQuantifier, frame: Frame) -> Steps:
    """One truth value a list."""
    lists = yield expr.list, frame
    parts = spread(to_array(lists, 1))
    offsets, inside = parts.offsets, frame.elements(expr.list, parts.values)
    hidden = parts.hidden()
    if hidden is not None:
        offsets, inside = parts.visible_offsets(), inside.select(pa.array(np.flatnonzero(~hidden)))
    decides = expr.kind == "any"
    try:
        found = to_array((yield expr.predicate, inside), inside.length)
        decided, unknown = _sum_up(found, offsets, decides=decides)
    except EvaluationError:
        decided, unknown = yield from _element_by_element(expr, offsets, inside)
    nulls = null_mask(parts.lists)
    if nulls is not None:
        unknown = nulls if unknown is None else unknown | nulls
    answer = pa.array(decided if decides else ~decided, mask=unknown)
    return answer[0] if is_scalar(lists) else answer


def _sum_up(
    found: pa.BooleanArray, offsets: Numbers, *, decides: bool
) -> tuple[Numbers, Numbers | None]:
    """Which lists some element decides, and which of the others some element leaves open."""
    decided = _some(found if decides else pc.invert(found), offsets)
    if not found.null_count:
        return decided, None
    return decided, _some(found.is_null(), offsets) & ~decided


def _some(hits: pa.BooleanArray, offsets: Numbers) -> Numbers:
    """Which lists hold a hit."""
    few = true_count(hits)
    if few <= len(hits) * _FEW:
        some = np.zeros(len(offsets) - 1, bool)
        if few:
            at = pc.indices_nonzero(hits).to_numpy().astype(offsets.dtype)
            some[np.searchsorted(offsets, at, side="right") - 1] = True
        return some
    counts = np.zeros(len(hits) + 1, np.int32)
    np.cumsum(_unpacked(hits), out=counts[1:], dtype=np.int32)
    before: Numbers = counts.take(offsets)
    return np.not_equal(before[1:], before[:-1])


def _unpacked(flags: pa.BooleanArray) -> Numbers:
    """1 where a flag is true, 0 where it is false or null."""
    if flags.null_count:
        flags = flags.fill_null(False)
    skipped, bit = divmod(flags.offset, 8)
    packed = np.frombuffer(flags.buffers()[1], np.uint8)[skipped:]
    return np.unpackbits(packed, count=bit + len(flags), bitorder="little")[bit:]


def _element_by_element(
    expr: BoundQuantifier, offsets: Numbers, inside: Frame
) -> Generator[tuple[BoundExpr, Frame], Value, tuple[Numbers, Numbers]]:
    """The first elements of all lists, then the second ones of those not decided, and so on."""
    lengths = np.diff(offsets)
    decided, unknown = np.zeros(len(lengths), bool), np.zeros(len(lengths), bool)
    for at in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero((lengths > at) & ~decided)
        if not len(rows):
            break
        value = yield expr.predicate, inside.select(pa.array(offsets[rows] + at))
        found = to_array(value, len(rows))
        unknown[rows] |= found.is_null().to_numpy(zero_copy_only=False)
        hits = found if expr.kind == "any" else pc.invert(found)
        decided[rows] = _unpacked(hits).astype(bool)
    return decided, unknown & ~decided

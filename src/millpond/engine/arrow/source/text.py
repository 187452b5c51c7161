"""Conditions on one text column, judged once for each different text instead of for each row.

Also those that ask whether some text of a list is so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.eval import evaluate_mask
from millpond.engine.arrow.eval.elements import list_offsets
from millpond.engine.arrow.eval.values import null_mask, raw
from millpond.plan.bound import BoundExpr, BoundPath, BoundQuantifier, row_paths
from millpond.plan.paths import Name
from millpond.plan.raising import can_raise
from millpond.plan.tree import topological, transform
from millpond.plan.types import STRING, List

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.plan.paths import Step

_TEXT = BoundPath((Name("text"),), STRING)


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition over the column `text`, and where that column is in a row."""

    expr: BoundExpr
    steps: tuple[str, ...]
    in_lists: bool = False
    """Whether the column holds lists of texts, of which some text has to meet it."""
    _last: list[tuple[pa.Array, tuple[NDArray[np.bool_], bool]]] = field(
        default_factory=list, compare=False, repr=False
    )
    """The dictionary that was judged last."""

    def kept(self, texts: pa.Array, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Which of these rows meet it, counted among them; None stands for all.

        `texts` are dictionaries, or lists of them, of all rows.
        """
        if self.in_lists:
            verdict = self._some(texts)
            verdict = verdict if rows is None else verdict[rows]
        else:
            verdict = self._verdicts(texts, rows)
        kept = np.flatnonzero(verdict)
        return None if len(kept) == len(verdict) else kept

    def _verdicts(
        self, texts: pa.DictionaryArray, rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.bool_]:
        """For each text, or for each of these rows, whether it meets the condition."""
        of_texts, of_null = self._judged(texts.dictionary)
        numbers, nulls = raw(texts.indices), null_mask(texts.indices)
        if rows is not None:
            numbers = numbers[rows]
            nulls = None if nulls is None else nulls[rows]
        verdicts = _looked_up(of_texts, numbers)
        if nulls is not None and of_null:
            verdicts |= nulls
        elif nulls is not None:
            verdicts &= ~nulls
        return verdicts

    def _judged(self, dictionary: pa.Array) -> tuple[NDArray[np.bool_], bool]:
        """For each text of a dictionary whether it meets the condition, and whether null does."""
        # Several threads may read at once, so what is found is looked at only once.
        for known, verdicts in tuple(self._last):
            if known.equals(dictionary):  # as in most row groups
                return verdicts
        values = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
        batch = pa.record_batch([values.cast(pa.string())], ["text"])
        found = evaluate_mask(self.expr, batch).to_numpy(zero_copy_only=False)
        judged = found[:-1], bool(found[-1])
        self._last[:] = [(dictionary, judged)]
        return judged

    def _some(self, lists: pa.ListArray) -> NDArray[np.bool_]:
        """For each list, whether some text in it meets the condition; not for one that is null."""
        offsets = list_offsets(lists)
        hits = np.flatnonzero(self._verdicts(lists.values))
        hits = hits[(hits >= offsets[0]) & (hits < offsets[-1])]
        some = np.zeros(len(lists), bool)
        some[np.searchsorted(offsets, hits.astype(offsets.dtype), side="right") - 1] = True
        nulls = null_mask(lists)
        if nulls is not None:
            some &= ~nulls
        return some


def _looked_up(of_texts: NDArray[np.bool_], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The verdict for each number; for one that stands where a text is missing, any."""
    good = np.flatnonzero(of_texts)
    verdicts: NDArray[np.bool_] = np.zeros(len(numbers), bool)
    if len(good) == 1:  # most conditions are for one text: ten times as fast
        np.equal(numbers, good[0], out=verdicts)
    elif len(good):
        of_texts.take(numbers, mode="clip", out=verdicts)
    return verdicts


def text_condition(expr: BoundExpr) -> TextCondition | None:
    """The condition by text, if it looks at one text column alone and can't fail.

    One that can fail must not see texts of rows that an earlier condition has dropped.
    """
    if can_raise(expr):
        return None
    if isinstance(expr, BoundQuantifier):
        return _some_element(expr)
    paths = list(row_paths(expr))
    if not paths or any(path.steps != paths[0].steps for path in paths):
        return None
    names = _names(paths[0].steps)
    if paths[0].type != STRING or names is None:
        return None

    def at_text(node: BoundExpr) -> BoundExpr:
        own = isinstance(node, BoundPath) and node.scope == "row"
        return _TEXT if own else node

    return TextCondition(transform(expr, at_text), names)


def _some_element(expr: BoundQuantifier) -> TextCondition | None:
    if expr.kind != "any" or not isinstance(expr.list, BoundPath) or expr.list.scope != "row":
        return None
    names = _names(expr.list.steps)
    type_ = expr.list.type
    if not (isinstance(type_, List) and type_.element == STRING) or names is None:
        return None
    inside = list(topological(expr.predicate))
    if any(isinstance(node, BoundQuantifier) for node in inside):
        return None
    if any(isinstance(node, BoundPath) and node.scope == "row" for node in inside):
        return None

    def at_text(node: BoundExpr) -> BoundExpr:
        return _TEXT if isinstance(node, BoundPath) else node

    return TextCondition(transform(expr.predicate, at_text), names, in_lists=True)


def _names(steps: tuple[Step, ...]) -> tuple[str, ...] | None:
    """A path of names alone."""
    names = tuple(step.name for step in steps if isinstance(step, Name))
    return names if len(names) == len(steps) else None

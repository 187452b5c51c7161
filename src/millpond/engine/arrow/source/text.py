"""Conditions on one text column, judged once for each different text instead of for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.eval import evaluate_mask
from millpond.plan.bound import BoundExpr, BoundPath, row_paths
from millpond.plan.optimizer.raising import can_raise
from millpond.plan.paths import Name
from millpond.plan.tree import transform
from millpond.plan.types import STRING

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXT = BoundPath((Name("text"),), STRING)


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition over the column `text`, and where that column is in a row."""

    expr: BoundExpr
    steps: tuple[str, ...]

    def kept(
        self, texts: pa.DictionaryArray, rows: NDArray[np.int64] | None
    ) -> NDArray[np.int64] | None:
        """Which of these rows meet it, counted among them; None stands for all."""
        values = pa.concat_arrays([texts.dictionary, pa.nulls(1, texts.dictionary.type)])
        batch = pa.record_batch([values.cast(pa.string())], ["text"])
        verdicts = evaluate_mask(self.expr, batch).to_numpy(zero_copy_only=False)
        numbers = texts.indices
        if numbers.null_count:
            numbers = numbers.fill_null(len(values) - 1)
        numbers = numbers.to_numpy(zero_copy_only=False)
        verdict = verdicts[numbers if rows is None else numbers[rows]]
        kept = np.flatnonzero(verdict)
        return None if len(kept) == len(verdict) else kept


def text_condition(expr: BoundExpr) -> TextCondition | None:
    """The condition by text, if it looks at one text column alone and can't fail.

    One that can fail must not see texts of rows that an earlier condition has dropped.
    """
    paths = list(row_paths(expr))
    if not paths or can_raise(expr) or any(path.steps != paths[0].steps for path in paths):
        return None
    steps = paths[0].steps
    if paths[0].type != STRING or not all(isinstance(step, Name) for step in steps):
        return None
    names = tuple(step.name for step in steps if isinstance(step, Name))

    def at_text(node: BoundExpr) -> BoundExpr:
        own = isinstance(node, BoundPath) and node.scope == "row"
        return _TEXT if own else node

    return TextCondition(transform(expr, at_text), names)

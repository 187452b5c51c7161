"""Bound expressions over Arrow batches: what docs/expressions.md says, in vectorised kernels.

`evaluate` gives one value a row; `evaluate_mask` gives what a filter keeps. `machine.py` walks the
expression, `frame.py` holds the rows it looks at; the other modules are kernels, one theme each.
"""

from __future__ import annotations

from millpond.engine.arrow.eval.machine import ARROW_FUNCTIONS, evaluate, evaluate_mask

__all__ = ["ARROW_FUNCTIONS", "evaluate", "evaluate_mask"]

"""Bound expressions as Spark columns: native ones only, with the meaning of docs/expressions.md.

`Expressions` walks a tree; `literals`, `paths`, `calls`, `casts` and `json` hold one kind each.
"""

from __future__ import annotations

from millpond.engine.spark.expressions.walk import Expressions

__all__ = ["Expressions"]

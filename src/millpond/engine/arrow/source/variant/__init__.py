"""Variants that a Parquet file holds in pieces, put together again.

A writer may store parts of a variant as columns of their own: beside `value`, which holds the rest
in Variant's binary encoding, there is `typed_value`. `shape` says which columns are such pieces,
`unshred` gives whole variants, `encode` and `decode` know the binary encoding.
"""

from __future__ import annotations

from millpond.engine.arrow.source.variant.broken import BrokenVariant
from millpond.engine.arrow.source.variant.shape import check_times, check_variant, is_whole
from millpond.engine.arrow.source.variant.unshred import unshred

__all__ = ["BrokenVariant", "check_times", "check_variant", "is_whole", "unshred"]

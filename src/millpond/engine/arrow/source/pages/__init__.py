"""Texts of some rows of a Parquet file, without decoding those of all others.

pyarrow decodes a column chunk from its first value on, and texts are what that costs most for.
Where few rows are wanted, `pick` finds the numbers that their texts have in the chunk's dictionary,
and lets pyarrow decode those. What it can't do it leaves to pyarrow as a whole. `design/0005` has
what was measured.
"""

from __future__ import annotations

from millpond.engine.arrow.source.pages.leaf import TextLeaf, has_nulls
from millpond.engine.arrow.source.pages.pick import pick

__all__ = ["TextLeaf", "has_nulls", "pick"]

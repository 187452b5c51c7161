"""Columns of Parquet files, read out of their pages by compiled functions (`native/`).

pyarrow's reader decodes all values of a chunk from the first on, whichever are wanted, and copies
each text by itself. Here pages are unpacked by pyarrow, and their values go into Arrow's layout at
once, all of them or those of some rows. Where the functions were not compiled, and for what they do
not know, pyarrow reads everything. `design/0017` has what was measured.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from millpond.engine.arrow.source.longtext import TooLong
from millpond.engine.arrow.source.pages.chunk import StoredChunk, UnknownPage
from millpond.engine.arrow.source.pages.leaf import StoredLeaf
from millpond.engine.arrow.source.pages.unpack import DamagedPage

__all__ = ["PAGE_ERRORS", "DamagedPage", "StoredChunk", "StoredLeaf", "UnknownPage"]

PAGE_ERRORS: Final = (UnknownPage, DamagedPage, TooLong, OSError, pa.ArrowException)
"""What may come of reading pages: pyarrow can be asked instead."""

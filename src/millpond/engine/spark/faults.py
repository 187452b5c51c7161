"""Rows that a file should not hold: raised by Spark while it reads, told as a `SourceError`.

A fault travels as a text that Spark raises. `errors.translate` finds it there by `FAULT`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context

_MARK: Final = "millpond source fault\x1f"
_END: Final = "\x1f"
PATH: Final = "\x1e"
"""Stands for the file's name in a message: Spark knows it in its own spelling only."""
FAULT: Final = re.compile(
    rf"{_MARK}(?P<path>.*?){_END}(?P<hint>.*?){_END}(?P<message>.*?){_END}", re.S
)


def fault(context: Context, path: Column, message: Column, *, hint: str) -> Column:
    """A column that fails: the message, with `PATH` where the file's name goes, and a hint."""
    f = context.functions
    parts = (f.lit(_MARK), path, f.lit(f"{_END}{hint}{_END}"), message, f.lit(_END))
    raised: Column = f.raise_error(f.concat(*parts))
    return raised

"""The functions of `pages.c`, if they were compiled when the package was installed.

Installing compiles them where there is a C compiler (`hatch_build.py`). Without one, pyarrow reads
everything: the same rows, for more time. A function that finds its input damaged gives -1.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("_pages.so")
PAGE_FACTS: Final = 10

_FUNCTIONS: Final = {
    "headers": 4,
    "open": 6,
    "pick": 10,
    "plain": 11,
    "entries": 4,
    "length": 5,
    "words": 11,
    "spread": 6,
    "fixed": 9,
    "footer": 4,
}
"""How many arguments each takes: addresses and whole numbers of 64 bits, all alike here."""
_OPTIONAL: Final = ("footer",)
"""Functions of which there is the same in Python."""


@cache
def library() -> ctypes.CDLL | None:
    """The compiled functions; None if there are none, or not all of them."""
    if sys.byteorder != "little" or not PATH.exists():
        return None
    found = ctypes.CDLL(str(PATH))
    for name, count in _FUNCTIONS.items():
        function = getattr(found, f"millpond_{name}", None)
        if function is None:  # compiled from an earlier `pages.c`
            if name in _OPTIONAL:
                continue
            return None
        function.argtypes = [ctypes.c_int64] * count
        function.restype = ctypes.c_int64
    return found

"""Commands without pandas: pyarrow imports it at its first conversion, only to know whether its
argument is something of pandas. That takes longer than most commands, and none of ours needs it.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None: somebody else may know the module."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("no command needs pandas", name=fullname)
        return None


def do_without_pandas() -> None:
    """Have pyarrow look for pandas now, and find none; it does not look again.

    For a process that is a command's own. PySpark imports pandas by itself, and still finds it.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([None])
    finally:
        sys.meta_path.remove(finder)

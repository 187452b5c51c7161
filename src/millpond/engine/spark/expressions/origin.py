"""Which expression a column was made for, told by Spark when the column fails.

Spark notes with a column where it was made, and repeats that in its errors. PySpark has it note a
line of Python; we have it note the expression. `errors.py` reads it.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from millpond.engine.spark.api import is_classic
from millpond.plan.raising import raises_itself
from millpond.plan.text import format_expr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.spark.api import Api
    from millpond.plan.bound import BoundExpr

MARK: Final = "millpond"
"""Stands where PySpark names a line of Python."""
_SHOWN: Final = 300
_current: ContextVar[str] = ContextVar("millpond_spark_expression", default="")


@contextlib.contextmanager
def made_for(node: BoundExpr, api: Api) -> Iterator[None]:
    """Columns that are made in the block name this expression when they fail."""
    if not raises_itself(node):
        yield
        return
    text = format_expr(node, limit=_SHOWN)
    token = _current.set(text)
    _note(text, api)
    try:
        yield
    finally:
        _note(None, api)
        _current.reset(token)


def place() -> str:
    """` in ...` with the expression that columns are made for now; nothing outside of one."""
    text = _current.get()
    return f" in {text}" if text else ""


def _note(text: str | None, api: Api) -> None:
    session: Any = api.session
    if is_classic(session):
        origin = getattr(session._jvm, "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin")  # noqa: SLF001
        origin.clear() if text is None else origin.set(text, MARK)
    else:
        from pyspark.errors.utils import set_current_origin

        set_current_origin(text, None if text is None else MARK)

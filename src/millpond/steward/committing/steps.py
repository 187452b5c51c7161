"""The steps of a commit by name, and a place to stand at each: tests crash there.

Nothing happens at a step unless somebody observes them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS: Final = (
    "begin",
    "write",
    "stage",
    "oplog",
    "publish",
    "data_committed",
    "post_commit",
    "completed",
)
"""In their order. `before:oplog` and `after:oplog` are the places around a step."""
INSIDE: Final = ("stage_table", "publish_table")
"""What is done once for each table inside `stage` and `publish`."""

_observer: Callable[[str], None] | None = None


def observe(observer: Callable[[str], None] | None) -> None:
    """Have a function called with the name of each place; None ends that."""
    global _observer
    _observer = observer


@contextmanager
def step(name: str) -> Iterator[None]:
    """The places before and after something is done."""
    if _observer is not None:
        _observer(f"before:{name}")
    yield
    if _observer is not None:
        _observer(f"after:{name}")

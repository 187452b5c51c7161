"""What a long command is at, in one line on standard error; nothing where nobody looks."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millpond.cli.context import Context


@contextmanager
def doing(context: Context, what: str) -> Iterator[Callable[[str], None]]:
    """A line with what is being done; the function changes its end."""
    if context.as_json or not sys.stderr.isatty():
        yield lambda _now: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(what) as status:
        yield lambda now: status.update(f"{what}: {escape(now)}")

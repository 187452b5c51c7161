"""`pond` as the attendant of its process: what engines tell goes to standard error.

Progress is one line where that is a terminal, and it goes when rows come to the same terminal.
Elsewhere only what should be otherwise is told.
"""

from __future__ import annotations

import shutil
import sys
from threading import Lock
from typing import TYPE_CHECKING, Final

from millpond.plan.attendant import attendant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from millpond.cli.context import Context
    from millpond.plan.attendant import Progress

_BAR: Final = 24


class Attending:
    """One call of `pond`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: set[str] = set()
        self._line = _Line()

    @property
    def on_progress(self) -> Callable[[Progress], object] | None:
        """A line for one run, where somebody can see it."""
        if self._context.as_json or not sys.stderr.isatty():
            return None
        self._line = _Line()
        return self._line

    def hide(self) -> None:
        """The line of the run goes, and does not come back."""
        self._line.end()

    def tell(self, message: str, *, hint: str | None = None) -> None:
        """Each message once."""
        if self._context.as_json or message in self._told:
            return
        self._told.add(message)
        if hint is not None:
            self._context.out.say(f"{message}\n  hint: {hint}")
        elif sys.stderr.isatty():
            self._context.out.say(message)


class _Line:
    """The line that shows progress."""

    def __init__(self) -> None:
        self._width = 0
        self._is_over = False
        self._writing = Lock()  # progress comes from a thread of its own

    def __call__(self, progress: Progress) -> None:
        if progress.done:
            self.end()
        elif progress.tasks_total:
            self._write(shown(progress, shutil.get_terminal_size().columns))

    def end(self) -> None:
        """Show nothing any more."""
        self._write("")
        self._is_over = True

    def _write(self, text: str) -> None:
        with self._writing:
            if self._is_over or not (text or self._width):
                return
            # Spaces hide what was longer; there are terminals that know nothing else.
            rest = " " * max(0, self._width - len(text))
            sys.stderr.write(f"\r{text}{rest}" if text else f"\r{rest}\r")
            sys.stderr.flush()
            self._width = len(text)


def ending_progress(run: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a run that are shown; where that is on a terminal, the line makes room."""
    watcher = attendant()
    for batch in run:
        if isinstance(watcher, Attending) and sys.stdout.isatty():
            watcher.hide()
        yield batch


def shown(progress: Progress, width: int) -> str:
    """How far it is, in less than one line.

    >>> from millpond.engine.spark.progress import Progress
    >>> shown(Progress(1, 3, tasks_done=2, tasks_total=8), 80)
    '[######                  ]  2 of 8 tasks, stage 2 of 3'
    """
    done = int(_BAR * (progress.fraction or 0))
    total = progress.stages_total or 0
    stage = min(progress.stages_done + 1, total)
    text = (
        f"[{'#' * done}{' ' * (_BAR - done)}]  {progress.tasks_done:,} of "
        f"{progress.tasks_total:,} tasks, stage {stage} of {total}"
    )
    return text[: max(0, width - 1)]

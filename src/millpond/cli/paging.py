"""Output that is longer than the screen goes through a pager, `$PAGER` or `less`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Left(Exception):  # noqa: N818 - no error: the reader has seen enough
    """The pager was left before the end."""


class Paged:
    """`write` shows text at once if it fits the screen, and begins a pager when it does not."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._lines = 0
        self._pager: subprocess.Popen[bytes] | None = None
        self._command = _command()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._pager is not None:
            self._end(self._pager)
        elif kind is None:
            click.echo("".join(self._kept), nl=False)
        return kind is Left

    def write(self, text: str) -> None:
        """More of it."""
        if self._pager is None:
            self._kept.append(text)
            self._lines += text.count("\n")
            if self._lines < shutil.get_terminal_size().lines or not self._command:
                return
            self._pager = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                env={"LESS": "-RS", **os.environ},
            )
            text = "".join(self._kept)
        assert self._pager.stdin is not None
        try:
            self._pager.stdin.write(text.encode())
            self._pager.stdin.flush()
        except BrokenPipeError:
            raise Left from None

    def _end(self, pager: subprocess.Popen[bytes]) -> None:
        assert pager.stdin is not None
        with suppress(BrokenPipeError):  # it was left before the end
            pager.stdin.close()
        while True:
            try:
                pager.wait()
                return
            except KeyboardInterrupt:  # it is the pager's
                continue


def _command() -> list[str]:
    words = shlex.split(os.environ.get("PAGER") or "less")
    return words if words and shutil.which(words[0]) else []

"""Arguments of the commands that move data: places, ends of time ranges."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millpond.cli.params import PondPath, Time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import click
    from click.shell_completion import CompletionItem

_DAY: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")


class PlaceText(PondPath):
    """A path of the pond, or a file of this machine: `host:///…`, `./…`."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; what it means is seen later."""
        del param, ctx
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Paths of the pond, or files of the working directory."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith((".", "~")):
            return [CompletionItem(incomplete, type="file")]
        return super().shell_complete(ctx, param, incomplete)


class EndTime(Time):
    """The end of a range of times, which belongs to it; a day is meant up to its end."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The last moment."""
        found = super().convert(value, param, ctx)
        if isinstance(value, str) and _DAY.fullmatch(value.strip()):
            return found + timedelta(days=1) - timedelta(microseconds=1)
        return found


@contextmanager
def looking_here(texts: Sequence[str]) -> Iterator[None]:
    """Where a path of the pond is missing that is a file here, the error says how to name that."""
    from millpond.base.errors import PathNotFoundError

    try:
        yield
    except PathNotFoundError as error:
        for text in texts:
            if not text.startswith("/") and error.path == f"/{text}" and _is_file(text):
                error.hint = f"the file of this machine is named ./{text}"
        raise


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # a name that is too long, or in a directory that can't be searched
        return False


PLACE = PlaceText()
END_TIME = EndTime()

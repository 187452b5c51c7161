"""Kinds of arguments that several commands take: paths of the pond, times, `key=value`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def _place(url: str) -> str:
    """Say where a URL leads that stands in the place of a path."""
    scheme, _, rest = url.partition("://")
    if scheme.split("+")[0] == "host":
        return "files of this machine are taken by cat, copy and describe alone"
    wanted = "this command takes paths of the pond"
    # What follows `://` is a path only after a third slash; else it names a host, perhaps a user.
    path = rest.partition("?")[0].lstrip("/")
    return f"{wanted}: /{path}" if rest.startswith("/") else wanted


class PondPath(click.ParamType[str]):
    """A path of the pond; without a `/` in front it begins at the root. The shell completes it."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The absolute path."""
        text = str(value)
        if not text:
            self.fail("a path is not empty; / is the root", param, ctx)
        if _URL.match(text):
            self.fail(f"{text} is a URL, and {_place(text)}", param, ctx)
        return text if text.startswith("/") else f"/{text}"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Paths that begin like this."""
        from millpond.cli.completion import complete_path

        del param
        return complete_path(ctx, incomplete)


class Time(click.ParamType[datetime]):
    """A time as ISO 8601 has it; without a zone it is UTC."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The time, in UTC."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(str(value).strip())
        except ValueError:
            self.fail(f"{value!r} is no time; write it like 2024-02-29T12:00:00Z", param, ctx)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


class AsOf(Time):
    """A moment of the pond's history: the number of a transaction, or a time."""

    name = "transaction|time"

    def convert(  # type: ignore[override]
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | datetime:
        """The transaction or the time."""
        text = str(value).strip()
        if text.isascii() and text.isdigit() and len(text) < 8:
            return int(text)
        return super().convert(value, param, ctx)


PATH = PondPath()
TIME = Time()
AS_OF = AsOf()


def variables(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """`key=value`, as often as one likes; the last one counts."""
    found: dict[str, str] = {}
    for text in value:
        name, equals, rest = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter("a variable is given as key=value", ctx=ctx, param=param)
        found[name.strip()] = rest
    return found

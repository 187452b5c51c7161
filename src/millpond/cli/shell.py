"""The shell of `pond sql`: statements that end with `;`, and a few commands that begin with `\\`.

`shellwords.py` completes what is typed. A statement sees the newest state of the pond. Ctrl-C
cancels the query that runs, or empties the line.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Final

import click

from millpond.base.errors import MillpondError
from millpond.plan.sqltext import open_at

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from millpond.cli.context import Context
    from millpond.plan.node import Plan
    from millpond.steward.scope import Scope

HELP: Final = """\
A statement ends with ; and may have many lines. Paths are tables: "/sensors/a", "/sensors/*".
  \\d            the paths that have rows
  \\d PATH       the columns of a path
  \\timing       show how long statements take, or not
  \\q, Ctrl-D    end
Ctrl-C cancels what runs. Tab completes paths, columns and words.
"""


def run_shell(context: Context, as_of: int | datetime | None) -> None:
    """Read and run statements until the end."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory

    from millpond.cli.shellwords import Words

    shell = Shell(context, as_of)
    shell.scope()  # a pond that is not there is said at once
    goes_on = Condition(lambda: not is_whole(get_app().current_buffer.text))
    session: PromptSession[str] = PromptSession(
        history=FileHistory(history_file()),
        completer=Words(shell.scope),
        complete_while_typing=False,
        multiline=goes_on,
        prompt_continuation=lambda width, *_: ". ".rjust(width),
        enable_open_in_editor=True,
    )
    context.out.say("SQL over the paths of this pond; \\? tells more, \\q ends.")
    while True:
        try:
            text = session.prompt("pond> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not shell.run(text.strip()):
            return


def is_whole(text: str) -> bool:
    r"""Whether what was typed can be run.

    >>> [is_whole(t) for t in ("SELECT 1", "SELECT 1;", "SELECT ';", r"\d", "")]
    [False, True, False, True, True]
    """
    plain = text.strip()
    return not plain or plain[0] == "\\" or (plain[-1] == ";" and open_at(plain) is None)


def history_file() -> Path:
    """Where statements are remembered; only their user can read it."""
    from millpond.engine.spark.warm.state import directory

    path = directory() / "sql_history"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return path


class Shell:
    """What statements and commands do."""

    def __init__(self, context: Context, as_of: int | datetime | None) -> None:
        self._context = context
        self._as_of = as_of
        self._is_timed = False

    def scope(self) -> Scope:
        """The pond as statements see it."""
        return self._context.read(self._as_of)

    def run(self, text: str) -> bool:
        """Run one statement or command; False at the end. What goes wrong is told."""
        try:
            return self._command(text) if text.startswith("\\") else self._statement(text)
        except MillpondError as error:
            click.echo(f"error: {error}", err=True)
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
        return True

    def _statement(self, text: str) -> bool:
        from millpond.steward.sql import sql_plan

        query = text.rstrip("; \n")
        if not query:
            return True
        began = time.monotonic()
        plan = sql_plan(query, self.scope, as_of=self._as_of, settings=self._context.settings)
        self._show(plan)
        if self._is_timed:
            click.echo(f"took {time.monotonic() - began:.2f} s", err=True)
        return True

    def _show(self, plan: Plan) -> None:
        from millpond.cli.attending import ending_progress
        from millpond.cli.paging import Paged
        from millpond.cli.rowout import query_engine
        from millpond.cli.rowtable import show_rows

        width = shutil.get_terminal_size().columns
        with plan.execute(engine=query_engine(self._context)) as run, Paged() as page:
            rows = show_rows(run.schema, ending_progress(run), page.write, width=width)
            page.write(f"({rows:,} row{'' if rows == 1 else 's'})\n")

    def _command(self, text: str) -> bool:
        from millpond.cli.paging import Paged

        word, _, rest = text.partition(" ")
        if word == "\\q":
            return False
        if word == "\\timing":
            self._is_timed = not self._is_timed
            click.echo(f"times are {'shown' if self._is_timed else 'not shown'}", err=True)
        elif word == "\\d":
            with Paged() as page:
                page.write(self._described(rest.strip(' ;"`')))
        else:
            if word not in ("\\?", "\\h"):
                click.echo(f"there is no command {word}", err=True)
            click.echo(HELP, nl=False)
        return True

    def _described(self, path: str) -> str:
        """The paths that have rows, or the columns of one."""
        from millpond.steward.places import parse_place
        from millpond.steward.rows.selection import Which, select

        if not path:
            return "".join(f'{kind:<10} "{path}"\n' for path, kind in tables(self.scope()))
        found = select(
            [parse_place(path)], self.scope, Which(), settings=self._context.settings
        ).plan
        if found is None:
            return f"{path} has bytes and no rows\n"
        width = max((len(field.name) for field in found.schema), default=0)
        return "".join(f"{field.name:<{width}}  {field.type}\n" for field in found.schema)


def tables(scope: Scope) -> list[tuple[str, str]]:
    """The paths of a pond that have rows, and what they are."""
    from millpond.fs.entry import EntryType
    from millpond.fs.glob import Pattern, expand

    computed = (EntryType.DYNAMIC_TABLE, EntryType.DYNAMIC_SERIES)
    return [
        (match.located.path, str(match.located.entry_type))
        for match in expand(scope.view, Pattern.parse("/**"))
        if match.located.entry_type.is_table or match.located.entry_type in computed
    ]

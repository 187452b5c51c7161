"""`pond describe`: what a node is, its columns, versions, times, and the Delta table behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millpond.cli.dataparams import PLACE
from millpond.cli.params import AS_OF

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.cli.context import Context

_SIZES: Final = ("size", "bytes")
_TIMES: Final = ("modified", "first", "last", "min_bound", "max_bound")


@click.command("describe")
@click.argument("places", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option("--version", type=click.IntRange(min=1), help="This version, as PATH@v3 does.")
@click.option("--as-of", type=AS_OF, help="The pond as it was after a transaction or at a time.")
@click.pass_obj
def command(
    context: Context,
    *,
    places: tuple[str, ...],
    version: int | None,
    as_of: int | datetime | None,
) -> None:
    """Show what PATH is: its kind, versions and size; of tables the columns, times and Delta facts.

    PATH is a path or pattern of the pond, or files of this machine: host+csv:///f and so on. No
    rows are read: how many there are is what statistics tell. Raw files, csv:///f, are parsed once.

    \b
    Examples:
      pond describe /sensors/a
      pond describe '/sensors/*' --json
      pond describe host+parquet:///data/levels.parquet
    """
    from millpond.fs.glob import is_pattern
    from millpond.steward.describing import describe, describe_files, describe_place
    from millpond.steward.places import parse_place
    from millpond.steward.rows.selection import plain_paths

    found: list[dict[str, Any]] = []
    named = [parse_place(text) for text in places]
    for place in named:
        if place.is_host:
            found.append(describe_place(place, settings=context.settings))
            continue
        scope = context.read(as_of)
        if place.reader is not None:
            found.append(describe_files(scope, place))
        elif place.url is not None:
            found += [describe(scope, path) for path in plain_paths(scope, place)]
        else:
            found += [describe(scope, path) for path in _paths(scope, place.path, version)]
    if context.as_json:
        is_one = len(named) == 1 and (named[0].reader or not is_pattern(named[0].path))
        context.out.facts(found[0]) if is_one else context.out.rows(found)
        return
    for number, facts in enumerate(found):
        if number:
            context.out.text("\n")
        _show(context, facts)


def _paths(scope: Any, path: str, version: int | None) -> list[str]:
    """What a path or pattern names, directories and links among it."""
    from millpond.fs.glob import Pattern, expand, is_pattern
    from millpond.fs.resolve import try_resolve
    from millpond.steward.rows.selection import matching

    if not is_pattern(path) or try_resolve(scope.view, path) is not None:
        return matching(scope, path, version=version)
    found = [match.located.path for match in expand(scope.view, Pattern.parse(path))]
    return found if found and version is None else matching(scope, path, version=version)


def _show(context: Context, facts: dict[str, Any]) -> None:
    """The same for people: facts, a line each, and the columns below."""
    from millpond.cli.output import human_size, short_time

    lines: dict[str, Any] = {}
    for name, value in facts.items():
        if name == "columns":
            continue
        if name == "kinds":
            value = ", ".join(f"{count} {kind}" for kind, count in value.items())
        if isinstance(value, dict):
            lines |= {f"{name} {inner.replace('_', ' ')}": v for inner, v in value.items()}
        else:
            lines[name.replace("_", " ")] = value
    shown = {}
    for name, value in lines.items():
        last = name.rpartition(" ")[2]
        if value in (None, [], {}):
            continue
        if last in _SIZES:
            value = f"{human_size(value)} ({value:,} bytes)" if value >= 1024 else human_size(value)
        elif last in _TIMES or name.endswith(" bound"):
            value = value if str(value.microsecond or "") else short_time(value)
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        elif isinstance(value, dict):
            value = ", ".join(f"{k}={v}" for k, v in value.items())
        shown[name] = value
    context.out.facts(shown)
    if facts.get("columns"):
        context.out.text("\n")
        rows = [
            {
                "column": column["name"],
                "type": column["type"],
                "null": "yes" if column["nullable"] else "no",
            }
            for column in facts["columns"]
        ]
        context.out.rows(rows)

"""`pond diff`: what changed between two versions, two nodes, or two moments of the pond."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from millpond.base.errors import PathNotFoundError
from millpond.cli.params import AS_OF, PATH

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.cli.context import Context
    from millpond.fs.resolve import Located
    from millpond.steward.comparing.nodes import NodeDiff, Side
    from millpond.steward.comparing.rows import RowDiff
    from millpond.steward.comparing.trees import Change

DIFFERENT: Final = 1
_MARKS: Final = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_SAID: Final = {
    "files": "whole files came or went",
    "rows": "compared row by row",
    "counts": "rows of the files that differ; rows that were only written anew count twice",
}


@click.command("diff")
@click.argument("paths", nargs=-1, type=PATH)
@click.option("--from", "since", type=AS_OF, help="From this transaction or time.")
@click.option("--to", "until", type=AS_OF, help="To this transaction or time; else to now.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=10, show_default=True,
    help="Show at most so many rows of each kind.",
)  # fmt: skip
@click.pass_obj
def command(
    context: Context,
    *,
    paths: tuple[str, ...],
    since: int | datetime | None,
    until: int | datetime | None,
    limit: int,
) -> int:
    """Show what changed; the exit code is 1 if something did.

    Two PATHS are compared with each other; one is compared with its latest version or, where it
    names no version, the version before with the latest. With --from, the pond, or what is below a
    PATH, is compared with what it was: + came, - went, ~ has another version, > was moved.

    Texts up to a megabyte are shown line by line. Of tables, rows that came and went are counted:
    by whole files where that is exact, by rows where files were written anew, and where those are
    too many, it is said that only files were counted.

    \b
    Examples:
      pond diff /notes.txt
      pond diff /t@v1 /t@v2
      pond diff --from 3 --to 5
      pond diff --from 2024-05-01T00:00 /sensors
    """
    if until is not None and since is None:
        raise click.UsageError("--to needs --from.")
    if since is None and not 1 <= len(paths) <= 2:
        raise click.UsageError("Name one or two paths, or a moment with --from.")
    if since is not None and len(paths) > 1:
        raise click.UsageError("With --from, name one path at most.")
    if since is None:
        return _show_nodes(context, *_versions(context, paths), limit=limit)
    older, newer = context.read(since), context.read(until)
    path = paths[0] if paths else "/"
    sides = _moments(older, newer, path)
    if sides is not None:
        return _show_nodes(context, *sides, limit=limit)
    return _show_trees(context, older, newer, path)


def _versions(context: Context, paths: tuple[str, ...]) -> tuple[Side, Side]:
    """The two sides that one or two paths mean."""
    from millpond.fs.paths import split_version
    from millpond.steward.comparing.nodes import Side

    scope = context.read()
    if len(paths) == 2:
        return Side(scope, paths[0], paths[0]), Side(scope, paths[1], paths[1])
    plain, version = split_version(paths[0])
    latest = scope.row(plain).version
    if version is None and latest > 1:
        version = latest - 1
    if version is None:
        raise PathNotFoundError(
            f"{plain} has one version alone",
            path=plain,
            hint=f"name another node, or a moment: pond diff --from TRANSACTION {plain}",
        )
    old, new = f"{plain}@v{version}", f"{plain}@v{latest}"
    return Side(scope, old, old), Side(scope, new, new)


def _moments(older: Any, newer: Any, path: str) -> tuple[Side, Side] | None:
    """A file or table at two moments; None where it is a directory, or was not there."""
    from millpond.fs.resolve import try_resolve
    from millpond.steward.comparing.nodes import Side

    found = [try_resolve(scope.view, path) for scope in (older, newer)]
    if found == [None, None]:
        newer.locate(path)  # says what is nearby
    if any(each is None or each.entry_type.is_directory for each in found):
        return None
    labels = [_label(path, each) for each in found]
    return Side(older, path, labels[0]), Side(newer, path, labels[1])


def _label(path: str, found: Located | None) -> str:
    """With its version, unless it is in a directory that is computed."""
    row = None if found is None else found.row
    return path if row is None else f"{path}@v{row.version}"


# What is shown


def _show_trees(context: Context, older: Any, newer: Any, path: str) -> int:
    from millpond.steward.comparing.trees import compare_trees

    changes = compare_trees(older, newer, path)
    if context.as_json:
        context.out.facts(
            {
                "from": older.txn_seq,
                "to": newer.txn_seq,
                "same": not changes,
                "changes": [asdict(change) for change in changes],
            }
        )
    for change in changes if not context.as_json else ():
        context.out.text(_line(change))
    if not changes:
        context.out.say(f"nothing changed from transaction {older.txn_seq} to {newer.txn_seq}")
    return DIFFERENT if changes else 0


def _line(change: Change) -> str:
    from millpond.cli.output import printable

    text = f"{_MARKS[change.change]} {printable(change.path)}"
    if change.old_path is not None:
        text = f"> {printable(change.old_path)} -> {printable(change.path)}"
    if change.old_version != change.new_version and change.old_version and change.new_version:
        text += f"  v{change.old_version} -> v{change.new_version}"
    if change.what is not None:
        text += f"  ({change.what})"
    color = {"added": "green", "removed": "red"}.get(change.change)
    return click.style(text, fg=color) + "\n"


def _show_nodes(context: Context, old: Side, new: Side, *, limit: int) -> int:
    from millpond.steward.comparing.nodes import compare_nodes

    found = compare_nodes(old, new, limit=limit)
    if context.as_json:
        facts = {"old": found.old, "new": found.new, "type": found.type, "same": found.is_same}
        inner = found.contents or found.rows
        context.out.facts({**facts, **({} if inner is None else asdict(inner))})
    elif found.is_same:
        context.out.say(f"{found.old} and {found.new} are the same")
    else:
        _write(context, found)
    return 0 if found.is_same else DIFFERENT


def _write(context: Context, found: NodeDiff) -> None:
    from millpond.cli.output import human_size

    if found.rows is not None:
        _write_rows(context, found, found.rows)
        return
    contents = found.contents
    assert contents is not None
    if contents.lines is not None:
        context.out.text("".join(_colored(line) + "\n" for line in contents.lines))
        return
    sizes = f"{human_size(contents.old_size)} and {human_size(contents.new_size)}"
    context.out.text(
        f"{found.old} and {found.new} differ from byte {contents.first_difference:,} on ({sizes})\n"
    )


def _write_rows(context: Context, found: NodeDiff, rows: RowDiff) -> None:
    out = context.out
    out.text(f"--- {found.old}\n+++ {found.new}\n")
    out.text("".join(f"column {line}\n" for line in rows.columns))
    added, removed = (
        "an unknown number" if count is None else f"{count:,}"
        for count in (rows.added, rows.removed)
    )
    out.text(f"{added} rows added, {removed} removed ({_SAID[rows.by]})\n")
    for mark, lines, count in (
        ("-", rows.removed_rows, rows.removed),
        ("+", rows.added_rows, rows.added),
    ):
        out.text("".join(_colored(f"{mark} {line}") + "\n" for line in lines))
        if lines and (count is None or count > len(lines)):
            out.text(f"{mark} …\n")


def _colored(line: str) -> str:
    if line.startswith(("---", "+++", "@@")):
        return click.style(line, bold=True)
    color = {"+": "green", "-": "red"}.get(line[:1])
    return click.style(line, fg=color) if color else line

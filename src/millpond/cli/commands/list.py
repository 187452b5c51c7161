"""`pond list`: what is in the pond. This path imports no Arrow; a test holds it to that."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from millpond.cli.output import human_size, short_time
from millpond.cli.params import AS_OF, PATH
from millpond.cli.selecting import no_match
from millpond.fs.entry import EntryType, from_micros
from millpond.fs.paths import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from millpond.base.errors import MillpondError
    from millpond.cli.context import Context
    from millpond.cli.output import Show
    from millpond.fs.entry import Row
    from millpond.fs.resolve import Located
    from millpond.fs.tree import TreeLike


@click.command("list")
@click.argument("paths", nargs=-1, type=PATH)
@click.option("-l", "--long", "is_long", is_flag=True, help="Show transaction, node id and hash.")
@click.option("--depth", type=click.IntRange(min=0), help="Go so deep; 1 is what is in PATH.")
@click.option(
    "--sort",
    "order",
    type=click.Choice(("path", "size", "time")),
    default="path",
    help="By path, or the largest or newest first.",
)
@click.option("--as-of", type=AS_OF, help="The pond as it was after a transaction or at a time.")
@click.pass_obj
def command(
    context: Context,
    *,
    paths: tuple[str, ...],
    is_long: bool,
    depth: int | None,
    order: str,
    as_of: int | datetime | None,
) -> None:
    """List PATHS and everything below them; without PATHS, the whole pond.

    A path that ends with / is what is in the directory, without the directory itself. A pattern is
    what it matches: * ? [abc] within a name, ** over directories. Quote it, or the shell takes it.
    A directory that can't be computed is listed without what is in it; its error comes at the end.

    \b
    Examples:
      pond list
      pond list /sensors/ --depth 1
      pond list '/sensors/**/*.csv' --sort size
    """
    tree = context.tree() if as_of is None else context.read(as_of).view
    failures: list[MillpondError] = []
    found = [node for path in paths or ("/",) for node in _found(tree, path, depth, failures)]
    if order == "size":
        found.sort(key=lambda node: -(node.row.whole_size or 0))
    elif order == "time":
        found.sort(key=lambda node: -node.row.written)
    if not found:
        context.out.say("nothing is there yet")
    if context.as_json:
        context.out.rows([_facts(node, tree) for node in found])
    else:
        lines = [_line(node, tree, is_long=is_long) for node in found]
        show: Show = {"size": human_size, "time": cache(_time)}
        context.out.rows(lines, show=show, right=("size", "version", "txn"))
    for error in failures[1:]:
        context.out.say(f"error: {error}")
    if failures:
        raise failures[0]


class _Node(NamedTuple):
    path: str
    row: Row


def _found(
    tree: TreeLike, path: str, depth: int | None, failures: list[MillpondError]
) -> Iterator[_Node]:
    """What a path means, and what is below it; a directory that can't be computed is a failure."""
    from millpond.fs.glob import Pattern, expand, is_pattern
    from millpond.fs.resolve import resolve, try_resolve
    from millpond.fs.walk import walk

    def failed(where: Located, error: MillpondError) -> None:
        error.came_up_in(where.path)
        failures.append(error)

    is_inside = path.endswith("/") or not parts(path)
    if is_pattern(path):
        matches = [match.located for match in expand(tree, Pattern.parse(path), follow=is_inside)]
        if matches and not is_inside:
            yield from _nodes(matches)
            return
        for match in matches:
            if match.entry_type.is_directory:
                yield from _nodes(walk(tree, match.path, depth=depth, failed=failed))
        if matches:
            return
        if try_resolve(tree, path) is None:  # a name may have such characters in it
            raise no_match(tree, path)
    if not is_inside:
        top = resolve(tree, path, follow=False)
        yield from _nodes([top])
        if not top.entry_type.is_directory:
            return
    yield from _nodes(walk(tree, path, depth=depth, failed=failed))


def _nodes(found: Iterable[Located]) -> Iterator[_Node]:
    return (_Node(each.path, each.chain[-1]) for each in found)


def _facts(node: _Node, tree: TreeLike) -> dict[str, Any]:
    """A node for programs."""
    row = node.row
    return {
        "path": node.path,
        "type": row.entry_type,
        "size": row.whole_size,
        "version": row.version,
        "time": row.time,
        "txn": row.txn_seq,
        "node_id": row.node_id,
        "blake3": row.blake3,
        "target": _target(row, tree),
    }


def _line(node: _Node, tree: TreeLike, *, is_long: bool) -> dict[str, Any]:
    """A node for people."""
    row = node.row
    kind, path = row.entry_type, node.path
    if kind is EntryType.SYMLINK:
        path = f"{path} -> {_target(row, tree)}"
    elif kind.is_directory:
        path = f"{path}/"
    more = {"txn": row.txn_seq, "node": row.node_id, "blake3": row.blake3} if is_long else {}
    return {
        "type": kind,
        "size": row.whole_size,
        "version": row.version,
        "time": row.written,
        **more,
        "path": path,
    }


def _target(row: Row, tree: TreeLike) -> str | None:
    """Where a link leads."""
    if row.entry_type is not EntryType.SYMLINK:
        return None
    return (tree.content(row) or b"").decode()


def _time(micros: int) -> str:
    return short_time(from_micros(micros))

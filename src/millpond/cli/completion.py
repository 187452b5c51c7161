"""What the shell offers when a path of the pond is begun; without a pond, nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def complete_path(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The nodes of a directory whose names begin as given; directories end with a slash."""
    from click.shell_completion import CompletionItem

    from millpond.base.errors import MillpondError
    from millpond.cli.context import Context
    from millpond.fs.resolve import try_resolve

    head, slash, start = incomplete.rpartition("/")
    context = Context(location=ctx.find_root().params.get("location"))
    try:
        tree = context.tree()
        found = try_resolve(tree, "/" + head)
    except MillpondError:  # nobody is there who could read a message
        return []
    if found is None or not found.entry_type.is_directory:
        return []
    return [
        CompletionItem(f"{head}{slash}{name}{'/' if row.entry_type.is_directory else ''}")
        for name, row in tree.children(found.node_id).items()
        if name.startswith(start)
    ]

"""Shell completion: what is offered for a path of the pond, and a script for bash.

Click does the rest. Names with spaces are escaped, and behind a directory one can go on typing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

if TYPE_CHECKING:
    import click

_BASH: Final = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=',' read -r kind value; do
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == */ ]] && compopt -o nospace
                COMPREPLY+=("$(printf '%%q' "$value")") ;;
        esac
    done < <(IFS=$'\\n'; COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \
%(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Completion in bash."""

    source_template = _BASH


def register() -> None:
    """Have Click use the script above."""
    add_completion_class(Bash)


def complete_path(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The nodes of a directory whose names begin as given; directories end with a slash."""
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
        if name.startswith(start) and name.isprintable()
    ]

"""Every command of `pond`: where its code is and what it does, so that help imports none of it.

A command's module has a `command`. Its own docstring is the long help; the line here is the short.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One command."""

    name: str
    help: str
    aliases: tuple[str, ...] = ()
    module: str = ""
    """The module in `millpond.cli.commands`, if it is not named like the command."""

    @property
    def home(self) -> str:
        """The module that holds it."""
        return f"millpond.cli.commands.{self.module or self.name}"


SECTIONS: Final[tuple[tuple[str, tuple[Entry, ...]], ...]] = (
    (
        "The pond",
        (
            Entry("init", "Make a pond."),
            Entry("status", "Show where the pond is and how it is."),
            Entry("show", "Show the transactions, newest first."),
            Entry("recover", "Finish what a crash left."),
            Entry("maintain", "Compact, checkpoint and vacuum the pond."),
            Entry("fsck", "Check everything that is stored."),
            Entry("control", "Look into the control table; settings of the pond."),
        ),
    ),
    (
        "The tree",
        (
            Entry("list", "List what is in the pond.", ("ls",)),
            Entry("mkdir", "Make directories."),
            Entry("rm", "Remove nodes; they can be restored."),
            Entry("mv", "Move or rename nodes."),
            Entry("ln", "Make a symbolic link."),
            Entry("versions", "Show the versions of a node."),
            Entry("restore", "Bring back a removed node or an older version."),
            Entry("diff", "Show what changed between two versions or moments."),
        ),
    ),
    (
        "Data",
        (
            Entry("cat", "Write the bytes or rows of a node."),
            Entry("sql", "Run SQL over paths; without a query, a shell."),
            Entry("copy", "Copy into, out of, and within the pond.", ("cp",)),
            Entry("export", "Write rows and files below a directory, also cut by time."),
            Entry("describe", "Show the columns and facts of a node."),
            Entry("temporal", "Set time bounds of series; find overlaps."),
        ),
    ),
    (
        "Pipelines",
        (
            Entry("mknod", "Make a node that a factory computes, or that can be run."),
            Entry("apply", "Make or change many such nodes from YAML."),
            Entry("run", "Run an executable node."),
            Entry("materialize", "Make a computed node a stored one."),
            Entry("list-factories", "Show what makes nodes.", module="list_factories"),
        ),
    ),
    (
        "This machine",
        (
            Entry("engine", "Show the engines; start and stop a warm one."),
            Entry("settings", "Show every setting, its value and its origin."),
        ),
    ),
)

COMMANDS: Final[dict[str, Entry]] = {e.name: e for _, entries in SECTIONS for e in entries}
ALIASES: Final[dict[str, Entry]] = {a: e for e in COMMANDS.values() for a in e.aliases}


def find_command(name: str) -> Entry | None:
    """The command of a name or another name of it."""
    return COMMANDS.get(name) or ALIASES.get(name)

"""`Context`: what the global options said, and how a command gets at the pond. Imports are lazy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import ConfigError
from millpond.cli.output import Output

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from millpond.base.settings import Settings
    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree, TreeLike
    from millpond.provider.factory import Entry
    from millpond.steward.pond import Pond
    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope

HERE: Final = ".pond"
"""A pond of this name in the working directory, or above it, is taken if none is named."""


@dataclass
class Context:
    """One call of `pond`."""

    location: str | None = None
    """As `--pond` or the variable POND says."""
    variables: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    args: Sequence[str] = ()
    """The whole command line."""
    owns_process: bool = False
    """Whether the process is this call's alone."""
    out: Output = field(default_factory=Output)

    @property
    def as_json(self) -> bool:
        """Whether data and errors are JSON."""
        return self.out.as_json

    @cached_property
    def settings(self) -> Settings:
        """The settings, with what the global options say on top."""
        from millpond.base.settings import Settings

        return Settings.load(engine=self.engine)

    @property
    def place(self) -> str:
        """Where the pond is."""
        found = self.location or find_pond()
        if found is None:
            raise ConfigError(
                "it is not said which pond is meant",
                hint="make one here: pond init; or name one: --pond PATH, or the variable POND",
            )
        return found

    @cached_property
    def _pond(self) -> Pond:
        self.start()
        from millpond.steward.pond import open_pond

        pond = open_pond(self.place, settings=self.settings)
        pond.variables = self.variables
        return pond

    def start(self) -> None:
        """Before anything of Arrow is used."""
        if self.owns_process:
            from millpond.cli.attending import Attending
            from millpond.cli.nopandas import do_without_pandas
            from millpond.plan.attendant import attend, attendant

            do_without_pandas()
            if attendant() is None:
                attend(Attending(self))

    def open_pond(self) -> Pond:
        """The pond; opened once a call."""
        return self._pond

    def tree(self) -> TreeLike:
        """The newest tree, to look at: from the index, which needs no Arrow, where that is good.

        What factories make in it is computed when somebody looks there.
        """
        from millpond.steward.dynamic.tree import DynamicTree

        return DynamicTree(self._stored_tree(), self)

    def entries(self, path: str, row: Row) -> Mapping[str, Entry]:
        """What is in a directory that a factory makes."""
        return self.read().entries(path, row)

    def _stored_tree(self) -> TreeLike:
        from millpond.kernel.paths import table_location
        from millpond.steward.index.tree import Index

        index = Index.at(table_location(self.place))
        quick = index.open(self._full_tree) if index is not None else None
        if quick is not None:
            return quick
        tree = self._full_tree()
        if index is not None:
            from millpond.steward.index.writing import rebuild

            rebuild(index, tree)
        return tree

    def _full_tree(self) -> Tree:
        return self.read().tree

    def read(self, as_of: int | datetime | None = None, *, computes: bool = True) -> ReadScope:
        """The pond as it is, or as it was after a transaction or at a time.

        What is missing of paths that are computed is not made where plans are only shown.
        """
        scope = self.open_pond().read(as_of=as_of)
        if not computes:
            scope.derivation.computes = False
        return scope

    def write(self, command: str) -> WriteScope:
        """Begin the transaction of a command, which remembers the command line and who gave it."""
        from millpond.base.redact import safe_args, safe_environment

        return self.open_pond().write(
            command, args=safe_args(self.args), environment=safe_environment()
        )

    def committed(self, tx: WriteScope, message: str, **facts: object) -> None:
        """Commit the transaction of a command, and say what was done."""
        done = tx.commit()
        if done.is_empty:
            self.out.done("nothing had to be done", **facts, txn=None)
        else:
            self.out.done(f"{message} (transaction {done.txn_seq})", **facts, txn=done.txn_seq)


def find_pond(start: str | os.PathLike[str] | None = None) -> str | None:
    """The `.pond` in a directory or the nearest one above it."""
    directory = Path(start or Path.cwd()).absolute()
    for each in (directory, *directory.parents):
        if (each / HERE / "data" / "_delta_log").is_dir():
            return str(each / HERE)
    return None

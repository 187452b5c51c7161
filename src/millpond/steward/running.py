"""Running an executable node by hand: its writes are ordinary transactions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millpond.base.errors import ConfigError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.factory import command_of, executable
from millpond.steward.control.settings import mode_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.command import NodeCommand
    from millpond.steward.pond import Pond
    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What a factory is given: `millpond.fs.factory.Run`."""

    pond: Pond
    path: str
    factory: str
    config: Mapping[str, Any]
    command: str
    options: Mapping[str, Any]
    parent_txn_seq: int | None = None
    told: list[str] = field(default_factory=list)
    """The messages of the factory."""
    result: object = None
    """What a command that reports has found."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What `-v key=value` says."""
        return self.pond.variables

    def tell(self, message: str) -> None:
        """Say what was done."""
        self.told.append(message)

    def read(self) -> ReadScope:
        """A scope that reads the pond as it is now."""
        return self.pond.read()

    def write(self, message: str | None = None) -> WriteScope:
        """A transaction; what is to run after writes runs after it."""
        said = {"message": message or f"run {self.path}", "factory_name": self.factory}
        return self.pond.begin({**said, "config_path": self.path}, kind="write")


@dataclass(frozen=True, slots=True)
class Runnable:
    """A node that can be run, and what its factory can be told to do."""

    pond: Pond
    path: str
    factory: str
    config: Mapping[str, Any]
    default: NodeCommand
    """The command that runs when none is named."""

    @property
    def commands(self) -> tuple[NodeCommand, ...]:
        """All commands."""
        return executable(self.factory).commands

    def command(self, name: str | None) -> NodeCommand:
        """Return a command by its name; ConfigError if there is none."""
        if name is None:
            return self.default
        found = next((each for each in self.commands if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in self.commands)
            raise ConfigError(
                f"{self.factory} has no command {name!r}", hint=f"its commands are {names}"
            )
        return found

    def run(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> NodeRun:
        """Run a command; what it raises is for the caller."""
        command = self.command(name)
        values = command.values(options or {})
        run = NodeRun(self.pond, self.path, self.factory, self.config, command.name, values)
        result = executable(self.factory).run(run)
        return replace(run, result=result if command.reports else None)


def runnable(pond: Pond, path: str) -> Runnable:
    """Return the node at a path, if it can be run."""
    scope = pond.read()
    row = scope.row(path)
    if row.entry_type is not EntryType.EXECUTABLE:
        raise PathTypeError(
            f"{path} is a {row.entry_type} and can't be run",
            path=path,
            hint="its rows are computed when they are read: pond cat"
            if row.entry_type.is_dynamic
            else "pond list-factories shows what makes nodes that can be",
        )
    name = row.factory or ""
    default = command_of(name, pond.control.text(mode_key(name)))
    config = json.loads(row.config or "{}")
    return Runnable(pond, scope.locate(path).path, name, config, default)


def run_node(pond: Pond, path: str, command: str | None = None, **options: Any) -> NodeRun:
    """Run a node: `run_node(pond, "/ingest", dry_run=True)`."""
    return runnable(pond, path).run(command, options)

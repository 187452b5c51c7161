"""Factories, and those that do something when they are run: what a plugin is, what it is given.

They are entry points of the group `millpond.factories`. A node of the type `executable` names one
and holds its configuration; nodes under `/etc/system.d` are run after each write.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from millpond.base.errors import PluginError
from millpond.base.registry import Registry
from millpond.fs.command import check_commands
from millpond.fs.entry import EntryType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.command import NodeCommand

OFF: Final = "off"
"""The mode in which a factory is not run after commits."""
FACTORIES: Registry[Any] = Registry(group="millpond.factories")


class Run(Protocol):
    """One run of a factory: where it stands, what it is to do, and its way into the pond."""

    @property
    def path(self) -> str:
        """The node."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        ...

    @property
    def command(self) -> str:
        """The name of one of the factory's commands."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The values of the command's options and arguments; after a commit their defaults."""
        ...

    @property
    def parent_txn_seq(self) -> int | None:
        """The transaction after which it runs; None if a person runs it."""
        ...

    @property
    def variables(self) -> Mapping[str, str]:
        """What `-v key=value` says."""
        ...

    def tell(self, message: str) -> None:
        """Say what was done: `pond run` shows it, after commits it is logged."""
        ...

    def read(self) -> Any:
        """A scope that reads the pond, with that transaction in it."""
        ...

    def write(self, message: str | None = None) -> Any:
        """A transaction of its own; nothing runs after it."""
        ...


@runtime_checkable
class Factory(Protocol):
    """What every factory can do: say whether a configuration is one."""

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration as it is to be stored; ConfigError names the member that is wrong."""
        ...


@runtime_checkable
class Executable(Factory, Protocol):
    """A factory that can be run."""

    @property
    def commands(self) -> tuple[NodeCommand, ...]:
        """What it can be told to do. The first is usual; `factory.NAME.mode` names another."""
        ...

    def run(self, run: Run) -> object:
        """Do it. What it raises is recorded, and undoes nothing.

        What a command that reports returns is shown: a mapping, or a list of mappings.
        """
        ...


def factory(name: str) -> Factory:
    """The factory of a name."""
    found = FACTORIES.get(name)
    try:
        made = found() if isinstance(found, type) else found
    except Exception as error:
        raise _unfit(name, f"can't be made: {error}", "its class takes no arguments") from error
    if not isinstance(made, Factory):
        raise _unfit(name, "is no factory", "it needs check()")
    return made


def executable(name: str) -> Executable:
    """The factory of a name, if it can be run."""
    found = factory(name)
    if not isinstance(found, Executable):
        raise _unfit(name, "can't be run", "it needs commands and run()")
    try:
        check_commands(found.commands)
    except ValueError as error:
        raise _unfit(name, f"can't be run: {error}", "see millpond.fs.command") from None
    return found


def command_of(name: str, mode: str | None) -> NodeCommand:
    """Return the command that a node of a factory runs when none is named."""
    commands = executable(name).commands
    return next((each for each in commands if each.name == mode), commands[0])


def kind_of(name: str) -> EntryType:
    """What a node of a factory is."""
    found = factory(name)
    kind: object = getattr(found, "kind", EntryType.EXECUTABLE)
    if not isinstance(kind, EntryType) or not kind.is_dynamic:
        raise _unfit(name, f"makes no nodes: {kind!r}", "its kind is one of EntryType.DYNAMIC_…")
    if kind is EntryType.EXECUTABLE:
        executable(name)
    return kind


def config_text(name: str, config: Mapping[str, Any]) -> str:
    """A configuration as a node holds it, once the factory has found it good."""
    found = factory(name)
    return json.dumps(dict(found.check(config)), sort_keys=True, separators=(",", ":"))


def _unfit(name: str, what: str, hint: str) -> PluginError:
    return PluginError(
        f"{name!r} of {FACTORIES.group} {what}", group=FACTORIES.group, name=name, hint=hint
    )

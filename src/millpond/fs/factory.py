"""Factories that do something when they are run: what a plugin is, and what it is given.

They are entry points of the group `millpond.factories`. A node of the type `executable` names one
and holds its configuration; nodes under `/etc/system.d` are run after each write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from millpond.base.errors import PluginError
from millpond.base.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    def mode(self) -> str:
        """One of the factory's modes."""
        ...

    @property
    def args(self) -> tuple[str, ...]:
        """What a person gave on the command line; nothing after a commit."""
        ...

    @property
    def parent_txn_seq(self) -> int | None:
        """The transaction after which it runs; None if a person runs it."""
        ...

    def read(self) -> Any:
        """A scope that reads the pond, with that transaction in it."""
        ...

    def write(self, message: str | None = None) -> Any:
        """A transaction of its own; nothing runs after it."""
        ...


@runtime_checkable
class Executable(Protocol):
    """A factory that can be run."""

    @property
    def modes(self) -> tuple[str, ...]:
        """What it can be told to do after commits, by `factory.NAME.mode`; the first is usual."""
        ...

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration as it is to be stored; ConfigError names the member that is wrong."""
        ...

    def run(self, run: Run) -> None:
        """Do it. What it raises is recorded, and undoes nothing."""
        ...


def executable(name: str) -> Executable:
    """The factory of a name, if it can be run."""
    found = FACTORIES.get(name)
    if isinstance(found, type):
        found = found()
    if not isinstance(found, Executable):
        raise PluginError(
            f"the factory {name!r} can't be run",
            group=FACTORIES.group,
            name=name,
            hint="it needs modes, check() and run()",
        )
    return found

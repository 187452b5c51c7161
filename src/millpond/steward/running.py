"""`run_node`: a person runs an executable node; its writes are ordinary transactions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.base.errors import ConfigError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.factory import OFF, executable
from millpond.steward.control.settings import mode_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    mode: str
    args: tuple[str, ...] = ()
    parent_txn_seq: int | None = None
    told: list[str] = field(default_factory=list)
    """What the factory said."""

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


def run_node(
    pond: Pond, path: str, *, mode: str | None = None, args: Sequence[str] = ()
) -> NodeRun:
    """Run a node; what it raises is for the caller."""
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
    found = executable(name)
    said = pond.control.text(mode_key(name))
    chosen = mode or (said if said not in (None, OFF) else None) or found.modes[0]
    if chosen not in found.modes:
        raise ConfigError(
            f"{name} has no mode {chosen!r}", hint=f"its modes are {', '.join(found.modes)}"
        )
    config = json.loads(row.config or "{}")
    made = NodeRun(pond, scope.locate(path).path, name, config, chosen, tuple(args))
    found.run(made)
    return made

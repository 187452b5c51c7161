"""What factories are beside executable ones: tables, series, files, directories, transforms.

They are entry points of the group `millpond.factories`, found by `fs.factory`. A configuration is
checked by a pydantic model when a node is made; `${env:NAME}` and `{{ name }}` in it are filled in
whenever it is used, and never stored.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from millpond.base.errors import PluginError
from millpond.fs.entry import EntryType
from millpond.fs.factory import FACTORIES, factory
from millpond.provider.expand import expanded, has_references
from millpond.provider.mistakes import UNKNOWN, mistakes, wrong_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.node import Plan
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

Creates: TypeAlias = Literal["table", "series", "file", "directory", "executable", "transform"]

KINDS: Mapping[Creates, EntryType] = {
    "table": EntryType.DYNAMIC_TABLE,
    "series": EntryType.DYNAMIC_SERIES,
    "file": EntryType.DYNAMIC_FILE,
    "directory": EntryType.DYNAMIC_DIRECTORY,
    "executable": EntryType.EXECUTABLE,
    "transform": EntryType.DYNAMIC_FILE,
}


class Config(BaseModel):
    """What every configuration is: unknown members are refused, and it does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


C = TypeVar("C", bound=Config)


@dataclass(frozen=True, slots=True)
class Entry:
    """A node that is computed: what it is, and how its content is had. One of the three is set."""

    kind: EntryType
    factory: str
    identity: str
    """Beside its name, what tells it from others: its configuration."""
    rows: Callable[[], Rows] | None = field(default=None, compare=False)
    content: Callable[[], bytes] | None = field(default=None, compare=False)
    entries: Callable[[], Mapping[str, Entry]] | None = field(default=None, compare=False)


class ConfiguredFactory(Generic[C]):
    """The base of factories: a model of the configuration."""

    name: ClassVar[str] = ""
    """As in `millpond.factories`."""
    creates: ClassVar[Creates]
    model: type[C]
    summary: ClassVar[str] = ""
    """One line for `pond list-factories`."""

    @property
    def kind(self) -> EntryType:
        """What a node of it is."""
        return KINDS[self.creates]

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration as it is stored; a mistake is an error that names the member."""
        filled = expanded(config, {}, strict=False)
        try:
            self.model.model_validate(filled)
        except ValidationError as error:
            found = [
                each
                for each in mistakes(error)
                if each["type"] == UNKNOWN or not _is_open(filled, each["loc"])
            ]
            if found:
                raise wrong_config(found, self.model, self.name) from None
        return config

    def parse(self, config: Mapping[str, Any], variables: Mapping[str, str]) -> C:
        """The configuration with what it refers to filled in; what is missing is an error."""
        filled = expanded(config, variables)
        try:
            return self.model.model_validate(filled)
        except ValidationError as error:
            raise wrong_config(mistakes(error), self.model, self.name) from None


class NodeFactory(ConfiguredFactory[C], ABC):
    """A factory whose nodes are computed."""

    @abstractmethod
    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """The node of a configuration."""


class RowsFactory(NodeFactory[C]):
    """A factory whose nodes are tables or series, each with one configuration."""

    @abstractmethod
    def rows(self, config: C, reading: Reading) -> Rows:
        """The rows of a node; nothing is read before they are asked for."""

    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """The node of a configuration."""
        del name
        parsed = self.parse(config, reading.variables)
        said = json.dumps(config, sort_keys=True, default=str)
        return Entry(KINDS[self.creates], self.name, said, rows=lambda: self.rows(parsed, reading))


def _is_open(config: Any, place: Sequence[str | int]) -> bool:
    """Whether a mistake may vanish when references are filled in that can't be yet."""
    for part in place:
        inside = isinstance(config, dict) and part in config
        inside |= isinstance(config, list) and isinstance(part, int) and part < len(config)
        if not inside:
            break
        config = config[part]
    return has_references(config) and (isinstance(config, str) or not place)


class TransformFactory(NodeFactory[C]):
    """A factory whose nodes change rows on their way: named in `transforms:` of others."""

    creates: ClassVar[Creates] = "transform"

    @abstractmethod
    def transform(self, plan: Plan, config: C) -> Plan:
        """The rows, changed."""


def node_factory(name: str) -> NodeFactory[Any]:
    """The factory of a name, if it makes nodes that are computed."""
    found = factory(name)
    if not isinstance(found, NodeFactory):
        raise PluginError(
            f"{name!r} of {FACTORIES.group} makes no nodes that are computed",
            group=FACTORIES.group,
            name=name,
            hint="it can be run: pond run PATH",
        )
    return found


def transform_factory(name: str) -> TransformFactory[Any]:
    """The factory of a name, if it is a transform."""
    found = factory(name)
    if not isinstance(found, TransformFactory):
        raise PluginError(
            f"{name!r} of {FACTORIES.group} is no transform",
            group=FACTORIES.group,
            name=name,
            hint="transforms are made by column-rename, or by plugins",
        )
    return found

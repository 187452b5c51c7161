"""`dynamic-dir`: a directory of nodes of factories, which may refer to each other relatively.

factory: dynamic-dir
config:
  entries:
    - name: both
      factory: sql-derived-series
      config: {patterns: {raw: "series:///../raw"}, query: "SELECT * FROM raw"}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from millpond.base.errors import FactoryConfigError, PathSyntaxError
from millpond.fs.entry import EntryType
from millpond.fs.factory import factory, kind_of
from millpond.fs.paths import check_name, child
from millpond.provider.expand import has_references
from millpond.provider.factory import KINDS, Config, Creates, Entry, NodeFactory, node_factory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.provider.reading import Reading


class EntryConfig(Config):
    """One node of the directory."""

    name: str
    factory: str
    config: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        try:
            return check_name(name, path=f"/{name}")
        except PathSyntaxError as error:
            raise ValueError(error.message) from None


class DynamicDirConfig(Config):
    """The nodes."""

    entries: list[EntryConfig]

    @field_validator("entries")
    @classmethod
    def _are_different(cls, entries: list[EntryConfig]) -> list[EntryConfig]:
        names = [entry.name for entry in entries]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there are two entries {twice!r}")
        return entries


class DynamicDir(NodeFactory[DynamicDirConfig]):
    """The factory."""

    name = "dynamic-dir"
    creates: ClassVar[Creates] = "directory"
    model = DynamicDirConfig
    summary = "a directory of computed nodes that refer to each other"

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Its own members, and the configuration of each entry."""
        super().check(config)
        for number, given in enumerate(config["entries"]):
            if has_references({**given, "config": None}):
                continue  # which factory it is, is not known yet
            entry = EntryConfig.model_validate(given)
            try:
                factory(entry.factory).check(entry.config)
            except FactoryConfigError as error:
                place = ("entries", number, "config", *error.place)
                raise FactoryConfigError(
                    f"entries.{number} ({entry.name}): {error.message}",
                    place=place,
                    hint=error.hint,
                ) from None
        return config

    def parse(self, config: Mapping[str, Any], variables: Mapping[str, str]) -> DynamicDirConfig:
        """The entries; what their configurations refer to is filled in by their own factories."""
        bare = [{**given, "config": {}} for given in config["entries"]]
        parsed = super().parse({**config, "entries": bare}, variables)
        pairs = zip(parsed.entries, config["entries"], strict=True)
        entries = [
            entry.model_copy(update={"config": given.get("config") or {}}) for entry, given in pairs
        ]
        return parsed.model_copy(update={"entries": entries})

    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """The directory."""
        del name
        parsed = self.parse(config, reading.variables)

        def entries() -> dict[str, Entry]:
            return {each.name: _entry(each, reading) for each in parsed.entries}

        said = json.dumps(config, sort_keys=True)
        return Entry(KINDS[self.creates], "dynamic-dir", said, entries=entries)


def _entry(given: EntryConfig, reading: Reading) -> Entry:
    if kind_of(given.factory) is EntryType.EXECUTABLE:
        raise FactoryConfigError(
            f"{given.name}: {given.factory} is to be run, and can't be in a directory of nodes",
            hint="make it a node of its own: pond mknod",
        )
    made = node_factory(given.factory)
    return made.entry(given.name, given.config, reading.at(child(reading.path, given.name)))

"""`template`: files that are rendered with Jinja2, one for each group of paths.

    factory: template
    config:
      in_pattern: series:///sensors/*
      out_pattern: $0.html
      template_file: /templates/sensor.html

Matches whose `out_pattern` comes out the same are the inputs of one file. What a file holds
depends on the configuration, its inputs and its template, and on nothing else.
"""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from jinja2 import TemplateNotFound
from pydantic import model_validator

from millpond.base.errors import FactoryConfigError, PathNotFoundError
from millpond.fs.entry import EntryType
from millpond.fs.paths import split
from millpond.provider.factory import KINDS, Config, Creates, Entry, NodeFactory
from millpond.provider.folders import folders
from millpond.provider.outpaths import OutPattern, out_path
from millpond.provider.patterns import PatternUrl
from millpond.provider.templating.inputs import Input
from millpond.provider.templating.jinja import check_syntax, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.provider.reading import Match, Reading

NAME: Final = "template"


class TemplateConfig(Config):
    """What files are about, how they are named, and their template: a path, or the text itself."""

    in_pattern: PatternUrl
    out_pattern: OutPattern
    template_file: str | None = None
    template: str | None = None

    @model_validator(mode="after")
    def _has_one(self) -> TemplateConfig:
        if (self.template_file is None) == (self.template is None):
            raise ValueError("it needs template_file, a path, or template, a text, and not both")
        return self


class Template(NodeFactory[TemplateConfig]):
    """The factory."""

    name = NAME
    creates: ClassVar[Creates] = "directory"
    model = TemplateConfig
    summary = "files rendered from a template, one for each group of paths"

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Its members, and whether the text is a template."""
        super().check(config)
        if config.get("template") is not None:
            try:
                check_syntax(config["template"])
            except ValueError as error:
                raise FactoryConfigError(
                    f"template: {error}", place=("template",), hint="mend that line of it"
                ) from None
        return config

    def parse(self, config: Mapping[str, Any], variables: Mapping[str, str]) -> TemplateConfig:
        """The configuration; `{{ … }}` in the text of a template is for Jinja."""
        text = config.get("template")
        if text is None:
            return super().parse(config, variables)
        parsed = super().parse({**config, "template": ""}, variables)
        return parsed.model_copy(update={"template": text})

    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """A directory with the files."""
        del name
        parsed = self.parse(config, reading.variables)
        said = json.dumps(config, sort_keys=True)
        return Entry(
            KINDS[self.creates], NAME, said, entries=lambda: _directory(parsed, said, reading)
        )


def _directory(config: TemplateConfig, said: str, reading: Reading) -> Mapping[str, Entry]:
    groups: dict[str, list[Match]] = {}
    for match in sorted(reading.match(config.in_pattern), key=lambda match: match.path):
        groups.setdefault(out_path(config.out_pattern, match), []).append(match)
    leaves = {out: _leaf(config, said, out, found, reading) for out, found in groups.items()}
    return folders(leaves, factory=NAME, identity=said)


def _leaf(
    config: TemplateConfig, said: str, out: str, matches: Sequence[Match], reading: Reading
) -> Entry:
    here = reading.at(f"{reading.path}/{out}")
    return Entry(
        EntryType.DYNAMIC_FILE,
        NAME,
        f"{said} {out}",
        content=lambda: _rendered(config, matches, reading, here),
    )


def _rendered(
    config: TemplateConfig, matches: Sequence[Match], reading: Reading, here: Reading
) -> bytes:
    """The file; `reading` is the node's, from which relative paths lead, `here` the file's own."""
    exported = _Urls(here)
    inputs = [
        Input(here, config.in_pattern, match, exported.files(match.path)) for match in matches
    ]
    values = {
        "captures": matches[0].captures,
        "exported": exported.all(),
        "inputs": inputs,
        "name": split(here.path)[1],
        "path": here.path,
        "variables": dict(here.variables),
    }
    text = config.template
    name = f"{reading.path} (template)" if text is not None else _file(config, reading).path

    def source(wanted: str) -> str:
        return text if text is not None and wanted == name else _text(wanted, here)

    return render(name, source, values, out=here.path)


def _file(config: TemplateConfig, reading: Reading) -> Match:
    path = config.template_file or ""
    found = reading.match(path)
    if len(found) != 1:
        said = f"there are {len(found)} templates" if found else "there is no template"
        raise PathNotFoundError(
            f"{said} {path}, which {reading.path} names",
            path=reading.path,
            hint="template_file is the path of one file",
        )
    return found[0]


def _text(path: str, here: Reading) -> str:
    """The text of a template of the pond."""
    found = here.match(path) if path.startswith("/") else []
    if len(found) != 1:
        raise TemplateNotFound(path)
    try:
        return here.content(found[0]).decode()
    except UnicodeDecodeError as error:
        raise FactoryConfigError(
            f"it is no text in UTF-8: {error.reason} at byte {error.start}",
            file=path,
            hint="store it as UTF-8",
        ) from error


class _Urls:
    """Where an export has put paths, as URLs relative to a file of it."""

    def __init__(self, here: Reading) -> None:
        self._exported = here.exported
        own = self._exported.get(here.path)
        self._base = "" if own is None else posixpath.dirname(own.place)

    def all(self) -> dict[str, str]:
        """The URL of each path; that of a directory ends with a slash."""
        return {path: self._url(found.place) for path, found in self._exported.items()}

    def files(self, path: str) -> list[str]:
        """The URLs of all files of a path."""
        found = self._exported.get(path)
        return [] if found is None else [self._url(file) for file in found.files]

    def _url(self, place: str) -> str:
        end = "/" if place.endswith("/") else ""
        return quote(posixpath.relpath(place, self._base or "."), safe="/=") + end

"""YAML with places: each member of a configuration is known by file and line, for errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from millpond.base.errors import FactoryConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: what it says, and on which line each member stands."""

    value: Any
    file: str
    lines: dict[Place, int] = field(default_factory=dict, repr=False)

    def error(
        self, message: str, place: Place = (), *, hint: str | None = None
    ) -> FactoryConfigError:
        """An error about a member, or about the nearest one above it that is there."""
        line = next((self.lines[place[:n]] for n in range(len(place), -1, -1)
                     if place[:n] in self.lines), None)  # fmt: skip
        return FactoryConfigError(message, place=place, file=self.file, line=line, hint=hint)

    def located(self, error: FactoryConfigError, *above: str | int) -> FactoryConfigError:
        """An error about a configuration, with the place where it stands in the file."""
        return self.error(error.message, (*above, *error.place), hint=error.hint)


class _Loader(yaml.SafeLoader):
    """YAML without surprises: a key stands once, and times stay as they are written."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(text: str, file: str) -> list[Document]:
    """All documents of a YAML text; empty ones are left out."""
    found: list[Document] = []
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                lines = dict(_lines(node, (), file))
                found.append(Document(loader.construct_document(node), file, lines))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise FactoryConfigError(
            f"this is no YAML: {what}",
            file=file,
            line=None if mark is None else mark.line + 1,
            hint="indent with spaces, and quote texts that hold : or #",
        ) from None
    finally:
        loader.dispose()
    return [document for document in found if document.value is not None]


def _lines(node: yaml.Node, place: Place, file: str) -> Iterator[tuple[Place, int]]:
    todo: list[tuple[yaml.Node, Place]] = [(node, place)]
    while todo:
        node, place = todo.pop()
        yield place, node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            todo += [(part, (*place, number)) for number, part in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in seen:
                    raise FactoryConfigError(
                        f"{name!r} stands twice",
                        place=(*place, name),
                        file=file,
                        line=key.start_mark.line + 1,
                        hint="keep one of them",
                    )
                seen.add(name)
                todo.append((value, (*place, name)))


def read_document(text: str, file: str) -> Document:
    """The one document of a YAML text, which is a mapping."""
    found = read_documents(text, file)
    if len(found) != 1 or not isinstance(found[0].value, dict):
        raise FactoryConfigError(
            f"one mapping is wanted, this has {len(found)} documents"
            if len(found) != 1
            else "a mapping is wanted: name: value",
            file=file,
            line=1,
            hint="pond apply -f takes files of several documents",
        )
    return found[0]

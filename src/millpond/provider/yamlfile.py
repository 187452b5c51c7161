"""YAML with places: each member of a configuration is known by file and line, for errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from millpond.base.errors import FactoryConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]
MOST_MEMBERS: Final = 100_000
"""So many a document may have once its aliases are written out; more are a mistake, or malice."""


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
    """YAML without surprises: a key stands once, times stay as they are written, all is JSON."""


_PLAIN: Final = ("null", "bool", "int", "float", "str", "seq", "map")
_Loader.yaml_constructors = {
    tag: made
    for tag, made in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in _PLAIN
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decoded(data: bytes, file: str) -> str:
    """The text of a file, which is in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise FactoryConfigError(
            f"it is no text in UTF-8: {error.reason} at byte {error.start}",
            file=file,
            line=data.count(b"\n", 0, error.start) + 1,
            hint="save it as UTF-8"
            + (": iconv -f UTF-16 -t UTF-8 FILE > OTHER" if is_utf16 else ", without other bytes"),
        ) from None


def read_documents(text: str, file: str) -> list[Document]:
    """All documents of a YAML text; empty ones are left out."""
    try:
        found = list(_documents(text, file))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise FactoryConfigError(
            f"this is no YAML: {what}",
            file=file,
            line=None if mark is None else mark.line + 1,
            hint="indent with spaces, and quote texts that hold : or #",
        ) from None
    except RecursionError:
        raise FactoryConfigError(
            "it is nested too deeply",
            file=file,
            line=1,
            hint="a configuration is a few levels deep",
        ) from None
    return [document for document in found if document.value is not None]


def _documents(text: str, file: str) -> Iterator[Document]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                _check_aliases(node, file)
                lines = dict(_lines(node, (), file))
                yield Document(_value(loader, node, file), file, lines)
    finally:
        loader.dispose()


def _value(loader: _Loader, node: yaml.Node, file: str) -> Any:
    try:
        return loader.construct_document(node)
    except (ValueError, KeyError) as error:  # `!!int x`, `!!bool x`
        raise FactoryConfigError(
            f"this is no YAML: a tag does not fit its value: {error}",
            file=file,
            line=node.start_mark.line + 1,
            hint="leave out tags such as !!int, and quote texts",
        ) from None


def _check_aliases(root: yaml.Node, file: str) -> None:
    """Refuse aliases that would never end, or that stand for more than anybody could have meant."""
    sizes: dict[int, int] = {}
    above: set[int] = set()
    todo = [(root, False)]
    while todo:
        node, is_done = todo.pop()
        if is_done:
            above.remove(id(node))
            size = sizes[id(node)] = 1 + sum(sizes[id(part)] for part in _parts(node))
            if size > MOST_MEMBERS:
                raise _unfit(
                    f"with its aliases written out this has more than {MOST_MEMBERS:,} members",
                    node,
                    file,
                    hint="use fewer aliases (*name), or several files",
                )
        elif id(node) not in sizes:
            above.add(id(node))
            todo.append((node, True))
            for part in _parts(node):
                if id(part) in above:
                    raise _unfit(
                        "an alias in this stands for what it is part of",
                        part,
                        file,
                        hint="an alias (*name) stands for something that ended before it",
                    )
                todo.append((part, False))


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _unfit(message: str, node: yaml.Node, file: str, *, hint: str) -> FactoryConfigError:
    return FactoryConfigError(message, file=file, line=node.start_mark.line + 1, hint=hint)


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

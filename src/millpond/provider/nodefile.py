"""What `pond mknod` and `pond apply` read: which node is to be made, of which factory, and how.

path: /derived/weir          apply alone; mknod is told the path
factory: temporal-reduce
config: {...}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import FactoryConfigError, PluginError
from millpond.fs.factory import FACTORIES, factory
from millpond.provider.yamlfile import Document, read_document, read_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEMBERS = ("factory", "config", "path")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node that is to be made; its configuration was found good."""

    factory: str
    config: Mapping[str, Any]
    path: str | None = None


def read_node(text: str, file: str) -> NodeSpec:
    """A file with `factory:` and `config:`."""
    return _spec(read_document(text, file), with_path=False)


def read_config(text: str, file: str, factory_name: str) -> NodeSpec:
    """A file with the bare configuration of a factory."""
    document = read_document(text, file)
    return _checked(factory_name, document.value, document)


def read_nodes(text: str, file: str) -> list[NodeSpec]:
    """A file of any number of nodes, each with its path."""
    found = [_spec(document, with_path=True) for document in read_documents(text, file)]
    if not found:
        raise FactoryConfigError(
            "there is nothing in it", file=file, hint="path:, factory:, config:"
        )
    return found


def _spec(document: Document, *, with_path: bool) -> NodeSpec:
    given = document.value
    if not isinstance(given, dict):
        raise document.error("a mapping is wanted", hint="factory: …, config: …")
    members = _MEMBERS if with_path else _MEMBERS[:2]
    for name in given:
        if name not in members:
            raise document.error(
                f"there is no member {name!r}",
                (str(name),),
                hint=f"members are {', '.join(members)}",
            )
    for name in ("factory", *members[2:]):
        if not isinstance(given.get(name), str):
            raise document.error(f"{name} is missing, or no text", (name,), hint=f"{name}: …")
    config = given.get("config") or {}
    if not isinstance(config, dict):
        raise document.error(
            "config is not a mapping",
            ("config",),
            hint="config: {member: value, …}; pond list-factories shows the members",
        )
    return _checked(given["factory"], config, document, "config", path=given.get("path"))


def _checked(
    name: str, config: Any, document: Document, *above: str, path: str | None = None
) -> NodeSpec:
    try:
        stored = factory(name).check(config)
    except FactoryConfigError as error:
        raise document.located(error, *above) from None
    except PluginError as error:
        if name in FACTORIES.names():
            raise
        raise document.error(error.message, ("factory",), hint=error.hint) from None
    return NodeSpec(name, stored, path)

"""The content root: one hash over the names, types and contents of everything that is in a pond.

Ponds with the same content have the same root, however they came to it: versions, times, ids,
transactions and the layout of files do not count. Every change of content changes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from millpond.base.errors import PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.paths import child
from millpond.plan.types import List, Map, Struct
from millpond.steward.keeping.rowhash import rows_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.fs.entry import Row
    from millpond.plan.types import DataType
    from millpond.steward.scope import Scope

OWN_ATTRIBUTES: Final = "millpond."
"""What begins like this says how a node came to be what it is, which does not count."""


def content_root(scope: Scope, path: str = "/") -> str:
    """The root of a pond, or of what is at a path of it, in hexadecimal digits."""
    top = scope.locate(path, follow=False)
    if top.row is not None and top.entry_type is not EntryType.DIRECTORY:
        return _node(scope, path, top.row).hex()
    done: dict[str, bytes] = {}
    for place, node_id in _directories(scope, path, top.node_id):
        members = []
        for name, row in scope.tree.children(node_id).items():
            at = child(place, name)
            members.append((name, done.pop(at) if at in done else _node(scope, at, row)))
        done[place] = _directory(members)
    return done[path].hex()


def _directories(scope: Scope, path: str, node_id: str) -> Iterator[tuple[str, str]]:
    """All directories, those further down first."""
    found, todo = [], [(path, node_id)]
    while todo:
        place, part = todo.pop()
        found.append((place, part))
        for name, row in scope.tree.children(part).items():
            if row.entry_type is EntryType.DIRECTORY:
                todo.append((child(place, name), row.node_id))
    yield from reversed(found)


def _directory(members: list[tuple[str, bytes]]) -> bytes:
    ordered = sorted((name.encode(), digest) for name, digest in members)
    return _joined(b"directory", *(part for member in ordered for part in member))


def _node(scope: Scope, path: str, row: Row) -> bytes:
    """The hash of a node that is no directory, with what its row says beside the content."""
    facts = {
        "time_column": row.time_column,
        "min_override": row.min_override,
        "max_override": row.max_override,
        "factory": row.factory,
        "config": None if row.config is None else json.loads(row.config),
        "attributes": _attributes(row.attributes) or None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    text = json.dumps(known, sort_keys=True).encode() if known else b""
    return _joined(row.entry_type.value.encode(), _content(scope, path, row), text)


def _attributes(found: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in found.items() if not name.startswith(OWN_ATTRIBUTES)}


def _content(scope: Scope, path: str, row: Row) -> bytes:
    if row.entry_type is EntryType.SYMLINK:
        return scope.tree.content(row) or b""
    if row.entry_type is EntryType.DATA and row.blake3 is not None:
        return bytes.fromhex(row.blake3)
    if row.entry_type.is_bytes:
        hasher = blake3()
        for chunk in scope.read_chunks(path):
            hasher.update(chunk)
        return hasher.digest()
    if row.entry_type.is_table:
        table = scope.table_of(row)
        columns = [[field.name, _shape(field.type)] for field in table.schema]
        rows = rows_digest(table.scan().to_batches(engine="arrow"))
        return _joined(json.dumps(columns).encode(), rows)
    if row.entry_type.is_dynamic:
        return b""  # its configuration is all that is stored
    raise PathTypeError(f"{path} is a {row.entry_type}, whose content is not known", path=path)


def _shape(type_: DataType) -> object:
    """A type without what it forbids: whether nulls may be there is not content."""
    if isinstance(type_, Struct):
        return {"struct": [[field.name, _shape(field.type)] for field in type_]}
    if isinstance(type_, List):
        return {"list": _shape(type_.element)}
    if isinstance(type_, Map):
        return {"map": [_shape(type_.key), _shape(type_.value)]}
    return str(type_)


def _joined(*parts: bytes) -> bytes:
    """The hash of parts, each with its length, so that no two lists of them look alike."""
    hasher = blake3()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.digest()

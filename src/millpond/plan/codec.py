"""Plans and bound expressions as JSON and back, and the digest that identifies them.

The wire form is a flat list of nodes that refer to each other by number, so depth does not matter
and shared parts stay shared. Fields are read off the dataclasses: a new node needs nothing here.

    {"millpond": 1, "nodes": [{"$": "Scan", …}, {"$": "Filter", "input": {"#": 0}, …}], "root": 1}
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from millpond.base.errors import PlanError
from millpond.plan.plugins import ROW_FILTERS, STATEFUL_FUNCTIONS
from millpond.plan.tree import Tree
from millpond.plan.typejson import type_from_dict, type_to_dict
from millpond.plan.types import Decimal, List, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 1
_TYPES = (Primitive, Decimal, Struct, List, Map)


def dumps(tree: Tree) -> str:
    """A plan or bound expression as JSON text."""
    numbers: dict[int, int] = {}
    nodes: list[Any] = []
    for node in _everything(tree):
        encoded = _encode_fields(node, lambda child: {"#": numbers[id(child)]})
        numbers[id(node)] = len(nodes)
        nodes.append(encoded)
    document = {"millpond": VERSION, "nodes": nodes, "root": numbers[id(tree)]}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=True)


def loads(text: str) -> Any:
    """Read back what `dumps` wrote; every node is checked again as it is built."""
    try:
        document = json.loads(text)
        version, encoded, root = document["millpond"], document["nodes"], document["root"]
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"this is not a plan: {error}") from error
    if version != VERSION:
        raise PlanError(f"a plan of version {version} can't be read, only of version {VERSION}")
    nodes: list[Any] = []
    for item in encoded:
        nodes.append(_decode(item, nodes))
    return nodes[root]


def compute_digest(tree: Tree) -> bytes:
    """A digest of the content; parts that have theirs already are not read again."""
    for node in _everything(tree, skip=lambda node: hasattr(node, "_digest")):
        encoded = _encode_fields(node, lambda child: {"#": child.digest.hex()})
        text = json.dumps(encoded, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        object.__setattr__(node, "_digest", digest)
    return tree._digest  # noqa: SLF001


def expressions_of(node: Tree) -> Iterator[str]:
    """The names of the functions that a node's own expressions call."""
    from millpond.plan.bound import BoundCall, BoundExpr
    from millpond.plan.tree import topological

    for reference in _references(node):
        if isinstance(reference, BoundExpr):
            for part in topological(reference):
                if isinstance(part, BoundCall):
                    yield part.function


def _everything(root: Tree, skip: Callable[[Tree], bool] = lambda _: False) -> list[Tree]:
    """Every plan and expression below, each once, what is referred to before what refers."""
    order: list[Tree] = []
    done: set[int] = set()
    stack: list[tuple[Tree, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if id(node) in done or skip(node):
            continue
        if expanded:
            done.add(id(node))
            order.append(node)
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(list(_references(node))))
    return order


def _references(node: Tree) -> Iterator[Tree]:
    for field in fields(node):  # type: ignore[arg-type]
        yield from _references_in(getattr(node, field.name))


def _references_in(value: Any) -> Iterator[Tree]:
    if isinstance(value, Tree):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _references_in(item)
    elif (
        is_dataclass(value) and not isinstance(value, _TYPES) and type(value).__name__ in _classes()
    ):
        for field in fields(value):
            yield from _references_in(getattr(value, field.name))


def _encode_fields(value: Any, refer: Callable[[Tree], Any]) -> dict[str, Any]:
    encoded: dict[str, Any] = {"$": type(value).__name__}
    for field in fields(value):
        encoded[field.name] = _encode(getattr(value, field.name), refer)
    return encoded


def _encode(value: Any, refer: Callable[[Tree], Any]) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Tree):
        return refer(value)
    if isinstance(value, _TYPES):
        return {"$type": type_to_dict(value)}
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else {"$int": str(value)}
    if isinstance(value, float):
        return {"$float": value.hex()}
    if isinstance(value, tuple):
        return [_encode(item, refer) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, decimal.Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, dt.date):
        return {"$date": value.isoformat()}
    if type(value).__name__ in _classes() and is_dataclass(value):
        return _encode_fields(value, refer)
    return _encode_foreign(value)


def _encode_foreign(value: Any) -> Any:
    from millpond.plan.python import RowFilter, StatefulDefinition

    if type(value).__module__.partition(".")[0] == "pyarrow":
        return {"$arrow": base64.b64encode(_table_bytes(value)).decode()}
    if isinstance(value, RowFilter):
        return {"$row_filter": value.name, "config": dict(value.config)}
    if isinstance(value, StatefulDefinition):
        return {"$stateful": value.name, "config": dict(value.config)}
    raise PlanError(f"a {type(value).__name__} can't be part of a plan")


def _decode(value: Any, nodes: list[Any]) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item, nodes) for item in value)
    if not isinstance(value, dict):
        return value
    if "$" in value:
        cls = _classes().get(value["$"])
        if cls is None:
            raise PlanError(f"unknown part of a plan: {value['$']!r}")
        given = {k: _decode(v, nodes) for k, v in value.items() if k != "$"}
        try:
            return cls(**given)
        except TypeError as error:
            raise PlanError(f"a {value['$']} does not look like this: {error}") from error
    kind = next(iter(value), "")
    reader = _READERS.get(kind)
    if reader is None:
        raise PlanError(f"unknown part of a plan: {kind!r}")
    return nodes[value["#"]] if kind == "#" else reader(value)


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "#": lambda v: v,
    "$type": lambda v: type_from_dict(v["$type"]),
    "$int": lambda v: int(v["$int"]),
    "$float": lambda v: float.fromhex(v["$float"]),
    "$bytes": lambda v: base64.b64decode(v["$bytes"]),
    "$decimal": lambda v: decimal.Decimal(v["$decimal"]),
    "$datetime": lambda v: dt.datetime.fromisoformat(v["$datetime"]),
    "$date": lambda v: dt.date.fromisoformat(v["$date"]),
    "$arrow": lambda v: _table_from(base64.b64decode(v["$arrow"])),
    "$row_filter": lambda v: ROW_FILTERS.get(v["$row_filter"])(**v["config"]),
    "$stateful": lambda v: STATEFUL_FUNCTIONS.get(v["$stateful"])(**v["config"]),
}


def _table_bytes(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _table_from(data: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@cache
def _classes() -> dict[str, Any]:
    """Every class that can stand in a plan, by name."""
    from millpond.plan import aggregates, bound, paths, sources, streams
    from millpond.plan.node import NODES

    parts = (
        *(paths.Name, paths.Index, paths.Each),
        *(bound.BoundPath, bound.BoundLiteral, bound.BoundCall, bound.BoundCast),
        *(bound.BoundParseJson, bound.BoundQuantifier, bound.BoundSortKey, bound.BoundNamed),
        *(aggregates.BoundMeasure, streams.StatefulMapping, streams.WindowCall),
        *(sources.File, sources.ColumnStats, sources.CsvOptions),
    )
    import millpond.plan.order
    import millpond.plan.rows  # noqa: F401

    return {**{cls.__name__: cls for cls in parts}, **NODES}

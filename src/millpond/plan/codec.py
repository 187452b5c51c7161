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
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from millpond.base.errors import MillpondError, PlanError
from millpond.plan.plugins import ROW_FILTERS, STATEFUL_FUNCTIONS
from millpond.plan.tree import Tree
from millpond.plan.typejson import type_from_dict, type_to_dict
from millpond.plan.types import Decimal, List, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millpond.plan.bound import BoundExpr

VERSION = 1
_TYPES = (Primitive, Decimal, Struct, List, Map)


def dumps(tree: Tree) -> str:
    """A plan or bound expression as JSON text."""
    numbers: dict[int, int] = {}
    nodes: list[Any] = []
    wire = _Wire(lambda child: {"#": numbers[id(child)]}, _table_bytes)
    for node in _everything(tree):
        encoded = _encode_fields(node, wire)
        numbers[id(node)] = len(nodes)
        nodes.append(encoded)
    return _json({"millpond": VERSION, "nodes": nodes, "root": numbers[id(tree)]})


@dataclass(frozen=True, slots=True)
class _Wire:
    """How references and tables are written: in full on the wire, by digest in a digest."""

    refer: Callable[[Tree], Any]
    table: Callable[[Any], bytes]


def _json(document: Any) -> str:
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise PlanError(
            f"this plan can't be written: {error}",
            hint="a plugin's config has to be plain JSON data",
        ) from error


def loads(text: str) -> Any:
    """Read back what `dumps` wrote; every node is checked again as it is built."""
    try:
        document = json.loads(text)
        version, encoded, root = document["millpond"], document["nodes"], document["root"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PlanError(f"this is not a plan: {type(error).__name__}: {error}") from error
    if version != VERSION:
        raise PlanError(f"a plan of version {version} can't be read, only of version {VERSION}")
    nodes: list[Any] = []
    try:
        for item in encoded:
            nodes.append(_decode(item, nodes))
        tree = nodes[_position(root, nodes)]
    except MillpondError:
        raise
    except _BROKEN as error:
        raise PlanError(f"this is not a plan: {type(error).__name__}: {error}") from error
    if not isinstance(tree, Tree):
        raise PlanError(f"this is not a plan: its root is a {type(tree).__name__}")
    return tree


_BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    RuntimeError,
)
"""What building parts from wrong data can raise, before a part's own checks see it."""


def _position(number: Any, nodes: list[Any]) -> int:
    if type(number) is not int or not 0 <= number < len(nodes):
        raise PlanError(f"this is not a plan: there is no node #{number} before its use")
    return number


def compute_digest(tree: Tree) -> bytes:
    """A digest of the content; parts that have theirs already are not read again."""
    wire = _Wire(lambda child: {"#": child.digest.hex()}, _table_digest)
    for node in _everything(tree, skip=lambda node: hasattr(node, "_digest")):
        # A file's name may be any bytes, and Python shows such bytes as half surrogate pairs.
        text = _json(_encode_fields(node, wire)).encode("utf-8", "surrogatepass")
        object.__setattr__(node, "_digest", hashlib.blake2b(text, digest_size=16).digest())
    return tree._digest  # noqa: SLF001


def expressions_of(node: Tree) -> Iterator[str]:
    """The names of the functions that a node's own expressions call."""
    from millpond.plan.bound import BoundCall

    for part in parts_of(node):
        if isinstance(part, BoundCall):
            yield part.function


def parts_of(node: Tree) -> Iterator[BoundExpr]:
    """Every part of a node's own expressions, children first."""
    from millpond.plan import bound
    from millpond.plan.tree import topological

    for reference in _references(node):
        if isinstance(reference, bound.BoundExpr):
            yield from topological(reference)


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
    for name in _field_names(node):
        yield from _references_in(getattr(node, name))


def _references_in(value: Any) -> Iterator[Tree]:
    if isinstance(value, Tree):
        yield value
    elif isinstance(value, tuple):
        # Tuples hold things of one kind: a million files are not asked one by one.
        if value and isinstance(value[0], (tuple, Tree, *_holders())):
            for item in value:
                yield from _references_in(item)
    elif isinstance(value, _holders()):
        for name in _field_names(value):
            yield from _references_in(getattr(value, name))


@cache
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _field_names(value: Any) -> tuple[str, ...]:
    cls: Any = type(value)
    return _names_of(cls)


def _encode_fields(value: Any, wire: _Wire) -> dict[str, Any]:
    encoded: dict[str, Any] = {"$": type(value).__name__}
    for name in _field_names(value):
        encoded[name] = _encode(getattr(value, name), wire)
    return encoded


_AS_IT_IS = frozenset({str, bool, type(None)})


def _encode(value: Any, wire: _Wire) -> Any:
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if isinstance(value, Tree):
        return wire.refer(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else {"$int": str(int(value))}
    if kind is tuple:
        return [_encode(item, wire) for item in value]
    if _parts().get(kind.__name__) is kind:
        return _encode_fields(value, wire)
    if isinstance(value, _TYPES):
        return {"$type": type_to_dict(value)}
    if isinstance(value, float):
        return {"$float": value.hex()}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, decimal.Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, dt.date):
        return {"$date": value.isoformat()}
    return _encode_foreign(value, wire)


def _encode_foreign(value: Any, wire: _Wire) -> Any:
    from millpond.plan.python import RowFilter, StatefulDefinition

    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, tuple):
        return _encode(tuple(value), wire)
    if type(value).__module__.partition(".")[0] == "pyarrow":
        return {"$arrow": base64.b64encode(wire.table(value)).decode()}
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
        cls = _class_named(value["$"])
        given = {k: _decode(v, nodes) for k, v in value.items() if k != "$"}
        try:
            return cls(**given)
        except TypeError as error:
            raise PlanError(f"a {value['$']} does not look like this: {error}") from error
    kind = next(iter(value), "")
    reader = _READERS.get(kind)
    if reader is None:
        raise PlanError(f"unknown part of a plan: {kind!r}")
    return nodes[_position(value["#"], nodes)] if kind == "#" else reader(value)


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


def _table_digest(table: Any) -> bytes:
    import pyarrow as pa

    if table.num_columns:  # without columns it would lose its rows
        # `take` copies, so that slices and what lies below nulls do not show in the bytes.
        table = table.take(pa.array(range(table.num_rows), pa.int64()))
    return hashlib.blake2b(_table_bytes(table), digest_size=16).digest()


def _table_from(data: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@cache
def _parts() -> dict[str, Any]:
    """Every class that can stand in a plan beside its nodes, by name."""
    import millpond.plan.order
    import millpond.plan.rows  # noqa: F401  (both register their nodes)
    from millpond.plan import bound, expr, paths, sources

    parts = (
        *(paths.Name, paths.Index, paths.Each),
        *(bound.BoundPath, bound.BoundLiteral, bound.BoundCall, bound.BoundCast),
        *(bound.BoundParseJson, bound.BoundQuantifier),
        *(expr.PathExpr, expr.LiteralExpr, expr.CallExpr, expr.CastExpr),
        *(expr.ParseJsonExpr, expr.QuantifierExpr),
        *(sources.File, sources.ColumnStats, sources.CsvOptions),
    )
    return {cls.__name__: cls for cls in (*parts, *_holders())}


@cache
def _holders() -> tuple[type, ...]:
    """The parts of nodes that hold expressions."""
    from millpond.plan.rewrite import HOLDERS

    return HOLDERS


def _class_named(name: Any) -> Any:
    from millpond.plan.node import NODES

    # The parts first: that imports the modules of the nodes.
    found = _parts().get(name) or NODES.get(name)
    if found is None:
        raise PlanError(
            f"unknown part of a plan: {name!r}", hint="import the package that defines it"
        )
    return found

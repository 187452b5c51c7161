"""What scans decode: the leaf columns that are read, and what lets them skip row groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.plan.bound import (
    BoundCall,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    conjoin,
    conjuncts,
)
from millpond.plan.cost.sizes import leaf_paths
from millpond.plan.paths import Name
from millpond.plan.rows import Filter
from millpond.plan.sources import DynamicScan, Scan
from millpond.plan.tree import topological
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.plan.node import Plan

_PRUNES = frozenset({"eq", "lt", "le", "gt", "ge", "in", "eq_null_safe", "starts_with"})
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Decoding:
    """What one scan reads. `of` is how many leaf columns it could read, None if that is unknown."""

    node: int
    kind: str
    source: str
    columns: tuple[str, ...]
    of: int | None
    prunes_by: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with stable keys."""
        return {
            "node": self.node,
            "kind": self.kind,
            "source": self.source,
            "columns": list(self.columns),
            "of": self.of,
            "prunes_by": self.prunes_by,
        }

    def to_text(self) -> str:
        """One line."""
        count = f"{len(self.columns)}" + ("" if self.of is None else f" of {self.of}")
        names = ", ".join(self.columns[:_SHOWN]) + (", …" if len(self.columns) > _SHOWN else "")
        plural = "" if (self.of or len(self.columns)) == 1 else "s"
        text = f"#{self.node} {self.source}: {count} leaf column{plural}"
        text += f": {names}" if names else ""
        return text + (f"; skips row groups by {self.prunes_by}" if self.prunes_by else "")


def decodings(plan: Plan, written: Plan) -> tuple[Decoding, ...]:
    """What the scans of a plan read, beside what those of the plan as written would read."""
    scans = (node for node in topological(written) if isinstance(node, Scan))
    before = {_identity(scan): scan for scan in scans}
    order = topological(plan)
    above = {id(node.input): node for node in order if isinstance(node, Filter)}
    return tuple(_decoding(number, node, before, above) for number, node in _numbered(order))


def _numbered(order: list[Plan]) -> Iterator[tuple[int, Scan | DynamicScan]]:
    for number, node in enumerate(order):
        if isinstance(node, Scan | DynamicScan):
            yield number, node


def _identity(node: Scan) -> tuple[str, tuple[str, ...]]:
    return node.format, tuple(file.path for file in node.files)


def _decoding(
    number: int,
    node: Scan | DynamicScan,
    before: dict[tuple[str, tuple[str, ...]], Scan],
    above: dict[int, Filter],
) -> Decoding:
    columns = Struct(tuple(f for f in node.columns if f.name not in node.constants))
    of, source = None, f"{node.format} files named by #{number}'s input"
    if isinstance(node, Scan):
        whole = before.get(_identity(node))
        of = None if whole is None else len(leaf_paths(whole.file_columns))
        source = node.files[0].path if len(node.files) == 1 else f"{len(node.files)} files"
        source = f"{node.format} {source}"
    predicate = above.get(id(node))
    prunes = None if predicate is None else _pruning(predicate.predicate, node)
    return Decoding(number, node.kind, source, leaf_paths(columns), of, prunes)


def _pruning(predicate: BoundExpr, node: Scan | DynamicScan) -> str | None:
    """The parts of a predicate that minimum, maximum and null counts can decide."""
    if node.format != "parquet":
        return None
    parts = tuple(part for part in conjuncts(predicate) if _decidable(part))
    return str(conjoin(parts)) if parts else None


def _decidable(part: BoundExpr) -> bool:
    if not isinstance(part, BoundCall):
        return False
    if part.function in ("is_null", "is_not_null"):
        return _is_leaf(part.args[0])
    if part.function not in _PRUNES:
        return False
    paths = [arg for arg in part.args if not isinstance(arg, BoundLiteral)]
    return len(paths) == 1 and _is_leaf(paths[0])


def _is_leaf(expr: BoundExpr) -> bool:
    return isinstance(expr, BoundPath) and all(isinstance(step, Name) for step in expr.steps)

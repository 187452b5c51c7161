"""Sort keys of a Parquet scan that are computed together, from just the columns they look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millpond.engine.arrow.codes import to_code
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.source.need import narrow
from millpond.engine.arrow.source.spec import project
from millpond.plan.bound import row_paths
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.rowgroup import RowGroup
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.bound import BoundExpr, BoundNamed, BoundSortKey


@dataclass(frozen=True, slots=True)
class Stage:
    """Keys that are computed together: over projected columns (if any), over pruned columns."""

    keys: tuple[BoundExpr, ...]
    project: tuple[BoundNamed, ...] | None
    need: Struct

    def codes(self, group: RowGroup, rows: NDArray[np.int64] | None) -> list[pa.Array]:
        """The keys of these rows of a row group."""
        batch = group.columns(self.need, rows)
        if self.project is not None:
            fields = (Field(column.name, column.expr.type) for column in self.project)
            batch = project(self.project, batch, Struct(tuple(fields)))
        return [to_code(evaluate(key, batch)) for key in self.keys]


def stage_of(spec: ScanSpec, keys: tuple[BoundSortKey, ...]) -> Stage:
    """The stage that computes these keys of what a scan gives."""
    exprs = tuple(key.expr for key in keys)
    if spec.project is None:
        exprs, need = narrow(exprs, spec.columns)
        return Stage(exprs, None, need)
    names = {path.steps[0].name for e in exprs for path in row_paths(e)}  # type: ignore[union-attr]
    used = [column for column in spec.project if column.name in names]
    inner, need = narrow((column.expr for column in used), spec.columns)
    columns = tuple(replace(c, expr=e) for c, e in zip(used, inner, strict=True))
    return Stage(exprs, columns, need)

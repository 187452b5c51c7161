"""What "the same rows" means: same schema, same order, same values; NaN is NaN, -0.0 is not 0.0.

Sums and means of floating point numbers may differ in the last bits; such columns are compared
with a relative tolerance.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.plan.executor import Executor, Scope
    from millpond.plan.node import Plan

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave: rows, or the kind of error that stopped it."""

    table: pa.Table | None = None
    error: str | None = None


def outcome(plan: Plan, engine: Executor, *, scope: Scope | None = None) -> Outcome:
    """Run a plan as it stands. An error that data causes is an outcome; any other is raised."""
    import pyarrow as pa

    try:
        run = engine.execute(plan, scope)
        batches = []
        for batch in run:
            assert batch.num_rows, f"{engine.name} gave an empty batch"
            assert batch.schema.equals(run.schema), (batch.schema, run.schema)
            batches.append(batch)
        return Outcome(pa.Table.from_batches(batches, schema=run.schema))
    except EngineError as error:
        if type(error).__name__ == "EvaluationError":
            return Outcome(error="EvaluationError")
        raise


def assert_same_outcome(actual: Outcome, expected: Outcome, *, about: str) -> None:
    """Both failed in the same way, or both gave the same rows."""
    assert actual.error == expected.error, f"{about}: {actual} against {expected}"
    if actual.table is not None and expected.table is not None:
        assert_same_rows(actual.table, expected.table, about=about)


def assert_same_rows(actual: pa.Table, expected: pa.Table, *, about: str = "") -> None:
    """The same columns, and the same rows in the same order."""
    assert actual.schema.equals(expected.schema), f"{about}: {actual.schema} / {expected.schema}"
    assert actual.num_rows == expected.num_rows, (
        f"{about}: {actual.num_rows} rows against {expected.num_rows}"
    )
    for name in actual.column_names:
        left, right = actual.column(name).to_pylist(), expected.column(name).to_pylist()
        for row, (a, b) in enumerate(zip(left, right, strict=True)):
            assert same_value(a, b), f"{about}: row {row}, column {name!r}: {a!r} against {b!r}"


def same_value(a: Any, b: Any) -> bool:
    """Whether two Python values are the same value.

    >>> same_value(float("nan"), float("nan")), same_value(0.0, -0.0), same_value([1], [1.0])
    (True, False, False)
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        if struct.pack("d", a) == struct.pack("d", b):
            return True
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a != 0 and math.isclose(a, b, rel_tol=TOLERANCE)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_value(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)

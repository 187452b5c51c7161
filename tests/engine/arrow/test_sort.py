"""Sorting: stable, by many keys, nulls and NaN, in memory and spilled."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import BudgetExceededError
from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine
from millpond.plan.expr import col
from millpond.plan.make import values

CHOICES: dict[str, list[Any]] = {
    "f": [None, 0.0, -0.0, math.nan, 1.5, -2.5, math.inf, -math.inf],
    "s": [None, "", "a", "b", "é", "z", "\U0001f600", "\uffff"],
    "i": [None, -(2**63), 2**63 - 1, 0, 1],
    "b": [None, True, False],
}


SCHEMA = pa.schema(
    {"row": pa.int64(), "f": pa.float64(), "s": pa.string(), "i": pa.int64(), "b": pa.bool_()}
)


def table(rows: int, seed: int) -> pa.Table:
    rnd = random.Random(seed)
    columns: dict[str, Any] = {"row": list(range(rows))}
    columns |= {name: [rnd.choice(c) for _ in range(rows)] for name, c in CHOICES.items()}
    return pa.table(columns, schema=SCHEMA)


def compare(keys: list[tuple[str, bool, bool]], left: dict[str, Any], right: dict[str, Any]) -> int:
    for name, descending, nulls_first in keys:
        a, b = left[name], right[name]
        if a is None or b is None:
            if (a is None) != (b is None):
                return (-1 if nulls_first else 1) if a is None else (1 if nulls_first else -1)
            continue
        a, b = (_rank(x) for x in (a, b))
        if a != b:
            return (1 if a > b else -1) * (-1 if descending else 1)
    return 0


def _rank(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("source", ["memory", "parquet"])
def test_random_sorts_equal_pythons(
    seed: Any, source: Any, run: Any, tiny: Any, parquet: Any, same: Any
) -> None:
    rnd = random.Random(seed)
    data = table(rnd.choice([1, 6, 150]), seed)
    names = rnd.sample(sorted(CHOICES), rnd.randint(1, 3))
    keys = [(name, rnd.random() < 0.5, rnd.random() < 0.5) for name in names]
    sort_keys = [
        (col(n).desc if d else col(n).asc)(nulls="first" if first else "last")
        for n, d, first in keys
    ]
    expected = sorted(data.to_pylist(), key=functools.cmp_to_key(functools.partial(compare, keys)))
    below: Any = values(data) if source == "memory" else parquet(data, rows=13)
    plan = below.sort(*sort_keys)
    in_memory, _ = run(plan)
    assert same(in_memory, expected)
    spilled, counters = run(plan, tiny)
    assert same(spilled, expected)
    assert (counters.spill_bytes > 0) == (data.num_rows > 20)
    top, _ = run(below.top_k(5, *sort_keys), tiny)
    assert same(top, expected[:5])


def test_each_row_group_is_decoded_once(run: Any, tiny: Any, parquet: Any) -> None:
    _, counters = run(parquet(table(100, 1)).sort("i"), tiny)
    assert counters.batches_decoded == 10


def test_rows_held_stay_within_the_limit(run: Any) -> None:
    for batch_rows in (5_000, 20_000):
        settings = Settings.load(env={}, arrow_batch_rows=batch_rows, arrow_max_buffer_rows=20_000)
        _, counters = run(values(table(100_000, 1)).sort("i"), ArrowEngine(settings=settings))
        assert counters.spill_bytes > 0
        assert 10_000 < counters.peak_buffer_rows <= 20_000


def test_without_spilling_a_larger_sort_is_refused(run: Any, parquet: Any) -> None:
    settings = Settings.load(env={}, arrow_spill="never", arrow_max_buffer_rows=50)
    engine = ArrowEngine(settings=settings)
    scan = parquet(table(100, 1))
    with pytest.raises(BudgetExceededError) as caught:
        run(scan.sort("i"), engine)
    assert caught.value.limit == 50
    assert len(run(scan.head(50).sort("i"), engine)[0]) == 50


def test_many_small_batches_become_few_runs(run: Any, tiny: Any, parquet: Any) -> None:
    data = table(200, 3)
    rows, _ = run(parquet(data, rows=1).filter(col("row") % 3 == 0).sort(col("row").desc()), tiny)
    assert [row["row"] for row in rows] == list(range(198, -1, -3))


def test_long_repeated_texts_sort_by_rank(run: Any) -> None:
    rnd = random.Random(5)
    words = [rnd.choice(["pear", "apple", "é", "", None]) for _ in range(5_000)]
    rows, _ = run(
        values(pa.table({"w": words, "n": list(range(5_000))})).sort(col("w").desc(), "n")
    )
    known = sorted((w for w in words if w is not None), reverse=True)
    assert [row["w"] for row in rows] == known + [None] * (5_000 - len(known))

"""Test classes: give them an engine, they run every case and compare it with a reference engine.

    class TestMine(EngineParity):
        @pytest.fixture
        def engine(self):
            return MyEngine()

A node that the engine does not declare must be refused with `UnsupportedNodeError`; everything it
declares must give the reference's rows in the reference's order. The reference is the Arrow engine
unless the fixture `reference` says otherwise.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import UnsupportedExpressionError, UnsupportedNodeError
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.codec import expressions_of
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named
from millpond.plan.tree import topological
from millpond.testing.engine.cases import EXPRESSIONS, NODES, WITHOUT_PEER
from millpond.testing.engine.compare import assert_same_outcome, outcome
from millpond.testing.engine.data import EDGES, edge_table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan


def can_run(plan: Plan, engine: Executor) -> bool:
    """Whether an engine declares every node and function of a plan."""
    known = engine.capabilities
    return all(
        node.kind in known.nodes and known.functions.issuperset(expressions_of(node))
        for node in topological(plan)
    )


def assert_parity(plan: Plan, engine: Executor, reference: Executor, *, about: str) -> None:
    """The engine gives what the reference gives, or refuses what it does not declare."""
    if not can_run(plan, engine):
        with pytest.raises((UnsupportedNodeError, UnsupportedExpressionError)):
            list(engine.execute(plan))
        return
    expected = outcome(plan, reference)
    assert_same_outcome(outcome(plan, engine), expected, about=f"{about} on {engine.name}")


def everything() -> pa.Table:
    """All edge tables in one."""
    import pyarrow as pa

    return pa.concat_tables([edge_table(name) for name in EDGES]).combine_chunks()


def parquet_plan(table: pa.Table, folder: Path) -> Plan:
    """The table as a scan of three Parquet files of different sizes with small row groups."""
    import pyarrow.parquet as pq

    from millpond.plan.arrow import from_arrow_schema
    from millpond.plan.sources import File, Scan

    cuts = [0, table.num_rows // 2, table.num_rows // 2 + 3, table.num_rows]
    files = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        path = folder / f"part {number}.parquet"
        part = table.slice(start, max(0, end - start))
        pq.write_table(part, path, row_group_size=7, store_schema=False)
        files.append(File(str(path), path.stat().st_size, part.num_rows))
    return Scan("parquet", tuple(files), from_arrow_schema(table.schema))


class EngineParity:
    """Every node over every edge table, every function over all of them, optimized or not."""

    @pytest.fixture
    def reference(self) -> Executor:
        """The engine to agree with."""
        return engine_named("arrow")

    @pytest.mark.parametrize("case", list(NODES))
    def test_node(self, case: str, engine: Executor, reference: Executor) -> None:
        """One node over each edge table."""
        for edge in EDGES:
            plan = NODES[case](_source(edge))
            assert_parity(plan, engine, reference, about=f"{case} over {edge}")

    @pytest.mark.parametrize("case", list(EXPRESSIONS))
    def test_expression(self, case: str, engine: Executor, reference: Executor) -> None:
        """A group of functions over all edge data at once, and table by table where it fails."""
        plan = EXPRESSIONS[case](values(everything()))
        assert_parity(plan, engine, reference, about=case)
        if outcome(plan, reference).error is not None:
            for edge in EDGES:
                part = EXPRESSIONS[case](_source(edge))
                assert_parity(part, engine, reference, about=f"{case} over {edge}")

    @pytest.mark.parametrize("case", list(NODES))
    def test_optimized(
        self, case: str, engine: Executor, reference: Executor, tmp_path: Path
    ) -> None:
        """The optimized form, over Parquet files if the engine reads them, gives the same rows."""
        table = everything()
        plain = NODES[case](values(table))
        reads = "Scan" in engine.capabilities.nodes
        better = optimize(NODES[case](parquet_plan(table, tmp_path) if reads else values(table)))
        if not can_run(better, engine):
            assert_parity(better, engine, reference, about=case)
            return
        expected = outcome(plain, reference)
        actual = outcome(better, engine)
        assert_same_outcome(actual, expected, about=f"optimized {case} on {engine.name}")

    @pytest.mark.parametrize("case", list(WITHOUT_PEER))
    def test_without_peer(self, case: str, engine: Executor) -> None:
        """It runs and gives the rows' own schema, or it is refused by name."""
        for edge in EDGES:
            plan = WITHOUT_PEER[case](_source(edge))
            if not can_run(plan, engine):
                with pytest.raises(UnsupportedNodeError):
                    list(engine.execute(plan))
                continue
            found = outcome(plan, engine)
            again = outcome(optimize(plan), engine)
            assert found.table is not None
            assert found.table.schema.equals(to_arrow_schema(plan.schema))
            assert_same_outcome(again, found, about=f"optimized {case} over {edge}")


def _source(edge: str) -> Plan:
    return values(edge_table(edge))

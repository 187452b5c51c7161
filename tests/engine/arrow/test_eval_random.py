"""Random expressions over random batches: the evaluator against the naive one, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.engine.arrow import naive
from tests.engine.arrow.columns import make_batch, to_python, with_hidden_values
from tests.engine.arrow.expressions import ITEM, SCALARS, SCHEMA, expressions, leaves, rows_for

from millpond.base.errors import EvaluationError, PlanError
from millpond.engine.arrow.eval import evaluate, evaluate_mask
from millpond.plan.arrow import to_arrow
from millpond.plan.bind import bind
from millpond.plan.casts import can_cast
from millpond.plan.types import BOOLEAN, LONG, STRING, DataType, List

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.expr import Expr


def bound_or_skip(expr: Expr) -> BoundExpr:
    try:
        return bind(expr, SCHEMA)
    except PlanError:
        assume(False)
        raise


def expected(expr: BoundExpr, rows: list[dict[str, Any]]) -> list[Any] | None:
    """What the naive evaluator says, or None where a row is an error."""
    try:
        return [naive.run(expr, row) for row in rows]
    except naive.BadValueError:
        return None


def check(expr: BoundExpr, rows: list[dict[str, Any]]) -> None:
    wanted = expected(expr, rows)
    batch = make_batch(SCHEMA, rows)
    sliced = pa.concat_batches([batch, batch]).slice(len(rows), len(rows))
    for given_batch in (batch, sliced, with_hidden_values(batch)):
        if wanted is None:
            with pytest.raises(EvaluationError) as caught:
                evaluate(expr, given_batch)
            assert caught.value.hint
            continue
        array = evaluate(expr, given_batch)
        array.validate(full=True)
        assert array.type == to_arrow(expr.type)
        right = pa.array(wanted, array.type)
        assert [*map(repr, to_python(array))] == [*map(repr, to_python(right))]


@given(st.data(), st.sampled_from(SCALARS))
@settings(max_examples=200)
def test_any_expression_gives_what_the_page_says(data: st.DataObject, type_: DataType) -> None:
    expr = bound_or_skip(data.draw(expressions(type_, 3, None)))
    check(expr, data.draw(rows_for(expr)))


@given(st.data(), st.sampled_from([List(LONG), List(STRING), List(ITEM)]))
@settings(max_examples=50)
def test_any_list_gives_what_the_page_says(data: st.DataObject, type_: DataType) -> None:
    expr = bound_or_skip(data.draw(expressions(type_, 2, None)))
    check(expr, data.draw(rows_for(expr)))


@given(st.data(), st.sampled_from(SCALARS), st.sampled_from(["error", "null"]))
@settings(max_examples=200)
def test_any_cast_gives_what_the_page_says(
    data: st.DataObject, source: DataType, on_error: Any
) -> None:
    target = data.draw(st.sampled_from([kind for kind in SCALARS if can_cast(source, kind)]))
    inner = data.draw(leaves(source, None))
    expr = bound_or_skip(inner.cast(target, on_error=on_error))
    check(expr, data.draw(rows_for(expr)))


@given(st.data())
@settings(max_examples=50)
def test_a_mask_is_true_only_where_the_predicate_is(data: st.DataObject) -> None:
    expr = bound_or_skip(data.draw(expressions(BOOLEAN, 3, None)))
    rows = data.draw(rows_for(expr))
    wanted = expected(expr, rows)
    assume(wanted is not None)
    assert wanted is not None
    mask = evaluate_mask(expr, make_batch(SCHEMA, rows))
    assert mask.null_count == 0
    assert mask.to_pylist() == [value is True for value in wanted]

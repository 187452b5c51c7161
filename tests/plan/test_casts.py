"""Which type can be cast to which: the whole table."""

from __future__ import annotations

import pytest

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.bound import BoundCast, BoundPath
from millpond.plan.casts import can_cast
from millpond.plan.paths import Name

NUMBERS: list[t.DataType] = [
    *(t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.Decimal(9, 2), t.BOOLEAN)
]
TIMES: list[t.DataType] = [t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ]
NESTED: list[t.DataType] = [t.Struct.of(a=t.LONG), t.Map(t.STRING, t.LONG), t.VARIANT]
ALL = [*NUMBERS, *TIMES, *NESTED, t.STRING, t.BINARY, t.List(t.LONG)]


def _expected(source: t.DataType, target: t.DataType) -> bool:
    if source == target:
        return True
    if source in NESTED or target in NESTED or t.List(t.LONG) in (source, target):
        return False
    if t.STRING in (source, target):
        return True
    return (source in NUMBERS and target in NUMBERS) or (source in TIMES and target in TIMES)


@pytest.mark.parametrize("source", ALL, ids=str)
def test_the_table(source: t.DataType) -> None:
    assert {str(to): can_cast(source, to) for to in ALL} == {
        str(to): _expected(source, to) for to in ALL
    }


def test_lists_are_cast_by_their_elements() -> None:
    assert can_cast(t.List(t.List(t.LONG)), t.List(t.List(t.STRING)))
    assert not can_cast(t.List(t.LONG), t.List(t.DATE))
    assert not can_cast(t.List(t.LONG), t.STRING)


def test_null_is_cast_to_everything_and_nothing_to_null() -> None:
    assert all(can_cast(t.NULL, to) for to in ALL)
    assert not any(can_cast(source, t.NULL) for source in ALL)


def test_an_impossible_cast_can_not_be_built() -> None:
    arg = BoundPath((Name("a"),), t.LONG)
    with pytest.raises(TypeMismatchError, match="long can't be cast to date"):
        BoundCast(arg, t.DATE)
    with pytest.raises(PlanError, match="on_error is 'error' or 'null', not 'ignore'"):
        BoundCast(arg, t.STRING, "ignore")  # type: ignore[arg-type]

"""Nodes that order rows or choose them by position. Row order is part of a plan's meaning."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan.bind import verify
from millpond.plan.node import Plan, Unary
from millpond.plan.types import is_orderable

if TYPE_CHECKING:
    from millpond.plan.bound import BoundSortKey
    from millpond.plan.types import Struct


def _check_keys(keys: tuple[BoundSortKey, ...], schema: Struct) -> None:
    if not keys:
        raise PlanError("sorting needs at least one key")
    for key in keys:
        verify(key.expr, schema)
        if not is_orderable(key.expr.type):
            raise TypeMismatchError(
                f"{key.expr!r} is a {key.expr.type} and has no order", hint="sort by a part of it"
            )


def _check_count(count: int) -> None:
    if type(count) is not int or not 0 <= count < 1 << 63:
        raise PlanError(f"a number of rows is a whole number from 0 on, not {count!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sort(Unary, Plan):
    """All rows by these keys; equal rows stay in their order. NaN is the largest number."""

    input: Plan
    keys: tuple[BoundSortKey, ...]

    def __post_init__(self) -> None:
        _check_keys(self.keys, self.input.schema)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """The keys."""
        return ", ".join(map(str, self.keys))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopK(Unary, Plan):
    """The first `n` rows of the sorted input, without sorting all of it."""

    input: Plan
    keys: tuple[BoundSortKey, ...]
    n: int

    def __post_init__(self) -> None:
        _check_keys(self.keys, self.input.schema)
        _check_count(self.n)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """How many, and the keys."""
        return f"{self.n} by {', '.join(map(str, self.keys))}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Head(Unary, Plan):
    """The first `n` rows."""

    input: Plan
    n: int

    def __post_init__(self) -> None:
        _check_count(self.n)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """How many."""
        return str(self.n)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tail(Unary, Plan):
    """The last `n` rows, in their order."""

    input: Plan
    n: int

    def __post_init__(self) -> None:
        _check_count(self.n)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """How many."""
        return str(self.n)


def _as_index(value: object) -> int:
    try:
        return int(operator.index(value))  # type: ignore[arg-type]
    except TypeError as error:
        raise PlanError(f"a position is a whole number, not {value!r}") from error


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Take(Unary, Plan):
    """The rows at these positions, in the order given; one past the end is an error."""

    input: Plan
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        if not {int}.issuperset(map(type, self.indices)):
            object.__setattr__(self, "indices", tuple(map(_as_index, self.indices)))
        if self.indices and not 0 <= min(self.indices) <= max(self.indices) < 1 << 63:
            raise PlanError("positions count from 0", hint="use tail() to count from the end")
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """The positions."""
        shown = ", ".join(map(str, self.indices[:10]))
        return shown + (f", … {len(self.indices)} in all" if len(self.indices) > 10 else "")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample(Unary, Plan):
    """A random choice of rows, in their order: `n` of them, or each with chance `fraction`.

    The choice depends on the seed and on row positions alone (docs/expressions.md says how), so
    every engine makes the same one.
    """

    input: Plan
    seed: int
    n: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        if (self.n is None) == (self.fraction is None):
            raise PlanError("a sample takes either a number of rows or a fraction")
        if self.n is not None:
            _check_count(self.n)
        if self.fraction is not None:
            number = isinstance(self.fraction, int | float)
            if not number or not 0 <= self.fraction <= 1:
                raise PlanError(f"a fraction is a number from 0 to 1, not {self.fraction!r}")
            object.__setattr__(self, "fraction", float(self.fraction))
        _check_seed(self.seed)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """How much, and the seed."""
        return f"{self.fraction if self.n is None else self.n} seed {self.seed}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shuffle(Unary, Plan):
    """All rows in a random order that depends on the seed and on row positions alone."""

    input: Plan
    seed: int

    def __post_init__(self) -> None:
        _check_seed(self.seed)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """The seed."""
        return f"seed {self.seed}"


def _check_seed(seed: int) -> None:
    if type(seed) is not int or not -(1 << 63) <= seed < 1 << 63:
        raise PlanError(f"a seed is a whole 64-bit number: {seed!r}")

"""What statistics of a file say about one column, as expressions over the column `stats`.

Statistics limit values from both sides, but not exactly: texts may be cut, the upper limit of a
timestamp is cut to milliseconds, long decimals may have gone through floating point, and NaN, the
largest number, is left out. `Limits` allows for that. `skipping.py` uses it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millpond.plan import types as t
from millpond.plan.expr import Expr, PathExpr, call, if_else, lit
from millpond.plan.paths import Name
from millpond.plan.scalars import fit_decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMES: Final = (t.TIMESTAMP, t.TIMESTAMP_NTZ)
_BOUNDED: Final = frozenset(
    {*t.INTEGRAL, *t.FRACTIONAL, t.BOOLEAN, t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ}
)
_CUT: Final = dt.timedelta(microseconds=999)
"""What the upper limit of a timestamp may lack."""
_EXACT_DIGITS: Final = 15
"""So many digits of a decimal survive floating point."""
_ROUNDING: Final = decimal.Decimal("1E-14")
"""Of a longer decimal, this part of it may be wrong."""
_MANY: Final = 16
"""More values than this are looked for as one range."""


class Leaves:
    """Which members of the statistics are used, so that nothing else of them has to be read."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def use(self, path: tuple[str, ...], type_: t.DataType) -> PathExpr:
        """A member by its path, as an expression."""
        inner = self._root
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = type_
        return PathExpr(tuple(Name(name) for name in ("stats", *path)))

    def struct(self) -> t.Struct:
        """The type of the column `stats`: only what is used."""
        return _as_struct(self._root)


def _as_struct(members: dict[str, Any]) -> t.Struct:
    return t.Struct(
        tuple(
            t.Field(name, _as_struct(inner) if isinstance(inner, dict) else inner)
            for name, inner in members.items()
        )
    )


def keeps_order(source: t.DataType, target: t.DataType) -> bool:
    """Whether a cast can't fail and gives larger values for larger ones, or equal ones."""
    if source in _TIMES and target in (*_TIMES, t.DATE):
        return True
    return source != t.NULL and t.common_type(source, target) == target


@dataclass(slots=True)
class Limits:
    """A column's limits, after casts that keep their order. None is: may be, nothing is known."""

    leaves: Leaves
    path: tuple[str, ...]
    type: t.DataType
    """As the statistics hold it."""
    casts: tuple[t.DataType, ...] = ()
    bounded: bool = True
    """Whether the smallest and the largest value can be trusted."""
    _final: t.DataType = field(init=False)

    def __post_init__(self) -> None:
        self._final = self.casts[-1] if self.casts else self.type
        known = self.type in _BOUNDED or isinstance(self.type, t.Decimal)
        self.bounded = self.bounded and known

    def some_null(self) -> Expr:
        """Whether a row may have null here."""
        return self._nulls != 0

    def some_value(self) -> Expr:
        """Whether a row may have a value here."""
        # Rows, deleted ones too, are counted as the file has them; so a column of nulls is known
        # by as many nulls as rows, whether the counts are exact or not.
        return self._nulls != self.leaves.use(("numRecords",), t.LONG)

    def may(self, operator: str, value: Any) -> Expr:
        """Whether some value may compare with a literal like this."""
        if value is None:
            return lit(False)
        return self._and_value(self._may(operator, value))

    def may_be_in(self, values: Sequence[Any]) -> Expr:
        """Whether some value may be one of these."""
        if not values:
            return lit(False)
        if any(_is_nan(value) for value in values):
            return self.some_value()
        if len(values) > _MANY and self.bounded:
            found = _all(self._may("le", max(values)), self._reaches("ge", min(values)))
        else:
            found = _any([self._may("eq", value) for value in values])
        return self._and_value(found)

    def may_be_outside(self, values: Sequence[Any]) -> Expr:
        """Whether some value may be none of these."""
        if not self._exact:
            return self.some_value()
        literals = [lit(value, self._final) for value in values]
        one = self._low == self._high
        return self._and_value(~(one & call("in", self._low, *literals)))

    def may_differ_or_be_null(self, value: Any) -> Expr | None:
        """Whether a row may have null or another value than this one."""
        if not self._exact:
            return None
        literal = lit(value, self._final)
        return (self._low != literal) | (self._high != literal) | self.some_null()

    def may_start_with(self, prefix: str) -> Expr:
        """Whether some text may begin like this."""
        if not self.bounded or self._final != t.STRING:
            return self.some_value()
        low = (self._low <= prefix) | self._low.starts_with(prefix)
        return self._and_value(_all(low, self._reaches("ge", prefix)))

    def may_not_start_with(self, prefix: str) -> Expr:
        """Whether some text may begin otherwise."""
        if not self.bounded or self._final != t.STRING:
            return self.some_value()
        always = self._low.starts_with(prefix) & self._high.starts_with(prefix)
        return self._and_value(~always)

    def _and_value(self, found: Expr | None) -> Expr:
        """Where limits decide, nulls are not counted: two leaves fewer have to be read, and files
        without any value, which have no limits, are kept."""
        return self.some_value() if found is None else found

    def _may(self, operator: str, value: Any) -> Expr | None:
        if not self.bounded or _is_nan(value):
            return None
        if operator in ("lt", "le"):
            above = self._shifted(value, up=True)
            return None if above is None else call(operator, self._low, above)
        if operator in ("gt", "ge"):
            reached = self._reaches(operator, value)
            if reached is None or not t.is_fractional(self.type):
                return reached
            # NaN is larger than every number, and no limit tells of it; our own files count it.
            return reached | (self.leaves.use(("nanCount", *self.path), t.LONG) != 0)
        if operator == "eq":
            return _all(self._may("le", value), self._reaches("ge", value))
        if not self._exact:
            return None
        literal = lit(value, self._final)
        return (self._low != literal) | (self._high != literal)

    def _reaches(self, operator: str, value: Any) -> Expr | None:
        """Whether the upper limit is as high as this."""
        below = self._shifted(value, up=False)
        if below is None:
            return None
        found = call(operator, self._high, below)
        # A text that was cut off may have gone on in any way.
        return found | below.starts_with(self._high) if self._final == t.STRING else found

    def _shifted(self, value: Any, *, up: bool) -> Expr | None:
        """A literal, moved away by what the limits may lack; None if no literal is there."""
        moved: Any = value
        if self.type in _TIMES and self._final in _TIMES and not up:
            try:
                moved = value - _CUT
            except OverflowError:
                return None
        elif isinstance(self.type, t.Decimal) and not self._exact:
            moved = _rounded(value, self._final, up=up)
        return None if moved is None else lit(moved, self._final)

    @property
    def _exact(self) -> bool:
        """Whether both limits are values that the column has or had, if they are equal."""
        if not self.bounded or self.type == t.STRING or t.is_fractional(self.type):
            return False
        if isinstance(self.type, t.Decimal):
            return self.type.precision <= _EXACT_DIGITS
        return self.type not in _TIMES or self._final == t.DATE

    @property
    def _nulls(self) -> Expr:
        return self.leaves.use(("nullCount", *self.path), t.LONG)

    @property
    def _low(self) -> Expr:
        low: Expr = self.leaves.use(("minValues", *self.path), self.type)
        if t.is_fractional(self.type):
            # A writer that let NaN in may have lost the numbers beside it.
            low = if_else(low.is_nan(), lit(None, self.type), low)
        return self._cast(low)

    @property
    def _high(self) -> Expr:
        return self._cast(self.leaves.use(("maxValues", *self.path), self.type))

    def _cast(self, limit: Expr) -> Expr:
        for type_ in self.casts:
            limit = limit.cast(type_, on_error="null")
        return limit


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _rounded(value: Any, type_: t.DataType, *, up: bool) -> Any:
    """A number moved by the error that a long decimal may have got on its way."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        step = abs(value) * float(_ROUNDING)
        return value + step if up else value - step
    assert isinstance(type_, t.Decimal)
    with decimal.localcontext(prec=80, rounding="ROUND_CEILING" if up else "ROUND_FLOOR"):
        step = abs(value) * _ROUNDING
        moved = (value + step if up else value - step).quantize(
            decimal.Decimal(1).scaleb(-type_.scale)
        )
    return fit_decimal(moved, type_)


def _all(*parts: Expr | None) -> Expr | None:
    known = [part for part in parts if part is not None]
    return call("and", *known) if len(known) > 1 else known[0] if known else None


def _any(parts: list[Expr | None]) -> Expr | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return call("or", *known) if len(known) > 1 else known[0]

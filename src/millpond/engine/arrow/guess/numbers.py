"""The type of a column of numbers that loses nothing of any of them.

Whole numbers are longs. With fractions among them they are doubles, unless a whole part is beyond
±2^53: then all are decimals, if 38 digits are enough. So are whole numbers beyond 64 bits.
"""

from __future__ import annotations

from typing import Final

from millpond.engine.looks import EXACT
from millpond.plan import types as t

_LONGS: Final = 1 << 63
_MOST_DIGITS: Final = 38


class Numbers:
    """What was seen of the numbers of one column.

    >>> numbers = Numbers()
    >>> numbers.see_wholes(1, 9007199254740993)
    >>> print(numbers.type)
    long
    >>> numbers.see_plain(whole_digits=1, fraction_digits=1, is_exact=True)
    >>> print(numbers.type)
    decimal(17,1)
    """

    def __init__(self) -> None:
        self.low = self.high = 0
        self._is_seen = False
        self._has_fractions = False
        self._is_double = True
        self._is_decimal = True
        self._whole_digits = 1
        self._fraction_digits = 0

    def see_wholes(self, low: int, high: int) -> None:
        """Take note of whole numbers between these two, both among them."""
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._is_double &= self.is_small
        self._is_seen = True

    def see_plain(self, *, whole_digits: int, fraction_digits: int, is_exact: bool) -> None:
        """Take note of numbers with a point, of the most digits that any of them has.

        They are exact if all of them are below 2^53.
        """
        self._whole_digits = max(self._whole_digits, whole_digits)
        self._fraction_digits = max(self._fraction_digits, fraction_digits)
        self._is_double &= is_exact
        self._is_seen = self._has_fractions = True

    def see_exponents(self, *, is_exact: bool) -> None:
        """Take note of numbers with exponents; they are exact if the nearest doubles are numbers
        and none of them is zero instead of a small number.
        """
        self._is_double &= is_exact
        self._is_decimal = False
        self._is_seen = self._has_fractions = True

    @property
    def is_small(self) -> bool:
        """Whether all whole numbers are exact as doubles."""
        return self.low >= -EXACT and self.high <= EXACT

    @property
    def largest(self) -> int:
        """The whole number that is furthest from zero."""
        return self.high if self.high >= -self.low else self.low

    @property
    def type(self) -> t.DataType | None:
        """The type that holds all numbers; None if there is none, NULL if there was no number."""
        if not self._is_seen:
            return t.NULL
        if not self._has_fractions and self.low >= -_LONGS and self.high < _LONGS:
            return t.LONG
        if self._has_fractions and self._is_double:
            return t.DOUBLE
        if not self._is_decimal or self.low <= -(10**_MOST_DIGITS) or self.high >= 10**_MOST_DIGITS:
            return None
        wholes = max(self._whole_digits, len(str(max(-self.low, self.high))))
        digits = wholes + self._fraction_digits
        return t.Decimal(digits, self._fraction_digits) if digits <= _MOST_DIGITS else None

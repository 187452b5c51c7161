"""The type of a column of texts: what all of them look like, by `engine/looks.py`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.parse import from_text
from millpond.engine.arrow.guess.numbers import Numbers
from millpond.engine.arrow.source.csvvalues import read_texts
from millpond.engine.looks import EXACT, EXPONENT, GUESSED, NOT_ZERO, TIMES, look_of
from millpond.plan import types as t

_NUMBERS: Final = (t.LONG, t.DOUBLE)
_OTHERS: Final = tuple(type_ for type_ in GUESSED if type_ not in _NUMBERS)
_AROUND: Final = " \t+-"
_LONGEST: Final = 60
"""Digits: Python takes long for numbers of thousands."""
_TOO_LARGE: Final = int("1" + "0" * _LONGEST)


class Guess:
    """What one column of texts can be, as far as it was seen.

    >>> guess = Guess()
    >>> for texts in (["1", None], ["2.5"]):
    ...     guess.see(pa.array(texts))
    >>> print(guess.type)
    double
    """

    def __init__(self, types: tuple[t.DataType, ...] = GUESSED) -> None:
        self._left = [type_ for type_ in types if type_ not in _NUMBERS]
        self.numbers = Numbers()
        self._may_be_numbers = t.DOUBLE in types
        self._is_seen = False

    def see(self, texts: pa.Array) -> None:
        """Take note of some more values."""
        if not self.is_open:
            return
        texts = texts.drop_null() if texts.null_count else texts
        if not len(texts):
            return
        self._is_seen = True
        first = texts.slice(0, 1)  # most types are ruled out by any value
        self._left = [type_ for type_ in self._left if _fits(first, type_) and _fits(texts, type_)]
        if self._may_be_numbers:
            self._may_be_numbers = _are_numbers(first) and _are_numbers(texts)
            if self._may_be_numbers:
                _see_numbers(self.numbers, texts)

    @property
    def is_open(self) -> bool:
        """Whether it may be anything else than text."""
        return bool(self._left) or self._may_be_numbers

    def close(self) -> None:
        """Take it for text."""
        self._left, self._may_be_numbers, self._is_seen = [], False, True

    @property
    def type(self) -> t.DataType:
        """The first type that all values fit, or text; NULL if there was no value."""
        if not self._is_seen:
            return t.NULL
        if self._may_be_numbers:
            return self.numbers.type or t.STRING
        return self._left[0] if self._left else t.STRING


def times_guess() -> Guess:
    """Return a guess between times and text, for texts that can't be anything else."""
    return Guess(TIMES)


def _fits(texts: pa.Array, type_: t.DataType) -> bool:
    look = look_of(type_)
    assert look is not None
    if not pc.all(pc.match_substring_regex(texts, look)).as_py():
        return False
    return read_texts(texts, type_).misfit is None  # 2026-13-01 looks like a date


def _are_numbers(texts: pa.Array) -> bool:
    look = look_of(t.DOUBLE)
    assert look is not None
    return bool(pc.all(pc.match_substring_regex(texts, look)).as_py())


def _see_numbers(numbers: Numbers, texts: pa.Array) -> None:
    """Take note of texts that all look like numbers."""
    look = look_of(t.LONG)
    assert look is not None
    whole = pc.match_substring_regex(texts, look)
    wholes = texts
    if not pc.all(whole).as_py():
        see_fractions(numbers, texts.filter(pc.invert(whole)))
        wholes = texts.filter(whole)
    if len(wholes):
        _see_wholes(numbers, wholes)


def see_fractions(numbers: Numbers, texts: pa.Array) -> None:
    """Take note of texts that are numbers with a point or an exponent."""
    powers = pc.match_substring_regex(texts, EXPONENT)
    _see_plain(numbers, texts.filter(pc.invert(powers)))
    _see_exponents(numbers, texts.filter(powers))


def _see_wholes(numbers: Numbers, texts: pa.Array) -> None:
    values = from_text(texts, t.LONG)
    found = pc.min_max(values).as_py()
    if found["min"] is not None:
        numbers.see_wholes(found["min"], found["max"])
    if values.null_count:
        for text in texts.filter(values.is_null()).to_pylist():
            value = whole_number(text)
            numbers.see_wholes(value, value)


def whole_number(text: str) -> int:
    """Return a whole number; one of very many digits only as something that is too large."""
    text = text.strip(" \t")
    if len(text) <= _LONGEST:
        return int(text)
    return -_TOO_LARGE if text.startswith("-") else _TOO_LARGE


def _see_plain(numbers: Numbers, texts: pa.Array) -> None:
    if not len(texts):
        return
    bare = pc.ascii_trim(texts, _AROUND)
    size = pc.binary_length(bare)
    point = pc.find_substring(bare, ".")
    whole = pc.if_else(pc.less(point, 0), size, point)
    behind = pc.subtract(pc.subtract(size, whole), 1)
    largest = pc.max(pc.abs(from_text(texts, t.DOUBLE))).as_py()
    numbers.see_plain(
        whole_digits=pc.max(whole).as_py(),
        fraction_digits=max(0, pc.max(behind).as_py()),
        is_exact=largest < EXACT,
    )


def _see_exponents(numbers: Numbers, texts: pa.Array) -> None:
    if not len(texts):
        return
    size = pc.abs(from_text(texts, t.DOUBLE))
    none = pc.and_(pc.equal(size, 0.0), pc.match_substring_regex(texts, NOT_ZERO))
    numbers.see_exponents(is_exact=not pc.any(none).as_py() and not pc.any(pc.is_inf(size)).as_py())

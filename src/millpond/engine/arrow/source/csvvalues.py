"""Text of CSV files as values: as casts say, and for guessed types as `engine/looks.py` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.parse import from_text
from millpond.engine.looks import EXACT, EXACT_PLAIN, NOT_ZERO, look_of, plain_look_of
from millpond.plan.arrow import to_arrow
from millpond.plan.types import DOUBLE, NULL, STRING

if TYPE_CHECKING:
    from millpond.plan.types import DataType


class Read(NamedTuple):
    """Values, null where text does not fit, and the position of the first such text."""

    values: pa.Array
    misfit: int | None = None


def read_texts(texts: pa.Array, type_: DataType, *, guessed: bool = False) -> Read:
    """Read texts as values of a type; a guessed type takes only what looks like it.

    >>> from millpond.plan.types import LONG
    >>> read_texts(pa.array(["7", "007"]), LONG).misfit
    >>> read_texts(pa.array(["7", "007"]), LONG, guessed=True).misfit
    1
    """
    if type_ == STRING:
        return Read(texts)
    if type_ == NULL:
        is_empty = texts.null_count == len(texts)
        return Read(pa.nulls(len(texts)), None if is_empty else _first(texts.is_valid()))
    if guessed and (plain := _read_plain(texts, type_)) is not None:
        return Read(plain, _first_changed(texts, plain) if type_ == DOUBLE else None)
    values = from_text(texts, type_).cast(to_arrow(type_))
    if values.null_count > texts.null_count:
        return Read(values, _first(pc.and_(values.is_null(), texts.is_valid())))
    return Read(values, _first_unlike(texts, values, type_) if guessed else None)


def _read_plain(texts: pa.Array, type_: DataType) -> pa.Array | None:
    """Read texts that pyarrow reads as casts do, in one go; None if some are in another form."""
    pattern = plain_look_of(type_)
    if pattern is None or pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        return None
    try:
        return texts.cast(to_arrow(type_))
    except pa.ArrowInvalid:
        return None  # there is no such number or day


def _first_unlike(texts: pa.Array, values: pa.Array, type_: DataType) -> int | None:
    """Return the position of the first text that is not what the type looks like."""
    look = look_of(type_)
    assert look is not None
    alike = pc.match_substring_regex(texts, look)
    if pc.all(alike).as_py() is False:
        return _first(pc.invert(alike))
    return _first_changed(texts, values) if type_ == DOUBLE else None


def _first_changed(texts: pa.Array, values: pa.Array) -> int | None:
    """Return the position of the first number that is another one as a double."""
    # Few numbers are so large, or zero: only those are looked at closely.
    size = pc.abs(values)
    odd = pc.or_(pc.greater_equal(size, float(EXACT)), pc.equal(size, 0.0))
    places = pc.indices_nonzero(odd)
    if not len(places):
        return None
    few, sizes = texts.take(places), size.take(places)
    is_plain = pc.invert(pc.match_substring_regex(few, EXACT_PLAIN))
    changed = pc.if_else(
        pc.equal(sizes, 0.0),
        pc.match_substring_regex(few, NOT_ZERO),
        pc.or_(is_plain, pc.equal(sizes, float("inf"))),
    )
    found = _first(changed)
    return None if found is None else int(places[found].as_py())


def _first(condition: pa.Array) -> int | None:
    """Return the position of the first true value."""
    place = pc.index(condition, pa.scalar(True)).as_py()
    return None if place < 0 else int(place)

"""JSON text as columns through msgspec: fast and strict. None where a text needs more care.

For each type a decoder is made once that builds only the members that are wanted; columns are made
of its rows without a dictionary in between. `json.py` says what reads the texts that do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.parse import moments
from millpond.engine.arrow.eval.values import raw
from millpond.plan.arrow import to_arrow
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
    types_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec
    from typing_extensions import Buffer

Members: TypeAlias = frozenset[tuple[str, ...]]
"""Members of structs, each by the names that lead to it."""

_TIMES: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_SCALARS: Final[dict[DataType, Any]] = {
    BOOLEAN: bool,
    DOUBLE: float,
    **dict.fromkeys((STRING, *_TIMES), str),
}
_NO_NUMBER: Final = (b"", b"null")
_CUT_BITS: Final = (1 << 29) - 1
"""The bits of a double's fraction that a 32-bit number does not have."""
_HALF: Final = 1 << 28
_SMALLEST: Final = float(np.finfo(np.float32).tiny)
_Numbers: TypeAlias = np.ndarray[Any, Any]
_UNNAMEABLE: Final = frozenset('"\\') | frozenset(map(chr, range(0x20)))


class _Unfit(Exception):  # noqa: N818 - it never leaves this file
    """A value that only the exact reader reads."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What msgspec reads for a type, what stands for a missing one, and how columns are built."""

    hint: Any
    missing: Any
    build: Callable[[Sequence[Any]], pa.Array]
    is_absent: bool = False
    """Whether no value is looked at, only how many there are."""
    within: Callable[[Sequence[Any], str], pa.Array] | None = None
    """For a struct: how it is built out of what holds it, by the names that lead to it and a dot.

    An `AttributeError` if it is missing somewhere."""


class Reader(NamedTuple):
    """What reads texts as values of one type."""

    decoder: msgspec.json.Decoder[Any]
    part: _Part

    def read(self, lines: Buffer, count: int) -> pa.Array | None:
        """Texts with line ends between them, each of which begins and ends with brackets.

        Then no value goes on from one text to the next: after a closing bracket never comes an
        opening one, and inside of quotes no line ends. So as many values as texts are one for each
        text. None if one does not fit strictly.
        """
        import msgspec

        try:
            values = self.decoder.decode_lines(lines)
            if len(values) != count:
                return None
            within = self.part.within
            return self.part.build(values) if within is None else within(values, "")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        except (OverflowError, pa.ArrowInvalid, _Unfit):
            return None


def read_typed(texts: pa.Array, type_: DataType) -> pa.Array | None:
    """Texts, none null, as values of a struct, list or map; None if one does not fit strictly."""
    reader = reader_of(type_)
    if reader is None:
        return None
    if not len(texts):
        return pa.array([], to_arrow(type_))
    lines = _joined(texts, b"[]" if isinstance(type_, List) else b"{}")
    return None if lines is None else reader.read(lines, len(texts))


def _joined(texts: pa.Array, brackets: bytes) -> pa.Buffer | None:
    """Texts with line ends between them, if all begin and end with brackets."""
    starts, data = _bytes_of(texts)
    if _are_between(starts, data, brackets + b"\n"):
        return pa.py_buffer(data)
    if not _are_between(starts, data, brackets):
        texts = pc.utf8_trim(texts, " \t\r\n")
        if not _are_between(*_bytes_of(texts), brackets):
            return None
    return pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()


def _bytes_of(texts: pa.Array) -> tuple[_Numbers, _Numbers]:
    """Where texts start, one more for the end, and their bytes."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    first, size = int(starts[0]), int(starts[-1] - starts[0])
    if not size:
        return np.zeros(len(starts), np.int32), np.zeros(0, np.uint8)
    return starts - first, np.frombuffer(data, np.uint8, size, first)


def _are_between(starts: _Numbers, data: _Numbers, brackets: bytes) -> bool:
    """Whether each text begins with the first of these bytes and ends with the others."""
    if (np.diff(starts) < len(brackets)).any():
        return False
    fits = data[starts[:-1]] == brackets[0]
    for back, byte in enumerate(reversed(brackets[1:]), 1):
        fits &= data[starts[1:] - back] == byte
    return bool(fits.all())


@lru_cache(maxsize=256)
def reader_of(
    type_: DataType, absent: Members = frozenset(), *, closed: bool = False
) -> Reader | None:
    """What reads texts of a type; none if the type needs more care.

    A text that has one of the members that are said to be absent, and not null, does not fit. With
    `closed`, nor does one that has any member that the type has not.
    """
    import msgspec

    part = _part(type_, absent, closed) if isinstance(type_, Struct | List | Map) else None
    return None if part is None else Reader(msgspec.json.Decoder(part.hint), part)


def _part(type_: DataType, absent: Members = frozenset(), closed: bool = False) -> _Part | None:
    """How a type is read, or None if it is not read here. As deep as the type is."""
    if () in absent:
        return _nothing(type_)
    if isinstance(type_, Struct):
        return _struct(type_, absent, closed)
    if isinstance(type_, List):
        return _list(type_, closed)
    if isinstance(type_, Map):
        return _map(type_, closed)
    if isinstance(type_, Decimal):
        return _decimal(type_)
    if type_ == FLOAT:
        return _Part(float, None, _singles)
    if type_ in INTEGRAL:
        return _whole(to_arrow(type_))
    if type_ not in _SCALARS:
        return None
    target = to_arrow(type_)
    if type_ in _TIMES:
        zones = type_ != TIMESTAMP_NTZ

        def build(values: Sequence[Any]) -> pa.Array:
            built = moments(pa.array(values, pa.string()), type_, zones=zones)
            if built.null_count and built.null_count > values.count(None):
                raise _Unfit  # as null it would look like a member that is missing
            return built
    else:

        def build(values: Sequence[Any]) -> pa.Array:
            return pa.array(values, target)

    return _Part(_SCALARS[type_], None, build)


def _whole(target: pa.DataType) -> _Part:
    """Whole numbers, judged as they are read: of a key that stands twice, only the last is seen."""
    import msgspec

    end = 1 << (target.bit_width - 1)
    hint = Annotated[int, msgspec.Meta(ge=-end, le=end - 1)]
    return _Part(hint, None, lambda values: pa.array(values, target))


def _nothing(type_: DataType) -> _Part:
    """What is never there, but may be said to be null."""
    import msgspec

    target = to_arrow(type_)
    never = Annotated[int, msgspec.Meta(gt=0, lt=0)]
    return _Part(never, None, lambda values: pa.nulls(len(values), target), is_absent=True)


def _struct(type_: Struct, absent: Members, closed: bool) -> _Part | None:
    import msgspec

    parts = [_part(field.type, _below(field.name, absent), closed) for field in type_]
    if any(not _UNNAMEABLE.isdisjoint(name) for name in type_.names):
        return None
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    slots = [f"f{number}" for number in range(len(parts))]
    made = msgspec.defstruct(
        "Row",
        [(slot, _nullable(part), part.missing) for slot, part in zip(slots, known, strict=True)],
        rename=dict(zip(slots, type_.names, strict=True)),
        eq=False,
        gc=False,
        forbid_unknown_fields=closed,
    )
    target, empty = to_arrow(type_), made()
    columns = list(zip(slots, known, strict=True))

    def within(
        values: Sequence[Any], before: str, holes: Sequence[Any] = (), missing: int = 0
    ) -> pa.Array:
        children = [_member(values, before + slot, part) for slot, part in columns]
        mask = _holes(children, holes, missing) if missing else None
        if not children:
            validity = None if mask is None else pc.invert(mask).buffers()[1]
            return pa.Array.from_buffers(target, len(values), [validity])
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

    def build(values: Sequence[Any]) -> pa.Array:
        missing = values.count(None)
        if missing == len(values):
            return pa.nulls(missing, target)
        if not missing:
            return within(values, "")
        there = [empty if value is None else value for value in values]
        return within(there, "", values, missing)

    # Where no member is looked at, nothing would show that the struct itself is missing.
    shows = any(not part.is_absent for part in known)
    return _Part(made, None, build, within=within if shows else None)


def _member(values: Sequence[Any], name: str, part: _Part) -> pa.Array:
    """A member of structs; a struct's own members in one step, if it is never missing."""
    if part.is_absent:
        return part.build(values)
    if part.within is not None:
        try:
            return part.within(values, f"{name}.")
        except AttributeError:  # as a missing one has no members
            pass
    return part.build(list(map(attrgetter(name), values)))


def _below(name: str, members: Members) -> Members:
    """Those of a member, as seen from there."""
    return frozenset(steps[1:] for steps in members if steps[:1] == (name,))


def _list(type_: List, closed: bool) -> _Part | None:
    element = _part(type_.element, closed=closed)
    if element is None:
        return None
    target = to_arrow(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        items = list(chain.from_iterable(value for value in values if value is not None))
        return _nested(values, target, element.build(items))

    return _Part(list[_nullable(element)], None, build)  # type: ignore[misc]


def _map(type_: Map, closed: bool) -> _Part | None:
    value = _part(type_.value, closed=closed)
    # Of a key that stands twice the first value is not seen here, and decimals are judged later.
    is_late = any(isinstance(inner, Decimal) for inner in types_in(type_.value))
    if value is None or type_.key != STRING or is_late:
        return None
    target = to_arrow(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        there = [entries for entries in values if entries is not None]
        keys = pa.array(list(chain.from_iterable(there)), pa.string())
        items = list(chain.from_iterable(entries.values() for entries in there))
        fields = [target.key_field, target.item_field]
        columns = [keys, value.build(items)]
        pairs = pa.StructArray.from_arrays(columns, fields=fields)
        return _nested(values, target, pairs)

    return _Part(dict[str, _nullable(value)], None, build)  # type: ignore[misc]


def _nullable(part: _Part) -> Any:
    return part.hint if part.missing is not None else part.hint | None


def _holes(children: Sequence[pa.Array], values: Sequence[Any], missing: int) -> pa.Array:
    """Where structs are missing: where a member is, if it is as often, as its struct has none."""
    for child in children:
        if child.null_count == missing:
            return child.is_null()
    return _missing(values)


def _missing(values: Sequence[Any]) -> pa.Array:
    """Where there is no value."""
    return pa.array([value is None for value in values])


def _nested(values: Sequence[Any], target: pa.DataType, items: pa.Array) -> pa.Array:
    """Lists or maps of these sizes over their items, null where there is none."""
    sizes = [0 if value is None else len(value) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    missing = values.count(None)
    validity = pc.invert(_missing(values)).buffers()[1] if missing else None
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(target, len(values), buffers, missing, 0, [items])


def _decimal(type_: Decimal) -> _Part:
    """Numbers by their text, which a cast of the column reads exactly or not at all.

    But for those with an exponent: what is too large for 128 bits comes out as another number.
    """
    import msgspec

    target = to_arrow(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        texts = [None if text in _NO_NUMBER else text for text in map(bytes, values)]
        column = pa.array(texts, pa.binary()).cast(pa.string())
        if pc.any(pc.match_substring(column, "e", ignore_case=True)).as_py():
            raise _Unfit
        return column.cast(target)

    return _Part(msgspec.Raw, msgspec.Raw(b""), build)


def _singles(values: Sequence[Any]) -> pa.Array:
    """Doubles as 32-bit numbers, unless rounding twice could differ from rounding once."""
    doubles = pa.array(values, pa.float64())
    found = raw(doubles)
    halfway = (found.view(np.int64) & _CUT_BITS) == _HALF
    small = (np.abs(found) < _SMALLEST) & (found != 0)
    if (halfway | small).any():
        raise _Unfit
    return doubles.cast(pa.float32(), safe=False)

"""Whole variants out of the pieces that a Parquet file holds, a column at a time.

A piece has a `value`, which is encoded, or a `typed_value`, or both if it is an object: then
`value` has the members that have no columns. One that has neither is missing, as a member of an
object may be; in other places it is a null. All names stand in the row's `metadata`, which stays as
it is. What breaks these rules is a `BrokenVariant`.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.engine.arrow.source.variant.broken import BrokenVariant
from millpond.engine.arrow.source.variant.decode import members_of, names_in
from millpond.engine.arrow.source.variant.encode import array_of, object_of
from millpond.engine.arrow.source.variant.scalars import NULL, Encoded, encoder
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow


def unshred(array: pa.Array) -> pa.Array:
    """Variants as structs of `value` and `metadata`; null where the struct is."""
    metadata = _plain(_member(array, "metadata"))
    known = metadata.to_pylist()
    valid = array.is_valid().to_pylist()
    if metadata.null_count > array.null_count:
        raise BrokenVariant("$", "has no metadata")
    pieces = _piece(array, _Rows(known, {}), "$")
    values = [
        (NULL if piece is None else piece) if here else None
        for piece, here in zip(pieces, valid, strict=True)
    ]
    return pa.StructArray.from_arrays(
        [pa.array(values, pa.binary()), metadata],
        fields=list(to_arrow(t.VARIANT)),
        mask=array.is_null(),
    )


class _Names(NamedTuple):
    """The names of one row, by id, and their ids."""

    by_id: tuple[bytes, ...]
    ids: dict[bytes, int]


class _Rows(NamedTuple):
    """The metadata that belongs to each value of a column; rows often have the same."""

    metadata: list[bytes | None]
    seen: dict[bytes, _Names]

    def of(self, parents: list[int]) -> _Rows:
        """The same for values that lie in those of these numbers."""
        return self._replace(metadata=[self.metadata[i] for i in parents])

    def names(self, row: int, place: str) -> _Names:
        """The names that a value may use."""
        metadata = self.metadata[row]
        if metadata is None:
            raise BrokenVariant(place, "has no metadata")
        found = self.seen.get(metadata)
        if found is None:
            try:
                by_id = names_in(metadata)
            except ValueError as error:
                raise BrokenVariant(place, f"has metadata that {error}") from None
            found = _Names(by_id, {name: i for i, name in enumerate(by_id)})
            self.seen[metadata] = found
        return found


def _piece(group: pa.Array, rows: _Rows, place: str) -> Encoded:
    """The values of a group of `value` and `typed_value`; None where there is neither."""
    has = [field.name for field in group.type]
    values = _plain(_member(group, "value")).to_pylist() if "value" in has else [None] * len(group)
    if "typed_value" not in has:
        return values
    typed = _member(group, "typed_value")
    if at.is_struct(typed.type):
        return _objects(typed, values, rows, place)
    encoded = _arrays(typed, rows, place) if at.is_list(typed.type) else _scalars(typed, place)
    return [_either(*both, place) for both in zip(values, encoded, strict=True)]


def _either(value: bytes | None, typed: bytes | None, place: str) -> bytes | None:
    if value is not None and typed is not None:
        raise BrokenVariant(place, "has a value and a typed value, and is no object")
    return typed if value is None else value


def _scalars(typed: pa.Array, place: str) -> Encoded:
    encode = encoder(typed.type)
    assert encode is not None  # `check_variant` has looked
    try:
        return encode(typed.dictionary_decode() if at.is_dictionary(typed.type) else typed)
    except ValueError as error:
        raise BrokenVariant(place, str(error)) from None


def _arrays(typed: pa.Array, rows: _Rows, place: str) -> Encoded:
    counts = pc.list_value_length(typed).to_pylist()
    parents = [row for row, count in enumerate(counts) for _ in range(count or 0)]
    pieces = _piece(typed.flatten(), rows.of(parents), f"{place}[]")
    elements = [NULL if piece is None else piece for piece in pieces]
    found: Encoded = []
    start = 0
    for count in counts:
        end = start + (count or 0)
        found.append(None if count is None else array_of(elements[start:end]))
        start = end
    return found


def _objects(typed: pa.Array, values: Encoded, rows: _Rows, place: str) -> Encoded:
    names = sorted((field.name for field in typed.type), key=str.encode)
    columns = [_piece(_member(typed, name), rows, f"{place}.{name}") for name in names]
    raw_names = [name.encode() for name in names]
    found: Encoded = []
    for row, is_object in enumerate(typed.is_valid().to_pylist()):
        rest = values[row]
        if not is_object:
            found.append(rest)
            continue
        here = {
            name: piece
            for name, column in zip(raw_names, columns, strict=True)
            if (piece := column[row]) is not None
        }
        if rest is not None:
            here = _united(here, rest, raw_names, rows.names(row, place), place)
        ids = _ids(here, rows.names(row, place), place) if here else []
        found.append(object_of(ids, list(here.values())))
    return found


def _united(
    here: dict[bytes, bytes], rest: bytes, columns: list[bytes], names: _Names, place: str
) -> dict[bytes, bytes]:
    """Members with columns and members without, in the order of their names."""
    try:
        members = members_of(rest)
    except ValueError as error:
        raise BrokenVariant(place, f"has a value that {error}") from None
    if members is None:
        raise BrokenVariant(place, "has a typed value that is an object, and a value that is none")
    found = dict(here)
    for id_, value in members:
        if id_ >= len(names.by_id):
            raise BrokenVariant(place, f"has a member with the id {id_}, and metadata has no such")
        name = names.by_id[id_]
        if name in found or name in columns:
            shown = name.decode(errors="replace")
            raise BrokenVariant(place, f"has the member {shown} twice, or beside its own column")
        found[name] = value
    return dict(sorted(found.items()))


def _ids(members: dict[bytes, bytes], names: _Names, place: str) -> list[int]:
    try:
        return [names.ids[name] for name in members]
    except KeyError as error:
        shown = error.args[0].decode(errors="replace")
        raise BrokenVariant(place, f"has a member {shown}, which metadata does not name") from None


def _member(group: pa.Array, name: str) -> pa.Array:
    """A member of a struct, null where the struct is."""
    return pc.struct_field(group, name)


def _plain(array: pa.Array) -> pa.Array:
    return array if array.type == pa.binary() else array.cast(pa.binary())

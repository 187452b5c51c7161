"""One hash for a set of rows, whatever their order: how rows lie in files does not matter.

Each row becomes four numbers of 64 bits that depend on all its values, and those of all rows are
added up. Everything is done for a whole batch at once; texts are hashed once for each that differs.
It tells what was changed by accident; who means to deceive could look for rows with equal sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from blake3 import blake3

from millpond.base.errors import TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Lanes = NDArray[np.uint64]
    """Four numbers for each value: an array of 4 × n."""

LANES: Final = 4


class RowsHash:
    """The hash of rows that come in batches of the same columns.

    >>> one, other = RowsHash(), RowsHash()
    >>> one.add(pa.record_batch({"a": [1, 2], "b": ["x", None]}))
    >>> for row in ({"a": [2], "b": [None]}, {"a": [1], "b": ["x"]}):
    ...     other.add(pa.record_batch({k: pa.array(v, pa.string() if k == "b" else None)
    ...                                for k, v in row.items()}))
    >>> one.digest() == other.digest(), one.rows
    (True, 2)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sums = np.zeros(LANES, np.uint64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take more rows."""
        self.rows += batch.num_rows
        total = np.zeros((LANES, batch.num_rows), np.uint64)
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            total += _mixed(_lanes(values) + _key(f"column {name}"))
        self._sums += _mixed(total + _key("row")).sum(axis=1, dtype=np.uint64)

    def digest(self) -> bytes:
        """The hash of what was taken so far."""
        content = self.rows.to_bytes(8, "little") + self._sums.astype("<u8").tobytes()
        return blake3(content).digest()


def _lanes(values: pa.Array) -> Lanes:
    """Four numbers for each value; a null has numbers of its own."""
    type_ = values.type
    if at.is_null(type_):
        return np.repeat(_key("null"), len(values), axis=1)
    if at.is_dictionary(type_):
        return _lanes(values.dictionary_decode())
    found = _of_valid(values, type_)
    if values.null_count:
        found[:, values.is_null().to_numpy(zero_copy_only=False)] = _key("null")
    return found


def _of_valid(values: pa.Array, type_: pa.DataType) -> Lanes:
    if at.is_string(type_) or at.is_large_string(type_) or at.is_string_view(type_):
        return _of_texts(values.cast(pa.large_binary()), "text")
    if at.is_binary(type_) or at.is_large_binary(type_) or at.is_fixed_size_binary(type_):
        return _of_texts(values.cast(pa.large_binary()), "bytes")
    if at.is_struct(type_):
        return _of_struct(values, type_)
    if at.is_map(type_):
        return _of_map(values)
    if at.is_list(type_) or at.is_large_list(type_):
        return _of_list(values)
    if at.is_decimal(type_):
        return _of_decimals(values)
    return _mixed(_numbers(values, type_)[np.newaxis, :] + _key(_kind(type_)))


def _kind(type_: pa.DataType) -> str:
    """Numbers of one kind that are equal have equal hashes, whatever their width."""
    if at.is_boolean(type_):
        return "truth"
    if at.is_integer(type_):
        return "integer"
    if at.is_floating(type_):
        return "fraction"
    return "date" if at.is_date(type_) else "time"


def _numbers(values: pa.Array, type_: pa.DataType) -> NDArray[np.uint64]:
    if at.is_boolean(type_):
        values = values.cast(pa.int8())
    elif at.is_date32(type_):
        values = values.cast(pa.int32())
    elif at.is_timestamp(type_):
        values = values.cast(pa.int64())
    elif not (at.is_integer(type_) or at.is_floating(type_)):
        raise TypeMismatchError(f"a column of the type {type_} can't be hashed")
    found = values.fill_null(0).to_numpy(zero_copy_only=False)
    if at.is_floating(type_):
        found = found.astype(np.float64)
        found[np.isnan(found)] = np.nan  # there are many, and they mean the same
        return np.asarray(found.view(np.uint64))
    return np.asarray(found.astype(np.int64).view(np.uint64))


def _of_texts(values: pa.Array, kind: str) -> Lanes:
    coded = values.dictionary_encode()
    digests = b"".join(blake3(text).digest() for text in coded.dictionary.to_pylist())
    known = np.frombuffer(digests, "<u8").astype(np.uint64).reshape(-1, LANES).T
    if not known.size:
        return np.zeros((LANES, len(values)), np.uint64)
    places = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return _mixed(known[:, places] + _key(kind))


def _of_decimals(values: pa.Array) -> Lanes:
    wide = values.cast(pa.decimal128(38, values.type.scale)).fill_null(0)
    words = np.frombuffer(wide.buffers()[1], "<u8", 2 * len(wide), wide.offset * 16)
    words = words.reshape(-1, 2).astype(np.uint64)
    low = _mixed(words[:, 0][np.newaxis, :] + _key("decimal"))
    return _mixed(low + words[:, 1][np.newaxis, :])


def _of_struct(values: pa.Array, type_: pa.DataType) -> Lanes:
    total = np.repeat(_key("struct"), len(values), axis=1)
    for number, child in enumerate(values.flatten()):
        total += _mixed(_lanes(child) + _key(f"member {type_.field(number).name}"))
    return _mixed(total)


def _of_list(values: pa.Array) -> Lanes:
    found = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    lengths = found.astype(np.int64)
    inner = _lanes(values.flatten())
    # The place within its list counts.
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = (np.arange(len(starts)) - starts).astype(np.uint64)
    return _summed(_mixed(inner + _mixed(places[np.newaxis, :] + _key("place"))), lengths, "list")


def _of_map(values: pa.Array) -> Lanes:
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    pairs = values.drop_null()
    edges = pairs.offsets.to_numpy()
    lengths = np.zeros(len(values), np.int64)
    lengths[is_there] = np.diff(edges)
    start, count = edges[0], edges[-1] - edges[0]
    keys = _mixed(_lanes(pairs.keys.slice(start, count)) + _key("key"))
    items = _lanes(pairs.items.slice(start, count))
    return _summed(_mixed(keys + items), lengths, "map")


def _summed(inner: Lanes, lengths: NDArray[np.int64], kind: str) -> Lanes:
    """The sums of values that belong together."""
    ends = np.cumsum(lengths)
    sums = np.concatenate([np.zeros((LANES, 1), np.uint64), np.cumsum(inner, axis=1)], axis=1)
    found = sums[:, ends] - sums[:, ends - lengths]
    return _mixed(found + _mixed(lengths.astype(np.uint64)[np.newaxis, :] + _key(kind)))


_KEYS: dict[str, Any] = {}


def _key(text: str) -> Lanes:
    """Four numbers for a text: an array of 4 × 1."""
    found = _KEYS.get(text)
    if found is None:
        digest = blake3(f"millpond rows: {text}".encode()).digest()
        found = np.frombuffer(digest, "<u8").astype(np.uint64).reshape(LANES, 1)
        found.setflags(write=False)
        if len(_KEYS) < 10_000:
            _KEYS[text] = found
    return found


def _mixed(numbers: Lanes) -> Lanes:
    """Numbers of which every bit depends on every bit of the given ones; each has its own."""
    found = numbers.copy() if not numbers.flags.writeable else numbers
    found ^= found >> np.uint64(30)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


def rows_digest(batches: Iterable[pa.RecordBatch]) -> bytes:
    """The hash of all rows of batches."""
    hasher = RowsHash()
    for batch in batches:
        hasher.add(batch)
    return hasher.digest()

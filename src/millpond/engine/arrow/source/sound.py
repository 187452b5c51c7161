"""What Parquet's reader takes as it finds it: bytes of texts, and numbers of dictionaries' texts.

Nearly all texts are ASCII, which one look at all their bytes tells several times faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.engine.arrow.source.conform import is_list

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_utf8(array: pa.Array) -> bool:
    """Whether every text in an array, at any depth, is.

    >>> is_utf8(pa.array(["é", None])), is_utf8(pa.array([b"\\xff"]).view(pa.string()))
    (True, False)
    """
    leaves = (one.dictionary if at.is_dictionary(one.type) else one for one in _leaves(array))
    return all(_is_ascii(one.buffers()[2]) or _is_valid(one) for one in leaves if _is_text(one))


def has_all_words(array: pa.Array) -> bool:
    """Whether a dictionary, at any depth, has a word for every number.

    >>> numbers = pa.array([0, None, 2], pa.int32())
    >>> few = pa.DictionaryArray.from_arrays(numbers, pa.array(["a", "b"]), safe=False)
    >>> has_all_words(few), has_all_words(pa.array(["a"]).dictionary_encode())
    (False, True)
    """
    return all(_has_words(one) for one in _leaves(array) if at.is_dictionary(one.type))


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    todo = [array]
    while todo:
        one = todo.pop()
        if isinstance(one.type, pa.BaseExtensionType):
            todo.append(one.storage)
        elif at.is_struct(one.type):
            todo += [one.field(i) for i in range(one.type.num_fields)]
        elif at.is_map(one.type):
            todo += [one.keys, one.items]
        elif is_list(one.type):
            todo.append(one.values)
        else:
            yield one


def _has_words(array: pa.DictionaryArray) -> bool:
    numbers, count = array.indices, len(array.dictionary)
    if not len(numbers):
        return True
    width = numbers.type.bit_width // 8
    raw = np.frombuffer(numbers.buffers()[1], f"u{width}", len(numbers), numbers.offset * width)
    # Nulls mostly have the number 0; where they do not, they are left out, which takes longer.
    if int(raw.max()) < count:
        return True
    limits = pc.min_max(numbers).as_py()
    return limits["max"] is None or (limits["min"] >= 0 and limits["max"] < count)


def _is_text(array: pa.Array) -> bool:
    return bool(at.is_string(array.type) or at.is_large_string(array.type))


def _is_ascii(content: pa.Buffer | None) -> bool:
    return content is None or not content.size or int(np.frombuffer(content, np.int8).min()) >= 0


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

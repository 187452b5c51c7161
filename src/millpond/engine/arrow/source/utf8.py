"""Whether the texts of a column are UTF-8: Parquet's reader takes their bytes as they are.

Nearly all texts are ASCII, which one look at all their bytes tells several times faster.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from millpond.engine.arrow.source.conform import is_list


def is_utf8(array: pa.Array) -> bool:
    """Whether every text in an array, at any depth, is.

    >>> is_utf8(pa.array(["é", None])), is_utf8(pa.array([b"\\xff"]).view(pa.string()))
    (True, False)
    """
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
        elif at.is_dictionary(one.type):
            todo.append(one.dictionary)
        elif _is_text(one.type) and not (_is_ascii(one.buffers()[2]) or _is_valid(one)):
            return False
    return True


def _is_text(type_: pa.DataType) -> bool:
    return bool(at.is_string(type_) or at.is_large_string(type_))


def _is_ascii(content: pa.Buffer | None) -> bool:
    return content is None or not content.size or int(np.frombuffer(content, np.int8).min()) >= 0


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

"""Which type can be cast to which. What a cast does to values is in docs/expressions.md."""

from __future__ import annotations

from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    List,
    is_numeric,
    is_orderable,
)

_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether a cast from one type to the other exists.

    >>> from millpond.plan.types import LONG, STRING, TIMESTAMP
    >>> can_cast(STRING, LONG), can_cast(LONG, TIMESTAMP)
    (True, False)
    """
    if source in (target, NULL):
        return True
    if isinstance(source, List) and isinstance(target, List):
        return can_cast(source.element, target.element)
    if not is_orderable(source) or not is_orderable(target):
        return False
    if source == STRING:
        return True
    if target == STRING:
        return True
    if source == BINARY or target == BINARY:
        return False
    if source in _TIMES or target in _TIMES:
        return source in _TIMES and target in _TIMES
    return all(is_numeric(type_) or type_ == BOOLEAN for type_ in (source, target))

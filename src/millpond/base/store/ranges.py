"""What a byte range may be, the same in every store."""

from __future__ import annotations

from millpond.base.errors import StoreError


def check_range(path: str, start: int, length: int) -> None:
    """Refuse negative ends: in Python they would count from the back, in HTTP they mean nothing.

    >>> check_range("a", 0, 10)
    >>> check_range("a", -1, 10)
    Traceback (most recent call last):
    ...
    millpond.base.errors.StoreError: a range of 'a' can't start at -1 with 10 bytes
    """
    if start < 0 or length < 0:
        raise StoreError(
            f"a range of {path!r} can't start at {start} with {length} bytes", path=path
        )

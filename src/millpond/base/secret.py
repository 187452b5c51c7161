"""A value that must not be seen: it survives logging, f-strings and tracebacks unshown.

Only `reveal()` gives the value out, so that a search for that word finds every use.
"""

from __future__ import annotations

from typing import NoReturn, Self


class Secret:
    """Text that never shows itself.

    >>> key = Secret("hunter2")
    >>> print(key, repr(key), f"{key:>5}")
    *** Secret(***)   ***
    >>> key.reveal()
    'hunter2'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself; pass it on at once, and keep it nowhere."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        # Pickled bytes travel to workers, caches and logs, where nothing hides the value.
        raise TypeError("a Secret is not pickled; reveal() it where it is used")

"""Typed ids: a `NodeId` can't be passed where a `TxnId` is meant, and ids sort by birth.

An id is a UUID. `new()` makes version 7 (RFC 9562): 48 bits of milliseconds, then 74 bits that
count upwards within a millisecond, so that ids made by one process are strictly increasing.
`from_digest()` makes version 8: the same digest gives the same id, which is what a node that is
computed rather than written needs.
"""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from millpond.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 74
_STEP_BITS = 32


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Id:
    """A UUID of version 7 (born at a time) or 8 (derived from a digest).

    >>> Id.from_str("01890a5d-ac96-774b-bcce-b302099a8057").timestamp.isoformat()
    '2023-06-30T03:34:18.518000+00:00'
    >>> Id.new() < Id.new()
    True
    """

    value: int

    def __post_init__(self) -> None:
        if not 0 <= self.value < 1 << 128:
            raise ConfigError(f"an id has 128 bits, not the value {self.value}")
        if self.version not in (7, 8) or self.value >> 62 & 0b11 != 0b10:
            raise ConfigError(
                f"{self} is a UUID, but not one that Millpond makes",
                hint="ids are UUIDs of version 7 or 8; use new() to make one",
            )

    @classmethod
    def new(cls) -> Self:
        """A fresh id, greater than every other that this process has made."""
        return cls(_SEQUENCE.next())

    @classmethod
    def from_str(cls, text: str) -> Self:
        """Read the 36 characters that `str(id)` writes; upper case is accepted.

        >>> Id.from_str("pond")
        Traceback (most recent call last):
        ...
        millpond.base.errors.ConfigError: 'pond' is not an id
          hint: an id looks like 01890a5d-ac96-774b-bcce-b302099a8057
        """
        lower = text.lower()
        if _TEXT.fullmatch(lower) is None:
            raise ConfigError(
                f"{text!r} is not an id",
                hint="an id looks like 01890a5d-ac96-774b-bcce-b302099a8057",
            )
        return cls(int(lower.replace("-", ""), 16))

    @classmethod
    def from_digest(cls, digest: bytes) -> Self:
        """The id of version 8 that belongs to a digest of 16 bytes or more.

        >>> Id.from_digest(bytes(16))
        Id('00000000-0000-8000-8000-000000000000')
        """
        if len(digest) < 16:
            raise ConfigError(f"a digest of {len(digest)} bytes is too short for an id: 16 needed")
        return cls(_stamped(int.from_bytes(digest[:16], "big"), version=8))

    @property
    def version(self) -> int:
        """7 for an id that was born, 8 for one that was derived."""
        return self.value >> 76 & 0xF

    @property
    def is_derived(self) -> bool:
        """Whether the id comes from a digest, and so has no time of birth."""
        return self.version == 8

    @property
    def timestamp(self) -> datetime:
        """When the id was made, in UTC, to the millisecond; derived ids have no such time."""
        if self.is_derived:
            raise ConfigError(f"{self} was derived from a digest and has no timestamp")
        return _EPOCH + timedelta(milliseconds=self.value >> 80)

    def to_bytes(self) -> bytes:
        """The 16 bytes in network order, which sort as the id does."""
        return self.value.to_bytes(16, "big")

    def __str__(self) -> str:
        h = f"{self.value:032x}"
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"


class NodeId(Id):
    """Names a node of a pond for ever, whatever its path is."""

    __slots__ = ()


class PondId(Id):
    """Names a pond, wherever it is copied to."""

    __slots__ = ()


class TxnId(Id):
    """Names a transaction."""

    __slots__ = ()


def _stamped(value: int, *, version: int) -> int:
    """`value` with its version and variant bits set."""
    value &= ~(0xF << 76) & ~(0b11 << 62)
    return value | version << 76 | 0b10 << 62


class _Sequence:
    """The one place that knows which id was made last."""

    __slots__ = ("_counter", "_lock", "_millis", "_now_ns")

    def __init__(self, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._millis = -1
        self._counter = 0

    def next(self) -> int:
        """The value of the next id: later time, or same time and a higher counter."""
        with self._lock:
            millis = self._now_ns() // 1_000_000
            if millis > self._millis:
                self._millis = millis
                # The top bit starts at 0, so that the counter has room to grow.
                self._counter = _random(_COUNTER_BITS - 1)
            else:
                # Same millisecond, or the clock went back: go on from the last id. A random
                # step keeps ids hard to guess, and apart from those of other processes.
                self._counter += 1 + _random(_STEP_BITS)
                if self._counter >> _COUNTER_BITS:
                    self._millis += 1
                    self._counter = _random(_COUNTER_BITS - 1)
            high, low = self._counter >> 62, self._counter & (1 << 62) - 1
            return _stamped(self._millis << 80 | high << 64 | low, version=7)


def _random(bits: int) -> int:
    return int.from_bytes(os.urandom((bits + 7) // 8), "big") & (1 << bits) - 1


_SEQUENCE = _Sequence()


def _restart_sequence() -> None:
    """A forked child must neither repeat its parent's counter nor wait for its lock."""
    global _SEQUENCE
    _SEQUENCE = _Sequence()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_sequence)

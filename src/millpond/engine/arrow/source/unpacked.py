"""The content of packed files, as long as there is not too much of it.

A few bytes can unpack to any number, so both the size of the content and how many times larger it
is than the file have a limit.
"""

from __future__ import annotations

import io
from typing import Any, Final

from millpond.base.errors import SourceError
from millpond.base.settings import process_limits

HARMLESS: Final = 64 << 20
"""Bytes below which nobody asks how well a file is packed."""
_BLOCK: Final = 1 << 18


class Unpacked(io.RawIOBase):
    """A stream that unpacks, with limits."""

    def __init__(self, stream: Any, name: str, packed: int | None) -> None:
        self._stream = stream
        self._name = name
        self._limits = process_limits()
        self._count = 0
        ratio = self._limits.unpacked_ratio
        self._most = HARMLESS if packed is None else max(HARMLESS, ratio * packed)

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some more, or say that it is too much."""
        found: bytes = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        self._count += len(found)
        if self._count > self._most or self._count > self._limits.unpacked_bytes:
            raise self._too_large()
        return len(found)

    def _too_large(self) -> SourceError:
        if self._count > self._limits.unpacked_bytes:
            said = f"unpacks to more than {self._limits.unpacked_bytes:,} bytes"
            setting = "limits.unpacked_bytes"
        else:
            said = f"unpacks to more than {self._limits.unpacked_ratio:,} times its size"
            setting = "limits.unpacked_ratio"
        return SourceError(
            f"{self._name} {said}",
            engine="arrow",
            path=self._name,
            hint=f"if that is right, raise {setting}",
        )

    def close(self) -> None:
        """Close what it reads from, too."""
        if not self.closed:
            self._stream.close()
        super().close()


def content_of(stream: Any, name: str, packed: int | None) -> io.BufferedReader:
    """Return the content that a stream unpacks; `packed` is the size of the file, if known."""
    return io.BufferedReader(Unpacked(stream, name, packed), _BLOCK)

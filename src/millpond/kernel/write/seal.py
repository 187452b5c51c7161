"""Seals: a text that we write carries the hash of itself, so that a flipped bit in it is found.

Commits have it in their commitInfo, checksums and the last checkpoint's hint beside the rest. Data
files and checkpoints are hashed from outside: an add action and a version's checksum name theirs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SEAL: Final = "millpondSeal"
"""The member of a JSON object that holds the hash."""
UNSEALED: Final = "0" * 64
"""What stands there while the hash is taken."""
DIGEST: Final = "millpond.blake3"
"""The tag of a data file with the hash of its bytes."""
_SEAL: Final = re.compile(b'"%s":"([0-9a-f]{64})"' % SEAL.encode())


def sealed(text: bytes) -> bytes:
    """A text with one seal that is still open, closed.

    >>> closed = sealed(b'{"n":1,"millpondSeal":"%s"}' % UNSEALED.encode())
    >>> is_intact(closed), is_intact(closed.replace(b'"n":1', b'"n":2'))
    (True, False)
    """
    return text.replace(_member(UNSEALED), _member(blake3(text).hexdigest()), 1)


def is_intact(text: bytes) -> bool | None:
    """Whether a text is as it was sealed; None if it has no seal, or more than one."""
    found = _SEAL.findall(text)
    if len(found) != 1:
        return None
    said = found[0].decode()
    return bool(blake3(text.replace(_member(said), _member(UNSEALED))).hexdigest() == said)


def _member(value: str) -> bytes:
    return f'"{SEAL}":"{value}"'.encode()


def file_digest(file: Path) -> str:
    """The hash of a local file."""
    hasher = blake3()
    hasher.update_mmap(file)
    return str(hasher.hexdigest())


def stream_digest(chunks: Iterable[bytes]) -> str:
    """The hash of bytes that come in pieces."""
    hasher = blake3()
    for chunk in chunks:
        hasher.update(chunk)
    return str(hasher.hexdigest())

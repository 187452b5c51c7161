"""Hashes of files from outside: an add action and a version's checksum name theirs.

Texts of the log carry the hash of themselves instead: see `base.textseals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DIGEST: Final = "millpond.blake3"
"""The tag of a data file with the hash of its bytes."""


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

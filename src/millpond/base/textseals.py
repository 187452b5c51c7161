"""Seals of texts: what Millpond writes as JSON carries the BLAKE3 hash of itself.

The hash is taken over the whole text, with zeros where the hash itself is. A commit holds it at
the end of its first line, and it covers the version, too: a commit under another name is refused.
Other texts hold it as some member.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Iterable

SEAL: Final = "millpondSeal"
"""The member that holds the hash."""
UNSEALED: Final = "0" * 64
"""What is in its place while the hash is taken."""
WRITER: Final = "Millpond/"
"""How `engineInfo` in our commits begins."""
_SEAL: Final = re.compile(b'"%s":"([0-9a-f]{64})"' % SEAL.encode())
_AT_END: Final = re.compile(b',"%s":"([0-9a-f]{64})"}}$' % SEAL.encode())
_HINT: Final = b"illpond"
"""Twice in the first line of a commit of ours: one wrong byte does not hide both."""
_OURS: Final = (b'"%s":' % SEAL.encode(), b'"engineInfo":"%s' % WRITER.encode())
_DIGITS: Final = 20
_VERSION: Final = b"%020d"
_LOG: Final = "/_delta_log/"


class TextSealError(ValueError):
    """A text is not as it was written."""


def sealed(text: bytes) -> bytes:
    """Close the one open seal of a text.

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


def parse_sealed(text: bytes) -> dict[str, Any] | None:
    """Return a JSON object that may be sealed; None if it is damaged or anything else.

    >>> parse_sealed(b'{"n":1}'), parse_sealed(b'{"n":1,"millpondSeal":"%s"}' % (b"1" * 64))
    ({'n': 1}, None)
    """
    if is_intact(text) is False:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _member(value: str) -> bytes:
    return f'"{SEAL}":"{value}"'.encode()


# Commits


def is_of_log(path: str) -> bool:
    """Whether a file belongs to a Delta log: commits that Millpond has written there are sealed."""
    return _LOG in path


def check_commit(text: bytes, path: str) -> None:
    """Refuse a commit of ours that is not as it was written; commits of others pass."""
    check_pieces((text,), path)


def seal_commit(text: bytes, version: int) -> bytes:
    """Close the open seal of a commit, if it has one."""
    place = seal_place(text)
    if place is None:
        return text
    hasher = blake3(_VERSION % version)
    hasher.update(text)
    digest = str(hasher.hexdigest()).encode()
    return b"".join((text[:place], digest, text[place + len(digest) :]))


def seal_of(text: bytes) -> str | None:
    """The seal of a commit; None in one of another writer."""
    place = seal_place(text)
    return None if place is None else text[place : place + len(UNSEALED)].decode()


def may_be_ours(text: bytes) -> bool:
    """Whether a commit may be one of ours, at a glance: of most commits of others that is all."""
    # Without a line end, all but the last byte is searched, which is no part of the hint.
    return text.find(_HINT, 0, text.find(b"\n")) >= 0


def seal_place(text: bytes) -> int | None:
    """Where a commit's seal is, given at least its first line; None in one of another writer."""
    if not may_be_ours(text):
        return None
    end = text.find(b"\n")
    line = text if end < 0 else text[:end]
    found = _AT_END.search(line)
    if found is not None:
        return found.start(1)
    if any(mark in line for mark in _OURS):
        raise TextSealError("the seal in its first line is damaged")
    return None


def check_pieces(pieces: Iterable[bytes], path: str) -> None:
    """Refuse a commit of ours that is not as it was written; it comes in pieces.

    Its name, published or staged, begins with its version. Of a commit of another writer, no more
    than the first line is taken.
    """
    rest = iter(pieces)
    first = b""
    for piece in rest:
        first += piece
        if b"\n" in piece:
            break
    place = seal_place(first)
    if place is None:
        return
    end = place + len(UNSEALED)
    hasher = blake3(path.rpartition("/")[2][:_DIGITS].encode())
    hasher.update(first[:place])
    hasher.update(UNSEALED.encode())
    hasher.update(memoryview(first)[end:])
    for piece in rest:
        hasher.update(piece)
    if str(hasher.hexdigest()).encode() != first[place:end]:
        raise TextSealError("it is not what was written: its content does not fit its seal")

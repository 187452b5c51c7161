"""Commits of Delta logs: those of ours are compared with their seals before any line counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.textseals import TextSealError, check_pieces, seal_place
from millpond.engine.arrow.source.files import damaged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.base.errors import SourceError


def check_seal(path: str, pieces: Iterable[bytes]) -> None:
    """Refuse a commit that is not as it was written; the first piece holds the first line."""
    try:
        check_pieces(pieces, path)
    except TextSealError as error:
        raise _damaged(path, error) from error


def is_sealed(path: str, first: bytes) -> bool:
    """Whether a commit that begins like this has a seal."""
    try:
        return seal_place(first) is not None
    except TextSealError as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: TextSealError) -> SourceError:
    return damaged(path, f"{path} is damaged: {error}")

"""Commits of Delta logs: the driver compares those of ours with their seals before Spark reads.

Spark knows no BLAKE3. Commits are small, and the driver has listed them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import ObjectNotFoundError, SourceError
from millpond.base.textseals import TextSealError, check_pieces, is_of_log

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_commits(paths: Iterable[str]) -> None:
    """Refuse commits that are not as they were written; Spark reports one that is missing."""
    from millpond.base.store import open_store

    for path in filter(is_of_log, paths):
        folder, _, name = path.removeprefix("file:").rpartition("/")
        try:
            check_pieces(open_store(folder or "/").get_stream(name), path)
        except ObjectNotFoundError:
            continue
        except TextSealError as error:
            raise SourceError(
                f"{path} is damaged: {error}",
                engine="spark",
                path=path,
                hint="the file is damaged: write it anew, or restore it",
            ) from error

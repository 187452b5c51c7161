"""The size of a path and when it was written: what is known of it before it is computed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.provider.reading import Facts

if TYPE_CHECKING:
    from millpond.steward.scope import Scope


def pond_facts(scope: Scope, path: str) -> Facts:
    """Of a path of the pond; of a series of bytes, all versions together."""
    stat = scope.stat(path)
    if not stat.entry_type.is_bytes:
        return Facts(stat.size, stat.modified)
    return Facts(sum(row.size or 0 for row in scope.byte_rows(path)), stat.modified)


def host_facts(path: str) -> Facts:
    """Of a file of this machine."""
    from millpond.steward.copying.host import translated

    with translated(path):
        found = Path(path).stat()
    return Facts(found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

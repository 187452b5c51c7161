"""Writing Delta tables: `Transaction` and `create_table`, and the upkeep of a log.

Names are imported when they are first used: who commits does not pay for checkpoints.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.kernel.write.checkpoint import CheckpointResult, write_checkpoint
    from millpond.kernel.write.checksum import write_checksum
    from millpond.kernel.write.clean import Removed, clean_log
    from millpond.kernel.write.commit import StagedCommit, publish_commit
    from millpond.kernel.write.compact import compact_log
    from millpond.kernel.write.create import create_table
    from millpond.kernel.write.transaction import CommitResult, Transaction

_HOMES = {
    "CheckpointResult": "checkpoint",
    "CommitResult": "transaction",
    "Removed": "clean",
    "StagedCommit": "commit",
    "Transaction": "transaction",
    "clean_log": "clean",
    "compact_log": "compact",
    "create_table": "create",
    "publish_commit": "commit",
    "write_checkpoint": "checkpoint",
    "write_checksum": "checksum",
}

__all__ = [
    "CheckpointResult",
    "CommitResult",
    "Removed",
    "StagedCommit",
    "Transaction",
    "clean_log",
    "compact_log",
    "create_table",
    "publish_commit",
    "write_checkpoint",
    "write_checksum",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found

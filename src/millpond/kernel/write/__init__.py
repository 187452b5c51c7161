"""Writing Delta tables: `Transaction` and `create_table`, and the upkeep of a log."""

from __future__ import annotations

from millpond.kernel.write.checkpoint import CheckpointResult, write_checkpoint
from millpond.kernel.write.checksum import write_checksum
from millpond.kernel.write.clean import Removed, clean_log
from millpond.kernel.write.commit import StagedCommit, publish_commit
from millpond.kernel.write.compact import compact_log
from millpond.kernel.write.create import create_table
from millpond.kernel.write.transaction import CommitResult, Transaction

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

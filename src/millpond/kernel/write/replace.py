"""A log that begins again: one commit with the whole state of a table, then its checkpoint.

Nothing before that commit is read, so a log that is damaged can be replaced, too. The commit is
the moment of the change; where the older log can't be read, the checkpoint is.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from millpond.kernel.names import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    LogName,
    commit_name,
    file_name,
    parse_name,
)
from millpond.kernel.segment import LogFile, LogSegment
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.table import DeltaTable
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.kernel.write.commit import encode_commit, log_path, put_commit
from millpond.kernel.write.info import Operation, engine_info
from millpond.kernel.write.listed import millis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millpond.base.settings import Settings
    from millpond.base.store import Store
    from millpond.kernel.actions import Metadata, Protocol


def next_version(store: Store) -> int:
    """Return the first version after all that names in the log mention.

    >>> from millpond.base.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> next_version(store)
    0
    >>> _ = store.put("_delta_log/00000000000000000007.crc", b"")
    >>> next_version(store)
    8
    """
    names = (parse_name(file_name(meta.path)) for meta in store.list(f"{LOG_DIRECTORY}/"))
    return max((name.end for name in names if name is not None), default=-1) + 1


def begin_again(
    store: Store,
    location: str,
    version: int,
    described: tuple[Protocol, Metadata],
    *,
    adds: Iterable[Mapping[str, Any]],
    removes: Iterable[Mapping[str, Any]],
    info: Mapping[str, Any],
    settings: Settings | None = None,
) -> bool:
    """Commit the whole state of a table as a version; False if another commit took its number."""
    protocol, metadata = described
    txn_id = str(uuid.uuid4())
    about = {
        **info,
        "timestamp": int(time.time() * 1000),
        **Operation("CREATE OR REPLACE TABLE", {}).to_dict(),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": engine_info(),
        "txnId": txn_id,
    }
    actions: list[tuple[str, Mapping[str, Any]]] = [
        ("commitInfo", about),
        ("protocol", protocol.to_dict()),
        ("metaData", metadata.to_dict()),
        *(("remove", action) for action in removes),
        *(("add", action) for action in adds),
    ]
    if not put_commit(store, version, encode_commit(actions, version), txn_id):
        return False
    # It is only a hint, and may name a version that never was.
    store.delete(log_path(LAST_CHECKPOINT))
    meta = store.head(log_path(commit_name(version)))
    name = LogName("commit", version, version)
    commit = LogFile(f"{location}/{meta.path}", name, meta.size, millis(meta))
    segment = LogSegment(location, version, None, (commit,))
    write_checkpoint(DeltaTable(Snapshot(segment, protocol, metadata), settings))
    return True

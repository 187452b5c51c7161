"""Checksums of versions (`.crc`): protocol, metadata, and how many files of what size there are.

A commit knows its version's checksum from the one before; a checkpoint counts all files anyway.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import ObjectExistsError, ObjectNotFoundError
from millpond.base.store import open_store
from millpond.base.textseals import SEAL, UNSEALED, parse_sealed, sealed
from millpond.kernel.names import checksum_name
from millpond.kernel.scan import Scan
from millpond.kernel.times import has_stated_times
from millpond.kernel.write.commit import log_path
from millpond.kernel.write.seal import DIGEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.store import Store
    from millpond.kernel.actions import Metadata, Protocol
    from millpond.kernel.table import DeltaTable
    from millpond.kernel.write.pending import Pending


COMMIT: Final = "millpond.commit"
"""The member with the seal of the version's commit, which the next commit names."""


def write_checksum(table: DeltaTable) -> dict[str, Any]:
    """Count the live files, and write the version's checksum; one that is there stays."""
    import pyarrow.compute as pc

    files, size = 0, 0
    for batch in Scan(table.snapshot, ("size",)).machine(table.log_engine("auto")):
        files += batch.num_rows
        size += pc.sum(batch.column("size")).as_py() or 0
    stated = time_stated_by(table)
    found = checksum(table.protocol, table.metadata, files=files, size=size, stated_time=stated)
    put_checksum(open_store(table.location, settings=table.settings), table.version, found)
    return found


def time_stated_by(table: DeltaTable) -> int | None:
    """The time that the version's commit states; None where commits do not."""
    if not has_stated_times(table.snapshot):
        return None
    found = table.history(1)
    stated = found[0].get("inCommitTimestamp") if found else None
    return stated if isinstance(stated, int) else None


def checksum(
    protocol: Protocol,
    metadata: Metadata,
    *,
    files: int,
    size: int,
    txn_id: str | None = None,
    stated_time: int | None = None,
    digests: Mapping[str, str] | None = None,
    seal: str | None = None,
) -> dict[str, Any]:
    """Return what a checksum holds.

    `digests` are the hashes of a checkpoint's files, by name; `seal` is that of the commit.
    """
    found: dict[str, Any] = {} if txn_id is None else {"txnId": txn_id}
    if stated_time is not None:
        found["inCommitTimestampOpt"] = stated_time
    return found | {
        "tableSizeBytes": size,
        "numFiles": files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata.to_dict(),
        "protocol": protocol.to_dict(),
        **({} if digests is None else {DIGEST: dict(digests)}),
        **({} if seal is None else {COMMIT: seal}),
    }


def commit_seal(known: Mapping[str, Any] | None) -> str | None:
    """Return the seal of a version's commit, if its checksum holds it."""
    found = (known or {}).get(COMMIT)
    return found if isinstance(found, str) else None


def counted_on(known: Mapping[str, Any] | None, pending: Pending) -> tuple[int, int] | None:
    """How many files of what size there are after a commit; None if that is not known."""
    if known is None or not pending.is_counted:
        return None
    files, size = known.get("numFiles"), known.get("tableSizeBytes")
    sizes = [remove.get("size") for remove in pending.removes.values()]
    if type(files) is not int or type(size) is not int or not all(type(s) is int for s in sizes):
        return None
    added = sum(int(add["size"]) for add in pending.adds.values())
    files += len(pending.adds) - len(pending.removes)
    return files, size + added - sum(s for s in sizes if s is not None)


def put_checksum(store: Store, version: int, found: Mapping[str, Any]) -> None:
    """Write a checksum; to one that is there, only the hashes of checkpoints are added."""
    try:
        store.put(log_path(checksum_name(version)), _encoded(found))
    except ObjectExistsError:
        if DIGEST not in found:
            return
        known = read_checksum(store, version)
        if known is not None:
            digests = {**known.get(DIGEST, {}), **found[DIGEST]}
            text = _encoded({**known, DIGEST: digests})
            store.put(log_path(checksum_name(version)), text, mode="overwrite")


def _encoded(found: Mapping[str, Any]) -> bytes:
    own = {name: value for name, value in found.items() if name != SEAL}
    text = json.dumps({**own, SEAL: UNSEALED}, separators=(",", ":"), ensure_ascii=False)
    return sealed(text.encode())


def read_checksum(store: Store, version: int) -> dict[str, Any] | None:
    """Return a version's checksum; None if it has none, or one that is damaged."""
    try:
        return parse_sealed(store.get(log_path(checksum_name(version))))
    except ObjectNotFoundError:
        return None

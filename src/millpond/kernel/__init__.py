"""The Delta kernel: reading and committing as state machines that emit plans.

Names are imported when they are first used: who reads does not pay for writing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.kernel.machine import (
        Consume,
        PartialResult,
        StateMachine,
        StateMachinePhase,
        Terminus,
    )
    from millpond.kernel.open import SnapshotBuilder
    from millpond.kernel.scan import Scan, ScanBuilder
    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable, delta_table
    from millpond.kernel.waiting import AsyncStateMachine
    from millpond.kernel.write.create import create_table
    from millpond.kernel.write.transaction import Transaction

_HOMES = {
    "AsyncStateMachine": "waiting",
    "Consume": "machine",
    "DeltaTable": "table",
    "LogFile": "segment",
    "PartialResult": "machine",
    "Scan": "scan",
    "ScanBuilder": "scan",
    "Snapshot": "snapshot",
    "SnapshotBuilder": "open",
    "StateMachine": "machine",
    "StateMachinePhase": "machine",
    "Terminus": "machine",
    "Transaction": "write.transaction",
    "create_table": "write.create",
    "delta_table": "table",
}

__all__ = [
    "AsyncStateMachine",
    "Consume",
    "DeltaTable",
    "LogFile",
    "PartialResult",
    "Scan",
    "ScanBuilder",
    "Snapshot",
    "SnapshotBuilder",
    "StateMachine",
    "StateMachinePhase",
    "Terminus",
    "Transaction",
    "create_table",
    "delta_table",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found

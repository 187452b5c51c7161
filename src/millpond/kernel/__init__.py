"""The Delta kernel: reading and committing as state machines that emit plans."""

from __future__ import annotations

from millpond.kernel.machine import (
    AsyncStateMachine,
    Consume,
    PartialResult,
    StateMachine,
    StateMachinePhase,
    Terminus,
)
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.scan import Scan, ScanBuilder
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.write.create import create_table
from millpond.kernel.write.transaction import Transaction

__all__ = [
    "AsyncStateMachine",
    "Consume",
    "DeltaTable",
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

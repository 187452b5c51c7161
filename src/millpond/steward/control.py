"""The control table: what was done in a pond, when and by whom; its identity and its settings.

It is a Delta table of its own and can be rebuilt from the OpLog, so a row that could not be
written is a warning, never a reason to undo data.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import MillpondError, TableNotFoundError
from millpond.fs.entry import to_micros
from millpond.fs.oplog.columns import column
from millpond.fs.oplog.log import LogState, NewFile, RowLog
from millpond.plan.types import LONG, STRING, TIMESTAMP, DataType, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millpond.base.settings import Settings

DIRECTORY: Final = "control"
MOST_ATTEMPTS: Final = 200
COMPACT_FILES: Final = 64
"""When so many small files have come together, they are written as one."""
_log = logging.getLogger("millpond.steward")

SCHEMA: Final = Struct.of(
    record_category=STRING,
    record_type=STRING,
    txn_seq=LONG,
    txn_id=STRING,
    based_on_seq=LONG,
    timestamp=TIMESTAMP,
    transaction_type=STRING,
    cli_args=STRING,
    environment=STRING,
    data_fs_version=LONG,
    error_message=STRING,
    duration_ms=LONG,
    parent_txn_seq=LONG,
    execution_seq=LONG,
    factory_name=STRING,
    config_path=STRING,
    key=STRING,
    value=STRING,
)
_ARROW: Final[dict[DataType, pa.DataType]] = {
    STRING: pa.string(),
    LONG: pa.int64(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of the control table."""

    record_category: str = "transaction"
    record_type: str
    txn_seq: int | None = None
    txn_id: str | None = None
    based_on_seq: int | None = None
    timestamp: int = 0
    transaction_type: str | None = None
    cli_args: str | None = None
    environment: str | None = None
    data_fs_version: int | None = None
    error_message: str | None = None
    duration_ms: int | None = None
    parent_txn_seq: int | None = None
    execution_seq: int | None = None
    factory_name: str | None = None
    config_path: str | None = None
    key: str | None = None
    value: str | None = None


_NAMES: Final = tuple(field.name for field in fields(Record))


class Control:
    """The control table of one pond."""

    def __init__(
        self, location: str, *, clock: Clock | None = None, settings: Settings | None = None
    ) -> None:
        self.log = RowLog(f"{location}/{DIRECTORY}", None, settings=settings)
        self._clock = clock or SystemClock()
        self._state: LogState | None = None

    def create(self) -> None:
        """Make the table, if it is not there."""
        try:
            self._state = self.log.open()
        except TableNotFoundError:
            self._state = self.log.create(
                SCHEMA, {}, name="control", configuration={"delta.checkpointInterval": "1000000"}
            )

    def state(self) -> LogState:
        """The newest state of the table."""
        self._state = self.log.open() if self._state is None else self.log.refresh(self._state)
        return self._state

    # Writing

    def record(self, *records: Record) -> None:
        """Append records; a failure is told and goes no further."""
        try:
            self.append(records)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the control table could not be written: %s", error)

    def append(self, records: Sequence[Record]) -> None:
        """Append records, behind whatever others append."""
        now = to_micros(self._clock.now())
        content = _encoded(records, now)
        state = self._state if self._state is not None else self.state()
        txn_id = str(uuid.uuid4())
        for attempt in range(MOST_ATTEMPTS):
            file = NewFile({}, content, len(records))
            made = self.log.commit(state, [file], {"timestamp": now}, txn_id=txn_id)
            if made is not None:
                self._state = made
                self._look_after(made)
                return
            time.sleep(random.uniform(0, min(0.05, 0.002 * (attempt + 1))))
            self._state = state = self.log.refresh(state)
        raise MillpondError("the control table is busy", hint="try again")

    def _look_after(self, state: LogState) -> None:
        try:
            self.log.look_after(state.version)
            if state.version % COMPACT_FILES == 0:
                self.compact()
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the control table could not be looked after: %s", error)

    def compact(self) -> bool:
        """Write many small files as one; whether that was done."""
        state = self.state()
        paths = state.files.get("", ())
        if len(paths) < 2:
            return False
        table = pa.concat_tables([self._read(path) for path in paths])
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        now = to_micros(self._clock.now())
        removed = [
            {"path": path, "deletionTimestamp": now // 1000, "dataChange": False} for path in paths
        ]
        made = self.log.commit(
            state,
            [NewFile({}, bytes(sink.getvalue()), table.num_rows)],
            {"timestamp": now},
            txn_id=str(uuid.uuid4()),
            removed=removed,
            data_change=False,
            operation="OPTIMIZE",
        )
        if made is not None:
            self._state = made
        return made is not None

    # Reading

    def _read(self, path: str) -> pa.Table:
        return pq.read_table(pa.BufferReader(self.log.store.get(path)))

    def table(self) -> pa.Table:
        """All records, oldest first."""
        paths = self.state().files.get("", ())
        tables = [self._read(path) for path in paths]
        if not tables:
            return pa.table([column([], _ARROW[f.type]) for f in SCHEMA], names=list(SCHEMA.names))
        return pa.concat_tables(tables).sort_by("timestamp")

    def records(self) -> list[dict[str, Any]]:
        """All records, oldest first."""
        found: list[dict[str, Any]] = self.table().to_pylist()
        return found

    def metadata(self) -> dict[str, str]:
        """Identity and settings: the newest value of each."""
        found: dict[str, str | None] = {}
        for row in self.records():
            if row["record_category"] == "metadata" and row["key"] is not None:
                found[row["key"]] = row["value"]
        return {key: value for key, value in found.items() if value is not None}

    def set(self, values: Mapping[str, str | None]) -> None:
        """Set or, with None, take away values of identity or settings."""
        self.append(
            [
                Record(record_category="metadata", record_type="set", key=key, value=value)
                for key, value in values.items()
            ]
        )


def _encoded(records: Iterable[Record], now: int) -> bytes:
    rows = list(records)
    arrays = []
    for field in SCHEMA:
        values = [getattr(row, field.name) for row in rows]
        if field.name == "timestamp":
            # Records that are written together keep their order.
            values = [value or now + number for number, value in enumerate(values)]
        arrays.append(column(values, _ARROW[field.type]))
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(arrays, names=list(SCHEMA.names)), sink, compression="zstd", use_dictionary=False
    )
    return bytes(sink.getvalue())


def as_json(value: Any) -> str:
    """A value for a column that holds JSON."""
    return json.dumps(value, default=str, sort_keys=True)

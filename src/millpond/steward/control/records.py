"""Records of the control table: what became of a transaction, step by step, and settings.

`Record` is a row; `Transaction` is what the records of one transaction say together.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import IntegrityError
from millpond.base.redact import storable
from millpond.base.seals import BrokenSealError, check_bytes, mark_in
from millpond.base.textseals import SEAL, UNSEALED, is_intact, sealed
from millpond.fs.entry import from_micros
from millpond.fs.oplog.columns import column
from millpond.plan.types import LONG, STRING, TIMESTAMP, DataType, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from millpond.base.store import Store

CATEGORY: Final = "record_category"
"""The partition column: settings are found without reading any transaction."""
TRANSACTION: Final = "transaction"
METADATA: Final = "metadata"

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
_STORED: Final = {f.name: _ARROW[f.type] for f in SCHEMA if f.name != CATEGORY}

ENDS: Final = frozenset({"completed", "failed", "post_commit_completed", "post_commit_failed"})
"""After one of these a transaction is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of the control table; times are microseconds since 1970, UTC."""

    record_category: str = TRANSACTION
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

    @property
    def is_end(self) -> bool:
        """Whether a transaction is over with it."""
        return self.record_category == TRANSACTION and self.record_type in ENDS

    def to_row(self) -> dict[str, Any]:
        """As the table gives it."""
        return {**asdict(self), "timestamp": from_micros(self.timestamp)}


_NAMES: Final = tuple(field.name for field in fields(Record))


def to_parquet(records: Sequence[Record]) -> bytes:
    """Records of one category as a file; columns that are all null are left out of it."""
    found: dict[str, pa.Array] = {}
    for name, type_ in _STORED.items():
        values = [getattr(record, name) for record in records]
        if type_ == _ARROW[STRING]:
            values = [None if value is None else storable(value) for value in values]
        if any(value is not None for value in values):
            found[name] = column(values, type_)
    # A file of a few rows is gone soon: neither packing it nor statistics would be worth the time.
    return write_table(pa.table(found), compression="none", is_small=True)


def write_table(table: pa.Table, *, compression: str, is_small: bool = False) -> bytes:
    """Rows as a file in memory."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=compression,
        use_dictionary=not is_small,
        write_statistics=not is_small,
        write_page_checksum=True,
        store_schema=False,
    )
    return bytes(sink.getvalue())


def read_file(store: Store, path: str, category: str) -> pa.Table:
    """Return the rows of a file of the table, with all columns; a damaged one is refused."""
    content = store.get(path)
    try:
        check_bytes(content, mark_in(path))
    except BrokenSealError as error:
        raise IntegrityError(
            f"{store.url}/{path}, which holds records of the control table, is damaged: {error}",
            path=path,
            hint="pond control rebuild keeps all records that can be read",
        ) from error
    return from_parquet(content, category)


def from_parquet(content: bytes, category: str) -> pa.Table:
    """The rows of a file, with all columns of the table."""
    file = pq.ParquetFile(pa.BufferReader(content))
    return aligned(file.read(use_threads=False), category)


def aligned(found: pa.Table, category: str) -> pa.Table:
    """Rows with all columns of the table."""
    rows = found.num_rows
    arrays: dict[str, Any] = {CATEGORY: column([category] * rows, pa.string())}
    for name, type_ in _STORED.items():
        is_there = name in found.schema.names
        arrays[name] = found.column(name).cast(type_) if is_there else column([None] * rows, type_)
    return pa.table(arrays)


def empty_table() -> pa.Table:
    """No rows, all columns."""
    return aligned(pa.table({}), TRANSACTION)


def stored_columns(table: pa.Table) -> pa.Table:
    """Rows as their file holds them: what directories say is left out."""
    return table.drop_columns([CATEGORY])


def to_text(records: Iterable[Record]) -> bytes:
    """Records as JSON, sealed."""
    rows = [{n: v for n in _NAMES if (v := getattr(r, n)) is not None} for r in records]
    return sealed(json.dumps({"records": rows, SEAL: UNSEALED}, separators=(",", ":")).encode())


def from_text(text: bytes) -> list[Record]:
    """Records out of JSON; raises ValueError if it is not what was written."""
    if not is_intact(text):
        raise ValueError("it is damaged")
    rows = json.loads(text)["records"]
    return [Record(**{k: v for k, v in row.items() if k in _NAMES}) for row in rows]


def as_json(value: Any) -> str:
    """A value for a column that holds JSON."""
    return json.dumps(value, default=str, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Transaction:
    """What the records of one transaction say."""

    txn_id: str
    txn_seq: int | None
    kind: str | None
    state: str
    """Its last record's type; `begin` is at work, or dead."""
    begun: datetime
    ended: datetime | None
    duration_ms: int | None
    cli_args: Any
    """The command line, or the message, that it was begun with."""
    environment: Mapping[str, Any]
    error_message: str | None
    based_on_seq: int | None
    data_fs_version: int | None
    parent_txn_seq: int | None
    execution_seq: int | None
    factory_name: str | None
    config_path: str | None

    @property
    def is_over(self) -> bool:
        """Whether it has come to an end, good or bad."""
        return self.state in ENDS

    @property
    def is_failed(self) -> bool:
        """Whether that was a bad one."""
        return self.state in ("failed", "post_commit_failed")


def transactions(rows: Iterable[Mapping[str, Any]]) -> list[Transaction]:
    """Transactions out of rows that come in the order of their times, in the order they began."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row[CATEGORY] == TRANSACTION and row["txn_id"] is not None:
            grouped.setdefault(row["txn_id"], []).append(row)
    return [_transaction(txn_id, rows) for txn_id, rows in grouped.items()]


def _transaction(txn_id: str, rows: Sequence[Mapping[str, Any]]) -> Transaction:
    def last(name: str) -> Any:
        return next((row[name] for row in reversed(rows) if row[name] is not None), None)

    over = [row for row in rows if row["record_type"] in ENDS]
    state = (over or rows)[-1]
    return Transaction(
        txn_id=txn_id,
        txn_seq=last("txn_seq"),
        kind=last("transaction_type"),
        state=state["record_type"],
        begun=rows[0]["timestamp"],
        ended=state["timestamp"] if over else None,
        duration_ms=last("duration_ms"),
        cli_args=_parsed(last("cli_args")),
        environment=_parsed(last("environment")) or {},
        error_message=last("error_message"),
        based_on_seq=rows[0]["based_on_seq"],
        data_fs_version=last("data_fs_version"),
        parent_txn_seq=last("parent_txn_seq"),
        execution_seq=last("execution_seq"),
        factory_name=last("factory_name"),
        config_path=last("config_path"),
    )


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)

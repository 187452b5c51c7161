"""Nodes that rows come from: files, listings, memory, and paths of a pond."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from millpond.base.errors import PlanError, SchemaError
from millpond.plan.arrow import conform, from_arrow_schema
from millpond.plan.node import Plan, Unary
from millpond.plan.stored_fields import STORED_ID as STORED_ID
from millpond.plan.stored_fields import STORED_NAME as STORED_NAME
from millpond.plan.stored_fields import check_stored, is_renamed, logical
from millpond.plan.types import BINARY, LONG, STRING, TIMESTAMP, Field, List, Struct

if TYPE_CHECKING:
    import pyarrow as pa

Format: TypeAlias = Literal["parquet", "json", "csv", "bytes"]
FORMATS: tuple[Format, ...] = ("parquet", "json", "csv", "bytes")
OnError: TypeAlias = Literal["error", "null"]
"""What becomes of a value of a text file that does not fit the type of its column."""
ON_ERROR: tuple[OnError, ...] = ("error", "null")
CONTENT = "content"
"""The one column (binary) of a file that is read as bytes."""
RANGE = ("offset", "length")
"""Constants (long) that say which part of a file is its content; null is no limit."""

_CONSTANTS = attrgetter("constants")

LISTING = Struct(
    (Field("path", STRING, False), Field("size", LONG, False), Field("modified", TIMESTAMP))
)


def _check_format(format_: str, columns: Struct, constants: tuple[str, ...], on_error: str) -> None:
    if format_ not in FORMATS:
        raise PlanError(f"unknown format {format_!r}", hint=f"one of {', '.join(FORMATS)}")
    if on_error not in ON_ERROR:
        raise PlanError(f"on_error={on_error!r} is unknown", hint="'error' or 'null'")
    if on_error != "error" and format_ not in ("json", "csv"):
        raise PlanError(f"on_error does not fit a {format_} scan", hint="leave it out")
    columns.select(constants)
    check_stored(columns)
    if format_ != "parquet" and is_renamed(columns):
        raise PlanError(
            f"a {format_} file holds no columns under other names", hint="only Parquet files do"
        )
    for field in columns if format_ == "bytes" else ():
        if field.name in constants:
            if field.name in RANGE and field.type != LONG:
                raise SchemaError(f"the {field.name} of a file's content is a long, not {field}")
        elif (field.name, field.type) != (CONTENT, BINARY):
            raise SchemaError(
                f"a file of bytes has no column {field}",
                hint=f"{CONTENT}: binary, and constants; {' and '.join(RANGE)} choose a part",
            )


@dataclass(frozen=True, slots=True)
class File:
    """A file that a scan reads: a path or URL, what is known about it, and its constants."""

    path: str
    size: int | None = None
    rows: int | None = None
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known about a column of a scan's rows, for estimates only."""

    path: str
    min: Any = None
    max: Any = None
    null_fraction: float | None = None
    distinct: int | None = None


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How a CSV file is written. An unquoted empty field is null."""

    delimiter: str = ","
    quote: str = '"'
    has_header: bool = True

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            given = getattr(self, name)
            if not isinstance(given, str) or len(given) != 1:
                raise PlanError(f"a CSV {name} is one character, not {given!r}")
            if not given.isascii() or given in "\r\n\0":
                raise PlanError(
                    f"{given!r} can't be a CSV {name}",
                    hint="a character of ASCII, and none that ends a line",
                )
        if not isinstance(self.has_header, bool):
            raise PlanError(f"a CSV file has a header or not: {self.has_header!r}", hint="True")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListFiles(Plan):
    """The files right below a path, by name, from `start_from` on."""

    path: str
    start_from: str | None = None

    def __post_init__(self) -> None:
        self._set_schema(LISTING)

    def label(self) -> str:
        """The path."""
        return self.path + (f" from {self.start_from}" if self.start_from else "")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan(Plan):
    """The rows of files of one format, file by file, in order.

    `columns` are what is read and given, by name. A column that a file lacks is null; one of a
    narrower type is widened. Columns named in `constants` are not in the files: each file brings
    their values, in that order, as Python values that `literal` takes.

    Fields of `columns`, at any depth, may say under which name (`STORED_NAME`) or Parquet field id
    (`STORED_ID`) files hold them; the node's schema says no such thing. A file in which any field
    has an id is asked for the id alone, one without ids for the name.

    A value of a text file that does not fit its column is an error, or null with
    `on_error="null"`. A `strict` scan also refuses what would only be converted: a JSON number
    where text is wanted, text of a CSV file that does not look like its guessed type
    (`engine/looks.py`), text in a Parquet file that is not UTF-8.

    A file of the format "bytes" is one row with one column, `content`: the whole file, or the part
    that the constants `offset` and `length` name, as far as the file has it.
    """

    format: Format
    files: tuple[File, ...]
    columns: Struct
    constants: tuple[str, ...] = ()
    csv: CsvOptions | None = None
    stats: tuple[ColumnStats, ...] = ()
    strict: bool = False
    on_error: OnError = "error"

    def __post_init__(self) -> None:
        _check_format(self.format, self.columns, self.constants, self.on_error)
        if self.strict and self.format == "bytes":
            raise PlanError(f"strict reading does not fit a {self.format} scan")
        if self.strict and self.on_error != "error":
            raise PlanError("a strict scan does not read what does not fit as null")
        if self.csv is not None and self.format != "csv":
            raise PlanError(f"CSV options do not fit a {self.format} scan")
        # A table may have a million files: they are counted without a loop of our own.
        if {len(self.constants)} != {len(self.constants), *map(len, map(_CONSTANTS, self.files))}:
            wrong = next(f for f in self.files if len(f.constants) != len(self.constants))
            raise SchemaError(
                f"{wrong.path} brings {len(wrong.constants)} constants, not {len(self.constants)}"
            )
        self._set_schema(logical(self.columns))

    @property
    def file_columns(self) -> Struct:
        """The columns that are read from the files."""
        return Struct(tuple(f for f in self.columns if f.name not in self.constants))

    def narrowed(self, columns: Struct) -> Scan:
        """A scan of fewer columns; constants that are no longer wanted go, too."""
        kept = [i for i, name in enumerate(self.constants) if name in columns]
        if len(kept) == len(self.constants):
            return replace(self, columns=columns)
        files = tuple(replace(f, constants=tuple(f.constants[i] for i in kept)) for f in self.files)
        names = tuple(self.constants[i] for i in kept)
        return replace(self, files=files, columns=columns, constants=names)

    def label(self) -> str:
        """The format, the files and the columns."""
        count = f"{len(self.files)} file{'' if len(self.files) == 1 else 's'}"
        return f"{self.format} [{count}] ({', '.join(map(str, self.columns))})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicScan(Unary, Plan):
    """The rows of the files that the input's rows name, in the input's order.

    `path_column` names the file. `constants` are columns of the input whose value goes with every
    row of the file. `deleted` is a column of sorted row positions (list<long>) to leave out; null
    is none. `columns` are as in `Scan`. `expected_bytes` is for estimates alone: how much all
    files have together, where that is known.
    """

    input: Plan
    format: Format
    columns: Struct
    path_column: str = "path"
    constants: tuple[str, ...] = ()
    deleted: str | None = None
    expected_bytes: int | None = None
    on_error: OnError = "error"

    def __post_init__(self) -> None:
        _check_format(self.format, self.columns, self.constants, self.on_error)
        given = self.input.schema
        if given.field(self.path_column).type != STRING:
            raise SchemaError(f"{self.path_column!r} has to hold paths as strings")
        for name in self.constants:
            if given.field(name).type != logical(self.columns).field(name).type:
                raise SchemaError(f"the constant {name!r} changes its type on the way")
        if self.deleted is not None:
            rows = given.field(self.deleted).type
            if not (isinstance(rows, List) and rows.element == LONG):
                raise SchemaError(f"{self.deleted!r} has to be list<long>, not {rows}")
            if self.format != "parquet":
                raise PlanError("only Parquet files have row positions to leave out")
        self._set_schema(logical(self.columns))

    def label(self) -> str:
        """The format, where paths come from, and the columns."""
        return f"{self.format} by {self.path_column} ({', '.join(map(str, self.columns))})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Values(Plan):
    """Rows in memory."""

    data: pa.Table

    def __post_init__(self) -> None:
        schema = from_arrow_schema(self.data.schema)
        for field, column in zip(schema, self.data.columns, strict=True):
            if column.null_count and not field.nullable:
                raise SchemaError(f"the column {field.name!r} holds nulls and says it has none")
        object.__setattr__(self, "data", conform(self.data, schema))
        self._set_schema(schema)

    def label(self) -> str:
        """How many rows, and the columns."""
        return f"[{self.data.num_rows} rows] ({', '.join(map(str, self.schema))})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stored(Plan):
    """The rows of a path of a pond. A scope says at execution which version that is."""

    path: str
    columns: Struct

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise PlanError(f"a stored path starts with '/': {self.path!r}")
        self._set_schema(self.columns)

    def label(self) -> str:
        """The path and the columns."""
        return f"{self.path} ({', '.join(map(str, self.columns))})"

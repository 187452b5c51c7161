"""A CSV file as columns of text: the one way in which CSV is taken apart, for guesses and rows.

An unquoted empty field is null, a quoted one is empty text.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa

from millpond.base.settings import process_limits
from millpond.engine.arrow.source.files import ENGINE, unreadable
from millpond.engine.arrow.source.jsonlines import line_too_long
from millpond.engine.arrow.source.lent import Lent
from millpond.engine.csvhead import CsvHead, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from millpond.base.errors import SourceError
    from millpond.plan.sources import CsvOptions

_BLOCKS = (1 << 20, 32 << 20)
"""Bytes that are read at a time, and after them what `limits.line_bytes` says.

A row that is longer makes pyarrow give up: then the file is read again, in larger blocks."""
_STRADDLES = "straddling object"
_LONGEST_FIELD = 1 << 30
_NO_UTF8: Final = re.compile(r"column #(?P<column>\d+):(?: Row #(?P<row>\d+):)?.*invalid UTF8 data")


@dataclass(frozen=True, slots=True)
class CsvText:
    """One file: how its bytes are opened, from the beginning and unpacked, and how it is written.

    What opens it also makes errors of ours of those of the system.
    `escape` and `null_values` are known to readers of this module alone, not to plans.
    """

    path: str
    open: Callable[[], AbstractContextManager[IO[bytes] | pa.NativeFile]]
    options: CsvOptions
    escape: str | None = None
    null_values: tuple[str, ...] = ()

    def head(self) -> CsvHead:
        """Read the first record."""
        with self.open() as stream:
            try:
                return read_head(stream, self.options)
            except ValueError as error:
                raise self.failed(error) from error

    def names(self, wanted: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the names of the columns; none of the wanted ones may stand twice."""
        head = self.head()
        if not self.options.has_header:
            return tuple(f"f{number}" for number in range(len(head.names)))
        head.check(head.names if wanted is None else wanted, path=self.path, engine=ENGINE)
        return head.names

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """Yield the columns of these names; those that the file lacks are null.

        Where none is wanted, any one is read as it is: not to name one would be to ask for all.
        """
        first = self.names(names) if self.options.has_header else ("f0",)
        types = dict.fromkeys(names, pa.string()) or dict.fromkeys(first[:1], pa.binary())
        given = 0
        most = process_limits().line_bytes
        for size in (*(size for size in _BLOCKS if size < most), most):
            passed = 0
            try:
                for batch in self._blocks(types, size):
                    known = max(given - passed, 0)
                    passed += batch.num_rows
                    if passed > given:
                        given = passed
                        yield batch.slice(known) if known else batch
            except pa.ArrowInvalid as error:
                if _STRADDLES not in str(error):
                    raise self.failed(error) from error
                if size == most:
                    raise line_too_long(self.path, "a row", most) from error
            else:
                return

    def _blocks(self, types: dict[str, pa.DataType], size: int) -> Iterator[pa.RecordBatch]:
        reader: Any = None
        with self.open() as stream, Lent(stream) as lent:
            try:
                reader = self._reader(lent, types, size)
                while reader is not None and (batch := next(reader, None)) is not None:
                    if batch.num_rows:
                        yield batch
            finally:
                reader = None

    def _reader(self, lent: Lent, types: dict[str, pa.DataType], size: int) -> Any:
        """Return a reader; None of an empty file."""
        import pyarrow.csv as pc

        try:
            return pc.open_csv(
                lent.file,
                read_options=pc.ReadOptions(
                    use_threads=False,
                    block_size=size,
                    autogenerate_column_names=not self.options.has_header,
                ),
                parse_options=pc.ParseOptions(
                    delimiter=self.options.delimiter,
                    quote_char=self.options.quote,
                    escape_char=self.escape or False,
                    double_quote=self.escape is None,
                    newlines_in_values=True,
                ),
                convert_options=pc.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    include_missing_columns=True,
                    null_values=["", *self.null_values],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return None
            raise

    def line_of(self, row: int) -> int:
        """Return the line on which a row begins, both counted from one: for messages alone."""
        csv.field_size_limit(_LONGEST_FIELD)
        with self.open() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
            records = csv.reader(
                text,
                delimiter=self.options.delimiter,
                quotechar=self.options.quote,
                escapechar=self.escape,
                doublequote=self.escape is None,
            )
            left, end = row + int(self.options.has_header), 0
            try:
                for record in records:
                    if record:
                        left -= 1
                    if not left:
                        break
                    end = records.line_num
            finally:
                text.detach()
        return end + 1

    def failed(self, error: Exception) -> SourceError:
        """Return the error for a file that can't be read as CSV."""
        hint = "check that it is CSV in UTF-8, every row with as many fields as the first"
        found = _NO_UTF8.search(str(error))
        if found is not None:
            head = self.head()
            place = int(found["column"])
            name = head.names[place] if self.options.has_header else f"f{place}"
            row = f" in row {found['row']}" if found["row"] else ""
            error = ValueError(f"column {name} is not UTF-8{row}")
        return unreadable(self.path, error, hint=hint)

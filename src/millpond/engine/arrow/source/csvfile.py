"""CSV: columns by the header's names, or by position; text becomes values as casts say.

Text that does not fit its column is an error that names file, line and column, or null where the
scan says so. Text that is not UTF-8 is an error.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from millpond.base.errors import SourceError
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.csvtext import CsvText
from millpond.engine.arrow.source.csvvalues import read_texts
from millpond.engine.arrow.source.entry import repeated
from millpond.engine.arrow.source.files import ENGINE, unfit, unreadable
from millpond.engine.arrow.source.stream import unpacked
from millpond.engine.looks import DECLARE, GUESSED_LATE
from millpond.plan.sources import CsvOptions
from millpond.plan.types import NULL, Struct, is_orderable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.sources import OnError
    from millpond.plan.types import Field

_SHOWN: Final = 60


def read_csv(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, block by block."""
    wanted = Struct(tuple(f for f in spec.columns if f.name not in entry.constants))
    for field in wanted:
        if not is_orderable(field.type):
            raise unfit(entry.path, field.name, f"can't be a {field.type}: CSV holds plain values")
    file = CsvText(entry.path, _Opener(entry.path, context), spec.csv or CsvOptions())
    written = [f.name for f in spec.columns if f.name not in entry.constants]
    names = {
        field.name: field.name if file.options.has_header else f"f{written.index(field.name)}"
        for field in wanted
    }
    before = 0
    with closing(file.batches(list(names.values()))) as batches:
        for texts in batches:
            context.counters.add("batches_decoded")
            context.counters.add("rows_decoded", texts.num_rows)
            arrays = []
            for field in spec.columns:
                if field.name in entry.constants:
                    value = entry.constants[field.name]
                    arrays.append(repeated(value, field.type, texts.num_rows))
                else:
                    column = texts.column(names[field.name])
                    values = csv_values(
                        file, column, field, before, guessed=spec.strict, on_error=spec.on_error
                    )
                    arrays.append(values)
            before += texts.num_rows
            yield batch_of(arrays, spec.columns, texts.num_rows)


def csv_values(
    file: CsvText,
    texts: pa.Array,
    field: Field,
    before: int,
    *,
    guessed: bool,
    on_error: OnError = "error",
) -> pa.Array:
    """Return a column of text as values; that many rows of the file came before it."""
    values, misfit = read_texts(texts, field.type, guessed=guessed)
    if misfit is None or on_error == "null":
        return values
    text = texts[misfit].as_py()
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    if field.type == NULL:
        said = f"holds {shown}, and nothing in the rows that were looked at before"
    else:
        said = f"holds {shown}, which is not of type {field.type}"
    raise SourceError(
        f"line {file.line_of(before + misfit + 1)} of {file.path}: column {field.name!r} {said}",
        engine=ENGINE,
        path=file.path,
        hint=GUESSED_LATE if guessed else DECLARE,
    )


class _Opener:
    """Opens a file as often as it is asked to, and counts it once."""

    def __init__(self, path: str, context: Context) -> None:
        self._path = path
        self._context = context
        self._is_counted = False

    @contextmanager
    def __call__(self) -> Iterator[pa.NativeFile]:
        files, counters = self._context.files, self._context.counters
        file = files.open(self._path)
        if not self._is_counted:
            self._is_counted = True
            counters.add("files_opened")
            counters.add("bytes_read", file.size())
        try:
            yield unpacked(self._path, file)
        except OSError as error:
            raise unreadable(self._path, error) from error
        finally:
            files.release(file)

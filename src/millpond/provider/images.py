"""`Images`: files are parsed once. What was read of each version of a file is kept as Parquet.

An image is named by the content of the file and by how it was read, so it never has to be made
anew, and a new version of a file is parsed by itself. Deleting `cache/` loses nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SourceError
from millpond.engine.looks import EXACT, GUESSED_LATE
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow_schema, to_arrow_schema
from millpond.plan.typejson import schema_from_json, schema_to_json
from millpond.plan.unite import innermost, settled
from millpond.provider.formats.parquet import read_footer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from millpond.base.settings import Settings
    from millpond.provider.formats.reader import Raw, Reader
    from millpond.provider.kept import Kept

KIND: Final = "images"
_TIMES: Final = (t.TIMESTAMP, t.TIMESTAMP_NTZ)


@dataclass(frozen=True, slots=True)
class Image:
    """The rows of one version of a file, as Parquet."""

    key: str
    name: str
    """Of the file, for messages."""
    path: str
    size: int
    rows: int
    columns: t.Struct
    """Those that are null throughout are of the type NULL, and not in the image."""
    times: dict[str, tuple[int, int]]
    """The first and last time of columns that are times, in microseconds, where that is known."""
    large: dict[str, int]
    """Of columns of whole numbers that do not all fit a double exactly: one that may not."""


class Images:
    """The images of one pond."""

    def __init__(self, kept: Kept, *, settings: Settings | None = None) -> None:
        self.kept = kept
        self._settings = settings
        self._known: dict[str, Image] = {}

    def image(self, raw: Raw, reader: Reader) -> Image:
        """The image of a file; it is made if it is not there."""
        key = reader.key(raw)
        if self._is_image(raw, reader):  # engines read it in parts, which have no hashes
            raw.check()
        found = self._known.get(key) or self._kept(key, raw, reader)
        if found is None:
            raw.check()  # formats may read it in any order
            found = self._made(key, raw, reader)
        found = self._known[key] = replace(found, name=raw.name)
        return found

    def _kept(self, key: str, raw: Raw, reader: Reader) -> Image | None:
        note = self.kept.read_text(key)
        if note is None:
            return None
        facts = json.loads(note)
        times = {name: (first, last) for name, (first, last) in facts["times"].items()}
        columns = schema_from_json(facts["columns"])
        path, size = raw.location, raw.size
        if not self._is_image(raw, reader):
            result = self.kept.find(key)
            if result is None:
                return None
            path, size = result.path, result.size
        assert path is not None
        return Image(key, raw.name, path, size, facts["rows"], columns, times, facts["large"])

    def _is_image(self, raw: Raw, reader: Reader) -> bool:
        """Whether a file needs no other image than itself."""
        is_plain = raw.location is not None and reader.compression_of(raw) is None
        return is_plain and reader.format.is_image

    def _made(self, key: str, raw: Raw, reader: Reader) -> Image:
        if self._is_image(raw, reader):
            return self._itself(key, raw)
        seen = _Seen()
        with reader.naming(raw):  # batches are made while they are written
            columns, batches = self._parsed(raw, reader)
            stored = _known(columns)
            result = self.kept.keep(
                key, to_arrow_schema(stored), seen.watched(_as_stored(batches, stored), stored)
            )
        image = Image(
            key, raw.name, result.path, result.size, seen.rows, columns, seen.times, seen.large
        )
        self._note(image)
        return image

    def _itself(self, key: str, raw: Raw) -> Image:
        assert raw.location is not None
        with raw.open() as stream:
            found = read_footer(raw.name, stream)
        columns, rows, times = found
        # Its types are not guessed, so its whole numbers never become fractions.
        image = Image(key, raw.name, raw.location, raw.size, rows, columns, times, large={})
        self._note(image)
        return image

    def _note(self, image: Image) -> None:
        facts = {
            "columns": schema_to_json(image.columns), "rows": image.rows,
            "times": image.times, "large": image.large,
        }  # fmt: skip
        self.kept.write_text(image.key, json.dumps(facts))

    def _parsed(self, raw: Raw, reader: Reader) -> tuple[t.Struct, Iterable[pa.RecordBatch]]:
        if self._is_large(raw, reader):
            columns = reader.columns(raw)
            if columns is not None:
                return columns, self._by_spark(raw, reader, columns)
        parsed = reader.parse(raw)
        # Columns that have no nulls here may have some in what comes later.
        fields = (t.Field(f.name, f.type) for f in from_arrow_schema(parsed.schema))
        return t.Struct(tuple(fields)), parsed.batches

    def _is_large(self, raw: Raw, reader: Reader) -> bool:
        """Whether Spark is worth it: it reads what is packed in one go, as this process does."""
        from millpond.base.settings import Settings

        if raw.location is None or reader.compression_of(raw) is not None:
            return False
        settings = self._settings or Settings.load()
        return settings.engine != "arrow" and raw.size > settings.arrow.max_parse_bytes

    def _by_spark(self, raw: Raw, reader: Reader, columns: t.Struct) -> Iterator[pa.RecordBatch]:
        from millpond.kernel.engines import row_engine

        assert raw.location is not None
        files = [(raw.location, raw.size)]
        plan = reader.format.scan(files, columns, reader.options_of(raw))
        try:
            with plan.execute(engine=row_engine("spark", self._settings)) as run:
                for batch in run:
                    _check_unseen(batch, columns, raw)
                    yield batch
        except SourceError as error:
            raise _renamed(error, raw) from error


def _check_unseen(batch: pa.RecordBatch, columns: t.Struct, raw: Raw) -> None:
    """Refuse a value in a column in which none was seen when types were guessed."""
    for field, column in zip(columns, batch.columns, strict=True):
        if field.type == t.NULL and column.null_count < len(column):
            raise SourceError(
                f"{raw.name}: column {field.name!r} holds {column.drop_null()[0].as_py()!r}, "
                "and nothing in the rows that were looked at before",
                engine="spark",
                path=raw.name,
                hint=GUESSED_LATE,
            )


def _renamed(error: SourceError, raw: Raw) -> SourceError:
    """The same error with the name of the file, and not of the object that holds its bytes."""
    assert raw.location is not None
    said = error.message.replace(f"file:{raw.location}", raw.name).replace(raw.location, raw.name)
    hint = error.hint or "check that the file is complete"
    return SourceError(said, engine=error.engine, path=raw.name, hint=hint)


def _known(columns: t.Struct) -> t.Struct:
    """The columns of which something is known, one at least."""
    found = tuple(field for field in columns if field.type != t.NULL)
    return t.Struct(found) if found else settled(t.Struct(columns.fields[:1]))


def _as_stored(batches: Iterable[pa.RecordBatch], columns: t.Struct) -> Iterator[pa.RecordBatch]:
    """The columns of which something is known, in the types that we have."""
    import pyarrow as pa

    from millpond.engine.arrow.source.conform import conform

    schema = to_arrow_schema(columns)
    for batch in batches:
        if batch.num_rows:
            arrays = [conform(batch.column(field.name), field.type) for field in columns]
            yield pa.record_batch(arrays, schema=schema)


class _Seen:
    """Counts rows, and looks for the first and last time and for large numbers, as they pass."""

    def __init__(self) -> None:
        self.rows = 0
        self.times: dict[str, tuple[int, int]] = {}
        self.large: dict[str, int] = {}

    def watched(
        self, batches: Iterable[pa.RecordBatch], columns: t.Struct
    ) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        times = [field.name for field in columns if field.type in _TIMES]
        wholes = [field.name for field in columns if innermost(field.type) == t.LONG]
        for batch in batches:
            self.rows += batch.num_rows
            for name in times:
                self._see_times(name, batch.column(name))
            for name in wholes:
                self._see_wholes(name, batch.column(name))
            yield batch

    def _see_wholes(self, name: str, numbers: pa.Array) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        while pa.types.is_list(numbers.type):
            numbers = numbers.flatten()
        for value in pc.min_max(numbers).as_py().values():
            if value is not None and abs(value) > EXACT:
                self.large.setdefault(name, value)

    def _see_times(self, name: str, times: pa.Array) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, Any] = pc.min_max(times.view(pa.int64())).as_py()
        if found["min"] is not None:
            first, last = self.times.get(name, (found["min"], found["max"]))
            self.times[name] = (min(first, found["min"]), max(last, found["max"]))

"""`FormatRows`: the rows of raw files, read by a format, as factories see them.

Its pieces are versions of files. All of them are read by one scan of their images, so a thousand
files cost little more than one.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from millpond.base.errors import PathNotFoundError, SchemaError
from millpond.plan import types as t
from millpond.plan.sources import File, Scan
from millpond.plan.unite import may_round, refuse_rounding, settled, united_schema
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import TIME_COLUMNS, in_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.provider.formats.reader import Raw, Reader
    from millpond.provider.images import Image, Images


class FormatRows:
    """The rows of files, united by the names of columns."""

    def __init__(self, path: str, raws: Sequence[Raw], reader: Reader, images: Images) -> None:
        if not raws:
            raise PathNotFoundError(f"{path} names no files", path=path, hint="pond list shows all")
        self.path = path
        # Empty files beside others add nothing; one alone is an error, when it is read.
        self._raws = [raw for raw in raws if raw.size] or list(raws[:1])
        self._reader = reader
        self._images = images

    @cached_property
    def images(self) -> list[Image]:
        """All files, parsed."""
        return [self._images.image(raw, self._reader) for raw in self._raws]

    @cached_property
    def schema(self) -> t.Struct:
        """The columns of all, types widened where that loses nothing."""
        distinct: dict[str, Image] = {}
        for image in self.images:
            distinct.setdefault(str(image.columns), image)
        columns = {image.name: image.columns for image in distinct.values()}
        format_ = self._reader.format
        found = united_schema(columns, texts=format_.guesses and not format_.is_image)
        columns = {image.name: image.columns for image in self.images}
        refuse_rounding(found, columns, {image.name: image.large for image in self.images})
        return settled(found)

    @cached_property
    def time_column(self) -> str | None:
        """The column with a usual name that is a time in all files."""
        times = (t.TIMESTAMP, t.TIMESTAMP_NTZ)
        found = {field.name for field in self.schema if field.type in times}
        return next((name for name in TIME_COLUMNS if name in found), None)

    @cached_property
    def key(self) -> str:
        """Names the content: nothing is parsed for it."""
        return key_of("files", *(self._reader.key(raw) for raw in self._raws))

    @cached_property
    def _pieces(self) -> dict[Piece, Image]:
        return {self._piece(image): image for image in self.images}

    def _piece(self, image: Image) -> Piece:
        # What other files hold may make types wider; columns that they add change nothing here.
        types = [str(self.schema.field(name)) for name in image.columns.names]
        key = key_of(image.key, image.name, *types)
        first, last = image.times.get(self.time_column or "", (None, None))
        return Piece(key, first, last, image.rows, image.size)

    def pieces(self) -> Sequence[Piece]:
        """A piece for each version of each file."""
        return list(self._pieces)

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted; files that have none of them are not opened."""
        if asked.is_all:
            return self._scan(self.images)
        if self.time_column is None:
            raise SchemaError(
                f"{self.path} has no column with a time",
                hint=f"such a column is named {', '.join(TIME_COLUMNS[:-1])} or {TIME_COLUMNS[-1]}",
            )
        pieces = (piece for piece in self._pieces if asked.overlaps(piece.first, piece.last))
        return in_range(self.plan_of(list(pieces)), self.time_column, asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """Return the rows of some versions, the oldest first, with the columns of all."""
        wanted = set(pieces)
        return self._scan([image for piece, image in self._pieces.items() if piece in wanted])

    def _scan(self, images: Sequence[Image]) -> Plan:
        """One scan of neighbours; whole numbers that are to be fractions are cast above it."""
        from millpond.plan.rows import Union

        full = [image for image in images if image.rows]
        runs = [(casts, list(run)) for casts, run in groupby(full, self._casts)]
        plans = [self._scan_run(casts, run) for casts, run in runs]
        if not plans:
            return Scan("parquet", (), self.schema)
        return plans[0] if len(plans) == 1 else Union(tuple(plans))

    def _scan_run(self, casts: frozenset[t.Field], images: Sequence[Image]) -> Plan:
        from millpond.plan.unite import fitted

        own = {field.name: field for field in casts}
        fields = (own.get(f.name, f) for f in self.schema)
        files = tuple(File(image.path, image.size, image.rows) for image in images)
        return fitted(Scan("parquet", files, t.Struct(tuple(fields))), self.schema)

    def _casts(self, image: Image) -> frozenset[t.Field]:
        """The columns that are longs there and doubles in all files together: scans refuse that."""
        pairs = ((mine, self.schema.field(mine.name)) for mine in image.columns)
        return frozenset(mine for mine, wanted in pairs if may_round(mine.type, wanted.type))

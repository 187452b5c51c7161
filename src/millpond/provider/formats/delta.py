"""`delta`: any Delta table, at a version or as it was at a time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from millpond.provider.formats.format import Format, Options

if TYPE_CHECKING:
    from millpond.base.settings import Settings
    from millpond.kernel.table import DeltaTable
    from millpond.provider.formats.format import Parsed, Source


class DeltaOptions(Options):
    """Which state of the table; the newest if nothing is said."""

    version: int | None = None
    as_of: datetime | None = None

    @model_validator(mode="after")
    def _one(self) -> DeltaOptions:
        if self.version is not None and self.as_of is not None:
            raise ValueError("a version or a time, not both")
        return self


class Delta(Format[DeltaOptions]):
    """Delta tables."""

    options = DeltaOptions
    summary: ClassVar[str] = "Delta tables"
    guesses: ClassVar[bool] = False
    is_table: ClassVar[bool] = True

    def parse(self, source: Source, options: DeltaOptions) -> Parsed:
        """A file is never a table."""
        del options
        raise source.failed("is a file, and no table", hint="name the table's directory")

    def table(
        self, location: str, options: DeltaOptions, *, settings: Settings | None = None
    ) -> DeltaTable:
        """The table at a place."""
        from millpond.kernel.table import delta_table

        return delta_table(location, options.version, options.as_of, settings=settings)

"""`Format`: what a plugin of the group `millpond.formats` is, and what it is given to parse.

A format has a model of its options, checked when a URL is read, and `parse`, which turns the bytes
of one file into batches. It may be asked for the bytes more than once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from millpond.base.errors import PluginError, SourceError
from millpond.base.registry import Registry
from millpond.base.settings import process_limits
from millpond.engine.arrow.source.jsonlines import line_too_long
from millpond.provider.formats.packed import unpacked

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.url import Compression

FORMATS: Registry[Any] = Registry(group="millpond.formats")


class Options(BaseModel):
    """What every model of options is: unknown ones are refused, and it does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Opts = TypeVar("Opts", bound=Options)


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one file, to be parsed."""

    name: str
    """For messages: a path of the pond, or a file of this machine."""
    size: int
    """Bytes as they are stored, packed or not."""
    packed: Callable[[], IO[bytes]]
    """Opens them as they are stored."""
    compression: Compression | None = None

    def open(self) -> io.BufferedReader:
        """The bytes from the beginning, unpacked; errors come while they are read."""
        return unpacked(self.packed(), self.compression, self.name, self.size)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers; one that is too long is an error."""
        most = process_limits().line_bytes
        with self.open() as stream:
            number = 1
            while line := stream.readline(most + 1):
                if len(line) > most:
                    raise line_too_long(self.name, f"line {number}", most)
                yield number, line
                number += 1

    def failed(self, why: str, *, hint: str) -> SourceError:
        """The error for bytes that are not what they are said to be."""
        return SourceError(f"{self.name} {why}", engine="arrow", path=self.name, hint=hint)

    def failed_line(self, number: int, why: str, *, hint: str) -> SourceError:
        """The same for one line."""
        said = f"line {number} of {self.name} {why}"
        return SourceError(said, engine="arrow", path=self.name, hint=hint)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Rows: their columns, and the batches, which are made while they are taken."""

    schema: pa.Schema
    """A column that is null throughout, and so could be of any type, is of the type null."""
    batches: Iterable[pa.RecordBatch]


class Format(ABC, Generic[Opts]):
    """The base of formats."""

    options: type[Opts]
    summary: ClassVar[str] = ""
    """One line about it."""
    version: ClassVar[int] = 1
    """Counts up when it gives other rows than before, so that nothing that was kept is used."""
    guesses: ClassVar[bool] = True
    """Whether types are guessed from text: what is whole numbers in one file may be fractions in
    another one, and both together are fractions."""
    is_image: ClassVar[bool] = False
    """Whether engines read such files as they are as well as what would be kept of them."""
    is_table: ClassVar[bool] = False
    """Whether it names directories that are tables of their own, and not files: `delta`."""

    def for_file(self, name: str, options: Opts) -> Opts:
        """The options for a file of this name."""
        del name
        return options

    @abstractmethod
    def parse(self, source: Source, options: Opts) -> Parsed:
        """The rows of a file."""

    # What engines can do by themselves

    def columns(self, source: Source, options: Opts) -> Struct | None:
        """The columns for `scan`; None if engines don't read such a file by themselves."""
        del source, options
        return None

    def scan(self, files: list[tuple[str, int]], columns: Struct, options: Opts) -> Plan:
        """The rows of files, by path and size, for an engine to read."""
        raise NotImplementedError(f"{type(self).__name__} has columns() but no scan()")


def format_named(name: str) -> Format[Any]:
    """The format of a name."""
    found = FORMATS.get(name)
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Format):
        raise PluginError(
            f"{name!r} of {FORMATS.group} is no format",
            group=FORMATS.group,
            name=name,
            hint="it is a class below millpond.provider.formats.format.Format",
        )
    return made

"""The first record of a CSV file: the names of its columns, and how its lines end.

Both engines read it before they read a file's rows, so that names mean the same on both.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from millpond.base.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.plan.sources import CsvOptions

_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class CsvHead:
    """The fields of the first record (none of an empty file), and the end of its line."""

    names: tuple[str, ...]
    line_end: str

    def check(self, wanted: Iterable[str], *, path: str, engine: str) -> None:
        """Refuse a header that names a wanted column twice: which one would it be?"""
        counts = Counter(self.names)
        for name in wanted:
            if counts[name] > 1:
                raise SourceError(
                    f"the header of {path} names {counts[name]} columns {name!r}",
                    engine=engine,
                    path=path,
                    hint=f"rename them in the file, or give a schema without {name!r}",
                )


def read_head(stream: IO[bytes], options: CsvOptions) -> CsvHead:
    """The head of a file from the beginning of its bytes; a `ValueError` says what is wrong.

    >>> from millpond.plan.sources import CsvOptions
    >>> read_head(io.BytesIO(b'a,"b c"\\r\\n1,2\\r\\n'), CsvOptions())
    CsvHead(names=('a', 'b c'), line_end='\\r\\n')
    """
    # What follows the first record in the same block may be in another encoding.
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    ends: list[str] = []
    try:
        records = csv.reader(
            _lines(text, ends), delimiter=options.delimiter, quotechar=options.quote
        )
        names = tuple(next((record for record in records if record), ()))
        "".join(names).encode()
    except csv.Error as error:
        raise ValueError(f"its first record is no CSV: {error}") from error
    except UnicodeEncodeError as error:
        raise ValueError("its first record is not UTF-8") from error
    finally:
        text.detach()
    return CsvHead(names, ends[-1] if ends else "\n")


def _lines(text: io.TextIOWrapper, ends: list[str]) -> Iterator[str]:
    while line := text.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError("its first record is longer than a megabyte")
        ends.append(line[len(line.rstrip("\r\n")) :] or "\n")
        yield line

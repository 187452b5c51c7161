"""The first record of a CSV file: the names of its columns, and how its lines end.

Both engines read it before they read a file's rows, so that names mean the same on both. What may
stand behind a closing quote is here as well (`Quotes`), since that holds for names, too.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from millpond.base.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from millpond.plan.sources import CsvOptions

_LONGEST = 1 << 20
_LINE_ENDS = b"\r\n"
_MARK = b"\xef\xbb\xbf"
"""UTF-8's mark may stand before everything."""


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
            _lines(text, ends, Quotes(options)),
            delimiter=options.delimiter,
            quotechar=options.quote,
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


def _lines(text: io.TextIOWrapper, ends: list[str], quotes: Quotes) -> Iterator[str]:
    while line := text.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError("its first record is longer than a megabyte")
        ends.append(line[len(line.rstrip("\r\n")) :] or "\n")
        checked = quotes.checked(line.encode(errors="surrogateescape"))
        yield checked.decode(errors="surrogateescape")


class Quotes:
    """Where quoted fields end, piece by piece of a file.

    A quote inside of one stands twice; otherwise it closes the field, and readers do not agree
    about what follows it there: text is a `ValueError`, blanks are left out.

    >>> from millpond.plan.sources import CsvOptions
    >>> Quotes(CsvOptions()).checked(b'"a ""b"" c" ,5" x,"d"')
    b'"a ""b"" c",5" x,"d"'
    """

    def __init__(self, options: CsvOptions) -> None:
        self._quote = options.quote.encode()
        self._around = options.delimiter.encode() + _LINE_ENDS
        self._blank = bytes(set(range(0x21)) - set(self._around) - set(self._quote))
        self._is_inside = False
        self._before = self._around[0]

    def undecided(self, data: bytes) -> int:
        """How many bytes at the end say what they mean only by what follows."""
        return len(data) - len(data.rstrip(self._quote + self._blank))

    def checked(self, data: bytes) -> bytes:
        """The next bytes, of which the last are not undecided, unless nothing follows."""
        if self._quote in data and not self._are_regular(data):
            data = self._mended(data)
        if data:
            self._before = data[-1]
        return data

    def _are_regular(self, data: bytes) -> bool:
        """Whether each quote opens a field, closes one, or is one of two: a look at all at once."""
        raw = np.frombuffer(data, np.uint8)
        at = np.flatnonzero(raw == self._quote[0])
        first = int(self._is_inside)
        opening, closing = at[first::2], at[1 - first :: 2]
        before, after = raw[opening - 1], raw[np.minimum(closing + 1, len(raw) - 1)]
        if len(opening) and opening[0] == 0:
            before[0] = self._before
        if len(closing) and closing[-1] == len(raw) - 1:
            after[-1] = self._around[0]
        if not self._stand_beside(before) or not self._stand_beside(after):
            return False
        self._is_inside ^= bool(len(at) % 2)
        return True

    def _stand_beside(self, found: NDArray[np.uint8]) -> bool:
        fits = found == self._quote[0]
        for byte in self._around:
            fits |= found == byte
        return bool(fits.all())

    def _mended(self, data: bytes) -> bytes:
        """The bytes without blanks behind closing quotes, quote by quote."""
        kept: list[bytes] = []
        start = at = 0
        while (at := data.find(self._quote, at)) >= 0:
            if not self._is_inside:
                # One inside of a field that is not quoted is a character like others.
                self._is_inside = (data[at - 1] if at else self._before) in self._around
                at += 1
            elif data.startswith(self._quote, at + 1):
                at += 2
            else:
                kept.append(data[start : at + 1])
                start = at = self._end_of_blanks(data, at + 1)
                if at < len(data) and data[at] not in self._around:
                    raise ValueError(
                        "text follows the closing quote of a field; a quote inside stands twice"
                    )
                self._is_inside = False
        return b"".join((*kept, data[start:]))

    def _end_of_blanks(self, data: bytes, at: int) -> int:
        while at < len(data) and data[at] in self._blank:
            at += 1
        return at


class QuotedStream(io.RawIOBase):
    """A CSV file's bytes as they are read, quotes checked."""

    def __init__(self, stream: IO[bytes], options: CsvOptions) -> None:
        super().__init__()
        self._stream = stream
        self._quotes = Quotes(options)
        self._held = b""
        self._is_first = True

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Some of the next bytes; none at the end."""
        while data := self._stream.read(size):
            mark = data[: len(_MARK)] if self._is_first and data.startswith(_MARK) else b""
            data, self._is_first = self._held + data[len(mark) :], False
            end = len(data) - self._quotes.undecided(data)
            self._held = data[end:]
            if end or mark:
                return mark + self._quotes.checked(data[:end])
        last, self._held = self._held, b""
        return self._quotes.checked(last)

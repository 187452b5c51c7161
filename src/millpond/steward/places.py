"""What an argument of a command names: a path of the pond, or files of this machine.

    /sensors/a, /sensors/*, /t@v3          the pond
    series:///sensors/*                    the same, series alone
    csv:///raw/*.csv?delimiter=;           rows of raw files of the pond, read as a format says
    host:///data/a.bin                     bytes of this machine
    ./a.bin, ../data/                      the same, from the working directory, as it stands
    host+csv:///data/a.csv                 rows of files of this machine
    host+csv+series:///data/a.csv          rows that are to become a series, or a table
    host+series:///data/a.parquet          the same, short for Parquet

Behind `://` stands an absolute path, or one with `./` in front; `provider/url.py` reads URLs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from millpond.base.errors import PathSyntaxError, UrlError
from millpond.fs.entry import EntryType
from millpond.provider.url import is_url

if TYPE_CHECKING:
    from millpond.provider.formats.reader import Reader
    from millpond.provider.url import DataUrl

_KINDS: Final = {"table": EntryType.TABLE, "series": EntryType.SERIES}
_BYTES: Final = (None, "data", "file")
_HERE: Final = ("./", "../", "~/")
_RELATIVE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)((?:\.|\.\.|~)/[^?#]*)(.*)", re.DOTALL)
_NEARLY: Final = re.compile(r"(host[A-Za-z+]*):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """An argument that was understood."""

    text: str
    """As it was given."""
    path: str
    """Of the pond, or, absolute, of this machine; a `/` at its end is kept."""
    is_host: bool = False
    url: str | None = None
    """The URL that names paths of the pond by their kind or by a format; None for a plain path."""
    reader: Reader | None = None
    """How bytes become rows; None where bytes are meant, or rows that are stored."""
    becomes: EntryType | None = None
    """What it is to be in a pond, where that is said."""

    @property
    def format(self) -> str | None:
        """The format of its rows."""
        return None if self.reader is None else self.reader.scheme

    @property
    def is_inside(self) -> bool:
        """Whether it ends with a slash, and so names what is in a directory."""
        return self.path.endswith("/")


def parse_place(text: str) -> Place:
    """Understand an argument.

    >>> parse_place("host+csv+series:///data/a.csv").becomes
    <EntryType.SERIES: 'series'>
    >>> parse_place("sensors/a").path
    '/sensors/a'
    """
    if not text:
        raise PathSyntaxError("a path is not empty", path=text, hint="/ is the root of the pond")
    if "\0" in text:
        raise PathSyntaxError(
            f"{text!r} holds a NUL character", path=text, hint="no path can have one"
        )
    if text.startswith(_HERE) or text in (".", "..", "~"):
        return Place(text, _absolute(text), True, becomes=EntryType.DATA)
    if is_url(text):
        return _of_url(text)
    nearly = _NEARLY.fullmatch(text)
    if nearly is not None:
        raise UrlError(
            f"{text!r} has no // behind {nearly[1]}:",
            url=text,
            hint=f"write {host_url(nearly[1], _absolute(nearly[2] or '.'))}",
        )
    return Place(text, text if text.startswith("/") else f"/{text}")


def _of_url(text: str) -> Place:
    if text.startswith("file:"):
        raise UrlError(
            f"files of this machine are named by host://, not {text!r}",
            url=text,
            hint=f"write host{text.removeprefix('file')}",
        )
    from millpond.provider.formats.reader import parse_url, reader_of

    here = _RELATIVE.fullmatch(text) if text.startswith("host") else None
    url = parse_url(f"{here[1]}{quote(_absolute(here[2]))}{here[3]}" if here else text)
    if url.is_format:
        becomes = None if url.kind is None else _KINDS[url.kind]
        path = _absolute(url.path) if url.is_host else url.path
        shown = None if url.is_host else text
        return Place(text, path, url.is_host, shown, reader_of(url, text), becomes)
    for name in url.options:
        raise UrlError(
            f"unknown option {name!r} in {text!r}", url=text, hint="write %3F for ? in a path"
        )
    if url.compression is not None:
        raise UrlError(
            f"{url.compression} in {text!r} fits no stored bytes or rows",
            url=text,
            hint=f"say what is packed: csv+{url.compression}://",
        )
    return _host(url, text) if url.is_host else _stored(url, text)


def _stored(url: DataUrl, text: str) -> Place:
    """Paths of the pond, those of a kind."""
    if url.kind is not None:
        raise UrlError(
            f"what {text!r} names is what it is, and no {url.kind}",
            url=text,
            hint=f"bytes become one with a format: csv+{url.kind}://{url.path}",
        )
    return Place(text, url.path, url=text)


def _host(url: DataUrl, text: str) -> Place:
    """Bytes of this machine, or what is short for Parquet."""
    from millpond.provider.formats.format import FORMATS
    from millpond.provider.formats.reader import reader_of
    from millpond.provider.url import DataUrl

    path = _absolute(url.path)
    if url.scheme in _BYTES:
        if url.kind == "table":
            raise UrlError(
                f"it is not said how the rows in {text!r} are written",
                url=text,
                hint="host+table:// reads Parquet, host+csv+table:// CSV",
            )
        becomes = EntryType.DATA_SERIES if url.kind == "series" else EntryType.DATA
        return Place(text, path, True, becomes=becomes)
    if url.scheme in _KINDS and url.kind is None:
        reader = reader_of(DataUrl("parquet", url.path, is_host=True), text)
        return Place(text, path, True, None, reader, _KINDS[url.scheme])
    raise UrlError(
        f"{url.scheme} in {text!r} is nothing that a file of this machine can be read as",
        url=text,
        hint=f"formats are {', '.join(FORMATS.names())}; kinds are {', '.join(_KINDS)}",
    )


def host_url(scheme: str, path: str) -> str:
    """The URL of a file of this machine, to be shown.

    >>> host_url("host+csv", "/data/50% a.csv")
    'host+csv:///data/50%25 a.csv'
    """
    return f"{scheme}://" + re.sub("[%?#]", lambda found: quote(found[0]), path)


def _absolute(path: str) -> str:
    """The absolute path; a slash at its end stays, since it says that a directory is meant.

    Two slashes at its beginning are one: POSIX keeps them, and others take what follows for a host.

    >>> _absolute("//data//a.csv"), _absolute("/data/")
    ('/data/a.csv', '/data/')
    """
    found = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - keeps odd names
    found = f"/{found.lstrip('/')}"
    is_inside = path.endswith("/") and found != "/"
    return f"{found}/" if is_inside else found

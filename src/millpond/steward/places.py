"""What an argument of a command names: a path of the pond, or files of this machine.

    /sensors/a, /sensors/*, /t@v3          the pond
    host:///data/a.bin                     bytes of this machine
    ./a.bin, ../data/                      the same, from the working directory, as it stands
    host+csv:///data/a.csv                 rows: also parquet, json (lines), delta
    host+csv+series:///data/a.csv          rows that are to become a series, or a table
    host+series:///data/a.parquet          the same, short for Parquet

Behind `://` stands an absolute path, or one with `./` in front; `provider/url.py` reads URLs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import quote

from millpond.base.errors import PathSyntaxError, UrlError
from millpond.fs.entry import EntryType
from millpond.plan.sources import CsvOptions
from millpond.provider.url import is_url, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.provider.url import DataUrl

RowFormat: TypeAlias = Literal["csv", "json", "parquet", "delta"]
FORMATS: Final[dict[str, RowFormat]] = {
    "csv": "csv",
    "json": "json",
    "parquet": "parquet",
    "delta": "delta",
}
_KINDS: Final = {"table": EntryType.TABLE, "series": EntryType.SERIES}
_BYTES: Final = (None, "data", "file")
_HERE: Final = ("./", "../", "~/")
_RELATIVE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)((?:\.|\.\.|~)/[^?#]*)(.*)", re.DOTALL)
_NEARLY: Final = re.compile(r"(host[A-Za-z+]*):(.*)", re.DOTALL)
_TABS: Final = ("\\t", "tab")


@dataclass(frozen=True, slots=True)
class Place:
    """An argument that was understood."""

    text: str
    """As it was given."""
    path: str
    """Of the pond, or, absolute, of this machine; a `/` at its end is kept."""
    is_host: bool = False
    format: RowFormat | None = None
    """How the rows of a host file are written; None where its bytes are meant."""
    becomes: EntryType | None = None
    """What it is to be in a pond, where that is said."""
    csv: CsvOptions | None = None

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
        return Place(text, _absolute(text), is_host=True, becomes=EntryType.DATA)
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
    here = _RELATIVE.fullmatch(text)
    url = parse(f"{here[1]}{quote(_absolute(here[2]))}{here[3]}" if here else text, schemes=FORMATS)
    if not url.is_host:
        raise UrlError(
            f"{url.scheme}:// reads no files of the pond here: {text!r}",
            url=text,
            hint=f"name the path alone: {url.path}; or a file of this machine: host+{text}",
        )
    if url.compression is not None:
        raise UrlError(
            f"{url.compression} in {text!r} need not be said here",
            url=text,
            hint="leave it away: a name that ends with .gz, .zst or .bz2 says it",
        )
    format_, becomes = _meaning(url, text)
    options = _csv(url.options, format_, text)
    return Place(text, _absolute(url.path), True, format_, becomes, options)


def _meaning(url: DataUrl, text: str) -> tuple[RowFormat | None, EntryType | None]:
    """The format, and what it becomes."""
    if url.scheme in _BYTES:
        if url.kind == "table":
            raise UrlError(
                f"it is not said how the rows in {text!r} are written",
                url=text,
                hint="host+table:// reads Parquet, host+csv+table:// CSV",
            )
        return None, EntryType.DATA_SERIES if url.kind == "series" else EntryType.DATA
    if url.scheme in _KINDS and url.kind is None:
        return "parquet", _KINDS[url.scheme]
    if url.scheme not in FORMATS:
        raise UrlError(
            f"{url.scheme} in {text!r} is nothing that a file of this machine can be read as",
            url=text,
            hint=f"formats are {', '.join(FORMATS)}; kinds are {', '.join(_KINDS)}",
        )
    return FORMATS[url.scheme], None if url.kind is None else _KINDS[url.kind]


def _csv(given: Mapping[str, str], format_: RowFormat | None, text: str) -> CsvOptions | None:
    """How a CSV file is written: `?delimiter=;&has_header=false`."""
    known = tuple(CsvOptions.__dataclass_fields__) if format_ == "csv" else ()
    for name in given:
        if name not in known:
            hint = (
                f"options of CSV are {', '.join(known)}" if known else "write %3F for ? in a path"
            )
            raise UrlError(f"unknown option {name!r} in {text!r}", url=text, hint=hint)
    if not given:
        return None
    found: dict[str, str | bool] = dict(given)
    if given.get("delimiter") in _TABS:
        found["delimiter"] = "\t"
    if "has_header" in given:
        header = given["has_header"].lower()
        if header not in ("true", "false"):
            raise UrlError(f"has_header in {text!r} is no answer", url=text, hint="true or false")
        found["has_header"] = header == "true"
    return CsvOptions(**found)  # type: ignore[arg-type]


def host_url(scheme: str, path: str) -> str:
    """The URL of a file of this machine, to be shown.

    >>> host_url("host+csv", "/data/50% a.csv")
    'host+csv:///data/50%25 a.csv'
    """
    return f"{scheme}://" + re.sub("[%?#]", lambda found: quote(found[0]), path)


def _absolute(path: str) -> str:
    """The absolute path; a slash at its end stays, since it says that a directory is meant."""
    found = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - keeps odd names
    is_inside = path.endswith("/") and found != "/"
    return f"{found}/" if is_inside else found

"""What an argument of a command names: a path of the pond, or files of this machine.

    /sensors/a, /sensors/*, /t@v3          the pond
    host:///data/a.bin, ./a.bin            bytes of this machine
    host+csv:///data/a.csv                 rows: also parquet, json (lines), delta
    host+csv+series:///data/a.csv          rows that are to become a series, or a table
    host+series:///data/a.parquet          the same, short for Parquet

What follows `://` is a path as it stands: nothing in it is decoded.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final, Literal

from millpond.base.errors import PathSyntaxError
from millpond.fs.entry import EntryType
from millpond.plan.sources import CsvOptions

RowFormat = Literal["csv", "json", "parquet", "delta"]
FORMATS: Final[tuple[RowFormat, ...]] = ("csv", "json", "parquet", "delta")
HOST: Final = "host"

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_NEAR: Final = re.compile(r"(host[A-Za-z+]*):(.*)", re.DOTALL)
_OPTIONS: Final = re.compile(r"(.*)\?([A-Za-z_]+=[^/]*)", re.DOTALL)
_ROWS: Final = {"table": EntryType.TABLE, "series": EntryType.SERIES}
_BYTES: Final = {"data": EntryType.DATA, "file": EntryType.DATA}
_HERE: Final = ("./", "../", "~/")
_KNOWN: Final = (
    "known are /paths of the pond, host://, host+csv://, host+json://, host+parquet:// and "
    "host+delta://, the last four also with +table or +series, and host+table://, host+series://"
)


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
    """What it is to be in a pond, where the scheme says so."""
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
        raise PathSyntaxError(f"{text!r} holds a NUL character", path=text)
    if text.startswith(_HERE) or text in (".", "..", "~"):
        return Place(text, _absolute(text), is_host=True, becomes=EntryType.DATA)
    url = _URL.fullmatch(text)
    if url is None:
        near = _NEAR.fullmatch(text)
        if near is not None:
            raise PathSyntaxError(
                f"{text!r} has no // behind {near[1]}:",
                path=text,
                hint=f"write {near[1]}://{_absolute(near[2] or '.')}",
            )
        return Place(text, text if text.startswith("/") else f"/{text}")
    scheme, rest = url[1].lower(), url[2]
    first, *words = scheme.split("+")
    if first == "file":
        raise PathSyntaxError(
            f"{text!r}: files of this machine are named by host://", path=text,
            hint=f"write host://{rest}",
        )  # fmt: skip
    if first != HOST:
        raise PathSyntaxError(f"{scheme}:// can't be read here: {text!r}", path=text, hint=_KNOWN)
    format_, becomes = _meaning(words, text)
    path, options = _options(rest, format_, text)
    if not path.startswith(("/", *_HERE)):
        raise PathSyntaxError(
            f"{text!r}: an absolute path stands behind {scheme}://",
            path=text,
            hint=f"write {scheme}://{_absolute(path or '.')}, or {scheme}://./{path}",
        )
    return Place(text, _absolute(path), is_host=True, format=format_, becomes=becomes, csv=options)


def _meaning(words: list[str], text: str) -> tuple[RowFormat | None, EntryType | None]:
    """What the words behind `host+` say: the format, and what it becomes."""
    format_: RowFormat | None = None
    if not words or words in (["data"], ["file"]):
        return None, EntryType.DATA
    if words in (["data", "series"], ["file", "series"]):
        return None, EntryType.DATA_SERIES
    head, *tail = words
    if head in _ROWS and not tail:
        return "parquet", _ROWS[head]
    format_ = next((known for known in FORMATS if known == head), None)
    if format_ is None or len(tail) > 1 or (tail and tail[0] not in _ROWS):
        raise PathSyntaxError(
            f"host+{'+'.join(words)}:// is not known: {text!r}", path=text, hint=_KNOWN
        )
    return format_, _ROWS[tail[0]] if tail else None


def _options(rest: str, format_: RowFormat | None, text: str) -> tuple[str, CsvOptions | None]:
    """Take `?delimiter=;` from the end of the path of a CSV file."""
    found = _OPTIONS.fullmatch(rest) if format_ == "csv" else None
    if found is None:
        return rest, None
    given: dict[str, str | bool] = {}
    for pair in found[2].split("&"):
        name, _, value = pair.partition("=")
        if name not in CsvOptions.__dataclass_fields__:
            raise PathSyntaxError(
                f"unknown option {name!r} in {text!r}",
                path=text,
                hint=f"options of CSV are {', '.join(CsvOptions.__dataclass_fields__)}",
            )
        given[name] = value
    if "has_header" in given:
        given["has_header"] = _boolean(str(given["has_header"]), text)
    if given.get("delimiter") in ("\\t", "tab"):
        given["delimiter"] = "\t"
    return found[1], CsvOptions(**given)  # type: ignore[arg-type]


def _boolean(value: str, text: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise PathSyntaxError(
            f"has_header={value} in {text!r}", path=text, hint="it is true or false"
        )
    return value.lower() == "true"


def _absolute(path: str) -> str:
    """The absolute path; a slash at its end stays, since it says that a directory is meant."""
    found = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - keeps odd names
    is_inside = path.endswith("/") and found != "/"
    return f"{found}/" if is_inside else found

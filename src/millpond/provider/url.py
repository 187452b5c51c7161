"""URLs of data: `[host+]scheme[+compression][+entrytype]:///path/pattern?options`.

Without a scheme a text is a path of the pond, and its entry says what it is. `host+` means the
files of this machine. The compression may also stand where other URLs have their host:
`csv://gzip/logs/*.csv.gz`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args
from urllib.parse import parse_qsl, unquote

from millpond.base.errors import UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

Compression: TypeAlias = Literal["gzip", "zstd", "bzip2"]
EntryKind: TypeAlias = Literal["table", "series"]

COMPRESSIONS: Final = get_args(Compression)
KINDS: Final = get_args(EntryKind)
STORED: Final = ("file", "data", "table", "series", "collection")
"""Schemes that say what an entry of a pond is; all others are formats."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_WINDOWS: Final = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class DataUrl:
    """What a URL says.

    >>> parse("host+csv+gzip:///data/*.csv.gz?delimiter=;")
    DataUrl(scheme='csv', path='/data/*.csv.gz', is_host=True, compression='gzip', kind=None, \
options={'delimiter': ';'})
    >>> parse("/sensors/weir").scheme is None
    True
    """

    scheme: str | None
    """None: a path of the pond, read as what its entry is."""
    path: str
    """A path or a pattern, percent signs resolved."""
    is_host: bool = False
    compression: Compression | None = None
    kind: EntryKind | None = None
    """What it is to become, where something is made of it."""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_format(self) -> bool:
        """Whether bytes have to be parsed."""
        return self.scheme is not None and self.scheme not in STORED

    def with_path(self, path: str) -> DataUrl:
        """The same for another path."""
        return DataUrl(self.scheme, path, self.is_host, self.compression, self.kind, self.options)

    def __str__(self) -> str:
        if self.scheme is None and not self.is_host:
            return self.path
        parts = ["host"] if self.is_host else []
        parts += [part for part in (self.scheme, self.compression, self.kind) if part]
        query = "&".join(f"{name}={value}" for name, value in self.options.items())
        return f"{'+'.join(parts)}://{self.path}" + (f"?{query}" if query else "")


def is_url(text: str) -> bool:
    """Whether a text has a scheme.

    >>> is_url("csv:///a"), is_url("/a/b"), is_url("/a/x:///y")
    (True, False, False)
    """
    return _SCHEME.match(text) is not None and "://" in text


def parse(text: str, *, schemes: Mapping[str, object] | None = None) -> DataUrl:
    """Read a URL; `schemes` are the formats that are known, beside those of entries."""
    if text.startswith("/"):
        return DataUrl(None, text)
    match = _SCHEME.fullmatch(text)
    if match is None or match[2] is None or _WINDOWS.match(text):
        raise UrlError(
            f"{text!r} is neither a path of the pond nor a URL",
            url=text,
            hint="a path begins with /; a URL looks like csv:///path or host+csv:///path",
        )
    is_host, scheme, compression, kind = _scheme(match[1], text, schemes)
    rest, hash_, _ = match[3].partition("#")
    if hash_:
        raise UrlError(
            f"a URL has no fragment: {text!r}", url=text, hint="write %23 for # in a path"
        )
    place, _, query = rest.partition("?")
    host, slash, path = place.partition("/")
    compression = _in_place(host, compression, text)
    if not slash:
        raise UrlError(
            f"{text!r} has no path",
            url=text,
            hint=f"three slashes: {match[1]}:///{host}" if host else "add /path",
        )
    decoded = _decoded(path, text)
    return DataUrl(scheme, f"/{decoded}", is_host, compression, kind, _options(query, text))


def _scheme(
    given: str, text: str, schemes: Mapping[str, object] | None
) -> tuple[bool, str | None, Compression | None, EntryKind | None]:
    parts = given.lower().split("+")
    is_host = parts[0] == "host"
    names = parts[1:] if is_host else parts
    compression: Compression | None = None
    kind: EntryKind | None = None
    if len(names) > 1 and names[-1] in KINDS:
        kind = names.pop()  # type: ignore[assignment]
    if len(names) > 1 and names[-1] in COMPRESSIONS:
        compression = names.pop()  # type: ignore[assignment]
    if not names:
        return is_host, None, compression, kind
    if len(names) > 1:
        odd = names[1]
        raise UrlError(
            f"{odd!r} in {text!r} is neither a compression nor a kind of entry",
            url=text,
            hint=f"compressions are {', '.join(COMPRESSIONS)}; kinds are {', '.join(KINDS)}",
        )
    scheme = names[0]
    if schemes is not None and scheme not in schemes and scheme not in STORED:
        known = sorted({*STORED, *schemes})
        close = get_close_matches(scheme, known, n=1)
        raise UrlError(
            f"there is no format {scheme!r} ({text!r})",
            url=text,
            hint=f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}",
        )
    return is_host, scheme, compression, kind


def _in_place(host: str, compression: Compression | None, text: str) -> Compression | None:
    """What stands where other URLs have user, host and port."""
    if not host:
        return compression
    if "@" in host or ":" in host:
        raise UrlError(
            "a URL of data has no user, password or port",  # and is not repeated: it may be secret
            url="",
            hint="three slashes, then the path: csv:///path",
        )
    if host not in COMPRESSIONS:
        raise UrlError(
            f"{host!r} in {text!r} is no compression",
            url=text,
            hint=f"three slashes before a path, or one of {', '.join(COMPRESSIONS)}",
        )
    if compression not in (None, host):
        raise UrlError(f"{text!r} names two compressions", url=text, hint="name one of them")
    return host  # type: ignore[return-value]


def _decoded(path: str, text: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise UrlError(
            f"the path of {text!r} is no text", url=text, hint="percent signs hold UTF-8"
        ) from error


def _options(query: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise UrlError(f"{text!r} has the option {name!r} twice", url=text, hint="keep one")
        found[name] = value
    return found

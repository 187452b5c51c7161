"""`Reader`: a format with its options, as a URL names them; `Raw`: the bytes that it reads."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from millpond.base.errors import MillpondError, SourceError, UrlError
from millpond.provider.formats.format import FORMATS, Format, Options, Source, format_named
from millpond.provider.formats.packed import compression_of
from millpond.provider.mistakes import in_words, mistakes
from millpond.provider.rows import key_of
from millpond.provider.url import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millpond.plan.types import Struct
    from millpond.provider.formats.format import Parsed
    from millpond.provider.url import Compression, DataUrl


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of one version of a raw file, or of a file of this machine."""

    name: str
    """For messages."""
    key: str
    """Names the content."""
    size: int
    open: Callable[[], IO[bytes]]
    location: str | None = None
    """Where an engine finds exactly these bytes, if they are an object of their own."""
    file_name: str = ""
    """The name whose end says what is in it, where that is another one than `name`."""
    check: Callable[[], object] = lambda: None
    """Raises IntegrityError if the bytes are not those that were stored."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How bytes are read."""

    scheme: str
    options: Options
    compression: Compression | None = None
    """What the URL says; otherwise the end of each file's name does."""

    @property
    def options_given(self) -> tuple[str, ...]:
        """The names of the options that were said."""
        return tuple(sorted(self.options.model_fields_set))

    @property
    def format(self) -> Format[Any]:
        """The plugin."""
        return format_named(self.scheme)

    def compression_of(self, raw: Raw) -> Compression | None:
        """How the bytes of a file are packed."""
        return self.compression or compression_of(raw.file_name or raw.name)

    def options_of(self, raw: Raw) -> Options:
        """The options for a file."""
        made: Options = self.format.for_file(raw.file_name or raw.name, self.options)
        return made

    def key(self, raw: Raw) -> str:
        """Names the rows that are read from a file."""
        options = self.options_of(raw).model_dump_json()
        version = self.format.version
        return key_of("image", raw.key, self.scheme, version, options, self.compression_of(raw))

    def source(self, raw: Raw) -> Source:
        """What the format is given."""
        return Source(raw.name, raw.size, raw.open, self.compression_of(raw))

    def parse(self, raw: Raw) -> Parsed:
        """The rows of a file. Whatever a format raises names the file."""
        source = self.source(raw)
        if not raw.size:
            raise source.failed("is empty: it shows no columns", hint="leave it out")
        with self.naming(raw):
            return self.format.parse(source, self.options_of(raw))

    def columns(self, raw: Raw) -> Struct | None:
        """The columns of a file, if engines read it by themselves."""
        with self.naming(raw):
            return self.format.columns(self.source(raw), self.options_of(raw))

    @contextmanager
    def naming(self, raw: Raw) -> Iterator[None]:
        """Errors of formats, which may be plugins, become ours."""
        try:
            yield
        except MillpondError:
            raise
        except Exception as error:
            raise self.failed(raw, error) from error

    def failed(self, raw: Raw, error: Exception) -> SourceError:
        """The error for bytes that a format can't read."""
        packed = self.compression_of(raw)
        hint = f"check that it is {self.scheme}, and complete"
        if packed is not None:
            hint = f"it is read as {packed}, since its name or the URL says so; {hint}"
        if isinstance(error, PermissionError):
            hint = "check who may read it"
        return self.source(raw).failed(f"can't be read as {self.scheme}: {error}", hint=hint)


def parse_url(text: str) -> DataUrl:
    """Read a URL whose scheme is a format that there is, or a kind of entry."""
    return parse(text, schemes=dict.fromkeys(FORMATS.names()))


def reader_of(url: DataUrl, text: str) -> Reader:
    """How a URL of a format says that bytes are read; `text` is for messages."""
    assert url.scheme is not None
    made = format_named(url.scheme)
    options = _options(made, url.options, url.scheme, text)
    if made.is_table and url.compression is not None:
        raise UrlError(
            f"{url.scheme} is no packed file: {text!r}", url=text, hint=f"no +{url.compression}"
        )
    return Reader(url.scheme, options, url.compression)


def _options(made: Format[Any], given: Mapping[str, str], scheme: str, text: str) -> Options:
    known = tuple(made.options.model_fields)
    for name in given:
        if name not in known:
            shown = f"options of {scheme} are {', '.join(known)}" if known else f"{scheme} has none"
            raise UrlError(
                f"unknown option {name!r} in {text!r}",
                url=text,
                hint=f"{shown}; write %3F for ? in a path",
            )
    try:
        found: Options = made.options.model_validate(given)
    except ValidationError as error:
        first = mistakes(error)[0]
        if not first["loc"]:
            raise UrlError(f"the options of {text!r} don't fit", url=text,
                           hint=in_words(first)) from None  # fmt: skip
        name = str(first["loc"][0])
        raise UrlError(
            f"the option {name} in {text!r} can't be {given[name]!r}",
            url=text,
            hint=in_words(first),
        ) from None
    return found

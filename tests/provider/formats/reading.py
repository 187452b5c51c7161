"""How tests of formats read bytes: through the registry, as a URL says."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.provider.formats.reader import Raw, parse_url, reader_of

if TYPE_CHECKING:
    from millpond.provider.formats.format import Parsed


def parsed(url: str, content: bytes | str) -> Parsed:
    """What a format makes of bytes; the URL names the file."""
    data = content.encode() if isinstance(content, str) else content
    asked = parse_url(url)
    raw = Raw(asked.path, "key", len(data), partial(io.BytesIO, data))
    return reader_of(asked, url).parse(raw)


def table(url: str, content: bytes | str) -> pa.Table:
    """The same as a table."""
    found = parsed(url, content)
    return pa.Table.from_batches(found.batches, found.schema)


def rows(url: str, content: bytes | str) -> list[dict[str, Any]]:
    """The same as Python's own values."""
    found: list[dict[str, Any]] = table(url, content).to_pylist()
    return found


def types(url: str, content: bytes | str) -> dict[str, str]:
    """The types of the columns."""
    return {field.name: str(field.type) for field in parsed(url, content).schema}

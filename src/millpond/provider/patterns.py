"""`in_pattern` and the like: paths or URLs in a configuration, whose schemes there have to be."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from millpond.base.errors import UrlError
from millpond.provider.url import STORED, is_url, parse


def check_pattern(text: str) -> str:
    """A path, also one that begins at the node, or a URL.

    >>> check_pattern("series:///sensors/*"), check_pattern("../raw")
    ('series:///sensors/*', '../raw')
    """
    from millpond.provider.formats.format import FORMATS

    formats = FORMATS.names()
    try:
        if is_url(text):
            parse(text, schemes=dict.fromkeys(formats))
        else:
            parse(f"/{text}" if text.startswith(("../", "./")) else text)
    except UrlError as error:
        known = ", ".join(sorted({*STORED, *formats}))
        hint = error.hint or ""
        names = "" if known in hint else f" (schemes are {known})"
        raise ValueError(f"{error.message}: {hint}{names}") from None
    return text


PatternUrl = Annotated[str, AfterValidator(check_pattern)]
"""A member of a configuration."""

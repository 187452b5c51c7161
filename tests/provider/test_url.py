"""URLs of data: every part, and every way to get it wrong."""

from __future__ import annotations

import pytest

from millpond.base.errors import UrlError
from millpond.provider.url import DataUrl, is_url, parse

FORMATS = {"csv": None, "json": None, "parquet": None, "oteljson": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/sensors/*.csv", DataUrl(None, "/sensors/*.csv")),
        ("/odd?name#1", DataUrl(None, "/odd?name#1")),
        ("csv:///a/b.csv", DataUrl("csv", "/a/b.csv")),
        ("CSV:///A", DataUrl("csv", "/A")),
        ("host+csv:///a", DataUrl("csv", "/a", is_host=True)),
        ("host:///a", DataUrl(None, "/a", is_host=True)),
        ("host+series:///f.parquet", DataUrl("series", "/f.parquet", is_host=True)),
        ("csv+gzip:///a", DataUrl("csv", "/a", compression="gzip")),
        ("csv://zstd/a", DataUrl("csv", "/a", compression="zstd")),
        ("csv+gzip://gzip/a", DataUrl("csv", "/a", compression="gzip")),
        ("csv+series:///a", DataUrl("csv", "/a", kind="series")),
        (
            "host+oteljson+bzip2+table:///x",
            DataUrl("oteljson", "/x", is_host=True, compression="bzip2", kind="table"),
        ),
        (
            "csv:///a?delimiter=%3B&has_header=false&quote=",
            DataUrl("csv", "/a", options={"delimiter": ";", "has_header": "false", "quote": ""}),
        ),
        ("series:///../raw", DataUrl("series", "/../raw")),
        ("csv:///a%20b/%23%C3%BC", DataUrl("csv", "/a b/#ü")),
        ("table:///", DataUrl("table", "/")),
    ],
)
def test_parts(text: str, expected: DataUrl) -> None:
    assert parse(text, schemes=FORMATS) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a/b", "neither a path of the pond nor a URL"),
        ("", "neither a path"),
        ("csv:/a", "neither a path"),
        (r"C:\data", "neither a path"),
        ("cvs:///a", "no format 'cvs'(.|\n)*did you mean csv"),
        ("xls:///a", "no format 'xls'(.|\n)*there are collection, csv"),
        ("csv+rar:///a", "'rar' in .* is neither a compression nor a kind"),
        ("csv+series+gzip:///a", "'series' in .* is neither"),
        ("csv://data/a", "'data' in .* is no compression(.|\n)*three slashes"),
        ("csv+gzip://zstd/a", "two compressions"),
        ("csv://a.csv", "no compression"),
        ("csv://", "has no path"),
        ("csv:///a#b", "no fragment(.|\n)*%23"),
        ("csv:///a?x=1&x=2", "the option 'x' twice"),
        ("csv:///%ff", "is no text"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(UrlError, match=said):
        parse(text, schemes=FORMATS)


@pytest.mark.parametrize("text", ["csv://me:geheim@host/a", "csv://me@host/a", "csv://host:80/a"])
def test_users_and_ports_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UrlError, match="no user, password or port") as caught:
        parse(text, schemes=FORMATS)
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(caught.value.to_dict())


def test_texts_come_back() -> None:
    for text in ("/a/b", "csv:///a", "host+csv+gzip+series:///a?x=1", "host:///a"):
        assert str(parse(text)) == text
    assert [is_url(text) for text in ("csv:///a", "/a", "a")] == [True, False, False]
    assert parse("csv:///a").with_path("/b") == parse("csv:///b")
    assert [parse(text).is_format for text in ("csv:///a", "series:///a", "/a")] == [
        *(True, False, False)
    ]

"""What arguments of commands mean, and what is said where they mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import PathSyntaxError, UrlError
from millpond.fs.entry import EntryType
from millpond.provider.formats.csv import CsvOptions
from millpond.steward.places import Place, host_url, parse_place

if TYPE_CHECKING:
    from millpond.provider.formats.format import Options

DATA, TABLE, SERIES = EntryType.DATA, EntryType.TABLE, EntryType.SERIES


def test_what_has_no_scheme_is_of_the_pond() -> None:
    assert parse_place("/a b/ü%20") == Place("/a b/ü%20", "/a b/ü%20")
    assert parse_place("a/b") == Place("a/b", "/a/b")
    assert parse_place("/a/host://b").path == "/a/host://b"
    assert parse_place("/dir/").is_inside


@pytest.mark.parametrize(
    ("scheme", "format_", "becomes"),
    [
        ("host", None, DATA),
        ("host+data", None, DATA),
        ("host+data+series", None, EntryType.DATA_SERIES),
        ("host+table", "parquet", TABLE),
        ("host+series", "parquet", SERIES),
        ("host+csv", "csv", None),
        ("host+csv+table", "csv", TABLE),
        ("host+json+series", "json", SERIES),
        ("host+parquet", "parquet", None),
        ("host+delta+table", "delta", TABLE),
        ("HOST+CSV", "csv", None),
    ],
)
def test_schemes(scheme: str, format_: str | None, becomes: EntryType | None) -> None:
    found = parse_place(f"{scheme}:///data/a b%25.x")
    assert (found.path, found.is_host) == ("/data/a b%.x", True)
    assert (found.format, found.becomes) == (format_, becomes)


def test_relative_paths_stand_for_files_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_place("./100%20?#.csv").path == f"{tmp_path}/100%20?#.csv"
    assert parse_place("..").path == str(tmp_path.parent)
    assert parse_place("./out/").path == f"{tmp_path}/out/"
    assert parse_place("host+csv://./a b.csv?delimiter=;").path == f"{tmp_path}/a b.csv"
    assert parse_place("~/x").path == str(Path.home() / "x")


def options(text: str) -> Options:
    reader = parse_place(text).reader
    assert reader is not None
    return reader.options


def test_csv_options() -> None:
    text = "host+csv:///a.csv?delimiter=;&quote='&has_header=False"
    assert options(text) == CsvOptions(delimiter=";", quote="'", has_header=False)
    assert options("host+csv:///a.csv?delimiter=tab") == CsvOptions(delimiter="\t")
    assert options("csv:///a.csv") == CsvOptions()


def test_urls_of_the_pond() -> None:
    found = parse_place("csv+gzip+table:///raw/*?delimiter=;")
    assert (found.path, found.is_host, found.format) == ("/raw/*", False, "csv")
    assert (found.becomes, found.url) == (TABLE, found.text)
    assert found.reader is not None
    assert found.reader.compression == "gzip"
    found = parse_place("series:///sensors/*")
    assert (found.path, found.url, found.reader) == ("/sensors/*", "series:///sensors/*", None)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("host:a.csv", "no // behind host:", "write host:///"),
        ("host+csv:/a.csv", "no // behind host+csv:", "write host+csv:///a.csv"),
        ("host://a.csv", "a.csv", "three slashes"),
        ("file:///a", "host://", "write host:///a"),
        ("host+csv:///a?delimitr=;", "delimitr", "delimiter, quote, escape, has_header"),
        ("csv:///a?delimiter=;;", "delimiter", "one character"),
        ("host+csv:///a?has_header=maybe", "has_header", "true or false"),
        ("parquet:///a?b=c", "'b'", "parquet has none"),
        ("host:///a?b=c", "'b'", "%3F"),
        ("series:///a?b=c", "'b'", "%3F"),
        ("data+gzip:///a", "gzip", "csv+gzip://"),
        ("data+table:///a", "table", "csv+table:///a"),
        ("delta+gzip:///a", "no packed file", "gzip"),
        ("host+collection:///a", "collection", "arrow, csv, delta, excelhtml, json"),
        ("host+data+table:///a", "how the rows", "host+csv+table://"),
        ("host+xml:///a", "xml", "csv"),
        ("s3://bucket/a", "s3", "csv"),
    ],
)
def test_what_can_not_be_read_says_what_could(text: str, said: str, hint: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_place(text)
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_no_paths(text: str) -> None:
    with pytest.raises(PathSyntaxError):
        parse_place(text)


@pytest.mark.parametrize("path", ["/plain", "/50% of it?.csv", "/a#b", "/ü ö"])
def test_urls_that_are_shown_are_read_again(path: str) -> None:
    assert parse_place(host_url("host+csv", path)).path == path

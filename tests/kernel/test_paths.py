"""Paths of a log as places: decoded once, whatever they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base.errors import ConfigError
from millpond.kernel.paths import (
    canonical,
    encode,
    resolve,
    resolve_all,
    spellings,
    table_location,
)

LOCAL = [
    ("part.parquet", "/data/t/part.parquet"),
    ("p=a%20b/x.parquet", "/data/t/p=a b/x.parquet"),
    ("p=a%2520b/x.parquet", "/data/t/p=a%20b/x.parquet"),
    ("a%23b%3Fc%25d%3Ae.parquet", "/data/t/a#b?c%d:e.parquet"),
    ("a#b?c.parquet", "/data/t/a#b?c.parquet"),
    ("a:b.parquet", "/data/t/a:b.parquet"),
    ("%C3%BC/%F0%9F%A6%86.parquet", "/data/t/ü/🦆.parquet"),
    ("ü.parquet", "/data/t/ü.parquet"),
    ("a+b.parquet", "/data/t/a+b.parquet"),
    ("/other/x%20y.parquet", "/other/x y.parquet"),
    ("file:/other/x%20y.parquet", "/other/x y.parquet"),
    ("file:///other/x%20y.parquet", "/other/x y.parquet"),
    ("FILE:///other/x.parquet", "/other/x.parquet"),
    ("file://localhost/other/x.parquet", "/other/x.parquet"),
    ("s3://bucket/t/x%23.parquet", "s3://bucket/t/x#.parquet"),
]
REMOTE = [
    ("p=a%20b/x.parquet", "s3://lake/t/p=a b/x.parquet"),
    ("s3://other/y%2523.parquet", "s3://other/y%23.parquet"),
    ("/u/x%20y.parquet", "s3://lake/u/x y.parquet"),
    ("file:/other/x.parquet", "/other/x.parquet"),
]


@pytest.mark.parametrize(("path", "place"), LOCAL)
def test_paths_of_a_local_table(path: str, place: str) -> None:
    assert resolve("/data/t", path) == place


@pytest.mark.parametrize(("path", "place"), REMOTE)
def test_paths_of_a_table_in_a_store(path: str, place: str) -> None:
    assert resolve("s3://lake/t", path) == place


@pytest.mark.parametrize(("table", "cases"), [("/data/t", LOCAL), ("s3://lake/t", REMOTE)])
def test_many_at_once_are_as_one_by_one(table: str, cases: list[tuple[str, str]]) -> None:
    given_paths = [path for path, _ in cases]
    found = resolve_all(table, pa.array([*given_paths, None]))
    assert found.to_pylist() == [*(resolve(table, path) for path in given_paths), None]
    plain = ["a.parquet", "b/c=1/d.parquet"]
    chunks = pa.chunked_array([plain[:1], plain[1:]])
    assert resolve_all(table, chunks).to_pylist() == [f"{table}/{name}" for name in plain]
    assert resolve_all(table, pa.array([], pa.string())).to_pylist() == []


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_what_is_encoded_is_found_again(name: str) -> None:
    name = name.lstrip("/") or "x"
    assert resolve("/t", encode(name)) == f"/t/{name}"
    assert resolve_all("s3://b/t", pa.array([encode(name)])).to_pylist() == [f"s3://b/t/{name}"]


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("/data/t/", "/data/t"),
        (Path("/data/t"), "/data/t"),
        ("file:///data/a%20b/", "/data/a b"),
        ("s3://lake/t/", "s3://lake/t"),
        ("memory://pond/t", "memory://pond/t"),
        ("t", str(Path("t").absolute())),
    ],
)
def test_the_place_of_a_table(location: str | Path, place: str) -> None:
    assert table_location(location) == place


@pytest.mark.parametrize("location", ["", None, 3, "a\0b"])
def test_what_is_no_place(location: object) -> None:
    with pytest.raises(ConfigError, match="no place of a table"):
        table_location(location)  # type: ignore[arg-type]


def test_a_home_that_there_is_not() -> None:
    with pytest.raises(ConfigError, match="no home directory"):
        table_location("~nobody-of-this-name/t")


def test_the_spellings_of_a_local_file_are_one() -> None:
    for spelling in spellings("/x/y%20z"):
        assert canonical(spelling) == "/x/y%20z"
    assert len(spellings("/x")) == 3
    assert spellings("x/y") == ("x/y",)
    assert canonical("s3://b/x") == "s3://b/x"

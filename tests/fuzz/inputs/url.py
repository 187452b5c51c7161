"""URLs and paths of data, as `pond cat` takes them: some good, most of them odd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fuzz.inputs.case import Case
from tests.fuzz.mutation import mutate_string

if TYPE_CHECKING:
    from random import Random

SCHEMES: Final = (
    *("csv", "json", "parquet", "arrow", "series", "table", "data", "file", "delta", "excelhtml"),
    *("oteljson", "weblog", "collection", "host", "https", "s3", "nosuch", "CSV", ""),
)
EXTRAS: Final = ("", "", "", "+gzip", "+zstd", "+bzip2", "+series", "+table", "+gzip+series", "+x")
PATHS: Final = (
    *(
        "/raw/a.csv",
        "/raw/b.jsonl",
        "/raw/*.csv",
        "/raw/**",
        "/in/s",
        "/t",
        "/t@v1",
        "/in/s@v7",
        "/",
        "",
    ),
    *(
        "/missing",
        "/raw",
        "/raw/",
        "/raw/a.csv/x",
        "/raw/%61.csv",
        "/raw/a.csv%00",
        "/../in/s",
        "/in/*",
    ),
    *("/joined", "/reduced/**", "/etc/passwd/x", "/link", "/loop", "a.csv", "/raw/[", "/raw/{a,b}"),
)
QUERIES: Final = (
    *("", "", "", "?delimiter=;", "?delimiter=", "?delimiter=ab", "?header=no", "?header=maybe"),
    *("?x", "?=", "?delimiter=;&delimiter=,", "?format=csv", "?quote='", "?encoding=latin-1"),
    *("?time_column=v", "?types=v:int", "#fragment", "?%zz", "?columns=a,b", "?schema=v%20double"),
)


def generate(rng: Random) -> Case:
    """The text of a URL; there is no truth, but an exit code."""
    scheme = rng.choice(SCHEMES)
    host = "host+" if rng.random() < 0.3 else ""
    slashes = rng.choice(["://", "://", "://", "://", ":", ":/", ":////"])
    text = f"{host}{scheme}{rng.choice(EXTRAS)}{slashes}{rng.choice(PATHS)}{rng.choice(QUERIES)}"
    if not scheme:
        text = rng.choice(PATHS)
    if rng.random() < 0.6:
        text = mutate_string(text, rng)
    return Case(text.replace("\0", "\x01").encode("utf-8", "surrogatepass"), ".url")

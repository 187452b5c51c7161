"""Which names an object can have: the same in every store, and none that leaves its root.

A path is one or more segments joined by `/`. Refused are: absolute paths, empty segments, `.` and
`..`, control characters, segments of more than 255 bytes, and segments that start with
`TEMP_PREFIX`, which stores use for puts that are not finished.
"""

from __future__ import annotations

import re

from millpond.base.errors import StoreError

TEMP_PREFIX = ".millpond-tmp-"
_SEGMENT_BYTES = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_path(path: str) -> str:
    """The path itself if an object can have it, otherwise a `StoreError`.

    >>> check_path("tables/a b=1%/ü.parquet")
    'tables/a b=1%/ü.parquet'
    >>> check_path("../etc/passwd")
    Traceback (most recent call last):
    ...
    millpond.base.errors.StoreError: '../etc/passwd' can't name an object: it has a segment '..'
      hint: paths are relative to the store's root, with '/' between segments
    """
    for segment in path.split("/"):
        if problem := _problem(segment):
            raise _refused(path, problem)
    return path


def check_prefix(prefix: str) -> str:
    """The prefix itself if it can start a path; the last segment may be cut short or empty."""
    *segments, tail = prefix.split("/")
    for segment in segments:
        if problem := _problem(segment):
            raise _refused(prefix, problem)
    # ".." can still become "..data", so an unfinished tail is only checked for its characters.
    if problem := _bad_characters(tail):
        raise _refused(prefix, problem)
    return prefix


def is_path(path: str) -> bool:
    """Whether `check_path` accepts it."""
    return all(_problem(segment) is None for segment in path.split("/"))


def is_leftover(path: str) -> bool:
    """Whether the last segment is the name of an unfinished put."""
    return path.rpartition("/")[2].startswith(TEMP_PREFIX)


def _problem(segment: str) -> str | None:
    if not segment:
        return "it is empty, starts or ends with '/', or has '//'"
    if segment in (".", ".."):
        return f"it has a segment {segment!r}"
    if segment.startswith(TEMP_PREFIX):
        return f"{TEMP_PREFIX!r} is reserved for unfinished writes"
    return _bad_characters(segment)


def _bad_characters(segment: str) -> str | None:
    if _CONTROL.search(segment):
        return "it has a control character"
    try:
        size = len(segment.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > _SEGMENT_BYTES:
        return f"a segment has {size} bytes, and {_SEGMENT_BYTES} are allowed"
    return None


def _refused(path: str, problem: str) -> StoreError:
    return StoreError(
        f"{path!r} can't name an object: {problem}",
        path=path,
        hint="paths are relative to the store's root, with '/' between segments",
    )

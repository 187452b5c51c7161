"""The order in which files became part of a table: rows of a series come oldest version first.

Times of objects do not tell it: they tie within a millisecond, or a second on S3, clocks differ,
and of two writers the one that wrote its files first may commit last. So an add action that we
commit has a tag with the version and its place in it, which later rewrites keep. Files of other
writers have none, and go by their time.

>>> age_at(3, 0), age_of({AGE: "000000000003.000000"}) < age_of([(AGE, "000000000003.000001")])
('000000000003.000000', True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AGE: Final = "millpond.age"
"""The tag of an add action; its values sort as text."""


def age_at(version: int, number: int) -> str:
    """Return the age of a file that a version adds as its n-th."""
    return f"{version:012d}.{number:06d}"


def age_of(tags: Mapping[str, str] | Sequence[tuple[str, str]] | None) -> str:
    """Return the age that the tags of an add action name; empty if they do not."""
    return dict(tags or {}).get(AGE) or ""


def aged(action: Mapping[str, Any], age: str) -> dict[str, Any]:
    """Return an add action with an age; one that it has already stays."""
    tags = dict(action.get("tags") or {})
    return {**action, "tags": {**tags, AGE: tags.get(AGE) or age}}


def parts_of_age(tags: Any, count: int) -> list[str]:
    """Return the ages of files that take the place of one, in order."""
    age = age_of(tags)
    if not age or count == 1:
        return [age] * count
    return [f"{age}.{number:06d}" for number in range(count)]


def by_age(file: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return what live files are sorted by, the oldest first."""
    return age_of(file["tags"]), file["modificationTime"] or 0, file["path"]

"""`out_pattern`: the paths below a node that stand for what its `in_pattern` matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, ValidationInfo

from millpond.base.errors import FactoryConfigError, PathSyntaxError
from millpond.fs.paths import check_name
from millpond.provider.captures import check_captures, filled, without_captures

if TYPE_CHECKING:
    from millpond.provider.reading import Match


def out_path(pattern: str, match: Match) -> str:
    """The path for a match, relative to the node."""
    out = filled(pattern, match.captures).strip("/")
    try:
        _check(out)
    except ValueError as error:
        raise FactoryConfigError(
            f"{pattern!r} is {out!r} for {match.path}: {error}",
            place=("out_pattern",),
            hint="$0 is what the first wildcard of in_pattern stands for",
        ) from None
    return out


def check_out_pattern(pattern: str, in_pattern: str | None) -> str:
    """A pattern that names paths below a node, from captures that there are.

    >>> check_out_pattern("by-site/$0", "/sensors/*")
    'by-site/$0'
    >>> check_out_pattern("../$0", "/sensors/*")
    Traceback (most recent call last):
    ...
    ValueError: '..' leads elsewhere, and what is made stands below the node
    """
    if in_pattern is not None:
        check_captures(pattern, in_pattern)
    _check(without_captures(pattern).strip("/"))
    return pattern


def _check(out: str) -> None:
    if not out:
        raise ValueError("it names nothing: write $0, or a name")
    for name in out.split("/"):
        if name in (".", ".."):
            raise ValueError(f"{name!r} leads elsewhere, and what is made stands below the node")
        try:
            check_name(name, path=f"/{out}")
        except PathSyntaxError as error:
            raise ValueError(error.message) from None


def _checked(pattern: str, info: ValidationInfo) -> str:
    return check_out_pattern(pattern, info.data.get("in_pattern"))


OutPattern = Annotated[str, AfterValidator(_checked)]
"""A member of a configuration; it stands after `in_pattern`."""

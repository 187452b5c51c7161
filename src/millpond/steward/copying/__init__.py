"""Copying into a pond, out of it, and within it; everything is looked at before anything is done.

- `host`: files of this machine; `landing`: where things go in a pond
- `into`, `out`, `within`: the three directions; each has a plan with `size` and `run`
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Copied:
    """One thing that was copied."""

    source: str
    target: str
    type: str
    version: int | None
    """Of the node; None on this machine."""
    size: int | None
    """Bytes of the content, of a table bytes of its files."""


__all__ = ["Copied"]

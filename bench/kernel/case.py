"""A case: one thing that is done with one table, and how much of the peer's time it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["open", "paths", "plan", "refresh", "read", "checkpoint"]
"""What is done, every time from the table's path on, except to refresh:

open        protocol, metadata and version
paths       and the paths of all live files
plan        and the paths of the files that may hold ids of a given range
refresh     an open table is brought to one more commit
read        all rows of all columns, as a stream
checkpoint  and write one
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What is done with which table; `limit` is CPU seconds as a multiple of the peer's."""

    name: str
    action: Action
    table: str
    limit: float

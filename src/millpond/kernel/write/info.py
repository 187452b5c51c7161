"""`commitInfo`: what a commit says of itself, and the times that commits state."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.kernel.commits import Commit

STATED_TIMES: Final = "delta.enableInCommitTimestamps"


@cache
def engine_info() -> str:
    """Who wrote a commit."""
    from importlib.metadata import version

    return f"Millpond/{version('millpond')}"


def checked_info(info: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a caller adds to commitInfo; what JSON can't say would spoil the whole commit."""
    try:
        found = dict(info or {})
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeMismatchError(
            f"info= can't be written as JSON: {error}", hint="give texts, numbers and lists of them"
        ) from error
    return found


@dataclass(slots=True)
class Operation:
    """What a transaction is about: the first thing that it was asked to do."""

    name: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    def begin(self, name: str | None, parameters: Mapping[str, Any]) -> None:
        """Note a step; a name that was given stays, and so does the first one."""
        if name is None:
            return
        self.name = self.name or name
        self.parameters = self.parameters or {k: v for k, v in parameters.items() if v is not None}

    def to_dict(self) -> dict[str, Any]:
        """The members of commitInfo for it; parameters are texts, as everywhere in Delta."""
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in self.parameters.items()}
        return {"operation": self.name or "WRITE", "operationParameters": texts}


def stated_time(now: int, last: int | None) -> int:
    """The time that a commit states: later than that of the commit before."""
    return now if last is None else max(now, last + 1)


def time_of(winner: Commit) -> int | None:
    """The time that a commit states, or else says that it was made at."""
    found = winner.info.get("inCommitTimestamp", winner.info.get("timestamp"))
    return found if isinstance(found, int) else None

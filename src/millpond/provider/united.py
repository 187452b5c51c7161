"""`United`: the rows of several paths as one, by the names of columns; their pieces are its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import PathNotFoundError
from millpond.plan.unite import fitted, union_by_name, united_schema
from millpond.provider.rows import ALL, Asked, Piece, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Rows


class United:
    """All rows of all parts. A column that a part lacks is null there."""

    def __init__(self, path: str, parts: Sequence[Rows]) -> None:
        self.path = path
        self.parts = tuple(parts)

    @cached_property
    def schema(self) -> Struct:
        """The columns of all, types widened where that loses nothing."""
        self._check()
        return united_schema({part.path: part.schema for part in self.parts})

    @cached_property
    def time_column(self) -> str | None:
        """The time, if all parts have the same one."""
        names = {part.time_column for part in self.parts}
        return names.pop() if len(names) == 1 else None

    @cached_property
    def key(self) -> str:
        """Names the content."""
        return key_of(*(part.key for part in self.parts))

    @cached_property
    def _owners(self) -> dict[Piece, tuple[Rows, Piece]]:
        """Whose piece each is. What a link leads to may be here twice, and counts twice."""
        found: dict[Piece, tuple[Rows, Piece]] = {}
        for part in self.parts:
            for piece in part.pieces():
                own = piece
                if piece in found:
                    own = replace(piece, key=key_of("again", part.path, piece.key))
                found[own] = part, piece
        return found

    def pieces(self) -> Sequence[Piece]:
        """Those of all parts."""
        return list(self._owners)

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        self._check()
        return union_by_name({part.path: part.plan(asked) for part in self.parts})

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """Return the rows of some pieces in the order of all, with the columns of all."""
        by_part: dict[str, tuple[Rows, list[Piece]]] = {}
        wanted = set(pieces)
        for piece, (part, known) in self._owners.items():
            if piece in wanted:
                by_part.setdefault(part.path, (part, []))[1].append(known)
        plans = {path: part.plan_of(chosen) for path, (part, chosen) in by_part.items()}
        return fitted(union_by_name(plans), self.schema)

    def _check(self) -> None:
        if not self.parts:
            raise PathNotFoundError(
                f"{self.path} has no input", path=self.path, hint="no path matches its patterns"
            )

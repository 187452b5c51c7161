"""Why a column of a file is not what a plan wants: raised where the file's name is not known."""

from __future__ import annotations


class Misfit(Exception):  # noqa: N818 - caught where the file's name is known
    """A column's type in a file is not one that the wanted type can take."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"{column} {reason}")
        self.column = column
        self.reason = reason

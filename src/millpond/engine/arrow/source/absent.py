"""JSON lines that need not be parsed: a member that a condition needs stands nowhere in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from millpond.engine.arrow.source.bounds import ALL_NULL
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan.bound import row_paths
from millpond.plan.paths import Name

if TYPE_CHECKING:
    from millpond.engine.arrow.source.bounds import Bounds
    from millpond.engine.arrow.source.prune import Lookup
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.types import DataType

_OPEN, _CLOSE = b"{}"
_LINE_END: Final = 0x0A
_MUCH: Final = 1 << 16
_HEAD: Final = 1 << 12


class AbsentMembers:
    """Files in which a member's name stands nowhere have null there, so conditions may fail.

    Only the bytes are searched: a commit without `"metaData"` need not be parsed to find it.
    """

    def __init__(self, spec: ScanSpec) -> None:
        self._predicates = spec.predicates
        firsts = {path.steps[0] for expr in spec.predicates for path in row_paths(expr)}
        names = (step.name for step in firsts if isinstance(step, Name))
        self._marks = {name: f'"{name}"'.encode() for name in names if name not in spec.constants}
        self._usable = all(_PLAIN.fullmatch(name) for name in self._marks)
        self._verdicts: dict[frozenset[str], bool] = {}

    def rule_out(self, content: bytes) -> bool:
        """Whether no line can meet the conditions."""
        if not self._usable or not self._marks:
            return False
        # What stands at the beginning of much text is seen at once, and is mostly enough to say no.
        if len(content) > _MUCH and not self._fail(self._present(content[:_HEAD])):
            return False
        if not self._fail(self._present(content)):
            return False
        if b"\\" in content and b"\\u" in content:  # one byte is found sooner than two
            return False
        # What is no object at all is an error, which parsing finds.
        return _looks_whole(content)

    def _present(self, content: bytes) -> frozenset[str]:
        return frozenset(name for name, mark in self._marks.items() if mark in content)

    def _fail(self, present: frozenset[str]) -> bool:
        """Whether the conditions do where only these members are; where are more, maybe not."""
        found = self._verdicts.get(present)
        if found is None:
            found = self._verdicts[present] = not all(
                may_hold(predicate, self._lookup(present)) for predicate in self._predicates
            )
        return found

    def _lookup(self, present: frozenset[str]) -> Lookup:
        marks = self._marks

        def lookup(steps: tuple[str, ...], type_: DataType) -> Bounds | None:
            del type_
            return ALL_NULL if steps[0] in marks and steps[0] not in present else None

        return lookup


_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_LINES = re.compile(rb"(?:\{[^\n]*\}\r?\n)*(?:\{[^\n]*\})?\s*")


def _looks_whole(content: bytes) -> bool:
    """Whether every line begins and ends like an object, and the last one is: there a cut shows."""
    if not _are_plain(content) and _LINES.fullmatch(content) is None:
        return False
    last = content.rstrip().rpartition(b"\n")[2]
    try:
        return not last or isinstance(msgspec.json.decode(last), dict)
    except ValueError:
        return False


def _are_plain(content: bytes) -> bool:
    """Whether all lines are braces and what is between them; of much text, that is seen sooner."""
    if len(content) < _MUCH:
        return False
    data = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(data == _LINE_END)
    if not len(ends) or ends[-1] != len(data) - 1 or ends[0] == 0:
        return False
    starts = np.concatenate([[0], ends[:-1] + 1])
    return bool((data[starts] == _OPEN).all() and (data[ends - 1] == _CLOSE).all())

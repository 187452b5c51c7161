"""JSON lines that need not be parsed: a member that a condition needs stands nowhere in them."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from millpond.engine.arrow.source.bounds import ALL_NULL
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan.bound import row_paths
from millpond.plan.paths import Name

if TYPE_CHECKING:
    from millpond.engine.arrow.source.bounds import Bounds
    from millpond.engine.arrow.source.prune import Lookup
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.types import DataType

_MUCH: Final = 1 << 16
_HEAD: Final = 1 << 10


class AbsentMembers:
    """Files in which a member's name stands nowhere have null there, so conditions may fail.

    Bytes are searched, or lines read without keeping anything of them: of a commit without
    `"metaData"`, no values are made to find it. That each object stands on a line of its own is not
    looked at closely: who reads the rows sees it.
    """

    def __init__(self, spec: ScanSpec) -> None:
        self._predicates = spec.predicates
        firsts = {path.steps[0] for expr in spec.predicates for path in row_paths(expr)}
        names = (step.name for step in firsts if isinstance(step, Name))
        self._marks = {name: f'"{name}"'.encode() for name in names if name not in spec.constants}
        # One byte is found much sooner than a name, and capitals are rare in JSON.
        self._rare = {name: _rarest(mark) for name, mark in self._marks.items()}
        self._names = frozenset(self._marks)
        self._usable = all(_PLAIN.fullmatch(name) for name in self._marks)
        self._verdicts: dict[frozenset[str], bool] = {}
        self._was_absent = False
        """Whether the last content was ruled out, so that the next one may well be."""

    def rule_out(self, content: bytes) -> bool:
        """Whether no line can meet the conditions."""
        if not self._usable or not self._marks:
            return False
        self._was_absent = self._looks_absent(content) or self._is_absent(content)
        return self._was_absent

    def _looks_absent(self, content: bytes) -> bool:
        """Whether there is none of the names, asked where this is likely: then nothing else is."""
        if not self._was_absent or not self._is_any_enough or len(content) > _MUCH:
            return False
        return self._without is not None and _are_without(content, self._without)

    def _is_absent(self, content: bytes) -> bool:
        # What stands at the beginning is seen at once, and is mostly enough to say no.
        for mark in self._enough:
            if content.find(mark, 0, _HEAD) >= 0:
                return False
        head = self._without if self._is_any_enough else self._absent(content[:_HEAD])
        if head is None:
            return False
        # In much text, names are found sooner than all of it is read, unless they are spelled out.
        is_searched = len(content) > _MUCH and not _has_escapes(content)
        if not is_searched and _are_without(content, head):
            return True
        absent = self._absent(content)
        if absent is None:
            return False
        if is_searched:
            return _look_whole(content)
        return absent != head and _are_without(content, absent)

    @cached_property
    def _enough(self) -> tuple[bytes, ...]:
        """Names of which one alone is enough for conditions to hold, maybe."""
        marks = self._marks.items()
        return tuple(mark for name, mark in marks if not self._fail(frozenset({name})))

    @cached_property
    def _is_any_enough(self) -> bool:
        return len(self._enough) == len(self._marks)

    @cached_property
    def _without(self) -> frozenset[str] | None:
        """What is absent where nothing is found: all names; None if conditions may hold then."""
        return self._absent(b"")

    def _absent(self, content: bytes) -> frozenset[str] | None:
        """The names that do not stand here; None if conditions may hold for those that do."""
        present = frozenset[str]()
        for name, mark in self._marks.items():
            if self._rare[name] in content and mark in content:
                present |= {name}
                if not self._fail(present):
                    return None
        return self._names - present if self._fail(present) else None

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


def _has_escapes(content: bytes) -> bool:
    """Whether characters are spelled as numbers; one byte is found much sooner than two."""
    return b"\\" in content and b"\\u" in content


def _rarest(mark: bytes) -> bytes:
    """A byte that is seldom where this is not."""
    return next((bytes([byte]) for byte in mark if chr(byte).isupper()), mark[:1])


def _are_without(content: bytes, names: frozenset[str]) -> bool:
    """Whether it is nothing but objects without these members, as many as lines."""
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    try:
        return len(_refusing(names).decode_lines(content)) == lines
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


@lru_cache(maxsize=64)
def _refusing(names: frozenset[str]) -> msgspec.json.Decoder[Any]:
    """What reads objects, and nothing of them, if they have none of these members."""
    never = Annotated[int, msgspec.Meta(gt=0, lt=0)]
    slots = {f"f{number}": name for number, name in enumerate(sorted(names))}
    fields = [(slot, never, 0) for slot in slots]
    return msgspec.json.Decoder(msgspec.defstruct("Row", fields, rename=slots, gc=False))


def _look_whole(content: bytes) -> bool:
    """Whether the first and the last line are objects.

    There a cut shows, and objects that take many lines.
    """
    first = content[: content.find(b"\n")]
    last = content[content.rfind(b"\n", 0, -1) + 1 :]
    try:
        return all(isinstance(msgspec.json.decode(line), dict) for line in (first, last))
    except (ValueError, RecursionError):
        return False

"""What rendering a template may cost: processor time, and the size of all that it computes.

Every value that a template makes, and every turn of its loops, is charged to the budget of the file
that is rendered. `guards.py` says where.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.base.settings import LimitSettings

TOTAL: Final = 16
"""All values together may take so many times the bytes of one."""
SIZES: Final = "limits.template_bytes"
CONTAINERS: Final = (list, tuple, dict, set, frozenset)
TEXTS: Final = (str, bytes, bytearray)
_ITEM: Final = 8
_TURN: Final = 64
"""Bytes that one turn of a loop is charged: it may keep something."""
_STEPS: Final = 64
_STEP_BYTES: Final = 1 << 14


class BudgetError(Exception):
    """A template needs more than it may have."""

    def __init__(self, said: str, setting: str) -> None:
        super().__init__(said)
        self.setting = setting


class Budget:
    """What is left for one file."""

    def __init__(self, limits: LimitSettings) -> None:
        self.most = limits.template_bytes
        self._seconds = limits.template_seconds
        self._until = time.thread_time() + limits.template_seconds
        self._left = TOTAL * limits.template_bytes
        self._steps = _STEPS

    def turn(self) -> None:
        """Charge one turn of a loop, or one call of a macro."""
        self._charge(_TURN)
        self.tick()

    def tick(self, steps: int = 1) -> None:
        """Note some work; there is an error when the time is over."""
        self._steps -= steps
        if self._steps <= 0:
            self._steps = _STEPS
            if time.thread_time() > self._until:
                said = f"it takes more than {self._seconds:g} s of processor time"
                raise BudgetError(said, "limits.template_seconds")

    def check(self, size: int) -> None:
        """Refuse a value of this size before it is made."""
        if size > self.most:
            raise BudgetError(f"it makes a value of more than {self.most:,} bytes", SIZES)

    def spent(self, value: Any) -> Any:
        """Charge a value that was made, and return it."""
        size = size_of(value)
        self.tick(1 + size // _STEP_BYTES)
        self.check(size)
        self._charge(size)
        return value

    def measured(self, value: Any) -> Any:
        """Return a value whose text is small enough to be made."""
        size = self.text_size(value)
        self.check(size)
        self._charge(size)
        return value

    def shown(self, value: Any) -> Any:
        """Return a value that is written into the file, if its text is small enough."""
        if isinstance(value, CONTAINERS):
            self.check(self.text_size(value))
        return value

    def text_size(self, value: Any) -> int:
        """Return about how long the text of a value is, nested ones with all that they hold."""
        if not isinstance(value, CONTAINERS):
            return size_of(value)
        size = 0
        todo: list[Iterator[Any]] = [iter((value,))]
        while todo:
            for item in todo[-1]:
                self.tick()
                size += 2 + (0 if isinstance(item, CONTAINERS) else size_of(item))
                if size > self.most:
                    return size
                if isinstance(item, Mapping):
                    todo += [iter(item.keys()), iter(item.values())]
                    break
                if isinstance(item, CONTAINERS):
                    todo.append(iter(item))
                    break
            else:
                todo.pop()
        return size

    def joined(self, texts: Iterable[str]) -> str:
        """Join pieces of a text, as long as there is room for them."""
        pieces: list[str] = []
        size, source = 0, iter(texts)
        while more := list(islice(source, _STEPS)):
            pieces += more
            size += sum(map(len, more))
            self.check(size)
            self.tick(len(more))
        return str(self.spent("".join(pieces)))

    def joinable(self, values: Iterable[Any], between: int = 0) -> list[Any]:
        """Return values as a list whose text, once joined, is small enough."""
        size, items = 0, []
        for value in values:
            items.append(value)
            size += between + (len(value) if isinstance(value, TEXTS) else self.text_size(value))
            self.check(size)
            self.tick()
        return items

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Charge items while they are made."""
        for item in items:
            yield self.spent(item)

    def _charge(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            said = f"it makes values of more than {TOTAL * self.most:,} bytes altogether"
            raise BudgetError(said, SIZES)


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes, without what it refers to.

    >>> size_of("ab"), size_of([1, 2]), size_of(300), size_of(None)
    (2, 16, 2, 0)
    """
    if isinstance(value, TEXTS):
        return len(value)
    if isinstance(value, int):
        return value.bit_length() + 7 >> 3
    return _ITEM * len(value) if isinstance(value, CONTAINERS) else 0

"""A store in which things go wrong: errors before and after a put, lost answers, interrupts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import ObjectExistsError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.base.store import Data, ObjectMeta, PutMode, Store


class FaultyStore:
    """Hands everything on to another store; `before` and `after` see each put's path."""

    def __init__(
        self,
        inner: Store,
        *,
        before: Callable[[str], None] | None = None,
        after: Callable[[str], None] | None = None,
    ) -> None:
        self._inner = inner
        self._before = before
        self._after = after
        self.is_down = False

    def put(self, path: str, data: Data, *, mode: PutMode = "create") -> ObjectMeta:
        return self._put(path, lambda: self._inner.put(path, data, mode=mode))

    def put_file(self, path: str, local_file: Any, *, mode: PutMode = "create") -> ObjectMeta:
        return self._put(path, lambda: self._inner.put_file(path, local_file, mode=mode))

    def _put(self, path: str, put: Callable[[], ObjectMeta]) -> ObjectMeta:
        if self._before is not None:
            self._before(path)
        found = put()
        if self._after is not None:
            self._after(path)
        return found

    def get(self, path: str) -> bytes:
        if self.is_down:
            raise StoreError("the store is down", path=path)
        return self._inner.get(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def is_commit(path: str) -> bool:
    """Whether a path is a commit's."""
    return path.startswith("_delta_log/") and path.endswith(".json")


def lost_answer(path: str) -> None:
    """The put worked, and its repetition says that the name is taken."""
    raise ObjectExistsError("is already there", path=path)


def broken_line(path: str) -> None:
    """The put worked, or not; nobody knows."""
    raise StoreError("the connection was closed", path=path)


def only(which: Callable[[str], bool], fault: Callable[[str], None]) -> Callable[[str], None]:
    """A fault for some paths."""

    def check(path: str) -> None:
        if which(path):
            fault(path)

    return check

"""A store and the in-memory model side by side: whatever is done to both, they stay the same.

Hypothesis finds the sequence of operations after which they differ, and makes it short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from millpond.base.errors import ObjectExistsError, ObjectNotFoundError
from millpond.base.store.memory import MemoryStore

if TYPE_CHECKING:
    from millpond.base.store import PutMode, Store

_PATHS = st.sampled_from(
    ("a", "b c", "d/a", "d/b", "d/e/f", "d/e-f", "é", "g/%41", "g/A", "g/a+b", "z/y/x/w")
)
_DATA = st.binary(max_size=40)
_MODES: st.SearchStrategy[PutMode] = st.sampled_from(("create", "overwrite"))


class StoreStateMachine(RuleBasedStateMachine):
    """Random puts, gets, lists and deletes: a store must do what `MemoryStore` does.

    Subclass it with `make_store()`, which returns an empty store each time, and let pytest find
    `TestX = MyMachine.TestCase`.
    """

    def make_store(self) -> Store:
        """An empty store; the subclass knows which."""
        raise NotImplementedError

    @initialize()
    def start(self) -> None:
        """Begin with two empty stores."""
        self.model: Store = MemoryStore()
        self.store: Store = self.make_store()

    @rule(path=_PATHS, data=_DATA, mode=_MODES, chunked=st.booleans())
    def put(self, path: str, data: bytes, mode: PutMode, chunked: bool) -> None:
        """Both take the object, or both refuse it."""
        outcomes = []
        for store in (self.model, self.store):
            source = iter([data[:7], data[7:]]) if chunked else data
            try:
                outcomes.append(str(store.put(path, source, mode=mode).size))
            except ObjectExistsError as error:
                outcomes.append(error.path)
        assert outcomes[0] == outcomes[1]

    @rule(path=_PATHS)
    def delete(self, path: str) -> None:
        """Deleting says nothing, and leaves both the same."""
        self.model.delete(path)
        self.store.delete(path)

    @rule(path=_PATHS, start=st.integers(0, 50), length=st.integers(0, 50))
    def read(self, path: str, start: int, length: int) -> None:
        """Both have the object, with the same bytes, or neither has."""
        outcomes = []
        for store in (self.model, self.store):
            try:
                whole = store.get(path)
                assert b"".join(store.get_stream(path, chunk_bytes=8)) == whole
                outcomes.append((whole, store.get_range(path, start, length)))
            except ObjectNotFoundError as error:
                outcomes.append((error.path.encode(), b""))
        assert outcomes[0] == outcomes[1]

    @rule(
        prefix=st.sampled_from(("", "d", "d/", "d/e", "g/", "q")),
        start_after=st.none() | _PATHS,
    )
    def list_some(self, prefix: str, start_after: str | None) -> None:
        """Both list the same names and sizes in the same order."""
        rows = [
            [(meta.path, meta.size) for meta in store.list(prefix, start_after=start_after)]
            for store in (self.model, self.store)
        ]
        assert rows[0] == rows[1]

    @invariant()
    def same_objects(self) -> None:
        """After each step both hold the same."""
        if hasattr(self, "store"):
            assert [m.path for m in self.model.list()] == [m.path for m in self.store.list()]

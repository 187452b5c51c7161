"""`Guarded`: rows that a factory computes. Whom they ask can't ask for them; failures are told."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError, PluginError
from millpond.base.unsaid import cause_of
from millpond.fs.factory import FACTORIES, factory
from millpond.provider.rows import ALL, Asked, Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Rows
    from millpond.steward.dynamic.derivation import Derivation


class Guarded:
    """Rows that are computed: those whom they ask can't ask for them."""

    def __init__(self, derivation: Derivation, path: str, factory: str, rows: Rows) -> None:
        self.path = path
        self._factory = factory
        self._derivation = derivation
        self._rows = rows

    def _computing(self) -> AbstractContextManager[None]:
        return self._derivation.computing(self.path, self._factory)

    @cached_property
    def schema(self) -> Struct:
        """The columns."""
        with self._computing():
            return self._rows.schema

    @cached_property
    def time_column(self) -> str | None:
        """Which column is the time."""
        with self._computing():
            return self._rows.time_column

    @cached_property
    def key(self) -> str:
        """Names the content."""
        with self._computing():
            return self._rows.key

    def keeping(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """All rows, kept if that is of use."""
        keep = getattr(self._rows, "keeping", None)
        with self._computing():
            return batches if keep is None else keep(batches)

    def pieces(self) -> Sequence[Piece]:
        """The parts."""
        with self._computing():
            return self._rows.pieces()

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        with self._computing():
            return self._rows.plan(asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some parts."""
        with self._computing():
            return self._rows.plan_of(pieces)


@contextmanager
def failing(path: str, name: str) -> Iterator[None]:
    """Errors tell the path; what a factory of somebody else raises becomes one that does."""
    try:
        yield
    except MillpondError as error:
        error.came_up_in(path)
        raise
    except Exception as error:
        if type(factory(name)).__module__.startswith("millpond."):
            raise
        raise PluginError(
            f"{path} can't be computed, {name} failed: {type(error).__name__}: {error}",
            group=FACTORIES.group,
            name=name,
            hint="the factory is broken, or its configuration is not what it expects",
        ) from cause_of(error)

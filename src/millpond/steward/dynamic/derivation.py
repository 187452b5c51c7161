"""`Derivation`: what is computed in one scope; `reading.py` has what a factory sees meanwhile.

Who computes is on a stack, so a path that is computed from itself is found before it is computed.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import (
    CycleError,
    PathTypeError,
    UnsupportedExpressionError,
    UnsupportedNodeError,
)
from millpond.fs.entry import EntryType
from millpond.plan.sources import Values
from millpond.plan.tree import topological
from millpond.provider.factory import node_factory
from millpond.provider.formats.reader import reader_of
from millpond.provider.formats.rows import FormatRows
from millpond.provider.images import KIND as IMAGES
from millpond.provider.images import Images
from millpond.provider.kept import Kept, Places
from millpond.steward.dynamic.deltas import delta_rows
from millpond.steward.dynamic.guarded import Guarded, failing
from millpond.steward.dynamic.raws import BYTES, host_raw, pond_raws
from millpond.steward.dynamic.reading import PondReading
from millpond.steward.dynamic.stored import StoredRows
from millpond.steward.scope import no_rows, runs_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from millpond.fs.entry import Row
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.provider.factory import Entry
    from millpond.provider.formats.reader import Raw
    from millpond.provider.reading import Exported, Match
    from millpond.provider.rows import Rows
    from millpond.provider.url import DataUrl
    from millpond.steward.scope import Scope

_log = logging.getLogger("millpond.steward")


class Derivation:
    """Everything that is computed in one scope; each thing once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.variables = scope.pond.variables
        self.computes = True
        """Whether results that are missing are computed; not while a plan is only to be shown."""
        self.exported: Mapping[str, Exported] = {}
        """Where an export puts paths, while it asks."""
        self._stack: list[str] = []
        self._rows: dict[str, Rows] = {}

    @contextmanager
    def computing(self, path: str, factory: str) -> Iterator[None]:
        """While a path is computed, nobody it asks may ask for it; its factory may fail."""
        if path in self._stack:
            way = (*self._stack[self._stack.index(path) :], path)
            raise CycleError(
                f"{path} is computed from itself: {' -> '.join(way)}",
                paths=way,
                hint="change the configuration of one of them: pond mknod --overwrite",
            )
        self._stack.append(path)
        try:
            with failing(path, factory):
                yield
        finally:
            self._stack.pop()

    def reading(self, path: str) -> PondReading:
        """What the factory of a node sees."""
        return PondReading(self, path)

    def entry(self, path: str, row: Row) -> Entry:
        """What a node of a factory is."""
        known = self.scope.dynamic_tree.entry(row.node_id)
        if known is not None:
            return known
        config = json.loads(row.config or "{}")
        name = row.factory or ""
        with self.computing(path, name):
            return node_factory(name).entry(row.name, config, self.reading(path))

    def entries(self, path: str, row: Row) -> Mapping[str, Entry]:
        """What is in a directory that a factory makes."""
        entry = self.entry(path, row)
        assert entry.entries is not None
        with self.computing(path, entry.factory):
            return entry.entries()

    def rows(self, path: str) -> Rows:
        """The rows of a path, stored or computed."""
        known = self._rows.get(path)
        if known is None:
            known = self._rows[path] = self._made(path)
        return known

    def keeping(self, path: str, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """All rows of a path as somebody reads them: what computes them may keep them.

        In a transaction it would be of no use: it may yet be taken back.
        """
        is_lasting = self.computes and self._notes is not None
        keep = getattr(self.rows(path), "keeping", None) if is_lasting else None
        return batches if keep is None else keep(batches)

    def _made(self, path: str) -> Rows:
        found, row = self.scope.locate(path), self.scope.row(path)
        if row.entry_type.is_table:
            return StoredRows(self.scope, path, self._notes)
        if not row.entry_type.is_dynamic:
            raise no_rows(path, row.entry_type)
        if row.entry_type is EntryType.EXECUTABLE:
            raise runs_only(path)
        entry = self.entry(found.path, row)
        if entry.rows is None:
            raise no_rows(path, row.entry_type)
        with self.computing(found.path, entry.factory):
            return Guarded(self, found.path, entry.factory, entry.rows())

    @cached_property
    def _notes(self) -> Kept | None:
        """Where facts of tables are noted; a transaction that may be taken back notes nothing."""
        from millpond.steward.read import ReadScope

        return self.kept.of("facts") if isinstance(self.scope, ReadScope) else None

    def content(self, path: str) -> bytes:
        """The bytes of a file that is computed."""
        found = self.scope.locate(path)
        entry = self.entry(found.path, self.scope.row(path))
        if entry.content is None:
            raise PathTypeError(f"{path} is a {entry.kind} and has no bytes", path=path)
        with self.computing(found.path, entry.factory):
            return entry.content()

    def run(
        self, plan: Plan, *, ordered: bool = True, here: bool = False
    ) -> Iterable[pa.RecordBatch]:
        """Rows, by the engine that the settings name, or else by the one that costs least."""
        from millpond.kernel.engines import row_engine

        if here:
            try:
                arrow = row_engine("arrow", self.scope.pond.settings)
                return plan.execute(engine=arrow, ordered=ordered, optimize=not _is_held(plan))
            except (UnsupportedNodeError, UnsupportedExpressionError) as error:
                _log.debug("not done here: %s", error.message)
        return plan.execute(engine=self._engine(plan), ordered=ordered)

    @property
    def is_on_spark(self) -> bool:
        """Whether the settings say so."""
        from millpond.base.settings import Settings

        return (self.scope.pond.settings or Settings.load()).engine == "spark"

    def run_into(self, plan: Plan, parts: Parts) -> Iterable[pa.RecordBatch] | None:
        """Have the engine that the settings name write rows into files, if it can."""
        from millpond.plan.run import execute_into

        return execute_into(plan, parts, engine=self._engine(plan))

    def _engine(self, plan: Plan) -> str | Executor:
        """By name, or with the settings that the pond was opened with."""
        settings = self.scope.pond.settings
        if settings is None:
            return "auto"
        if settings.engine == "auto":
            from millpond.kernel.engines import row_engine
            from millpond.plan.choose import choose

            return row_engine(choose(plan, settings=settings).name, settings)
        return self.scope.pond.engine_for(plan)

    def files(self, path: str, matches: Sequence[Match], asked: DataUrl, url: str) -> Rows:
        """The rows of raw files, read as a URL says."""
        reader = reader_of(asked, url)
        if reader.format.is_table:
            return delta_rows(self, matches[0], asked, reader)
        raws = [
            raw
            for match in matches
            for raw in ([host_raw(match.path)] if asked.is_host else self.raws(match))
        ]
        return FormatRows(path, raws, reader, self.images)

    def raws(self, match: Match) -> list[Raw]:
        """The bytes of a path."""
        if match.kind not in BYTES:
            raise PathTypeError(
                f"{match.path} is a {match.kind}: it has rows already, and no bytes to be read",
                path=match.path,
                hint=f"its rows: {match.path}",
            )
        return pond_raws(self.scope, match.path)

    @cached_property
    def images(self) -> Images:
        """What was parsed of raw files."""
        return Images(self.kept.of(IMAGES), settings=self.scope.pond.settings)

    @cached_property
    def kept(self) -> Kept:
        """What was kept of earlier computations."""
        from millpond.base.store import open_store

        pond = self.scope.pond
        # A file of this machine that only its owner can read may be among the inputs.
        store = open_store(pond.location, settings=pond.settings, durable=False, private=True)
        return Kept(Places(store, pond.location), "results")


def _is_held(plan: Plan) -> bool:
    """Whether all rows are in memory: then there is little to be gained by another plan."""
    return all(isinstance(node, Values) for node in topological(plan) if not node.children)

"""`Derivation`: what is computed in one scope, and `PondReading`, what a factory sees meanwhile.

Who computes is on a stack, so a path that is computed from itself is found before it is computed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CycleError,
    MillpondError,
    PathTypeError,
    PluginError,
    UnsupportedExpressionError,
    UnsupportedNodeError,
)
from millpond.base.unsaid import cause_of
from millpond.fs.entry import EntryType
from millpond.fs.factory import FACTORIES, factory
from millpond.fs.glob import Pattern, expand, is_pattern
from millpond.fs.paths import join, parts, split_version
from millpond.fs.resolve import try_resolve
from millpond.plan.sources import Values
from millpond.plan.tree import topological
from millpond.provider.factory import node_factory, transform_factory
from millpond.provider.formats.format import format_named
from millpond.provider.formats.reader import parse_url, reader_of
from millpond.provider.formats.rows import FormatRows
from millpond.provider.images import KIND as IMAGES
from millpond.provider.images import Images
from millpond.provider.kept import Kept, Places
from millpond.provider.reading import Match
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.united import United
from millpond.provider.url import is_url, parse
from millpond.steward.dynamic.deltas import delta_rows
from millpond.steward.dynamic.facts import host_facts, pond_facts
from millpond.steward.dynamic.raws import host_matches, host_raw, pond_raws
from millpond.steward.dynamic.stored import StoredRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from millpond.fs.entry import Row
    from millpond.fs.resolve import Located
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.plan.types import Struct
    from millpond.provider.factory import Entry
    from millpond.provider.formats.reader import Raw
    from millpond.provider.reading import Exported, Facts
    from millpond.provider.rows import Rows
    from millpond.provider.url import DataUrl
    from millpond.steward.scope import Scope

_log = logging.getLogger("millpond.steward")
_BYTES: Final = (EntryType.DATA, EntryType.DATA_SERIES, EntryType.DYNAMIC_FILE)
_WANTED: Final[dict[str, tuple[EntryType, ...]]] = {
    "table": (EntryType.TABLE, EntryType.DYNAMIC_TABLE),
    "series": (EntryType.SERIES, EntryType.DYNAMIC_SERIES),
    "collection": (EntryType.COLLECTION,),
    "data": _BYTES,
    "file": _BYTES,
}


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
            with _failing(path, factory):
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
            raise PathTypeError(
                f"{path} is a {row.entry_type} and has no rows",
                path=path,
                hint=f"say how its bytes are to be read: csv://{found.path}",
            )
        entry = self.entry(found.path, row)
        if entry.rows is None:
            raise PathTypeError(f"{path} is a {row.entry_type} and has no rows", path=path)
        with self.computing(found.path, entry.factory):
            return _Guarded(self, found.path, entry.factory, entry.rows())

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
        if match.kind not in _BYTES:
            raise PathTypeError(
                f"{match.path} is a {match.kind}: it has rows already, and no bytes to be read",
                path=match.path,
                hint="name the path alone",
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
        store = open_store(pond.location, settings=pond.settings, durable=False)
        return Kept(Places(store, pond.location), "results")


class _Guarded:
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


def _is_held(plan: Plan) -> bool:
    """Whether all rows are in memory: then there is little to be gained by another plan."""
    return all(isinstance(node, Values) for node in topological(plan) if not node.children)


@contextmanager
def _failing(path: str, name: str) -> Iterator[None]:
    """What a factory of somebody else raises is an error that names the factory and the path."""
    try:
        yield
    except MillpondError:
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


class PondReading:
    """One version of a pond, as the factory of one node sees it."""

    def __init__(self, derivation: Derivation, path: str) -> None:
        self._derivation = derivation
        self.path = path

    @property
    def variables(self) -> Mapping[str, str]:
        """What `-v key=value` says."""
        return self._derivation.variables

    @property
    def kept(self) -> Kept:
        """Results that were kept."""
        return self._derivation.kept

    def at(self, path: str) -> PondReading:
        """The same for another node."""
        return PondReading(self._derivation, path)

    def absolute(self, path: str) -> str:
        """A path or pattern; one that begins with `..` or `.` begins at the node itself.

        `/../raw` of `/site/mean` is `/site/raw`.
        """
        plain = path.lstrip("/")
        if plain.split("/", 1)[0] in ("..", "."):
            return _joined(self.path, plain)
        return path

    def match(self, url: str) -> list[Match]:
        """The paths that a URL names."""
        asked = self._url(url)
        if asked.is_host:
            return host_matches(asked)
        tree = self._derivation.scope.view
        path = asked.path
        if not is_pattern(path) or try_resolve(tree, split_version(path).path) is not None:
            found = try_resolve(tree, split_version(path).path)
            located: list[tuple[tuple[str, ...], Located]] = [] if found is None else [((), found)]
        else:
            located = [
                (m.captures, m.located) for m in expand(tree, Pattern.parse(path), follow=True)
            ]
        wanted = _WANTED.get(asked.scheme or "", _BYTES if asked.is_format else None)
        if asked.is_format and format_named(asked.scheme or "").is_table:
            return [Match(at.path, captures, at.entry_type) for captures, at in located]
        version = split_version(path).version
        suffix = "" if version is None or is_pattern(path) else f"@v{version}"
        return [
            Match(at.path + suffix, captures, at.entry_type)
            for captures, at in located
            if not at.entry_type.is_directory and (wanted is None or at.entry_type in wanted)
        ]

    def rows(self, url: str, match: Match) -> Rows:
        """The rows of one match, read as the URL says."""
        asked = self._url(url)
        if asked.is_format:
            return self._derivation.files(match.path, [match], asked, url)
        return self._derivation.rows(match.path)

    def united(self, url: str, matches: Sequence[Match] | None = None) -> Rows:
        """The rows of all matches, by the names of columns."""
        found = self.match(url) if matches is None else matches
        asked = self._url(url)
        if found and asked.is_format and not format_named(asked.scheme or "").is_table:
            return self._derivation.files(asked.path, found, asked, url)
        return United(self.path, [self.rows(url, match) for match in found])

    @property
    def computes(self) -> bool:
        """Whether what is missing is computed."""
        return self._derivation.computes

    @property
    def is_on_spark(self) -> bool:
        """Whether the settings say so."""
        from millpond.base.settings import Settings

        return (self._derivation.scope.pond.settings or Settings.load()).engine == "spark"

    def run(
        self, plan: Plan, *, ordered: bool = True, here: bool = False
    ) -> Iterable[pa.RecordBatch]:
        """The rows of a plan, on the engine that suits it."""
        return self._derivation.run(plan, ordered=ordered, here=here)

    def run_into(self, plan: Plan, parts: Parts) -> Iterable[pa.RecordBatch] | None:
        """Have the engine write rows into files."""
        return self._derivation.run_into(plan, parts)

    @property
    def exported(self) -> Mapping[str, Exported]:
        """Where paths are put by the export that asks."""
        return self._derivation.exported

    def facts(self, url: str, match: Match) -> Facts:
        """What is known of a match."""
        if self._url(url).is_host:
            return host_facts(match.path)
        return pond_facts(self._derivation.scope, match.path)

    def content(self, match: Match) -> bytes:
        """The bytes of a match."""
        if match.kind.is_dynamic:
            return self._derivation.content(match.path)
        return self._derivation.scope.read_bytes(match.path)

    def transformed(self, plan: Plan, transforms: Sequence[object]) -> Plan:
        """Rows after transforms."""
        for name, config in map(self._transform, transforms):
            found = transform_factory(name)
            with _failing(self.path, name):
                plan = found.transform(plan, found.parse(config, self.variables))
        return plan

    def transforms_key(self, transforms: Sequence[object]) -> str:
        """Names what transforms do."""
        from millpond.provider.expand import expanded

        found = [
            (name, expanded(c, self.variables)) for name, c in map(self._transform, transforms)
        ]
        return key_of(json.dumps(found, sort_keys=True))

    def _transform(self, given: object) -> tuple[str, Mapping[str, Any]]:
        """The factory of a transform and its configuration."""
        if isinstance(given, Mapping):
            return str(given["factory"]), dict(given.get("config") or {})
        path = self.absolute(str(given))
        row = self._derivation.scope.locate(path).row
        if row is None or not row.factory:
            raise PathTypeError(
                f"{path} is no transform",
                path=path,
                hint="make one: pond mknod column-rename /path --config-path f.yaml",
            )
        return row.factory, json.loads(row.config or "{}")

    def _url(self, url: str) -> DataUrl:
        if url.startswith(("../", "./")):
            url = f"/{url}"
        asked = parse_url(url) if is_url(url) else parse(url)
        return asked if asked.is_host else asked.with_path(self.absolute(asked.path))


def _joined(base: str, relative: str) -> str:
    """Where a relative path leads, name by name.

    >>> _joined("/site/mean", "../raw/*")
    '/site/raw/*'
    """
    names = list(parts(base))
    for name in parts(f"/{relative}"):
        if name != "..":
            names.append(name)
        elif names:
            names.pop()
    return join(*names)

"""`PondReading`: one version of a pond, as the factory of one node sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern, expand, is_pattern
from millpond.fs.paths import join, parts, split_version
from millpond.fs.resolve import try_resolve
from millpond.provider.factory import transform_factory
from millpond.provider.formats.format import format_named
from millpond.provider.formats.reader import parse_url
from millpond.provider.reading import Match
from millpond.provider.rows import key_of
from millpond.provider.united import United
from millpond.provider.url import is_url, parse
from millpond.steward.dynamic.facts import host_facts, pond_facts
from millpond.steward.dynamic.guarded import failing
from millpond.steward.dynamic.raws import BYTES, host_matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from millpond.fs.resolve import Located
    from millpond.plan.node import Plan
    from millpond.plan.parts import Parts
    from millpond.provider.kept import Kept
    from millpond.provider.reading import Exported, Facts
    from millpond.provider.rows import Rows
    from millpond.provider.url import DataUrl
    from millpond.steward.dynamic.derivation import Derivation

_WANTED: Final[dict[str, tuple[EntryType, ...]]] = {
    "table": (EntryType.TABLE, EntryType.DYNAMIC_TABLE),
    "series": (EntryType.SERIES, EntryType.DYNAMIC_SERIES),
    "collection": (EntryType.COLLECTION,),
    "data": BYTES,
    "file": BYTES,
}


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
        wanted = _WANTED.get(asked.scheme or "", BYTES if asked.is_format else None)
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
        return self._derivation.is_on_spark

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
            with failing(self.path, name):
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

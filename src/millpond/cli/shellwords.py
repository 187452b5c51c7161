"""What the shell of `pond sql` offers to complete: paths within quotes, else columns and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import Completer, Completion

from millpond.base.errors import MillpondError
from millpond.plan.sqltext import open_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from millpond.steward.scope import Scope

WORDS: Final = (
    *("AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "COUNT", "CROSS", "DATE", "DESC"),
    *("DISTINCT", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FROM", "FULL", "GROUP", "HAVING"),
    *("IN", "INNER", "INTERSECT", "INTERVAL", "IS", "JOIN", "LAST", "LEFT", "LIKE", "LIMIT"),
    *("MAX", "MIN", "NOT", "NULL", "NULLS", "ON", "OR", "ORDER", "OVER", "PARTITION", "QUALIFY"),
    *("RIGHT", "SELECT", "SUM", "THEN", "TIMESTAMP", "TRUE", "UNION", "USING", "VALUES", "WHEN"),
    *("WHERE", "WITH"),
)
_NAMED: Final = re.compile(r'"(/[^"]*)"|`(/[^`]*)`')
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*$")


class Words(Completer):
    """Completions for a statement."""

    def __init__(self, scope: Callable[[], Scope]) -> None:
        self._scope = scope

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What may stand at the cursor."""
        del complete_event
        before = document.text_before_cursor
        try:
            if before.startswith("\\d "):
                yield from self._paths(before[3:].lstrip(), "")
            elif (found := open_at(before)) is None:
                yield from self._words(document)
            elif found[1] in ('"', "`"):
                yield from self._paths(before[found[0] + 1 :], found[1])
        except MillpondError:  # who types on gets an error that can be read
            return

    def _paths(self, typed: str, quote: str) -> Iterator[Completion]:
        from millpond.fs.resolve import try_resolve

        head, slash, start = typed.rpartition("/")
        tree = self._scope().view
        above = try_resolve(tree, f"/{head.lstrip('/')}")
        if above is None or not above.entry_type.is_directory:
            return
        for name, row in tree.children(above.node_id).items():
            if name.startswith(start) and name.isprintable():
                end = "/" if row.entry_type.is_directory else quote
                whole = f"{head}{slash or '/'}{name}{end}"
                yield Completion(whole, start_position=-len(typed), display=f"{name}{end}")

    def _words(self, document: Document) -> Iterator[Completion]:
        found = _WORD.search(document.text_before_cursor)
        start = found[0] if found else ""
        for name in sorted(self._columns(document.text)):
            if name.startswith(start):
                yield Completion(_quoted(name), start_position=-len(start), display=name)
        if start:
            for word in WORDS:
                if word.startswith(start.upper()):
                    cased = word.lower() if start.islower() else word
                    yield Completion(cased, start_position=-len(start))

    def _columns(self, text: str) -> set[str]:
        """The columns of the stored tables that a statement names; nothing is computed for it."""
        from millpond.fs.glob import is_pattern
        from millpond.steward.rows.selection import matching

        scope = self._scope()
        found: set[str] = set()
        for match in _NAMED.finditer(text):
            path = match[1] or match[2]
            paths = matching(scope, path) if is_pattern(path) else [path]
            for each in paths[:1]:
                if scope.exists(each) and scope.row(each).entry_type.is_table:
                    found.update(scope.delta(each).schema.names)
        return found


def _quoted(name: str) -> str:
    """A column as it stands in SQL.

    >>> _quoted("level"), _quoted("Site.Temp")
    ('level', '"Site.Temp"')
    """
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f'"{name}"'

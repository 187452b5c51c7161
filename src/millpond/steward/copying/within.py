"""Within a pond: equal bytes are stored once, so none are copied; rows are written anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import PathSyntaxError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.glob import Pattern, expand, is_pattern
from millpond.fs.paths import parts, split_version
from millpond.fs.resolve import try_resolve
from millpond.fs.walk import walk
from millpond.steward.copying import Copied
from millpond.steward.copying.landing import Landing, landing
from millpond.steward.rows.selection import matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millpond.fs.entry import Row
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    names: tuple[str, ...]
    row: Row | None
    """None for the root."""

    @property
    def kind(self) -> EntryType:
        return EntryType.DIRECTORY if self.row is None else self.row.entry_type


@dataclass(frozen=True, slots=True)
class CopyWithin:
    """What is to be copied, all of it looked at."""

    tx: WriteScope
    items: tuple[tuple[_Item, str], ...]
    where: Landing

    @property
    def size(self) -> int:
        """How many bytes there are, about."""
        return sum(item.row.size or 0 for item, _ in self.items if item.row is not None)

    def run(self, watch: Callable[[int], None]) -> list[Copied]:
        """Copy; nobody sees it before the transaction is committed."""
        self.where.make_directories()
        found = []
        for item, target in self.items:
            assert item.row is not None
            copy_node(self.tx, item.path, item.row, target)
            watch(item.row.size or 0)
            stat = self.tx.stat(target, follow=False)
            kind = str(stat.entry_type)
            found.append(Copied(item.path, target, kind, stat.version, stat.size))
        return found


def copy_node(tx: WriteScope, path: str, row: Row, target: str) -> None:
    """Copy one node that is no directory, as what it is."""
    kind = row.entry_type
    if kind is EntryType.SYMLINK:
        tx.make_link(target, (tx.tree.content(row) or b"").decode())
    elif kind is EntryType.DATA:
        tx.write_same(target, row)
    elif kind is EntryType.DATA_SERIES:
        tx.write_bytes(target, tx.read_chunks(path), series=True)
    elif kind is EntryType.SERIES:
        tx.append_series(target, tx.plan(path), time_column=row.time_column)
    else:
        tx.write_table(target, tx.plan(path))


def copy_within(
    tx: WriteScope, sources: Sequence[str], target: str, *, make_parents: bool = False
) -> CopyWithin:
    """Look at what is to be copied within a pond, and where it goes."""
    found = [item for source in sources for item in _items(tx, source)]
    tops = sum(len(item.names) == 1 for item in found)
    where = landing(tx, target, count=tops, make_parents=make_parents)
    items = []
    for item in found:
        path = where.path_of(item.names)
        if item.kind.is_directory:
            _check_outside(item.path, path)
            where.add_directory(path)
            continue
        _check_kind(item)
        there = try_resolve(tx.tree, path)
        is_same = there is not None and there.row is not None and there.row == item.row
        if is_same:
            raise PathSyntaxError(
                f"{item.path} would be copied onto itself", path=path, hint="choose another target"
            )
        where.add_file(path, item.kind, source=item.path)
        items.append((item, path))
    return CopyWithin(tx, tuple(items), where)


def _items(tx: WriteScope, source: str) -> Iterator[_Item]:
    plain = split_version(source).path
    if is_pattern(source) and try_resolve(tx.tree, plain) is None:
        matches = expand(tx.tree, Pattern.parse(source))
        tops = [match.located.path for match in matches] or matching(tx, source)
    else:
        tops = [source]
    for top in tops:
        found = tx.locate(top)
        name = parts(split_version(top).path)[-1:] or ("",)
        if not found.entry_type.is_directory:
            yield _Item(top, name, tx.row(top))
            continue
        if not found.chain:
            raise PathSyntaxError(
                "the root can't be copied into itself", path=top, hint="name what is in it: /*"
            )
        yield _Item(found.path, name, found.row)
        depth = len(parts(found.path))
        for inner in list(walk(tx.tree, found.path)):
            yield _Item(inner.path, (*name, *parts(inner.path)[depth:]), inner.row)


def _check_outside(source: str, target: str) -> None:
    names, front = parts(target), parts(source)
    if names[: len(front)] == front:
        raise PathSyntaxError(
            f"{source} can't be copied into itself, to {target}",
            path=target,
            hint="choose a target outside of it",
        )


def _check_kind(item: _Item) -> None:
    if item.kind.is_dynamic or item.kind is EntryType.COLLECTION:
        raise PathTypeError(
            f"{item.path} is a {item.kind} and can't be copied within the pond",
            path=item.path,
            hint=f"write its rows down: pond materialize {item.path} TARGET",
        )

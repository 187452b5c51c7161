"""A persistence and the naive model side by side: whatever writers do to both, they stay the same.

Two writers have transactions open at once; one may be overtaken by the other, roll back, or die.
Hypothesis finds the sequence of operations after which pond and model differ, and makes it short.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from millpond.base.clock import ManualClock
from millpond.base.errors import MillpondError, WriteConflictError
from millpond.base.ids import TxnId
from millpond.fs import edit
from millpond.fs.blobs import digest_of
from millpond.fs.edit import Stored
from millpond.fs.entry import EntryType, to_micros
from millpond.fs.glob import Pattern, expand
from millpond.fs.persistence import Commit
from millpond.fs.rebase import rebase
from millpond.fs.resolve import resolve
from millpond.fs.walk import walk
from millpond.fs.working import Working
from millpond.testing.fs_model import Deed, Model, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.base.clock import Clock
    from millpond.fs.persistence import Persistence
    from millpond.fs.tree import Tree, TreeLike
    from millpond.testing.fs_model import Kind

INLINE_BYTES = 6
"""Content that is longer is in no row, as large files are."""

_NEW = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(
    lambda names: "/" + "/".join(names)
)
# What is there is of more interest than what may be there.
_KNOWN = st.runner().flatmap(lambda machine: st.sampled_from(machine.known_paths()))
_PATHS = st.one_of(_KNOWN, _KNOWN, _NEW)
_TARGETS = st.sampled_from(("a", "b", "/a/b", "/c", "../b", "..", "/", "b/../a", "gone", "./a/b"))
_PATTERNS = st.sampled_from(("/*", "/a/*", "/*/b", "/**/a", "/**/b/*", "/*/**/c", "/?/a", "/b"))
_KINDS: st.SearchStrategy[Kind] = st.sampled_from(("data", "data:series"))
_DATA = st.binary(max_size=10)
_WRITERS = st.integers(0, 1)
_OPERATIONS: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("move"), _KNOWN, _KNOWN),
    st.tuples(st.just("move"), _PATHS, _PATHS),
    st.tuples(st.just("remove"), _KNOWN, st.booleans()),
    st.tuples(st.just("write"), _PATHS, _KINDS, _DATA),
    st.tuples(st.just("write"), _KNOWN, st.just("data:series"), _DATA),
    st.tuples(st.just("make_directory"), _NEW, st.booleans()),
    st.tuples(st.just("restore"), _NEW),
)
"""What a writer does: the name of a rule, and what it is given."""

Seen = list[tuple[str, str, tuple[tuple[str, bytes | None], ...], str]]
"""What can be seen of a pond: path, kind, versions and, of links, the target."""


@dataclass
class Writer:
    """An open transaction, in the pond and in the model."""

    work: Working
    model: Model
    deeds: list[Deed] = field(default_factory=list)


class PersistenceStateMachine(RuleBasedStateMachine):
    """Random transactions of two writers: a persistence must do what the model does.

    Subclass it with `make_persistence(clock)`, which returns an empty one each time, and
    `reopen(persistence)`, which finds it again; let pytest find `TestX = MyMachine.TestCase`.
    """

    def make_persistence(self, clock: Clock) -> Persistence:
        """An empty persistence; the subclass knows which."""
        raise NotImplementedError

    def reopen(self, persistence: Persistence) -> Persistence:
        """The same persistence as another process would see it."""
        raise NotImplementedError

    def die(self, persistence: Persistence, work: Working) -> None:
        """Stop in the middle of a commit; where nothing is half done, that is to do nothing."""

    @initialize()
    def start(self) -> None:
        """Begin with a pond that has something of everything."""
        self.clock = ManualClock()
        self.persistence = self.make_persistence(self.clock)
        self.tree = self.persistence.latest()
        self.past: list[tuple[Tree, Model, int]] = [(self.tree, Model(), 0)]
        """After each transaction: the tree, the model, and the time."""
        self.writers: dict[int, Writer] = {}
        for path in ("/a", "/a/b", "/c"):
            self.make_directory(0, path, parents=False)
        self.write(0, "/a/b/c", "data:series", b"1")
        self.write(0, "/b", "data", b"2")
        self.link(0, "/a/a", "../c")
        self.commit(0)

    def known_paths(self) -> list[str]:
        """The paths that somebody sees."""
        models = [self.past[-1][1], *(writer.model for writer in self.writers.values())]
        return sorted({path for model in models for path, _ in model.paths()} | {"/a"})

    # Operations

    @rule(writer=_WRITERS, path=_PATHS, parents=st.booleans())
    def make_directory(self, writer: int, path: str, parents: bool) -> None:
        """Make a directory."""
        self._both(
            writer,
            lambda work: edit.make_directory(work, path, parents=parents),
            lambda model: model.make_directory(path, parents=parents),
        )

    @rule(writer=_WRITERS, path=_PATHS, kind=_KINDS, data=_DATA)
    def write(self, writer: int, path: str, kind: Kind, data: bytes) -> None:
        """Create a file, write a version of it, or append to a series."""
        self._both(
            writer,
            lambda work: edit.write(work, path, EntryType(kind), _stored(data)),
            lambda model: model.write(path, kind, data),
        )

    @rule(writer=_WRITERS, path=_PATHS, to=_TARGETS)
    def link(self, writer: int, path: str, to: str) -> None:
        """Make a symbolic link, to something or to nothing."""
        self._both(
            writer,
            lambda work: edit.make_link(work, path, to),
            lambda model: model.make(path, "symlink", target=to),
        )

    @rule(writer=_WRITERS, path=_PATHS, to=_PATHS)
    def move(self, writer: int, path: str, to: str) -> None:
        """Rename or move a node."""
        self._both(
            writer,
            lambda work: edit.move(work, path, to),
            lambda model: model.move(path, to),
        )

    @rule(writer=_WRITERS, path=_PATHS, recursive=st.booleans())
    def remove(self, writer: int, path: str, recursive: bool) -> None:
        """Remove a node."""
        self._both(
            writer,
            lambda work: edit.remove(work, path, recursive=recursive),
            lambda model: model.remove(path, recursive=recursive),
        )

    @rule(writer=_WRITERS, path=_PATHS)
    def restore(self, writer: int, path: str) -> None:
        """Bring back what was removed."""
        self._both(
            writer,
            lambda work: edit.restore_removed(work, path),
            lambda model: model.restore(path),
        )

    @rule(writer=_WRITERS, pattern=_PATTERNS)
    def glob(self, writer: int, pattern: str) -> None:
        """The nodes that fit a pattern are those of the model; others were reached by links."""
        known = self._writer(writer)
        found = [match.located for match in expand(known.work, Pattern.parse(pattern))]
        assert len({located.path for located in found}) == len(found)
        plain = {located.path for located in found if located.path == located.real_path}
        assert plain == known.model.glob(pattern)
        for located in found:
            assert resolve(known.work, located.path, follow=False) == located

    # Transactions

    @rule(writer=_WRITERS)
    def commit(self, writer: int) -> None:
        """Everything becomes visible, behind what others did meanwhile, or nothing does."""
        mine = self.writers.pop(writer, None)
        if mine is None:
            return
        self.clock.advance(timedelta(seconds=1))
        made = self.persistence.commit(mine.work.base, _rows(mine.work), _commit())
        overtaken_by = self.past[mine.work.base.txn_seq + 1 :]
        assert (made is None) == bool(overtaken_by)
        if made is None:
            made = self._behind(mine, [model for _, model, _ in overtaken_by])
        if made is None:
            assert self.persistence.refresh(self.tree) is self.tree, "a conflict left something"
            return
        self._moved_on(made, mine.model)

    @rule(first=_OPERATIONS, second=_OPERATIONS)
    def race(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
        """Two writers do one thing each."""
        self.overtake([first], [second])

    @rule(
        first=st.lists(_OPERATIONS, min_size=1, max_size=2),
        second=st.lists(_OPERATIONS, min_size=1, max_size=2),
    )
    def overtake(self, first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
        """Two writers begin at the same state, and the second one comes first."""
        self.writers.clear()
        for writer, operations in enumerate((first, second)):
            for name, *given in operations:
                getattr(self, name)(writer, *given)
        self.commit(1)
        self.commit(0)

    @rule(writer=_WRITERS)
    def rollback(self, writer: int) -> None:
        """Nothing was ever there."""
        self.writers.pop(writer, None)
        assert self.persistence.refresh(self.tree) is self.tree

    @rule(writer=_WRITERS)
    def crash(self, writer: int) -> None:
        """Whoever comes next finds what was committed, and nothing else."""
        mine = self.writers.pop(writer, None)
        if mine is not None:
            self.die(self.persistence, mine.work)
        self.open_again()

    @rule()
    def open_again(self) -> None:
        """All is found again; open transactions are gone with the process."""
        self.writers.clear()
        self.persistence = self.reopen(self.persistence)
        self.tree = self.persistence.latest()
        assert self.tree.txn_seq == len(self.past) - 1
        assert seen(self.tree) == expected(self.past[-1][1])

    # The past

    @precondition(lambda self: len(self.past) > 1)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """Trees stay what they were, and the pond as it was can be had again."""
        seq = data.draw(st.integers(0, len(self.past) - 1), label="transaction")
        tree, model, time = self.past[seq]
        assert seen(tree) == expected(model)
        for again in (
            self.persistence.as_of(txn_seq=seq),
            self.persistence.as_of(micros=time),
            self.persistence.as_of(micros=time + 1) if time else tree,
        ):
            assert again.txn_seq == seq
            assert seen(again) == expected(model)

    # How it is done

    def _writer(self, number: int) -> Writer:
        if number not in self.writers:
            self.tree = self.persistence.refresh(self.tree)
            self.writers[number] = Writer(Working(self.tree), self.past[-1][1].next())
        return self.writers[number]

    def _both(
        self,
        number: int,
        real: Callable[[Working], Any],
        naive: Callable[[Model], list[Deed]],
    ) -> None:
        """Both do it, or both refuse it for the same reason."""
        writer = self._writer(number)
        refused: type[MillpondError] | None = None
        deeds: list[Deed] = []
        try:
            deeds = naive(writer.model)
        except Refusal as refusal:
            refused = refusal.kind
        error = _error_of(lambda: real(writer.work))
        assert (None if error is None else type(error)) is refused
        for deed in deeds:
            writer.model.do(deed)
        writer.deeds += deeds
        assert seen(writer.work) == expected(writer.model)

    def _behind(self, mine: Writer, others: list[Model]) -> Tree | None:
        """Go behind the transactions that came first; None if they are in the way."""
        newest = self.persistence.refresh(mine.work.base)
        is_clear = self._is_clear(mine.deeds, others)
        rebased: list[Working] = []
        error = _error_of(lambda: rebased.append(rebase(mine.work, newest)))
        if error is not None:
            assert isinstance(error, WriteConflictError)
            assert not is_clear, f"a conflict without a reason: {error}"
            return None
        model = self.past[-1][1].next()
        for deed in mine.deeds:
            model.do(deed)
        model.check()
        self._check_visible(mine.deeds, others, model)
        mine.model = model
        return self.persistence.commit(newest, _rows(rebased[0]), _commit())

    def _check_visible(self, deeds: list[Deed], others: list[Model], model: Model) -> None:
        """Nobody's change may lie in a directory that the other one has removed."""
        base, now = self.past[others[0].seq - 1][1], others[-1]
        mine = {deed.node.ident for deed in deeds}
        theirs = {i for i, node in now.nodes.items() if base.nodes.get(i) != node}
        for ident in (mine | theirs) & set(model.nodes):
            for above in model.above(model.nodes[ident]):
                by_me = above.removed == model.seq
                assert above.removed is None or ident not in (theirs if by_me else mine), (
                    "a change was put where nobody sees it"
                )

    def _is_clear(self, deeds: list[Deed], others: list[Model]) -> bool:
        """Whether nobody can be in the way: other nodes, other names, no directory is taken away.

        Appends to a series are in nobody's way, and one of two writers may move directories.
        """
        base = self.past[others[0].seq - 1][1]
        now = others[-1]
        theirs = [node for ident, node in now.nodes.items() if base.nodes.get(ident) != node]
        names = {(node.parent, node.name) for node in theirs}
        touched = {node.ident: node for node in theirs}
        is_moving = any(node.kind == "directory" and node.ident in base.nodes for node in theirs)
        for deed in deeds:
            node, other = deed.node, touched.get(deed.node.ident)
            is_append = node.kind == "data:series" and deed.what in ("write", "again")
            if other is not None and not (is_append and _was_appended(base, other)):
                return False
            if deed.what in ("make", "place", "restore") and (node.parent, node.name) in names:
                return False
            if node.kind == "directory" and deed.what != "make" and is_moving:
                return False
            if node.kind == "directory" and deed.what == "remove":
                return False
        return not any(node.kind == "directory" and node.removed is not None for node in theirs)

    def _moved_on(self, tree: Tree, model: Model) -> None:
        assert tree.txn_seq == len(self.past)
        assert seen(tree) == expected(model)
        self.tree = self.persistence.refresh(tree)
        assert self.tree is tree
        self.past.append((tree, model, to_micros(self.clock.now())))


def _error_of(what: Callable[[], object]) -> MillpondError | None:
    """The error with which something was refused; it says what to do next."""
    try:
        what()
    except MillpondError as error:
        refused = error
    else:
        return None
    assert refused.hint, f"{refused} has no hint"
    return refused


def _was_appended(base: Model, now: Any) -> bool:
    """Whether all that others did to a node was to append to it."""
    older = base.nodes.get(now.ident)
    return older is not None and (now.parent, now.name, now.removed) == (
        older.parent,
        older.name,
        older.removed,
    )


def seen(tree: TreeLike) -> Seen:
    """What can be seen of a pond."""
    found: Seen = []
    for located in walk(tree):
        row = located.row
        assert row is not None
        if row.entry_type is EntryType.SYMLINK:
            target = (tree.content(row) or b"").decode()
            found.append((located.path, "symlink", (), target))
            continue
        versions = {
            old.version: (old.blake3 or "", tree.content(old))
            for old in tree.history(row.part_id, row.node_id)
            if not old.removed and row.entry_type.is_bytes
        }
        assert list(versions) == list(range(1, len(versions) + 1))
        assert row.entry_type is EntryType.DIRECTORY or row.version == len(versions)
        found.append((located.path, str(row.entry_type), tuple(versions.values()), ""))
    return found


def expected(model: Model) -> Seen:
    """What should be seen of a pond."""
    return [
        (path, node.kind, tuple(map(_known, node.versions)), node.target)
        for path, node in model.paths()
    ]


def _known(data: bytes) -> tuple[str, bytes | None]:
    return digest_of(data), data if len(data) <= INLINE_BYTES else None


def _stored(data: bytes) -> Stored:
    digest, inline = _known(data)
    return Stored(len(data), digest, inline)


def _rows(work: Working) -> list[Any]:
    return [draft.row for draft in work.drafts.values()]


def _commit() -> Commit:
    return Commit(str(TxnId.new()))

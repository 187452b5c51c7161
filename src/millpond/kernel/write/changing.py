"""What a transaction is asked to change: rows, files, and the table itself."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from millpond.base.errors import CommitError, PlanError, SourceError
from millpond.base.store import open_store
from millpond.kernel.actions import ADD
from millpond.kernel.age import aged, parts_of_age
from millpond.kernel.data import missing_file
from millpond.kernel.scan import ScanBuilder
from millpond.kernel.write.adopt import checked_add
from millpond.kernel.write.clustered import check_clustered, clustering_of
from millpond.kernel.write.conflicts import ISOLATIONS, Isolation, Reads, key_of
from millpond.kernel.write.delete import (
    CHANGE_TYPE,
    Touched,
    all_rows,
    count_rows,
    deleted_rows,
    find_rows,
    live_rows,
    mark_rows,
    remaining,
)
from millpond.kernel.write.features import (
    check_may_remove,
    check_writable,
    has_change_feed,
    writes_deletion_vectors,
)
from millpond.kernel.write.files import Target, write_rows
from millpond.kernel.write.info import Operation, checked_info
from millpond.kernel.write.pending import Pending
from millpond.kernel.write.protocol import asked_features, needed_protocol
from millpond.kernel.write.reshape import reshaped
from millpond.kernel.write.rows import batches_of, checked
from millpond.kernel.write.stats import record_count
from millpond.plan.arguments import items_of, schema_of, text_of, whole_of, wrong
from millpond.plan.arrow import to_arrow
from millpond.plan.bind import bind_predicate
from millpond.plan.expr import Expr
from millpond.plan.scalars import fits
from millpond.plan.types import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from millpond.kernel.actions import Metadata, Protocol
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable
    from millpond.plan.arguments import AnySchema
    from millpond.plan.executor import Executor

Step = TypeVar("Step", bound="Callable[..., Any]")
ISOLATION: Final = "delta.isolationLevel"
CHANGE_DATA: Final = "_change_data"


def _whole(step: Step) -> Step:
    """A step that fails has changed nothing; what it had put is removed by a rollback."""

    @wraps(step)
    def done(self: Changing, *args: Any, **named: Any) -> Any:
        before = self.pending.copy()
        try:
            return step(self, *args, **named)
        except BaseException:
            before.put = self.pending.put
            self.pending = before
            raise

    return cast("Step", done)


class Changing:
    """The gathering half of a `Transaction`. Each step sees what the steps before have done."""

    def __init__(
        self,
        table: DeltaTable,
        *,
        operation: str | None = None,
        isolation: Isolation | None = None,
        user_metadata: str | None = None,
        info: Mapping[str, Any] | None = None,
        engine: str | Executor = "auto",
    ) -> None:
        check_writable(table.snapshot)
        self.table = table
        self.store = open_store(table.location, settings=table.settings)
        self.isolation = _isolation(isolation, table.metadata)
        self.txn_id = str(uuid.uuid4())
        self.operation = Operation(_text(operation, "operation"))
        self.user_metadata = _text(user_metadata, "user_metadata")
        self.info = checked_info(info)
        self.base = table.snapshot
        self.view = table.snapshot
        """The table as it will be, but for its files."""
        self.reads = Reads()
        self.pending = Pending()
        self.is_over = False
        self._features: frozenset[str] = frozenset()
        self._engine = table.engine(engine)
        self._log_engine = table.log_engine(engine)

    @property
    def metadata(self) -> Metadata:
        """The table's metadata as it will be, but for what only the commit knows."""
        return self.view.metadata

    @_whole
    def append(self, data: Any) -> None:
        """Add rows: an Arrow table, a plan, a DataFrame or dictionaries."""
        self._step("WRITE", mode="Append")
        rows = batches_of(data, self.view.plain_schema, engine=self._engine)
        self.pending.add_written(write_rows(self._target(), rows))

    @_whole
    def overwrite(self, data: Any, predicate: Expr | None = None) -> None:
        """Exchange all rows, or those that satisfy a predicate; new rows have to satisfy it."""
        shown = None if predicate is None else str(predicate)
        self._step("WRITE", mode="Overwrite", predicate=shown)
        schema = self.view.plain_schema
        rows = batches_of(data, schema, engine=self._engine)
        if predicate is not None:
            bind_predicate(_condition(predicate), schema)
            rows = checked(rows, predicate, schema)
        check_may_remove(self.view)
        # First the new rows: they may be computed from the old ones.
        files = write_rows(self._target(), rows)
        self.delete(predicate)
        self.pending.add_written(files)

    @_whole
    def delete(self, predicate: Expr | None = None) -> int:
        """Delete the rows that satisfy a predicate, or all; says how many those are.

        Rows are marked where the table allows deletion vectors; otherwise the files that hold them
        are written anew.
        """
        shown = [] if predicate is None else [str(_condition(predicate))]
        self._step("DELETE", predicate=json.dumps(shown))
        check_may_remove(self.view)
        adds = self._live(predicate)
        self.reads.files |= {key_of(add) for add in adds if key_of(add) not in self.pending.adds}
        self.reads.matches.append(_matcher(self.view, predicate))
        if predicate is None:
            return self._remove_all(adds)
        try:
            touched = find_rows(
                self.view, adds, predicate, engine=self._engine, log_engine=self._log_engine
            )
        except SourceError as error:
            raise missing_file(self.table.location, error) from error
        self._apply(touched)
        return sum(len(item.after) - len(item.before) for item in touched)

    def _remove_all(self, adds: Sequence[Mapping[str, Any]]) -> int:
        counts = [record_count(add) for add in adds]
        unknown = [add for add, count in zip(adds, counts, strict=True) if count is None]
        rows = sum(count for count in counts if count is not None)
        if unknown:
            rows += count_rows(self.view, unknown, self._engine, self._log_engine)
        for add in adds:
            self.pending.remove(add)
        # All files of the table go, which tells enough.
        self.pending.changes, self.pending.told = [], set()
        return rows

    def _apply(self, touched: Sequence[Touched]) -> None:
        left = [item for item in touched if not item.is_gone]
        made: list[dict[str, Any]] = []
        if not writes_deletion_vectors(self._protocol(), self.metadata):
            self._rewrite(left)
            self._tell_deleted(touched)
        elif left:
            path, content, made = mark_rows(left)
            self.pending.put.append(path)
            self.store.put(path, content)
        for item in touched:
            self.pending.remove(item.add)
        for add in made:
            self.pending.add(add)

    def _rewrite(self, left: Sequence[Touched]) -> None:
        """New files for rows that stay; those of the table, and those that are new themselves."""
        for is_new in (True, False):
            items = [item for item in left if self._is_new(item.add) is is_new]
            if items:
                rows = remaining(self.view, items).execute(engine=self._engine)
                files = write_rows(self._target(), rows)
                self.pending.add_written(files, rewritten=not is_new)

    def _tell_deleted(self, touched: Sequence[Touched]) -> None:
        """Change data of rows that go while others of their file, now or before, stay."""
        if not has_change_feed(self.metadata.configuration):
            return
        rewritten = self.pending.rewritten
        parts = [
            item
            for item in touched
            if not self._is_new(item.add) and (not item.is_gone or key_of(item.add) in rewritten)
        ]
        if parts:
            self._write_changes(deleted_rows(self.view, parts).execute(engine=self._engine))
            self.pending.told |= {key_of(item.add) for item in parts}

    def _is_new(self, add: Mapping[str, Any]) -> bool:
        key = key_of(add)
        return key in self.pending.adds and key not in self.pending.rewritten

    def _write_changes(self, rows: Iterable[pa.RecordBatch]) -> None:
        target = replace(self._target(), subdirectory=CHANGE_DATA, extra=(CHANGE_TYPE,))
        self.pending.changes += [file.to_cdc() for file in write_rows(target, rows)]

    def _tell_changes(self) -> None:
        """Where change data tells of some rows it has to tell of all: nothing else is looked at."""
        pending = self.pending
        if not pending.changes:
            return
        came = [a for k, a in pending.adds.items() if k not in pending.rewritten]
        went = [r for k, r in pending.removes.items() if k not in pending.told]
        for files, change in ((came, "insert"), (went, "delete")):
            counted = [file for file in files if file.get("dataChange") is not False]
            if counted:
                rows = all_rows(self.view, counted, change, self._log_engine)
                self._write_changes(rows.execute(engine=self._engine))
        pending.told |= set(pending.removes)
        pending.rewritten |= set(pending.adds)

    @_whole
    def remove_files(self, paths: Iterable[str], *, data_change: bool = True) -> None:
        """Remove live files by the paths that `files()` gives."""
        self._step("DELETE")
        if data_change:
            check_may_remove(self.view)
        for add in self._named(paths):
            self.reads.files.add(key_of(add))
            self.pending.remove(add, data_change=data_change)

    @_whole
    def rearrange(self, paths: Iterable[str]) -> int:
        """Write the rows of live files anew, in the order of the files; how many files that makes.

        No reader sees a difference: no row comes or goes, and none is deleted that was not before.
        """
        self._step("OPTIMIZE")
        adds = self._named(paths)
        rows = live_rows(self.view, adds, self._log_engine).execute(engine=self._engine)
        files = write_rows(self._target(), rows)
        for add in adds:
            self.reads.files.add(key_of(add))
            self.pending.remove(add, data_change=False)
        # Who reads files by their age finds the rows where they were.
        last = max((add["modificationTime"] for add in adds), default=0)
        ages = parts_of_age(adds[-1]["tags"] if adds else None, len(files))
        for number, (file, age) in enumerate(zip(reversed(files), reversed(ages), strict=True)):
            add = file.to_add() | {"dataChange": False, "modificationTime": last - number}
            add = aged(add, age) if age else add
            self.pending.add(add)
            self.pending.written[key_of(add)] = file.rows
        return len(files)

    def _named(self, paths: Iterable[str]) -> list[dict[str, Any]]:
        """Live files of the table, but no new ones, by their paths and in their order."""
        new = self.pending.adds
        live = {add["path"]: add for add in self._live() if key_of(add) not in new}
        wanted = list(dict.fromkeys(items_of(paths, "paths", "paths of live files")))
        missing = sorted(path for path in wanted if path not in live)
        if missing:
            raise CommitError(
                f"{missing[0]} is no live file of {self.table.location}",
                table=self.table.location,
                hint="see files() for those that are",
            )
        return [live[path] for path in wanted]

    @_whole
    def add_files(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Make files part of the table that are there already: add actions as dictionaries."""
        self._step("WRITE", mode="Append")
        protocol = self._protocol()
        given = items_of(adds, "add_files()", "add actions")
        made = [checked_add(self.view, protocol, add) for add in given]
        for add in made:
            self.pending.add(add)
            self.pending.is_counted = False

    def set_metadata(
        self,
        *,
        schema: AnySchema | None = None,
        renamed: Mapping[str, str] | None = None,
        configuration: Mapping[str, str | None] | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        """Change the table itself, before rows are written. A property that is None is removed.

        `schema` may bring new columns and wider types; where columns are mapped also fewer ones,
        and other names: `renamed` says what a column, by its old path, is called now.
        """
        self._step("SET TBLPROPERTIES" if schema is None else "CHANGE COLUMN")
        if self.pending.has_files:
            raise CommitError(
                "metadata is set before rows are written",
                table=self.table.location,
                hint="call set_metadata() first",
            )
        name, description = _text(name, "name"), _text(description, "description")
        settings, features = asked_features(configuration or {})
        wanted = None if schema is None else schema_of(schema, "set_metadata(schema=)")
        metadata = reshaped(self.view, wanted, renamed, settings)
        metadata = replace(
            metadata,
            name=metadata.name if name is None else name,
            description=metadata.description if description is None else description,
        )
        protocol = needed_protocol(
            metadata.schema,
            metadata.configuration,
            features=features | self._features,
            old=self.base.protocol,
        )
        view = replace(self.base, protocol=protocol, metadata=metadata)
        view.check_readable()
        check_writable(view)
        check_clustered(self._clustering, view.columns)
        self._features |= features
        self.view = view

    def app_transaction(self, app_id: str, version: int) -> None:
        """Note how far an application has written; the same version again is a repetition."""
        self._step(None)
        text_of(app_id, "app_transaction()", "the id of an application")
        if not fits(whole_of(version, "app_transaction()", "a version"), LONG):
            raise wrong("app_transaction()", "a version of at most 64 bits", version)
        self.pending.transactions[app_id] = version

    def domain_metadata(
        self, domain: str, configuration: str = "", *, removed: bool = False
    ) -> None:
        """Set or remove a domain."""
        self._step(None)
        text_of(domain, "domain_metadata()", "the name of a domain")
        text_of(configuration, "domain_metadata(configuration=)", "a text")
        if domain.startswith("delta."):
            raise CommitError(
                f"domains that begin with 'delta.' are Delta's own: {domain!r}",
                table=self.table.location,
                hint="choose another name",
            )
        self.pending.domains[domain] = {
            "domain": domain,
            "configuration": configuration,
            "removed": removed,
        }

    def _step(self, operation: str | None, **parameters: Any) -> None:
        if self.is_over:
            raise CommitError(
                "this transaction is over", table=self.table.location, hint="begin another one"
            )
        self.operation.begin(operation, parameters)

    @cached_property
    def _clustering(self) -> tuple[tuple[str, ...], ...]:
        return clustering_of(self.table)

    def _target(self) -> Target:
        return Target(
            self.store,
            self.view.columns,
            self.metadata,
            self.pending.put,
            clustering=self._clustering,
        )

    def _protocol(self) -> Protocol:
        """The protocol that the table has after this transaction."""
        return needed_protocol(
            self.metadata.schema,
            self.metadata.configuration,
            domains=bool(self.pending.domains),
            features=self._features,
            old=self.base.protocol,
        )

    def _live(self, predicate: Expr | None = None) -> list[dict[str, Any]]:
        """The live files as this transaction sees them, but for what a predicate rules out."""
        machine = ScanBuilder(self.view).with_predicate(predicate).machine(self._log_engine)
        rows = [row for b in machine for row in b.to_pylist(maps_as_pydicts="lossy")]
        old = [row for row in rows if key_of(row) not in self.pending.removes]
        new = self.pending.adds
        return [row for row in old if key_of(row) not in new] + list(new.values())


def _condition(given: Any) -> Expr:
    if not isinstance(given, Expr):
        raise wrong("a predicate", "an expression", given, hint="such as col('id') == 1")
    return given


def _text(given: str | None, argument: str) -> str | None:
    return None if given is None else text_of(given, f"{argument}=", "a text")


def _isolation(given: Isolation | None, metadata: Metadata) -> Isolation:
    """As asked for, or as the table says; otherwise blind appends disturb nobody."""
    if given is not None and given not in ISOLATIONS:
        raise PlanError(f"unknown isolation {given!r}", hint=f"one of {', '.join(ISOLATIONS)}")
    told = metadata.configuration.get(ISOLATION, "").lower()
    for known in ISOLATIONS:
        if given is None and known.lower() == told:
            return known
    return given or "WriteSerializable"


def _matcher(
    snapshot: Snapshot, predicate: Expr | None
) -> Callable[[Sequence[Mapping[str, Any]]], Sequence[bool]]:
    """Which of some adds may hold rows for a predicate."""
    from millpond.plan.make import values

    scan = ScanBuilder(snapshot).with_columns("path").with_predicate(predicate).build()

    def matches(adds: Sequence[Mapping[str, Any]]) -> Sequence[bool]:
        if scan.skipping is None:
            return [True] * len(adds)
        rows = pa.array([{n: add.get(n) for n in ADD.names} for add in adds], to_arrow(ADD))
        kept = scan.rows(scan.needed(values(pa.table([rows], names=["add"])))).to_arrow(
            engine="arrow"
        )
        paths = set(kept.column("path").to_pylist())
        return [add["path"] in paths for add in adds]

    return matches

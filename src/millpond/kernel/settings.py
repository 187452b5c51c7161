"""What a log holds beside files: app transactions and domains, and the history of commits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CorruptLogError
from millpond.kernel.actions import DOMAIN, TXN, AppTransaction, DomainMetadata, log_columns
from millpond.kernel.durations import APP_TRANSACTIONS, duration_millis
from millpond.kernel.machine import Consume, StateMachinePhase, Terminus
from millpond.kernel.phase import BasePhase, list_log, listed_commits, scan_log, together
from millpond.kernel.times import commit_times, first_stated, has_stated_times
from millpond.plan.expr import col, path
from millpond.plan.types import STRING, Field, Struct

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.node import Plan

_SETTINGS: Final = log_columns(txn=TXN, domainMetadata=DOMAIN)
_INFO: Final = Struct((Field("commitInfo", STRING),))


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The newest app transaction of each application, and the domains that were not removed."""

    app_transactions: dict[str, AppTransaction]
    domain_metadata: dict[str, DomainMetadata]


@dataclass(frozen=True)
class ReadSettings(BasePhase):
    """App transactions and domains, newest first."""

    snapshot: Snapshot
    now: int
    """Milliseconds: app transactions may expire."""

    def plan(self) -> Plan:
        """The rows that have one, of commits and then of the checkpoint."""
        segment = self.snapshot.segment
        has = col("txn").is_not_null() | col("domainMetadata").is_not_null()
        scans = [scan.filter(has) for scan in scan_log(segment.cover(), _SETTINGS)]
        if segment.checkpoint is not None:
            leaves = path("txn.appId"), path("domainMetadata.domain")
            either = leaves[0].is_not_null() | leaves[1].is_not_null()
            files = segment.checkpoint.files
            scans += [scan.filter(either) for scan in scan_log(files, _SETTINGS)]
        return together(scans)

    def next(self, rows: pa.Table) -> StateMachinePhase[TableSettings]:
        """The first of each."""
        transactions: dict[str, AppTransaction] = {}
        domains: dict[str, DomainMetadata] = {}
        for row in rows.to_pylist():
            txn, domain = row["txn"], row["domainMetadata"]
            if txn is not None:
                if txn["appId"] is None or txn["version"] is None:
                    raise self._broken("an app transaction without id or version")
                found = AppTransaction(txn["appId"], txn["version"], txn["lastUpdated"])
                transactions.setdefault(found.app_id, found)
            if domain is not None:
                if domain["domain"] is None:
                    raise self._broken("a domain without a name")
                made = DomainMetadata(
                    domain["domain"], domain["configuration"] or "", bool(domain["removed"])
                )
                domains.setdefault(made.domain, made)
        oldest = self._oldest_transaction()
        if oldest is not None:
            transactions = {
                app: txn
                for app, txn in transactions.items()
                if txn.last_updated is None or txn.last_updated >= oldest
            }
        live = {name: domain for name, domain in domains.items() if not domain.removed}
        return Terminus(TableSettings(transactions, live))

    def _oldest_transaction(self) -> int | None:
        """App transactions that were last updated before this moment have expired."""
        kept = duration_millis(self.snapshot.metadata, APP_TRANSACTIONS)
        return None if kept is None else self.now - kept

    def _broken(self, what: str) -> CorruptLogError:
        return CorruptLogError(
            f"the log of {self.table} has {what}",
            table=self.table,
            hint="its rows can still be read; an older version may have more",
        )


@dataclass(frozen=True)
class ListCommits(BasePhase):
    """Every commit that the log still holds, up to a snapshot's version."""

    snapshot: Snapshot
    limit: int | None

    def plan(self) -> Plan:
        """The whole listing."""
        return list_log(self.log, None)

    def next(self, rows: pa.Table) -> StateMachinePhase[list[dict[str, Any]]]:
        """What the newest of them say of themselves."""
        commits = tuple(listed_commits(self.snapshot, rows).values())
        shown = commits if self.limit is None else commits[max(0, len(commits) - self.limit) :]
        if not shown:
            return Terminus([])
        return Consume(ReadHistory(self.table, self.snapshot, commits, shown))


@dataclass(frozen=True)
class ReadHistory(BasePhase):
    """What commits say of themselves, newest first."""

    snapshot: Snapshot
    commits: tuple[LogFile, ...]
    shown: tuple[LogFile, ...]

    def plan(self) -> Plan:
        """Their commitInfo, as text: its members are up to the writer."""
        # As text it fits whatever it is, which a strict reader would not say.
        actions = together(scan_log(reversed(self.shown), _INFO, strictly=False))
        return actions.filter(col("commitInfo").is_not_null())

    def next(self, rows: pa.Table) -> StateMachinePhase[list[dict[str, Any]]]:
        """One dictionary a commit; those that say nothing have a version and a time, too."""
        infos: dict[int, dict[str, Any]] = {}
        texts = rows.column("commitInfo").to_pylist()
        for version, text in zip(rows.column("version").to_pylist(), texts, strict=True):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                found = None
            infos.setdefault(version, found if isinstance(found, dict) else {})
        first = first_stated(self.snapshot) if has_stated_times(self.snapshot) else None
        stated = {
            version: info["inCommitTimestamp"]
            for version, info in infos.items()
            if first is not None and version >= first and type(info.get("inCommitTimestamp")) is int
        }
        # Not what a commit says beside that: by these times a version is opened.
        times = commit_times(self.commits, stated)
        history = []
        for file in reversed(self.shown):
            version = file.name.version
            own = {"version": version, "timestamp": times[version]}
            history.append({"version": version, **infos.get(version, {})} | own)
        return Terminus(history)

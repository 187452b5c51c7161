"""Many processes that write to one pond, others that read it, and what is true of it then."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tests.steward.processes import CONTEXT

import millpond as mp
from millpond.base.settings import Settings
from millpond.testing.s3 import S3Server

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier, Event

    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope

START = datetime(2024, 1, 1, tzinfo=UTC)


def row(writer: int, turn: int) -> dict[str, Any]:
    """A row that nobody else writes."""
    number = 1000 * writer + turn
    return {"time": START + timedelta(seconds=number), "number": number}


class Kind(Protocol):
    """What writers do, and what is always true."""

    def prepare(self, tx: WriteScope, writers: int) -> None: ...

    def write(self, tx: WriteScope, writer: int, turn: int) -> None: ...

    def check(self, scope: ReadScope) -> int:
        """Look at everything; how many transactions there were."""
        ...


class OneSeries:
    """Everybody appends to one series."""

    def prepare(self, tx: WriteScope, writers: int) -> None:
        tx.append_series("/one", [row(999, 0)])

    def write(self, tx: WriteScope, writer: int, turn: int) -> None:
        tx.append_series("/one", [row(writer, turn)])

    def check(self, scope: ReadScope) -> int:
        """Each transaction has brought one row and one version."""
        numbers = scope.to_arrow("/one").column("number").to_pylist()
        assert len(set(numbers)) == len(numbers) == scope.txn_seq
        versions = [each.version for each in scope.versions("/one")]
        assert versions == list(range(1, scope.txn_seq + 1))
        return len(numbers) - 1


class ManySeries:
    """Everybody has a series, and one that all share tells how many rows there are."""

    def prepare(self, tx: WriteScope, writers: int) -> None:
        tx.make_directory("/many")
        tx.write_bytes("/count", b"", series=True)
        for writer in range(writers):
            tx.append_series(f"/many/{writer}", [row(writer, 999)])

    def write(self, tx: WriteScope, writer: int, turn: int) -> None:
        tx.append_series(f"/many/{writer}", [row(writer, turn)])
        tx.write_bytes("/count", b".", series=True)

    def check(self, scope: ReadScope) -> int:
        """What is written together is seen together."""
        found = [scope.to_arrow(path.path).column("number").to_pylist()
                 for path in scope.children("/many").values()]  # fmt: skip
        numbers = [number for numbers in found for number in numbers]
        assert len(set(numbers)) == len(numbers)
        count = len(scope.read_bytes("/count"))
        assert count == sum(n % 1000 != 999 for n in numbers) == scope.txn_seq - 1
        return count


class OneDirectory:
    """Everybody makes files, always two of them, in one directory."""

    def prepare(self, tx: WriteScope, writers: int) -> None:
        tx.make_directory("/files")

    def write(self, tx: WriteScope, writer: int, turn: int) -> None:
        for name in "ab":
            tx.write_bytes(f"/files/{writer}-{turn}-{name}", f"{writer} {turn}".encode())

    def check(self, scope: ReadScope) -> int:
        """Where one is there is the other."""
        names = sorted(scope.children("/files"))
        assert [name[:-1] for name in names[::2]] == [name[:-1] for name in names[1::2]]
        assert len(names) == 2 * (scope.txn_seq - 1)
        for name in names[-2:]:
            assert scope.read_bytes(f"/files/{name}").decode().split() == name.split("-")[:2]
        return len(names) // 2


KINDS: dict[str, Kind] = {"one": OneSeries(), "many": ManySeries(), "files": OneDirectory()}


@dataclass
class Crowd:
    """Who is to do what where."""

    location: str
    kind: str
    writers: int
    each: int
    readers: int
    endpoint: str | None = None
    """Of the S3 server, if it is there."""

    @property
    def settings(self) -> Settings | None:
        """How the pond is reached; secrets do not travel to other processes."""
        if self.endpoint is None:
            return None
        return Settings.load(
            env={},
            store_endpoint=self.endpoint,
            store_region=S3Server.region,
            store_allow_http=True,
            store_access_key_id=S3Server.access_key_id,
            store_secret_access_key=S3Server.secret_access_key,
        )

    def prepare(self) -> None:
        """Make the pond, with one transaction in it."""
        pond = mp.create(self.location, settings=self.settings)
        with pond.write("prepare") as tx:
            KINDS[self.kind].prepare(tx, self.writers)
            tx.commit()

    def run(self, results: Path) -> list[dict[str, Any]]:
        """Let them loose; what each of them says."""
        self.prepare()
        barrier, over = CONTEXT.Barrier(self.writers + self.readers), CONTEXT.Event()
        writing = [
            CONTEXT.Process(target=write, args=(self, n, barrier, str(results / f"writer-{n}")))
            for n in range(self.writers)
        ]
        reading = [
            CONTEXT.Process(target=read, args=(self, barrier, over, str(results / f"reader-{n}")))
            for n in range(self.readers)
        ]
        for process in (*reading, *writing):
            process.start()
        for process in writing:
            process.join()
        over.set()
        for process in reading:
            process.join()
        said = [json.loads(path.read_text()) for path in sorted(results.iterdir())]
        for each in said:
            assert "error" not in each, each["error"]
        assert len(said) == self.writers + self.readers
        return said

    def check(self) -> None:
        """Nothing is lost, nothing is there twice, and nothing is missing in between."""
        pond = mp.open(self.location, settings=self.settings)
        scope = pond.read()
        assert KINDS[self.kind].check(scope) == self.writers * self.each
        commits = [entry["millpond"] for entry in pond.oplog.log.table().history()]
        numbers = [said["txn_seq"] for said in reversed(commits)]
        assert numbers == list(range(self.writers * self.each + 2))
        ended = [
            record["txn_seq"]
            for record in pond.control.records()
            if record["record_type"] == "completed"
        ]
        assert sorted(ended) == numbers[1:]
        assert pond.recover().is_clean


def write(crowd: Crowd, writer: int, barrier: Barrier, result: str) -> None:
    """One writer: which transactions it made, and how often it was overtaken."""
    said: dict[str, Any] = {"seqs": [], "attempts": []}
    try:
        pond = mp.open(crowd.location, settings=crowd.settings)
        barrier.wait()
        for turn in range(crowd.each):
            with pond.write(f"{writer} {turn}") as tx:
                KINDS[crowd.kind].write(tx, writer, turn)
                done = tx.commit()
            said["seqs"].append(done.txn_seq)
            said["attempts"].append(done.attempts)
    except BaseException:  # noqa: BLE001 - told to who started it
        said["error"] = traceback.format_exc()
        barrier.abort()
    Path(result).write_text(json.dumps({**said, "cpu": time.process_time()}))


def write_and_tell(crowd: Crowd, writer: int, result: str) -> None:
    """One writer who will be killed: it tells of each transaction that it knows to stand."""
    pond = mp.open(crowd.location)
    with Path(result).open("w") as told:
        for turn in range(crowd.each):
            with pond.write(f"{writer} {turn}") as tx:
                KINDS[crowd.kind].write(tx, writer, turn)
                done = tx.commit()
            told.write(f"{done.txn_seq}\n")
            told.flush()


def read(crowd: Crowd, barrier: Barrier | None, over: Event, result: str) -> None:
    """One reader: how often it looked, always at something whole, and never back in time."""
    said: dict[str, Any] = {"looks": 0}
    try:
        if barrier is not None:
            barrier.wait()
        pond = mp.open(crowd.location, settings=crowd.settings)
        last = -1
        while not over.is_set():
            if said["looks"] % 5 == 4:
                pond = mp.open(crowd.location, settings=crowd.settings)
            scope = pond.read()
            assert scope.txn_seq >= last
            last = scope.txn_seq
            KINDS[crowd.kind].check(scope)
            said["looks"] += 1
    except BaseException:  # noqa: BLE001 - told to who started it
        said["error"] = traceback.format_exc()
    Path(result).write_text(json.dumps(said))

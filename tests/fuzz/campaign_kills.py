"""Campaign 3: processes are killed. Afterwards all of an operation is there, or nothing of it.

| class | means |
|---|---|
| all | the operation was committed before the kill: everything of it is there |
| nothing | it was not: the pond is as it was |
| unchanged | an operation that changes nothing that readers see (upkeep, recovery, queries) |
| finished | the process ended before the kill came |
| lost | what was committed is missing, or settings are |
| half | a reader sees a part of the operation |
| not clean | `recover` fails, has something to do a second time, or `fsck` finds damage |
| stuck | the operation can't be done afterwards |
"""

from __future__ import annotations

import pickle
import shutil
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.children import CONTEXT, Outcome, run_cases
from tests.fuzz.kills.moments import Moment, watch_changes
from tests.fuzz.kills.operations import OPERATIONS, state
from tests.fuzz.ponds import full_pond
from tests.fuzz.tally import Tally
from tests.steward.places import is_after_the_moment

import millpond as mp
from millpond.base.errors import MillpondError
from millpond.steward.committing import steps
from millpond.steward.control.settings import RECORD_READS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALLOWED: Final = ("all", "nothing", "unchanged", "finished")
FORBIDDEN: Final = ("lost", "half", "not clean", "stuck", "traceback", "crash", "timeout", "memory")
FULL: Final = {
    "commit": 52,
    "append": 18,
    "copy": 18,
    "copy rows": 10,
    "materialize": 18,
    "maintain": 14,
    "control rebuild": 14,
    "recover": 8,
    "query": 4,
}
"""Kills of each operation in `make fuzz`: 156 together."""
QUICK: Final = {"commit": 2, "copy": 1, "materialize": 1, "control rebuild": 1}
UNCHANGED: Final = ("maintain", "control rebuild", "recover", "query")


@dataclass(frozen=True, slots=True)
class Known:
    """An operation that ran to its end: the states around it, its changes and its time."""

    before: dict[str, Any]
    after: dict[str, Any]
    changes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Kill:
    """A case: an operation, and the moment or the second at which it is killed."""

    operation: str
    moment: Moment | None
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"at {self.moment}" if self.moment is not None else f"after {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True)
class Checked:
    """A pond after a kill, to be judged."""

    location: str
    kill: Kill
    is_finished: bool
    before: dict[str, Any]
    after: dict[str, Any]


# In children


def measure(arguments: tuple[str, str, str]) -> Outcome:
    """Run an operation to its end on a copy, and store what is known of it."""
    location, operation, file = arguments
    before = state(location)
    changes = 0

    def count() -> None:
        nonlocal changes
        changes += 1

    watch_changes(location, count)
    began = time.monotonic()
    OPERATIONS[operation](location)
    seconds, total = time.monotonic() - began, changes
    known = Known(before, state(location), total, seconds)
    Path(file).write_bytes(pickle.dumps(known))
    return Outcome("works")


def victim(location: str, operation: str, moment: Moment | None) -> None:
    """Run an operation in a process that is killed."""
    if moment is not None:
        moment.install(location)
    OPERATIONS[operation](location)


def prepare(place: str) -> Outcome:
    """Make the pond, with a setting that has to survive."""
    pond = full_pond(place)
    pond.control.note({RECORD_READS: "false"})
    state(place)  # fills the cache
    return Outcome("works")


def judge(case: Checked) -> Outcome:
    """Look at a pond after a kill, recover it, and use it."""
    found = state(case.location)
    outcome = _judged(case, found)
    if outcome.kind in FORBIDDEN:
        return outcome
    problem = _recovered(case.location)
    if problem is not None:
        return Outcome("not clean", problem)
    again = state(case.location)
    if again != found:
        return Outcome("lost", f"recovery changed {_difference(found, again)}")
    return _usable(case, outcome)


def _judged(case: Checked, found: dict[str, Any]) -> Outcome:
    kill = case.kill
    if kill.operation in UNCHANGED:
        if found == case.before:
            return Outcome("finished" if case.is_finished else "unchanged")
        return Outcome("lost", f"other than before: {_difference(case.before, found)}")
    step = kill.moment.step if kill.moment is not None else ""
    must_be_there = case.is_finished or (bool(step) and is_after_the_moment(step))
    if found == case.after:
        if step and not must_be_there:
            return Outcome("half", "there although it was killed before its moment")
        return Outcome("finished" if case.is_finished else "all")
    if must_be_there:
        return Outcome("lost", f"committed and not there: {_difference(case.after, found)}")
    if found == case.before:
        return Outcome("nothing")
    return Outcome("half", f"neither before nor after: {_difference(case.before, found)}")


def _recovered(location: str) -> str | None:
    """Recover twice and check everything; the text says what is wrong."""
    mp.open(location).recover()
    second = mp.open(location).recover()
    if not second.is_clean:
        return f"the second recovery did something: {second}"
    report = mp.open(location).fsck()
    if not report.is_sound:
        return f"fsck: {report.damage[0]}"
    incomplete = [
        t for t in mp.open(location).control.recent(50) if t.state not in ("completed", "failed")
    ]
    return f"transactions without an end: {incomplete}" if incomplete else None


def _usable(case: Checked, outcome: Outcome) -> Outcome:
    """The operation can be done now, unless it was; then everything unneeded can be removed."""
    if outcome.kind == "nothing":
        try:
            OPERATIONS[case.kill.operation](case.location)
        except (MillpondError, SystemExit) as error:
            return Outcome("stuck", str(error))
        done = state(case.location)
        if done != case.after:
            return Outcome("stuck", f"done again, it differs: {_difference(case.after, done)}")
    expected = state(case.location)
    mp.open(case.location).maintain(dry_run=False, retention=timedelta(0))
    report = mp.open(case.location).fsck()
    if not report.is_sound:
        return Outcome("not clean", f"fsck after maintain: {report.damage[0]}")
    if state(case.location) != expected:
        return Outcome("lost", "maintain changed what is seen")
    return outcome


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    shown = [
        f"{n}: {str(one.get(n))[:120]} != {str(other.get(n))[:120]}" for n in sorted(names)[:3]
    ]
    return f"{len(names)} paths: {'; '.join(shown)}"


# The campaign


def run(seed: int, counts: Mapping[str, int], work: Path) -> Tally:
    """Run the campaign below a directory."""
    tally = Tally("kills", ALLOWED, FORBIDDEN)
    rng = Random(f"{seed}/kills")
    prepared = work / "pond"
    _in_child(prepare, str(prepared))
    for operation, count in counts.items():
        is_spark = operation == "query"
        source = _half_committed(work, prepared) if operation == "recover" else prepared
        known = _known(work, source, operation, is_spark=is_spark)
        for kill in _kills(operation, count, known, rng):
            location = _copy(work, source)
            is_finished = _killed(location, kill)
            case = Checked(location, kill, is_finished, known.before, known.after)
            for _, outcome in run_cases(judge, [case], limited=False, timeout=300):
                tally.add(operation, str(kill), outcome.kind, outcome.detail)
    return tally


def _in_child(job: Any, case: Any, *, limited: bool = False) -> None:
    for _, outcome in run_cases(job, [case], limited=limited, timeout=300):
        if outcome.kind != "works":
            raise AssertionError(f"{job.__name__}: {outcome}")


def _copy(work: Path, source: Path) -> str:
    """A copy at the same place each time: paths are part of what some operations store."""
    place = work / "copy" / "pond"
    shutil.rmtree(place.parent, ignore_errors=True)
    shutil.copytree(source, place)
    return str(place)


def _known(work: Path, source: Path, operation: str, *, is_spark: bool) -> Known:
    file = work / "known"
    _in_child(measure, (_copy(work, source), operation, str(file)))
    known: Known = pickle.loads(file.read_bytes())
    return known


def _half_committed(work: Path, prepared: Path) -> Path:
    """A pond whose last writer was killed right after its commit."""
    location = _copy(work, prepared)
    _killed(location, Kill("commit", Moment("after:oplog")))
    place = work / "half"
    shutil.copytree(location, place)
    return place


def _kills(operation: str, count: int, known: Known, rng: Random) -> Iterator[Kill]:
    """Each step of a commit first, then changes of files and moments in time by turns."""
    if operation == "commit":
        names = [
            (when, name) for name in (*steps.STEPS, *steps.INSIDE) for when in ("before", "after")
        ]
        rng.shuffle(names)
        for when, name in names[: count // 2]:
            yield Kill(operation, Moment(f"{when}:{name}"))
        count -= min(count // 2, len(names))
    for number in range(count):
        if number % 3 < 2 and known.changes:
            yield Kill(operation, Moment("", rng.randint(1, known.changes)))
        else:
            yield Kill(operation, None, rng.uniform(0, known.seconds))


def _killed(location: str, kill: Kill) -> bool:
    """Run and kill an operation; tell whether it had finished before."""
    process = CONTEXT.Process(target=victim, args=(location, kill.operation, kill.moment))
    process.start()
    if kill.moment is None:
        process.join(kill.seconds)
        process.kill()
    process.join(300)
    if process.exitcode not in (0, -signal.SIGKILL):
        raise AssertionError(f"{kill.operation} {kill} ended with {process.exitcode}")
    return process.exitcode == 0

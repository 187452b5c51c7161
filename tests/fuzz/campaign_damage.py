"""Campaign 2: damage to any file of a pond. Nothing that is read afterwards is silently wrong.

| class | means |
|---|---|
| found on read | a read ended in an error of Millpond's; all others gave the true rows |
| found by fsck | all reads gave the true rows, and `fsck` names the damage |
| repaired | a file of the cache was damaged: all reads gave the true rows, and it was replaced |
| harmless | all reads gave the true rows, and nothing has to be found: unused, or not verified |
| silently wrong | a read gave other rows and no error |
| cache error | a damaged file of the cache made a read fail, although it can be made again |
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tests.fuzz.children import Outcome, run_cases
from tests.fuzz.damage.faults import Fault, flips, others
from tests.fuzz.damage.reads import Answer, read_all, wrong
from tests.fuzz.ponds import full_pond
from tests.fuzz.tally import Tally

from millpond.steward.keeping.fsck import fsck
from millpond.steward.pond import Pond

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ALLOWED: Final = ("found on read", "found by fsck", "repaired", "harmless")
FORBIDDEN: Final = ("silently wrong", "cache error", "traceback", "crash", "timeout", "memory")
FULL: Final = {"flips": 400, "others": 80, "spark": 24}
QUICK: Final = {"flips": 6, "others": 3, "spark": 0}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A pond to be copied, and the true answers to all reads."""

    place: Path
    truth: Mapping[str, Answer]
    work: Path
    """A directory for copies."""
    with_spark: bool = False


@dataclass(frozen=True, slots=True)
class Damaged:
    """A case: a fault, and the pond to whose copy it is done."""

    prepared: Prepared
    fault: Fault


def prepare(work: Path, *, with_spark: bool) -> Prepared:
    """Make the pond and its cache, and read the true answers."""
    place = work / "pond"
    if not place.exists():
        full_pond(str(place))
    truth = read_all(str(place), with_spark=with_spark)
    failed = {name: answer.error for name, answer in truth.items() if answer.error is not None}
    if failed:
        raise AssertionError(f"reads of a whole pond failed: {failed}")
    return Prepared(place, truth, work, with_spark=with_spark)


def prepare_in_child(arguments: tuple[Path, bool]) -> Outcome:
    """Make the pond in a child: this process must not run anything that children inherit."""
    import pickle

    work, with_spark = arguments
    prepared = prepare(work, with_spark=with_spark)
    (work / "prepared").write_bytes(pickle.dumps(prepared))
    return Outcome("works")


def judge(case: Damaged) -> Outcome:
    """Damage a copy, read it in all ways, and check it."""
    prepared, fault = case.prepared, case.fault
    place = prepared.work / "copy" / "pond"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(prepared.place, place)
    fault.apply(place)
    damaged = _content(place / fault.file)
    answers = read_all(str(place), with_spark=prepared.with_spark)
    outcome = _judged(fault, answers, prepared.truth)
    if outcome is not None:
        return outcome
    if fault.area == "cache":
        is_replaced = _content(place / fault.file) != damaged
        return Outcome("repaired" if is_replaced else "harmless")
    report = fsck(Pond(str(place)))
    if report.is_sound:
        return Outcome("harmless", str(fault))
    return Outcome("found by fsck", str(report.damage[0].message))


def _judged(
    fault: Fault, answers: Mapping[str, Answer], truth: Mapping[str, Answer]
) -> Outcome | None:
    """The class as far as reads decide it."""
    silent = wrong(answers, truth)
    if silent:
        return Outcome("silently wrong", f"{fault}: {', '.join(silent)}")
    errors = {name: answer for name, answer in answers.items() if answer.error is not None}
    for name, answer in errors.items():
        if not answer.is_ours:
            return Outcome("traceback", f"{fault}: {name}: {answer.error}")
    if not errors:
        return None
    name, answer = next(iter(errors.items()))
    kind = "cache error" if fault.area == "cache" else "found on read"
    return Outcome(kind, f"{fault}: {name}: {answer.error}")


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def run(seed: int, counts: Mapping[str, int], work: Path) -> Tally:
    """Run the campaign below a directory."""
    import pickle

    tally = Tally("damage", ALLOWED, FORBIDDEN)
    rng = Random(f"{seed}/damage")
    for with_spark in (False, True):
        if with_spark and not counts["spark"]:
            continue
        place = work / ("spark" if with_spark else "arrow")
        place.mkdir()
        cases: Sequence[tuple[Path, bool]] = [(place, with_spark)]
        for _case, outcome in run_cases(
            prepare_in_child, cases, limited=not with_spark, timeout=300
        ):
            if outcome.kind != "works":
                raise AssertionError(outcome.detail)
        prepared: Prepared = pickle.loads((place / "prepared").read_bytes())
        faults = (
            flips(prepared.place, rng, counts["spark"])
            if with_spark
            else [
                *flips(prepared.place, rng, counts["flips"]),
                *others(prepared.place, rng, counts["others"]),
            ]
        )
        damaged = [Damaged(prepared, fault) for fault in faults]
        batch = len(damaged) if with_spark else 1
        for case, outcome in run_cases(
            judge, damaged, batch=batch, limited=not with_spark, timeout=300
        ):
            row = "on Spark" if with_spark else _row(case.fault)
            tally.add(row, str(case.fault), outcome.kind, outcome.detail)
    return tally


def _row(fault: Fault) -> str:
    return fault.area if fault.kind == "flip" else f"{fault.kind}, any file"

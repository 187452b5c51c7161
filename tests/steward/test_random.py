"""Random histories of a pond, with writers in turn, rollbacks and Ctrl-C at random places.

What a transaction sees of itself before its commit is what everybody sees after it, and for ever.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.deeds import measured, seen
from tests.steward.places import At, is_after_the_moment
from tests.steward.wholeness import check_tables, rubbish, sweep

import millpond as mp
from millpond.base.errors import PathError, PlanError
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

NAMES = ("a", "b", "c")
PLACES = [
    f"{when}:{name}" for name in (*steps.STEPS, *steps.INSIDE) for when in ("before", "after")
]


class Chance:
    """Random steps of a transaction; those that make no sense are refused and change nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.number = 0

    def path(self) -> str:
        return "".join(f"/{self.rng.choice(NAMES)}" for _ in range(self.rng.choice((1, 1, 2, 3))))

    def step(self, tx: WriteScope) -> None:
        self.number += 1
        number, path, other = self.number, self.path(), self.path()
        deeds: list[Callable[[], Any]] = [
            lambda: tx.make_directory(path, parents=True),
            lambda: tx.write_bytes(path, f"{number}".encode()),
            lambda: tx.write_bytes(path, b"%d " % number * 20_000),
            lambda: tx.write_bytes(path, f"{number}\n".encode(), series=True),
            lambda: tx.write_table(path, [{"id": number}]),
            lambda: tx.write_table(path, [{"id": number, f"extra{number % 3}": "x"}]),
            lambda: tx.append_series(path, measured(number)),
            lambda: tx.append_series(path, [{**measured(number)[0], f"more{number % 2}": number}]),
            lambda: tx.move(path, other),
            lambda: tx.remove(path, recursive=True),
            lambda: tx.restore(path),
            lambda: tx.restore(f"{path}@v{self.rng.randrange(1, 4)}"),
            lambda: tx.make_link(path, other),
        ]
        if self.rng.random() < 0.2:
            seen_if_whole(tx)  # to read is to stage what was written so far
        self.rng.choice(deeds)()


def seen_if_whole(scope: Any) -> dict[str, Any]:
    return seen(scope)


def transaction(pond: Pond, chance: Chance, steps_: int) -> tuple[WriteScope, dict[str, Any]]:
    """A transaction before its end, and what it sees."""
    tx = pond.write()
    while steps_:
        try:
            chance.step(tx)
        except (PathError, PlanError):
            continue
        steps_ -= 1
    return tx, seen(tx)


def history(location: str, seed: int, length: int) -> None:
    chance = Chance(seed)
    ponds = [mp.create(location), mp.open(location), mp.open(location)]
    states: list[dict[str, Any]] = [{}]
    for _ in range(length):
        pond = chance.rng.choice(ponds)
        tx, mine = transaction(pond, chance, chance.rng.randrange(1, 6))
        end = chance.rng.choice(("commit", "commit", "commit", "rollback", "interrupt"))
        if end == "rollback" or not tx.work.drafts:
            tx.rollback()
        elif end == "commit":
            tx.commit()
            states.append(mine)
        elif interrupted(tx, chance.rng.choice(PLACES)):
            states.append(mine)
        for each in (chance.rng.choice(ponds), mp.open(location)):
            scope = each.read()
            assert scope.txn_seq == len(states) - 1
            assert seen(scope) == states[-1]
    for seq, state in enumerate(states):
        assert seen(mp.open(location).read(as_of=seq)) == state
    mp.open(location).recover()
    assert mp.open(location).recover().is_clean
    check_tables(mp.open(location))
    sweep(location)
    assert rubbish(location) == []
    for seq, state in enumerate(states):
        assert seen(mp.open(location).read(as_of=seq)) == state
    mp.open(location).maintain()
    for seq, state in enumerate(states):
        assert seen(mp.open(location).read(as_of=seq)) == state


def interrupted(tx: WriteScope, place: str) -> bool:
    """Ctrl-C at a place that may be passed or not; whether the transaction stands."""
    place_passed = At(place, 1, _interrupt)
    steps.observe(place_passed)
    try:
        tx.commit()
    except KeyboardInterrupt:
        assert (tx.result is not None) is is_after_the_moment(place)
    finally:
        steps.observe(None)
    return tx.result is not None


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("seed", range(3))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    history(str(tmp_path / "pond"), seed, 10)


@pytest.mark.slow
def test_many_random_histories(tmp_path: Path) -> None:
    for number in range(40):
        seed = random.randrange(1 << 32)
        try:
            history(str(tmp_path / f"pond-{number}"), seed, 30)
        except Exception as error:
            raise AssertionError(f"the history of seed {seed}") from error

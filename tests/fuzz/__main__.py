"""`make fuzz`: all campaigns, half with a fixed seed and half with a random one.

    python -m tests.fuzz [--seed N] [--only inputs|damage|kills] [--scale F]

The random seed is printed; given again, it repeats the run. Inputs that fail are saved below a
directory that is printed as well. The exit code is 1 if anything failed; the last lines are the
tables of counts.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
import time
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fuzz import campaign_damage, campaign_inputs, campaign_kills
from tests.fuzz.children import settle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from tests.fuzz.tally import Tally

FIXED_SEED: Final = 1
CAMPAIGNS: Final[dict[str, ModuleType]] = {
    "inputs": campaign_inputs,
    "damage": campaign_damage,
    "kills": campaign_kills,
}
MEMORY: Final = Path("/dev/shm")
ROOM: Final = 2 << 30
SHOWN: Final = 40
"""Failures that are printed of a campaign."""


def main() -> int:
    """Run the campaigns and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=tuple(CAMPAIGNS), action="append")
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    saved = Path(tempfile.mkdtemp(prefix="millpond-fuzz-"))
    _print(f"seeds {FIXED_SEED} and {seed} (again: make fuzz SEED={seed})")
    _print(f"inputs that fail are saved in {saved}")
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    # Ponds sync every file that they write: in memory, that takes no time.
    with tempfile.TemporaryDirectory(dir=MEMORY if is_roomy else None) as work:
        get_temp_dir()  # the socket of the server of children stays outside: it is removed last
        settle(work)  # before the first child, so that all inherit it
        tallies = [
            _campaign(name, (FIXED_SEED, seed), options.scale, Path(work), saved)
            for name in options.only or CAMPAIGNS
        ]
    for tally in tallies:
        _print(f"\n{tally.table()}")
    return 1 if any(tally.failures for tally in tallies) else 0


def _campaign(name: str, seeds: tuple[int, int], scale: float, work: Path, saved: Path) -> Tally:
    """Run one campaign with both seeds."""
    began = time.monotonic()
    module = CAMPAIGNS[name]
    halves: list[Tally] = []
    for number, seed in enumerate(seeds):
        counts = _share(module.FULL, number, scale)
        place = work / f"{name}-{number}"
        place.mkdir()
        halves.append(module.run(seed, counts, saved if name == "inputs" else place))
        shutil.rmtree(place, ignore_errors=True)
    tally = halves[0]
    tally.include(halves[1])
    for failure in tally.failures[:SHOWN]:
        _print(f"FAILED {str(failure)[:1000]}")
    if len(tally.failures) > SHOWN:
        _print(f"… and {len(tally.failures) - SHOWN} more")
    with (saved / "failures.txt").open("a") as file:
        file.writelines(f"{failure}\n" for failure in tally.failures)
    _print(f"{name}: {tally.total:,} cases in {time.monotonic() - began:.0f} s")
    return tally


def _share(full: Mapping[str, int], number: int, scale: float) -> dict[str, int]:
    """Half of the counts; of odd ones the first half is the larger."""
    return {name: (round(count * scale) + 1 - number) // 2 for name, count in full.items()}


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path.cwd()))
    sys.exit(main())

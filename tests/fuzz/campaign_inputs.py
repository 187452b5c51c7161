"""Campaign 1: inputs of eight kinds. Each works, or is refused with a message and a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fuzz.children import run_cases
from tests.fuzz.doors import generated, judge
from tests.fuzz.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FULL: Final = {
    "sql": 600,
    "yaml": 1400,
    "url": 1400,
    "csv": 2000,
    "json": 2000,
    "arrow": 1000,
    "parquet": 1000,
    "log": 600,
}
"""Cases of each kind in `make fuzz`: 10,000 together."""
QUICK: Final = {"yaml": 60, "url": 80, "csv": 80, "json": 80, "arrow": 60, "parquet": 60, "log": 20}
"""Cases in `make test`; SQL has tests of its own there, with the shared session of Spark."""
ALLOWED: Final = ("works", "compared", "refused")
FORBIDDEN: Final = ("wrong rows", "no hint", "traceback", "crash", "timeout", "memory")


def run(seed: int, counts: Mapping[str, int], saved: Path) -> Tally:
    """Run the campaign; inputs that fail are saved below a directory."""
    tally = Tally("inputs", ALLOWED, FORBIDDEN)
    for kind, count in counts.items():
        cases = [(kind, seed, number) for number in range(count)]
        is_spark = kind == "sql"
        for key, outcome in run_cases(
            judge, cases, timeout=180 if is_spark else 60, limited=not is_spark
        ):
            tally.add(kind, f"seed {seed} number {key[2]}", outcome.kind, outcome.detail)
            if outcome.kind in FORBIDDEN and kind != "log":
                case = generated(*key)
                (saved / f"{kind}-{seed}-{key[2]}{case.suffix}").write_bytes(case.content)
    return tally

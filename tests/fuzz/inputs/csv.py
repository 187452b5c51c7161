"""CSV files: written by Python's `csv` in a known dialect, or the same with damaged bytes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final, Literal

from tests.fuzz.inputs.case import Case
from tests.fuzz.inputs.cells import column
from tests.fuzz.mutation import mutate_bytes

if TYPE_CHECKING:
    from random import Random

NAMES: Final = ("time", "level", "temp C", "site", "ü", "a.b", "n", "x,y", 'q"')
LARGE: Final = 1_200_000
"""More bytes than the first megabyte from which types may be guessed."""


def generate(rng: Random) -> Case:
    """A CSV file; its truth is the header and the rows of strings."""
    count = rng.choice([0, 1, 2, 3, 5, 8, 30])
    names = rng.sample(NAMES, rng.randint(1, 5))
    columns = [column(rng, count) if count else [] for _ in names]
    rows = [list(row) for row in zip(*columns, strict=True)]
    if rng.random() < 0.02:
        plain = [str(number % 7) for number in range(len(names))]
        rows = [plain] * (LARGE // (2 * len(names))) + rows
    if len(names) == 1:  # a row with one empty field is an empty line: nobody counts those
        rows = [row for row in rows if row[0].strip()]
    output = io.StringIO()
    quoting: Literal[0, 1] = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    writer = csv.writer(output, quoting=quoting, lineterminator=rng.choice(["\n", "\n", "\r\n"]))
    writer.writerows([names, *rows])
    content = output.getvalue().encode()
    if rng.random() < 0.4:
        return Case(mutate_bytes(content, rng), ".csv")
    return Case(content, ".csv", (names, rows))

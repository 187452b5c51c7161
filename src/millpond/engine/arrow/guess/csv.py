"""The columns of a CSV file, guessed from its first rows or from all of them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from millpond.engine.arrow.guess.guessed import Guessed
from millpond.engine.arrow.guess.texts import Guess
from millpond.plan import types as t

if TYPE_CHECKING:
    from millpond.engine.arrow.source.csvtext import CsvText

INFER_ROWS: Final = 100_000


def guess_csv(file: CsvText, infer_rows: int = INFER_ROWS) -> Guessed:
    """Guess the columns from that many rows, or from all if that is 0."""
    names = file.names()
    guesses = [Guess() for _ in names]
    rows = 0
    with closing(file.batches(names)) as batches:
        for batch in batches if names else ():
            seen = batch.slice(0, infer_rows - rows) if infer_rows else batch
            for guess, column in zip(guesses, seen.columns, strict=True):
                guess.see(column)
            rows += seen.num_rows
            if rows == infer_rows:
                break
    pairs = list(zip(names, guesses, strict=True))
    large = {name: guess.numbers.largest for name, guess in pairs if guess.type == t.LONG}
    return Guessed.of({name: guess.type for name, guess in pairs}, large)

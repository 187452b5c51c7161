"""The columns of the CSV or JSON files that a scan names."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from millpond.engine.arrow.guess.csv import guess_csv
from millpond.engine.arrow.guess.guessed import united_guess
from millpond.engine.arrow.guess.json import guess_json
from millpond.engine.arrow.source.csvtext import CsvText
from millpond.engine.arrow.source.files import unreadable
from millpond.engine.arrow.source.jsonlines import line_blocks
from millpond.engine.arrow.source.stream import unpacked
from millpond.plan.sources import CsvOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.engine.arrow.guess.guessed import Guessed
    from millpond.engine.arrow.source.files import Files
    from millpond.plan.sources import Format
    from millpond.plan.types import Struct


def guess_files(
    paths: Sequence[str], format_: Format, csv: CsvOptions | None, infer_rows: int, files: Files
) -> Struct:
    """Guess the columns of all files together: of CSV from that many rows of each, or from all."""
    found: dict[str, Guessed] = {}
    for path in paths:
        if format_ == "csv":
            text = CsvText(path, partial(_opened, path, files), csv or CsvOptions())
            found[path] = guess_csv(text, infer_rows)
        else:
            found[path] = guess_json(path, partial(_blocks, path, files))
    return united_guess(found)


@contextmanager
def _opened(path: str, files: Files) -> Iterator[pa.NativeFile]:
    file = files.open(path)
    try:
        yield unpacked(path, file)
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        files.release(file)


def _blocks(path: str, files: Files) -> Iterator[bytes]:
    with _opened(path, files) as stream:
        yield from line_blocks(stream.read, path)

"""What is checked of the Parquet files that Spark reads: the setting `spark.verify`.

`pages`   Spark checks the checksum of each page that it reads. Before, this process checks the
          footers and page indexes of sealed files of this machine: by them, Spark leaves out rows.
`full`    This process also checks all other bytes of sealed files, wherever they are. Once for each
          file: a file that was checked and not changed since is not read again.
`none`    Nothing.

What `pages` leaves out are the headers of pages, and the footers of files in an object store. Files
of others are checked as far as their pages have checksums.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from millpond.base.errors import DamagedFileError, StoreError
from millpond.base.seals import (
    BrokenSealError,
    Checks,
    check_ends,
    check_file,
    check_ranges,
    mark_in,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Verify: TypeAlias = Literal["pages", "full", "none"]
OPTION: Final = "parquet.page.verify-checksum.enabled"
"""The option of Spark's Parquet reader."""
_THREADS: Final = 16
_ENDS: Final = Checks()
_WHOLE: Final = Checks()


def check(paths: Sequence[str], verify: Verify) -> None:
    """Check what Spark does not check itself of files, whose paths `spark_path` gave."""
    if verify == "none":
        return
    remote = []
    for path in paths:
        if path.startswith("file:"):
            _check_local(path, verify)
        elif verify == "full":
            remote.append(path)
    if remote:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(_check_remote, remote))


def damaged(path: str, message: str) -> DamagedFileError:
    """Return the error for a file that does not hold what was written."""
    return DamagedFileError(
        message,
        engine="spark",
        path=path,
        hint="restore the file from a backup, or write its rows again; pond fsck finds all damage",
    )


def _check_local(path: str, verify: Verify) -> None:
    known, one = (_ENDS, check_ends) if verify == "pages" else (_WHOLE, check_file)
    file = Path(path.removeprefix("file:"))
    try:
        known.once(file, partial(one, required=mark_in(path)))
    except BrokenSealError as error:
        raise damaged(str(file), f"{file} is damaged: {error}") from error
    except (OSError, ValueError):
        return  # Spark says why it can't be read


def _check_remote(path: str) -> None:
    from millpond.base.store import open_store

    scheme, _, rest = path.partition("://")
    host, _, name = rest.partition("/")
    url = f"{'s3' if scheme == 's3a' else scheme}://{host}"
    try:
        store = open_store(url)
        size = store.head(name).size
        check_ranges(
            lambda length, start: store.get_range(name, start, length), size, mark_in(path)
        )
    except BrokenSealError as error:
        raise damaged(path, f"{path} is damaged: {error}") from error
    except StoreError:
        return  # Spark says why it can't be read

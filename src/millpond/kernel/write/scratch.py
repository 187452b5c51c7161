"""Files that are put together on this machine before a store gets them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def on_this_machine(path: str) -> Iterator[None]:
    """Say what failed here, and where: the table's own place may be well."""
    try:
        yield
    except MillpondError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path} could not be put together on this machine: {error}",
            path=path,
            hint="free some space where temporary files are, or set TMPDIR to another directory",
        ) from error

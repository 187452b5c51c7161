"""A copy of a log that may be written to: its large files are links, so it costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final

from bench.kernel.logs import write_commit_after

HINT: Final = "_last_checkpoint"


class LogCopy:
    """A table's log beside it, for one process; it goes away with the object."""

    def __init__(self, path: str) -> None:
        # In the same directory: files can be linked only within one file system.
        self.path = Path(tempfile.mkdtemp(dir=Path(path).parent, prefix="copy-"))
        weakref.finalize(self, shutil.rmtree, self.path)
        self._log = self.path / "_delta_log"
        source = Path(path) / "_delta_log"
        shutil.copytree(source, self._log, copy_function=os.link)
        self._hint = (source / HINT).read_bytes()
        self._known = {file.relative_to(self._log) for file in self._log.rglob("*")}
        self.restore()

    def restore(self) -> None:
        """Take away what was written since."""
        for file in list(self._log.rglob("*")):
            if file.is_file() and file.relative_to(self._log) not in self._known:
                file.unlink()
        (self._log / HINT).unlink(missing_ok=True)  # else the original would be written to
        (self._log / HINT).write_bytes(self._hint)

    def written(self) -> list[str]:
        """The Parquet files that were written since."""
        files = self._log.rglob("*.parquet")
        return sorted(str(f) for f in files if f.relative_to(self._log) not in self._known)

    def commit(self, version: int) -> None:
        """Add one small commit."""
        write_commit_after(self.path, version, number=1_000_000_000 + version * 10)

"""Temporary directories are removed by the next process when theirs was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millpond.base.scratch import OWNER, make_scratch, remove_scratch, sweep_scratch

MAKE = """
import os, sys, time
from millpond.base.scratch import make_scratch
path = make_scratch("spark")
(path / "large").write_bytes(b"x")
print(path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", MAKE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        theirs = process.stdout.readline().decode().strip()
        assert sweep_scratch() == []
        assert list(Path(theirs).iterdir())
        process.send_signal(signal.SIGKILL)
    mine = make_scratch()
    assert list(tmp_path.iterdir()) == [mine]
    remove_scratch(mine)
    assert not list(tmp_path.iterdir())


def test_what_others_made_stays(tmp_path: Path) -> None:
    mine = make_scratch()
    for name in ("millpond-something", "other-thing"):
        (tmp_path / name).mkdir()
    (tmp_path / "other-thing" / OWNER).touch()
    assert sweep_scratch() == []
    assert len(list(tmp_path.iterdir())) == 3
    remove_scratch(mine)
    remove_scratch(mine)

"""Commands don't load pandas; SQL on Spark, which needs it, still works."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

RUN = """
import atexit, sys
atexit.register(lambda: print("pandas" in sys.modules, file=sys.stderr))
from millpond.cli.main import main
sys.argv[0] = "pond"
main()
"""


def run(pond: Path, *args: str) -> tuple[str, str]:
    """What a command writes, and whether pandas was loaded at its end."""
    command = [sys.executable, "-c", RUN, "--pond", str(pond), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()[-1]


@pytest.fixture
def pond(tmp_path: Path) -> Path:
    with mp.create(tmp_path / "p").write() as tx:
        tx.write_table("/t", [{"a": 1}, {"a": 2}])
        tx.commit()
    return tmp_path / "p"


def test_commands_do_without_pandas(pond: Path) -> None:
    assert run(pond, "mkdir", "/d") == ("", "False")
    assert run(pond, "cat", "/t", "--format", "csv") == ("a\n1\n2\n", "False")
    assert run(pond, "versions", "/t")[1] == "False"


@pytest.mark.spark
def test_sql_has_it(pond: Path) -> None:
    found = run(pond, "cat", "/t", "--format", "csv", "--sql", "SELECT sum(a) AS a FROM source")
    assert found == ("a\n3\n", "True")

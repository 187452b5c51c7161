"""Run the tests in two processes at once: those that use Spark, and the others.

    python tools/run_tests.py "not slow"

Each has about half of the work, and one of two cores would be idle otherwise; the one that is done
first, Spark's, goes on with the directories named in LATER. What it prints comes when both are
done. The exit code is that of the one that failed.

Their files are in memory where there is room: a pond syncs every file that it writes, and tests
would wait for the disk. They are gone at the end; run a test that failed by itself to look at what
it leaves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 8 << 30
"""What has to be free there; the tests write less than 3 GiB."""
SLOWEST = 12
"""So many tests are named at the end: all together have to stay below 15 minutes."""
LATER = ("tests/bench", "tests/docs", "tests/surfaces")
PYTEST = (sys.executable, "-m", "pytest", f"--durations={SLOWEST}")


def main(wanted: str) -> int:
    """Run both, and say how they ended."""
    # Tests start many processes, and each would compile what it imports.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    with (
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryDirectory(dir=MEMORY if is_roomy else None) as place,
    ):
        Path(place).chmod(0o755)  # some tests look at it as a user without rights
        environment["TMPDIR"] = place
        spark = subprocess.Popen(
            [sys.executable, __file__, "beside", wanted],
            stdout=said,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        ignored = (f"--ignore={directory}" for directory in LATER)
        try:
            others = subprocess.run(
                [*PYTEST, "-m", f"not spark and ({wanted})", *ignored],
                check=False,
                env=environment,
            )
            code = spark.wait()
        finally:
            spark.terminate()
        said.seek(0)
        for line in said:
            sys.stdout.buffer.write(line)
        sys.stdout.flush()
    return others.returncode or code


def beside(wanted: str) -> int:
    """The tests that use Spark, and then some that do not."""
    # The examples in `src` need no Spark: they are not looked for twice.
    command = [*PYTEST, "-p", "no:cacheprovider", "-m"]
    first = subprocess.run([*command, f"spark and ({wanted})", "tests"], check=False)
    second = subprocess.run([*command, f"not spark and ({wanted})", *LATER], check=False)
    return first.returncode or second.returncode


if __name__ == "__main__":
    sys.exit(beside(sys.argv[2]) if sys.argv[1] == "beside" else main(sys.argv[1]))

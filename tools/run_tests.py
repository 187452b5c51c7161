"""Run the tests in two processes at once: those that use Spark, and the others.

    python tools/run_tests.py "not slow"

Each has about half of the work, and one of two cores would be idle otherwise. What the Spark tests
print comes when both are done. The exit code is that of the one that failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def main(wanted: str) -> int:
    """Run both, and say how they ended."""
    pytest = [sys.executable, "-m", "pytest"]
    # Tests start many processes, and each would compile what it imports.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as said:
        spark = subprocess.Popen(
            [*pytest, "-p", "no:cacheprovider", "-m", f"spark and ({wanted})"],
            stdout=said,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            others = subprocess.run(
                [*pytest, "-m", f"not spark and ({wanted})"], check=False, env=environment
            )
            code = spark.wait()
        finally:
            spark.terminate()
        said.seek(0)
        for line in said:
            sys.stdout.buffer.write(line)
        sys.stdout.flush()
    return others.returncode or code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

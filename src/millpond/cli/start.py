"""Where `pond` begins: a process that is ready becomes the command, or it runs here."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `pond`, and leave with its exit code."""
    from millpond.cli.ready.handing import handed_over

    code = handed_over(sys.argv)
    if code is not None:
        sys.exit(code)
    from millpond.cli.main import main as run

    run()

"""The text of a configuration: a file of this machine, or `-` for standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def config_text(file: str) -> str:
    """What a file says; one that is not UTF-8 is an error that names it."""
    from millpond.provider.yamlfile import decoded

    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return decoded(data, file)

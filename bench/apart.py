"""One work in a process of its own, which prints what it found as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bench.measure import ROOT, TIMEOUT_SECONDS


def run_apart(module: str, name: str, **arguments: Any) -> dict[str, Any]:
    """What `python -m MODULE NAME JSON` finds, or the last line that it says about why not."""
    command = [sys.executable, "-m", module, name, json.dumps(arguments)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {TIMEOUT_SECONDS} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        return {"error": said[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found

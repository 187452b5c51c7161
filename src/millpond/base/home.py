"""Where a user's programs keep what is theirs on this machine.

It imports nothing but `os`: commands begin with it.
"""

from __future__ import annotations

import os
from os import path


def state_home() -> str:
    """The directory for state, as XDG has it; "~…" if the user has no home.

    >>> state_home().endswith("/millpond")
    True
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    home = base if path.isabs(base) else path.join(path.expanduser("~"), ".local", "state")
    return path.join(home, "millpond")

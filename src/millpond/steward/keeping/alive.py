"""The scopes of this process that somebody still holds: maintenance leaves them what they read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from millpond.steward.scope import Scope

_SCOPES: WeakSet[Scope] = WeakSet()
_LOCK = threading.Lock()


def note(scope: Scope) -> None:
    """A scope was made."""
    with _LOCK:
        _SCOPES.add(scope)


def scopes_of(location: str) -> list[Scope]:
    """Those of one pond, whichever `Pond` made them."""
    with _LOCK:
        return [scope for scope in _SCOPES if scope.pond.location == location]

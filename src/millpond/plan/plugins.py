"""What plugins bring to plans, by name: engines, row filters, stateful functions.

The built-in ones are entry points of this package, found the same way as everybody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millpond.base.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.executor import Executor

ENGINES: Final[Registry[Callable[[], Executor]]] = Registry(group="millpond.engines")
ROW_FILTERS: Final[Registry[Callable[..., Any]]] = Registry(group="millpond.row_filters")
STATEFUL_FUNCTIONS: Final[Registry[Callable[..., Any]]] = Registry(
    group="millpond.stateful_functions"
)

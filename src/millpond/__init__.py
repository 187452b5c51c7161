"""Millpond: a query-native, versioned filesystem on Delta Lake whose pipeline runs on Spark.

What stands here is the public API; each name is imported when it is first used, so that
`import millpond` costs next to nothing. Begin with `scan` or `values`:

>>> import millpond as mp
>>> rows = mp.values([{"site": "a", "level": 2}, {"site": "b", "level": 5}])
>>> rows.filter(mp.col("level") > 3).to_pylist(engine="arrow")
[{'site': 'b', 'level': 5}]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from millpond.base import errors
    from millpond.base.settings import Settings
    from millpond.engine.arrow.infer import scan
    from millpond.kernel.table import delta_table
    from millpond.plan import aggregates as agg
    from millpond.plan import types
    from millpond.plan.counters import collect_stats, reset_stats, stats
    from millpond.plan.expr import col, element, from_epoch_micros, if_else, lit, path
    from millpond.plan.make import list_files, sql, stored, values
    from millpond.plan.node import Plan
    from millpond.plan.sources import CsvOptions
    from millpond.steward.handle import Handle
    from millpond.steward.pond import Pond
    from millpond.steward.pond import create_pond as create
    from millpond.steward.pond import open_pond as open  # noqa: A004 - millpond.open(...)
    from millpond.steward.read import ReadScope
    from millpond.steward.write import WriteScope

_HOMES = {
    "CsvOptions": "millpond.plan.sources",
    "Handle": "millpond.steward.handle",
    "Plan": "millpond.plan.node",
    "Pond": "millpond.steward.pond",
    "ReadScope": "millpond.steward.read",
    "Settings": "millpond.base.settings",
    "WriteScope": "millpond.steward.write",
    "agg": "millpond.plan.aggregates:",
    "col": "millpond.plan.expr",
    "collect_stats": "millpond.plan.counters",
    "create": "millpond.steward.pond:create_pond",
    "delta_table": "millpond.kernel.table",
    "element": "millpond.plan.expr",
    "errors": "millpond.base.errors:",
    "from_epoch_micros": "millpond.plan.expr",
    "if_else": "millpond.plan.expr",
    "list_files": "millpond.plan.make",
    "lit": "millpond.plan.expr",
    "open": "millpond.steward.pond:open_pond",
    "path": "millpond.plan.expr",
    "reset_stats": "millpond.plan.counters",
    "scan": "millpond.engine.arrow.infer",
    "sql": "millpond.plan.make",
    "stats": "millpond.plan.counters",
    "stored": "millpond.plan.make",
    "types": "millpond.plan.types:",
    "values": "millpond.plan.make",
}
"""Where each public name lives: `module:name`, or the same name, or with `:` the module itself."""

__all__ = [
    "CsvOptions",
    "Handle",
    "Plan",
    "Pond",
    "ReadScope",
    "Settings",
    "WriteScope",
    "agg",
    "col",
    "collect_stats",
    "create",
    "delta_table",
    "element",
    "errors",
    "from_epoch_micros",
    "if_else",
    "list_files",
    "lit",
    "open",
    "path",
    "reset_stats",
    "scan",
    "sql",
    "stats",
    "stored",
    "types",
    "values",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    where, colon, other = home.partition(":")
    module = import_module(where)
    found = module if colon and not other else getattr(module, other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The Arrow engine: plans run in this process, on pyarrow and numpy, streaming and bounded.

- `engine`: `ArrowEngine`, the front; `execution`: a run; `operator`: what every step is
- `compile`: from a plan to operators; `source/`: files; `eval/`: expressions
- the operators: `rows`, `join`, `aggregate`, `sort`, `topk`, `positions`, `sample`, `stateful`
- `infer`: `scan(paths)`, a plan over files whose schema is read from them

Nothing here imports pyarrow before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.engine.arrow.engine import ArrowEngine
    from millpond.engine.arrow.infer import scan

__all__ = ["ArrowEngine", "scan"]


def __getattr__(name: str) -> Any:
    if name == "ArrowEngine":
        from millpond.engine.arrow.engine import ArrowEngine

        return ArrowEngine
    if name == "scan":
        from millpond.engine.arrow.infer import scan

        return scan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

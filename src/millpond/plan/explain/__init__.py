"""What a plan does and costs, as text or JSON: `explain` reads nothing, `explain_analyze` runs.

Where to look: `describe.py` gathers the facts, `layout.py` draws plans, `decode.py` and `notes.py`
find what a scan reads and what order costs, `analyze.py` runs and compares.

The JSON form has these keys, each there when it was asked for:

    logical, optimized   [{"id", "kind", "inputs": [ids], "label", "estimate"?}, …], children first
    steps                [{"rule", "plan": [nodes as above]}, …]
    decode               [{"node", "kind", "source", "columns": [leaf paths], "of", "prunes_by"}, …]
    order                [{"node", "kind", "note"}, …]
    engine               {"name", "reason"}
    physical             the engine's own text

An estimate is {"rows", "bytes_read", "files", "row_groups", "cpu_per_row", "cost", "total_cost"};
costs are microseconds of one core, and null is unknown.
"""

from __future__ import annotations

from millpond.plan.explain.analyze import explain_analyze
from millpond.plan.explain.describe import explain
from millpond.plan.explain.report import AnalyzeReport, NodeReport

__all__ = ["AnalyzeReport", "NodeReport", "explain", "explain_analyze"]

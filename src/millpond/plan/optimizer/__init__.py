"""The optimizer: rules that are plain functions `Plan -> Plan`, one file each, run to a fixpoint.

Where to look: `driver.py` runs them, `raising.py` and `sharing.py` say what a rule may not do.
What every rule keeps: the schema, the rows and their order. A plan may fail less often than
before (a column nobody needs is not computed), never more often.
"""

from __future__ import annotations

from millpond.plan.optimizer.driver import RULES, Rule, Step, optimize, optimize_steps

__all__ = ["RULES", "Rule", "Step", "optimize", "optimize_steps"]

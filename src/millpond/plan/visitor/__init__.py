"""Visitors: how an engine that shares no classes with us reads a plan, one call a node.

The calls carry plain data and *list ids*, nothing else, so that the same calls cross a C ABI. An
engine makes a list when it is asked to and answers with an id of its own choice; every visit puts
one thing at the end of the list `sibling_list_id`. Children come first: when a node is visited,
the list `child_list_id` already holds what it is made of.

    root = visitor.make_plan_list(1)
        child = visitor.make_plan_list(1)
            visitor.visit_values(child, schema, table)
        visitor.visit_head(root, schema, 10, child)

**Shared nodes.** A plan is a DAG, and a diamond on a diamond on a diamond has exponentially many
paths. So a node with several parents is visited once, into a list of its own, and each parent's
list then gets it by `visit_shared(sibling_list_id, shared_list_id)`: the one thing that stands in
`shared_list_id`, once more. Expressions do the same; their leaves are simply visited again.

**What an engine does not know** it need not implement: every method refuses by default with an
error that names the engine and the node. So new kinds do not break old engines.

`tests/engine/tiny` is an engine that is written against this package alone.
"""

from millpond.plan.visitor.expression import ExpressionVisitor
from millpond.plan.visitor.plan import PlanVisitor
from millpond.plan.visitor.schema import SchemaVisitor, visit_schema, visit_type
from millpond.plan.visitor.walk_expression import visit_expression
from millpond.plan.visitor.walk_plan import visit_plan

__all__ = [
    "ExpressionVisitor",
    "PlanVisitor",
    "SchemaVisitor",
    "visit_expression",
    "visit_plan",
    "visit_schema",
    "visit_type",
]

"""Which parts of nested columns expressions touch, and the expressions made to fit just those.

>>> from millpond.plan.bind import bind
>>> from millpond.plan.expr import path
>>> from millpond.plan.types import LONG, STRING, List
>>> commit = Struct.of(message=STRING, author=STRING)
>>> schema = Struct.of(id=LONG, repo=Struct.of(stars=LONG, name=STRING), commits=List(commit))
>>> any_fix = path("commits").any(path("message").contains("fix"))
>>> print(narrow([bind((path("repo.stars") > 1) & any_fix, schema)], schema)[1])
struct<repo: struct<stars: long>, commits: list<struct<message: string>>>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.optimizer.needs import Need, narrowed, need_expression
from millpond.plan.optimizer.retype import retype
from millpond.plan.stored_fields import logical
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.plan.bound import BoundExpr


def narrow(exprs: Iterable[BoundExpr], schema: Struct) -> tuple[tuple[BoundExpr, ...], Struct]:
    """The expressions over the columns, pruned to the members that they look at, and those.

    Only the columns say under which names files hold them; the types of expressions do not.
    """
    given = tuple(exprs)
    need = Need()
    for expr in given:
        need_expression(need, expr, schema)
    columns = narrowed(schema, need) if need.members else Struct()
    return tuple(retype(expr, logical(columns)) for expr in given), columns

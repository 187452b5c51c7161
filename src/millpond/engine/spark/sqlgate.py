"""The gate in front of Spark's SQL: a query may compute with its inputs, and nothing else.

Spark can run programs, read any file and call any Java method within a SELECT. So the plan that
Spark itself makes of the text is judged before anything of it runs: which kinds of plans, relations
and functions it has, by lists of what is allowed. It is judged twice: as parsed, since analysis
already looks into files and runs scripts, and as analysed, when each name is what it stands for.

A Connect server shows no plans. There the text is judged, and has to be so plain that Spark and our
parser can't read it differently: without comments and backslashes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from millpond.base.errors import SqlError
from millpond.plan.sqlfunctions import SQL_FUNCTIONS, WITHHELD
from millpond.plan.sqltables import check_inputs
from millpond.plan.sqltext import parse_sql, position, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from millpond.plan.streams import SqlAllow

_PLANS: Final = """
plans.logical.Aggregate plans.logical.CTERelationDef plans.logical.CTERelationRef
plans.logical.Deduplicate plans.logical.Distinct plans.logical.Except plans.logical.Expand
plans.logical.Filter plans.logical.Generate plans.logical.GlobalLimit plans.logical.Intersect
plans.logical.Join plans.logical.LateralJoin plans.logical.LocalLimit plans.logical.LocalRelation
plans.logical.Offset plans.logical.OneRowRelation plans.logical.Pivot plans.logical.Project
plans.logical.Range plans.logical.RebalancePartitions plans.logical.Repartition
plans.logical.RepartitionByExpression plans.logical.ResolvedHint plans.logical.Sample
plans.logical.Sort plans.logical.SubqueryAlias plans.logical.Tail plans.logical.Union
plans.logical.UnionLoop plans.logical.UnionLoopRef plans.logical.Unpivot
plans.logical.UnresolvedHint plans.logical.UnresolvedWith plans.logical.Window
plans.logical.WithCTE plans.logical.WithWindowDefinition
analysis.ResolvedInlineTable analysis.UnresolvedHaving analysis.UnresolvedInlineTable
analysis.UnresolvedQualify analysis.UnresolvedRelation analysis.UnresolvedSubqueryColumnAliases
analysis.UnresolvedTVFAliases analysis.UnresolvedTableValuedFunction expressions.PipeOperator
"""
"""Kinds of plans that only compute, as parsed and as analysed; views are looked at by name."""
_EXPRESSIONS: Final = """
expressions.ApplyFunctionExpression expressions.PythonUDTF expressions.SQLFunctionExpression
expressions.UnresolvedPolymorphicPythonUDTF expressions.VariableReference
expressions.aggregate.V2Aggregator
"""
"""Kinds of expressions that call what a catalog or a session has of its own."""
_NOT_PLAIN: Final = ("--", "/*", "\\", "{#", "{{", "{%")
_BEFORE_PARENTHESES: Final = frozenset(("sets", "rollup", "cube", "group", "columns", "over"))
_SHOWN: Final = {
    "ScriptTransformation": "TRANSFORM … USING, which runs a program",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "CompoundBody": "BEGIN … END",
    "RelationTimeTravel": "VERSION AS OF",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "variablereference": "a variable of the session",
    "IDENTIFIER": "IDENTIFIER(…)",
}
_SOURCE: Final = "SqlGate.java"
_SESSION_HINT: Final = "in a session of your own, the setting sql.allow = session allows it"
_gates: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def judged(text: str, names: Iterable[str], session: SparkSession, allow: SqlAllow) -> DataFrame:
    """Return the rows of a query over these temporary views; an error if it has more than that."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    own: Any = session
    made = _gate(own).rows(own._jsparkSession, text, "\0".join(names), allow == "session")  # noqa: SLF001
    if isinstance(made, str):
        kind, name, line, column = made.split("\0")
        raise _refused(kind, name, int(line), int(column), names=names)
    return Classic(made, own)


def _gate(session: Any) -> Any:
    """The gate of a session's JVM, compiled once."""
    gateway = session.sparkContext._gateway  # noqa: SLF001
    gate = _gates.get(gateway)
    if gate is None:
        from importlib.resources import files

        jvm = session._jvm  # noqa: SLF001
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(files("millpond.engine.spark").joinpath(_SOURCE).read_text("utf-8"))
        kind = compiler.getClassLoader().loadClass("SqlGate")
        given = [
            " ".join(sorted(SQL_FUNCTIONS)),
            *(" ".join(t.split()) for t in (_PLANS, _EXPRESSIONS)),
        ]
        texts = gateway.new_array(jvm.java.lang.Object, len(given))
        for number, each in enumerate(given):
            texts[number] = each
        gate = _gates[gateway] = kind.getConstructors()[0].newInstance(texts)
    return gate


@lru_cache(maxsize=256)
def check_text(text: str, names: tuple[str, ...]) -> None:
    """Raise unless a text alone shows that a query has its inputs and functions that compute.

    >>> check_text("SELECT upper(site) FROM s", ("s",))
    >>> check_text("SELECT nopreview(site) FROM s", ("s",))
    Traceback (most recent call last):
    ...
    millpond.base.errors.SqlError: nopreview is not a function that a query may call ...
    """
    from sqlglot import TokenType, exp

    for mark in _NOT_PLAIN:
        if mark in text:
            raise _refused("mark", mark, *position(text, text.index(mark)))
    check_inputs(text, names)
    parsed = parse_sql(text)
    aliases = {
        alias.this.meta.get("start") for alias in parsed.find_all(exp.TableAlias) if alias.this
    }
    words = [None, *tokens(text), None]
    for (before, word), (_, following) in pairwise(pairwise(words)):
        name = word.text.lower()
        where = position(text, word.start)
        is_name = word.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        next_type = None if following is None else following.token_type
        if next_type is TokenType.L_PAREN and word.start not in aliases:
            is_known = name in SQL_FUNCTIONS or name in _BEFORE_PARENTHESES or not is_name
            is_qualified = before is not None and before.token_type is TokenType.DOT
            if name in WITHHELD or not is_known or is_qualified:
                raise _refused("function", word.text, *where)
        if name in ("current_user", "session_user") and word.token_type != TokenType.IDENTIFIER:
            raise _refused("function", word.text, *where)
        if name == "using" and next_type is TokenType.STRING:
            raise _refused("plan", "ScriptTransformation", *where)


def _refused(
    kind: str, name: str, line: int, column: int, *, names: Iterable[str] = ()
) -> SqlError:
    name = _SHOWN.get(name, name)
    found = {
        "mark": (
            f"{name} can't be in a query over Spark Connect",
            "write it without comments and backslashes",
        ),
        "relation": (
            f"{name} is not an input of this query",
            f"a query reads its inputs alone: {', '.join(sorted(names)) or 'it has none'}",
        ),
        "function": (
            f"{name} is not a function that a query may call",
            "functions that compute with values are allowed: see docs/trust.md",
        ),
        "command": (
            f"{name} is a command",
            "a query only reads: SELECT …, WITH … SELECT …, VALUES …",
        ),
    }.get(kind, (f"a query may not have {name}", "a query computes with its inputs, and no more"))
    hint = found[1] if kind == "command" else f"{found[1]}; {_SESSION_HINT}"
    return SqlError(
        f"{found[0]} (line {line}, column {column})",
        line=line,
        column=column,
        hint=hint,
    )

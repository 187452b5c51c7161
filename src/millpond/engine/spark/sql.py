"""Sql: the query text as it stands, over inputs that Spark sees as temporary views.

The text is not rewritten, so that positions in Spark's errors are positions in the user's text.
Views have the inputs' own names and exist only while Spark analyses the query.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError, SqlError
from millpond.engine.spark.api import Api, is_classic, quoted
from millpond.engine.spark.expressions.casts import cast
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.sqlgate import check_text, judged
from millpond.engine.spark.types import all_nullable, from_spark, to_spark_schema
from millpond.plan.types import Field, Struct, common_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from millpond.engine.spark.context import Context
    from millpond.plan.streams import Sql, SqlAllow

_VIEWS: Final = threading.RLock()


def compile_sql(node: Sql, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """The query's rows, in the order that its own ORDER BY gives them."""
    del ordered
    views = {name: frame.visible(context) for name, frame in zip(node.names, inputs, strict=True)}
    df = query(node.text, views, context.session, node.allow)
    return Frame(_as_declared(df, node, context.api), node.schema, natural=True)


def sql_schema(
    text: str, inputs: Mapping[str, Struct], allow: SqlAllow, session: SparkSession
) -> Struct:
    """The columns of a query over inputs of these schemas; no data is read."""
    views = {
        name: session.createDataFrame([], to_spark_schema(schema))
        for name, schema in inputs.items()
    }
    found = query(text, views, session, allow).schema
    return Struct(tuple(_declared(field.name, field.dataType) for field in found.fields))


def _declared(name: str, type_: Any) -> Field:
    try:
        return Field(name, from_spark(type_))
    except SchemaError as error:
        raise SchemaError(f"the column {name!r}: {error.message}", hint=error.hint) from None


def query(
    text: str, views: Mapping[str, DataFrame], session: SparkSession, allow: SqlAllow = "inputs"
) -> DataFrame:
    """Return the text analysed over these views; an error if it uses more than it may."""
    if is_classic(session):
        with _VIEWS, _temporary_views(views, session):
            return judged(text, views, session, allow)
    if allow == "inputs":
        check_text(text, tuple(views))
    return _remote_query(text, views, session)


@contextlib.contextmanager
def _temporary_views(views: Mapping[str, DataFrame], session: SparkSession) -> Iterator[None]:
    """The views while the block runs; views of the same names that were there come back."""
    made: list[str] = []
    hidden: dict[str, DataFrame] = {}
    try:
        for name, df in views.items():
            if _is_temporary_view(name, session):
                hidden[name] = session.table(quoted(name))
            made.append(name)
            df.createOrReplaceTempView(quoted(name))
        yield
    finally:
        for name in made:
            session.catalog.dropTempView(name)
        for name, df in hidden.items():
            df.createOrReplaceTempView(quoted(name))


def _is_temporary_view(name: str, session: SparkSession) -> bool:
    """Whether there is one: a table of the catalog is seen again as soon as our view is gone."""
    catalog = session.catalog
    if not catalog.tableExists(quoted(name)):
        return False
    return catalog.getTable(quoted(name)).isTemporary


def _remote_query(text: str, views: Mapping[str, Any], session: Any) -> DataFrame:
    """A Connect server analyses late: the views go along with the query."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    aliases = [SubqueryAlias(df._plan, name) for name, df in views.items()]  # noqa: SLF001
    made: Any = ConnectDataFrame(SQL(text, [], {}, aliases), session)
    return made  # type: ignore[no-any-return]


def _as_declared(df: DataFrame, node: Sql, api: Api) -> DataFrame:
    """The result with the declared types: wider ones are cast to, others are refused."""
    names = tuple(df.columns)
    if names != node.schema.names:
        raise SqlError(
            f"the query gives the columns {', '.join(names)}, "
            f"declared are {', '.join(node.schema.names)}",
            hint="name the columns in the query, or declare what it gives",
        )
    columns: list[Column] = []
    is_exact = True
    for field, found in zip(node.schema, df.schema.fields, strict=True):
        made = _declared(found.name, found.dataType).type
        column = api.column(field.name)
        if all_nullable(made) != all_nullable(field.type):
            if common_type(made, field.type) != field.type:
                raise SqlError(
                    f"the query gives {field.name!r} as {made}, declared is {field.type}",
                    hint="cast it in the query, or declare what it gives",
                )
            is_exact = False
            column = cast(column, made, field.type, on_error="error", api=api).alias(field.name)
        columns.append(column)
    return df if is_exact else df.select(*columns)

"""Constants of files as Spark's own partition columns, which cost nothing and prune files.

Spark knows partitions by directory. What a directory is called means nothing here; but where all
files of each directory have the same constants, as in tables that were written in partitions, a
directory can stand for them. Spark has no public way to say so: its own file index is made through
the gateway of a classic session (Spark is pinned to one minor version).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import SourceError
from millpond.engine.spark.api import is_classic
from millpond.engine.spark.types import to_spark_schema
from millpond.plan.arrow import to_arrow
from millpond.plan.literals import literal
from millpond.plan.types import NULL, Decimal, Field, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql import types as st

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.files import SourceFile

_BETWEEN = "\x00"
"""Stands in no path, so that one text takes many paths to the JVM."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """Hidden columns for constants, and their values by directory."""

    columns: Struct
    values: dict[str, tuple[Any, ...]]


def partitions_of(
    files: Sequence[SourceFile], constants: Sequence[Field], context: Context
) -> Partitions | None:
    """The constants by directory; None where that can't be."""
    plain = all(isinstance(f.type, Primitive | Decimal) and f.type != NULL for f in constants)
    if not constants or not plain or not is_classic(context.session):
        return None
    if len({file.path for file in files}) < len(files):
        return None  # Spark would read a file once that is named twice
    found: dict[str, tuple[Any, ...]] = {}
    for file in files:
        known = found.setdefault(_directory(file.path), file.constants)
        if known is not file.constants and repr(known) != repr(file.constants):
            return None
    columns = Struct(tuple(Field(context.hidden(), field.type) for field in constants))
    return Partitions(columns, found)


def read_partitioned(
    schema: st.StructType, paths: list[str], partitions: Partitions, context: Context
) -> DataFrame:
    """The rows of Parquet files, with the hidden columns of their directories."""
    from pyspark.sql import DataFrame

    session: Any = context.session
    jvm, java_session = session._jvm, session._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    option, no_options = jvm.scala.Option, jvm.scala.collection.immutable.HashMap()
    data = _java_type(schema, jvm).asNullable()
    columns = _java_type(to_spark_schema(partitions.columns), jvm)
    directories = list(dict.fromkeys(map(_directory, paths)))
    rows = _rows([partitions.values[name] for name in directories], partitions.columns, context)
    places = _paths(directories, context)
    members = [sources.PartitionPath(row, path) for row, path in zip(rows, places, strict=True)]
    spec = sources.PartitionSpec(columns, jvm.PythonUtils.toSeq(members))
    # Each file by itself, so that nothing else in its directory is read.
    roots = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(_paths(paths, context))
    no_cache = getattr(getattr(sources, "NoopCache$"), "MODULE$")
    index = sources.InMemoryFileIndex(
        *(java_session, roots, no_options, option.apply(data), no_cache),
        *(option.apply(spec), option.empty()),
    )
    _check_found(index, paths, jvm)
    format_ = sources.parquet.ParquetFileFormat()
    relation = sources.HadoopFsRelation(
        index, columns, data, option.empty(), format_, no_options, java_session
    )
    return DataFrame(java_session.baseRelationToDataFrame(relation), session)


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _java_type(type_: st.StructType, jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(type_.json())


def _paths(names: list[str], context: Context) -> Any:
    """Hadoop's paths, as its file systems spell them."""
    session: Any = context.session
    jvm, conf = session._jvm, session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    text = jvm.org.apache.hadoop.util.StringUtils
    made = text.stringToPath(text.getStrings(_BETWEEN.join(names), _BETWEEN))
    if any(not name.startswith("file:/") for name in names):
        for number, path in enumerate(made):
            made[number] = path.getFileSystem(conf).makeQualified(path)
    return made


def _rows(values: list[tuple[Any, ...]], columns: Struct, context: Context) -> Any:
    """Spark's internal rows of these values; a small local table, so no job runs."""
    import pyarrow as pa

    arrays = [
        pa.array([literal(row[at], field.type).value for row in values], to_arrow(field.type))
        for at, field in enumerate(columns)
    ]
    table = pa.Table.from_arrays(arrays, names=list(columns.names))
    df: Any = context.session.createDataFrame(table, to_spark_schema(columns))
    return df._jdf.queryExecution().executedPlan().executeCollect()  # noqa: SLF001


def _check_found(index: Any, paths: list[str], jvm: Any) -> None:
    """No file may vanish: because it is not there, or a directory is spelled in two ways."""
    nothing = jvm.PythonUtils.toSeq([])
    found = index.listFiles(nothing, nothing)
    members = [found.apply(number).files() for number in range(found.size())]
    if sum(files.size() for files in members) == len(paths):
        return
    listed = {str(files.apply(n).getPath()) for files in members for n in range(files.size())}
    lost = next((path for path in paths if path not in listed), paths[0])
    raise SourceError(
        f"Spark does not find {lost.removeprefix('file:')}",
        engine="spark",
        path=lost.removeprefix("file:"),
        missing=True,
        hint="the file is gone or was never there, or it is empty",
    )

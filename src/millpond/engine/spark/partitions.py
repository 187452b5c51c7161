"""Constants of files as Spark's own partition columns, which cost nothing and prune files.

Spark knows partitions by directory. What a directory is called means nothing here; but where all
files of each directory have the same constants, as in tables that were written in partitions, a
directory can stand for them. Otherwise each file is made a partition of its own. Spark has no
public way to say either: its own file index is made, and for files changed, through the gateway of
a classic session (Spark is pinned to one minor version).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import SourceError
from millpond.engine.spark.api import is_classic
from millpond.engine.spark.types import to_spark_schema
from millpond.engine.spark.verify import OPTION
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
_IDENTITY = "millpond.files"


@dataclass(frozen=True, slots=True)
class Partitions:
    """Hidden columns, and their values by directory or by file."""

    columns: Struct
    values: dict[str, tuple[Any, ...]]
    by_file: bool = False

    def identity(self, places: Sequence[str]) -> str:
        """What tells scans apart: to Spark, those of the same files and columns are the same."""
        known = repr([(place, self.values[place]) for place in places])
        return hashlib.sha256(known.encode()).hexdigest()

    def places(self, paths: Sequence[str]) -> list[str]:
        """The partitions that these files are in."""
        return list(paths) if self.by_file else list(dict.fromkeys(map(_directory, paths)))


def partitions_of(
    files: Sequence[SourceFile], constants: Sequence[Field], context: Context
) -> Partitions | None:
    """The constants by directory; None where that can't be."""
    if not constants or not can_be_partitions(files, constants, context):
        return None
    found: dict[str, tuple[Any, ...]] = {}
    for file in files:
        known = found.setdefault(_directory(file.path), file.constants)
        if known is not file.constants and repr(known) != repr(file.constants):
            return None
    columns = Struct(tuple(Field(context.hidden(), field.type) for field in constants))
    return Partitions(columns, found)


def can_be_partitions(
    files: Sequence[SourceFile], columns: Sequence[Field], context: Context
) -> bool:
    """Whether Spark's partitions can have such columns, and these files can be told apart."""
    plain = all(isinstance(f.type, Primitive | Decimal) and f.type != NULL for f in columns)
    # Spark would read a file once that is named twice.
    is_named_twice = len({file.path for file in files}) < len(files)
    return plain and not is_named_twice and is_classic(context.session)


def read_partitioned(
    schema: st.StructType, paths: list[str], partitions: Partitions, context: Context
) -> DataFrame:
    """The rows of Parquet files, with the hidden columns of their partitions."""
    from pyspark.sql import DataFrame

    session: Any = context.session
    jvm, java_session = session._jvm, session._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    data = _java_type(schema, jvm).asNullable()
    columns = _java_type(to_spark_schema(partitions.columns), jvm)
    names = partitions.places(paths)
    rows = _rows([partitions.values[name] for name in names], partitions.columns, context)
    places = _paths(names, context)
    members = [sources.PartitionPath(row, path) for row, path in zip(rows, places, strict=True)]
    spec = sources.PartitionSpec(columns, jvm.PythonUtils.toSeq(members))
    files = places if partitions.by_file else _paths(paths, context)
    # Each file by itself, so that nothing else in its directory is read.
    index = _index(files, data, spec, context)
    if partitions.by_file:
        index = _keyed_by_file(index, data, spec, context)
    _check_found(index, paths, jvm)
    format_ = sources.parquet.ParquetFileFormat()
    options = {
        _IDENTITY: partitions.identity(names),
        OPTION: "false" if context.verify == "none" else "true",
    }
    known = jvm.PythonUtils.toScalaMap(options)
    relation = sources.HadoopFsRelation(
        index, columns, data, jvm.scala.Option.empty(), format_, known, java_session
    )
    return DataFrame(java_session.baseRelationToDataFrame(relation), session)


def _index(files: Any, data: Any, spec: Any, context: Context) -> Any:
    """Spark's index of some files, which lists them."""
    session: Any = context.session
    jvm = session._jvm  # noqa: SLF001
    sources, option = jvm.org.apache.spark.sql.execution.datasources, jvm.scala.Option
    roots = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(files)
    return sources.InMemoryFileIndex(
        *(session._jsparkSession, roots, jvm.scala.collection.immutable.HashMap()),  # noqa: SLF001
        *(option.apply(data), _scala_object(sources, "NoopCache$"), option.apply(spec)),
        option.empty(),
    )


def _keyed_by_file(listed: Any, data: Any, spec: Any, context: Context) -> Any:
    """An index of the same files that finds them by their own paths, not by their directories.

    Listing them anew would undo that. Spark does it when it is told that something has changed
    where an index has its roots, so this one has none; and whoever asks for it by the name of a
    view gets an error, not a table without rows.
    """
    session: Any = context.session
    jvm = session._jvm  # noqa: SLF001
    nothing = session._sc._gateway.new_array(jvm.org.apache.hadoop.fs.Path, 0)  # noqa: SLF001
    index = _index(nothing, data, spec, context)
    class_ = index.getClass()
    known, by_directory, cache = (
        class_.getDeclaredField(name)
        for name in ("cachedLeafFiles", "cachedLeafDirToChildrenFiles", "fileStatusCache")
    )
    for field in (known, by_directory, cache):
        field.setAccessible(True)
    found = known.get(listed)
    status = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
    statuses = found.valuesIterator().toArray(jvm.scala.reflect.ClassTag.apply(status))
    alone = getattr(_scala_object(jvm.scala.collection, "ArrayOps$"), "grouped$extension")
    pairs = found.keysIterator().zip(alone(statuses, 1))
    known.set(index, found)
    by_directory.set(index, pairs.toMap(_scala_object(jvm.scala, "$less$colon$less$").refl()))
    cache.set(index, None)
    return index


def _scala_object(package: Any, name: str) -> Any:
    return getattr(getattr(package, name), "MODULE$")


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

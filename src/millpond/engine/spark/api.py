"""The parts of PySpark's API that differ between a classic session and a Connect one.

PySpark chooses by an environment variable; a process may hold both kinds, so we choose by session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.engine.spark.conf import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession


_FUNCTIONS: Final = "org.apache.spark.sql.functions"


@dataclass(frozen=True, slots=True)
class Api:
    """A session, the `functions` module and the `Window` class that go with it."""

    session: SparkSession
    functions: Any
    window: Any

    @classmethod
    def of(cls, session: SparkSession) -> Api:
        """The API for this session."""
        if is_classic(session):
            from pyspark.sql import Window
            from pyspark.sql import functions as classic

            _remember_functions(session)
            return cls(session, classic, Window)
        from pyspark.sql.connect import functions as connect
        from pyspark.sql.connect.window import Window as ConnectWindow

        return cls(session, connect, ConnectWindow)

    def column(self, name: str) -> Column:
        """The column of this name, whatever characters the name has."""
        found: Column = self.functions.col(quoted(name))
        return found

    def window_by(self, keys: Sequence[Column]) -> Any:
        """A window over the rows that share these keys; over all rows when there are none."""
        if not keys and not is_classic(self.session):
            # Connect's client has a Python warning for that, so it gets a key that all rows share.
            keys = [self.functions.lit(1)]
        return self.window.partitionBy(*keys)


class _Functions:
    """Spark's class of functions, each of which the JVM is asked for once."""

    def __init__(self, known: Any) -> None:
        self._known = known

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._known, name)
        return found


def _remember_functions(session: Any) -> None:
    """Let PySpark find a function without asking the JVM what it is.

    It asks twice before each call, for the class and for the function: of a filter's calls, every
    third. Where PySpark looks first, before it asks, the answers are kept.
    """
    view = session.sparkContext._jvm  # noqa: SLF001 - no public way makes PySpark ask less
    if _FUNCTIONS not in vars(view):
        setattr(view, _FUNCTIONS, _Functions(getattr(view, _FUNCTIONS)))


def in_session(df: DataFrame, session: SparkSession) -> DataFrame:
    """A DataFrame of a session on the same Spark as one of another, in which it is used.

    What it means was settled in its own session: how files are read, and zones of casts.
    """
    if df.sparkSession is session or not is_classic(session):
        return df
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    own: Any = session
    jvm, plan = own._jvm, df._jdf.queryExecution().analyzed()  # noqa: SLF001
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own._jsparkSession, plan)  # noqa: SLF001
    return Classic(made, own)


def is_classic(session: SparkSession) -> bool:
    """Whether the session is in this process's own JVM, not behind a Connect server."""
    return hasattr(session, "_jsparkSession")


def is_single_node(session: SparkSession) -> bool:
    """Whether all tasks run in one JVM, so that a shuffle is read in the order of its writers."""
    if not is_classic(session):
        return False
    master = session.sparkContext.master or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def is_single_machine(session: SparkSession) -> bool:
    """Whether all tasks see the files of this machine."""
    return is_classic(session) and is_local(session.sparkContext.master or "")


def quoted(name: str) -> str:
    """A name as Spark's own text for it.

    >>> quoted("Site.Temp"), quoted("a`b")
    ('`Site.Temp`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def balanced(items: Sequence[Column], join: Callable[[Column, Column], Column]) -> Column:
    """All items joined in order by a tree of little depth: Spark walks expressions recursively."""
    level = list(items)
    while len(level) > 1:
        pairs = [join(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]

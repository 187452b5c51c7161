"""What Spark would run on here, told without starting it: for `pond engine status`."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from millpond.base.errors import EngineUnavailableError
from millpond.engine.spark.conf import is_connect, master_url
from millpond.engine.spark.java import find_java

if TYPE_CHECKING:
    from millpond.base.settings import Settings


def describe_runtime(settings: Settings | None = None) -> str:
    """PySpark's version, the master, and Java where it is needed; an error if it can't run."""
    from millpond.base.settings import Settings

    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise EngineUnavailableError(
            "pyspark is not installed", engine="spark", hint="pip install 'millpond[spark]'"
        ) from None
    master = master_url((settings or Settings.load()).spark)
    if is_connect(master):
        # What follows the address may hold a token.
        return f"pyspark {version}, {master.partition('/;')[0]}"
    return f"pyspark {version} on Java {find_java().version}, {master}"

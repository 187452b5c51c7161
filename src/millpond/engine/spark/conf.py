"""The Spark settings that Millpond sets, and why; pure functions that start nothing.

Four groups: `SEMANTICS` (a result depends on them, so nobody may change them), `RUNTIME` (each
session gets them, also over Spark Connect and in an adopted session), what only a Spark that we
start gets (`started_conf`), and what is sized to the machine. `settings.spark.conf` wins over all
but the first group. `session.py` applies them.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from millpond.base.errors import ConfigError
from millpond.base.machine import cores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.settings import SparkSettings

SEMANTICS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        # Columns of Parquet files are found by field id where a schema has ids (`stored.py`).
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
        # Otherwise a union may deal its inputs' partitions out in turns, and their order is lost.
        "spark.sql.unionOutputPartitioning": "false",
        # ${env:NAME} and ${system:NAME} would become part of a query before it is parsed.
        "spark.sql.variable.substitute": "false",
    }
)
"""Answers depend on these, so they are the same in every session."""

RUNTIME: Mapping[str, str] = MappingProxyType(
    {
        # Spark's default is INT96, which has no statistics and which Delta does not use.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Old dates are what they say: no shift between calendars, and no error about one.
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        # Files are listed by the driver: a job per listing was measured five times slower.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "true",
        "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "parquet,orc",
        # Coalescing joins neighbours only, so that the order of a sorted result stays.
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A batch is a Python worker's unit of memory; wide rows make 10,000 of them large enough.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
    }
)
"""Set in every session; a user's own value wins."""

_STARTED: Mapping[str, str] = MappingProxyType(
    {
        "spark.app.name": "millpond",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        # PySpark would note a line of Python with each column, where we note the expression.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
)
_LOOPBACK = "127.0.0.1"
_MIB = 1 << 20
# Spark's own default (1 GiB) is the least, and half the machine leaves room for Python and Arrow.
_LEAST_MEMORY, _MOST_MEMORY = 1024 * _MIB, 32 * 1024 * _MIB
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def is_connect(master: str) -> bool:
    """Whether the address is a Spark Connect server's."""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine alone.

    >>> [is_local(m) for m in ("local[2]", "local-cluster[2,1,1024]", "spark://host:7077")]
    [True, True, False]
    """
    return master.startswith("local")


def master_url(settings: SparkSettings) -> str:
    """The configured master, or a local one that uses every core this process may use."""
    return settings.master or f"local[{cores()}]"


def session_conf(settings: SparkSettings) -> dict[str, str]:
    """What each session gets and what can be changed while Spark runs."""
    for name, value in SEMANTICS.items():
        asked = settings.conf.get(name, value)
        if asked.lower() != value.lower():
            raise ConfigError(
                f"{name} must be {value}, not {asked}: answers depend on it",
                setting="spark.conf",
                hint=f"remove {name} from spark.conf",
            )
    conf = dict(RUNTIME)
    if slots := task_slots(master_url(settings)):
        conf["spark.sql.shuffle.partitions"] = str(2 * slots)
    conf |= {k: v for k, v in settings.conf.items() if k.startswith("spark.sql.")}
    return {**conf, **SEMANTICS}


def started_conf(settings: SparkSettings) -> dict[str, str]:
    """Everything a Spark that we start is given, but for the places where it keeps its files."""
    master = master_url(settings)
    conf = {**_STARTED, "spark.master": master}
    if is_local(master):
        # Otherwise the driver listens on the machine's LAN address.
        conf |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        # Other users of this machine reach the ports; without a secret they are not heard. Spark
        # makes one up; where executors are processes of their own, `scratch_conf` does.
        conf["spark.authenticate"] = "true"
        conf["spark.driver.memory"] = f"{driver_memory() // _MIB}m"
    conf |= {**session_conf(settings), **settings.conf}
    if settings.driver_memory is not None:
        conf["spark.driver.memory"] = settings.driver_memory
    is_here = conf.get("spark.driver.bindAddress") == _LOOPBACK
    if conf.get("spark.authenticate") == "true" and not is_here:
        conf.setdefault("spark.network.crypto.enabled", "true")
    return conf | {"spark.master": master}


def scratch_conf(conf: Mapping[str, str], scratch: Path, *, log_level: str) -> dict[str, str]:
    """Keeps whatever Spark writes of its own accord in one directory, and its log in our format."""
    options = (
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
        f"-Dmillpond.spark.log.level={log_level}",
        f"-Dderby.system.home={scratch}",
    )
    places = {"spark.sql.warehouse.dir": (scratch / "warehouse").as_uri()}
    if is_local(conf["spark.master"]):
        places["spark.local.dir"] = str(scratch / "local")
    if conf["spark.master"].startswith("local-cluster"):
        places["spark.authenticate.secret"] = secrets.token_hex(32)
    given = conf.get("spark.driver.extraJavaOptions", "")
    joined = " ".join([*(f'"{option}"' for option in options), given]).rstrip()
    return {**places, **conf, "spark.driver.extraJavaOptions": joined}


def task_slots(master: str) -> int | None:
    """How many tasks a local master runs at once; None when the cluster decides.

    >>> [task_slots(m) for m in ("local", "local[3]", "local[4,2]", "local-cluster[2,3,1024]")]
    [1, 3, 4, 6]
    >>> task_slots("spark://host:7077") is None, task_slots("local[*]") == cores()
    (True, True)
    """
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(found[1]) * int(found[2])
    if found := re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,.*)?\]", master):
        return cores() if found[1] == "*" else int(found[1])
    return 1 if master == "local" else None


def driver_memory() -> int:
    """Bytes for a local Spark's heap: half of what the machine or its cgroup has."""
    return min(max(_machine_memory() // 2, _LEAST_MEMORY), _MOST_MEMORY)


def _machine_memory() -> int:
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _CGROUP_LIMITS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means that there is no limit
            limits.append(int(text))
    return min(limits)

"""Which engine is chosen, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import UnsupportedExpressionError, UnsupportedNodeError
from millpond.base.settings import Settings
from millpond.plan import choose as module
from millpond.plan import run
from millpond.plan.choose import choose
from millpond.plan.executor import Capabilities
from millpond.plan.expr import col
from millpond.plan.functions import FUNCTIONS
from millpond.plan.make import sql, stored, values
from millpond.plan.node import NODES
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from millpond.plan.executor import Execution, Scope
    from millpond.plan.node import Plan
    from millpond.plan.sources import Stored

ALL = Capabilities(frozenset(NODES), frozenset(FUNCTIONS))
SCHEMA = Struct.of(a=LONG, s=STRING)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that can be chosen; choosing never runs anything."""

    name: str
    capabilities: Capabilities = field(default=ALL)

    def execute(self, plan: Plan, scope: Scope | None = None) -> Execution:
        raise AssertionError("choosing does not run a plan")

    execute_parallel = execute

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        raise AssertionError("choosing does not explain a plan")


NO_SQL = Capabilities(frozenset(NODES) - {"Sql", "Window"}, frozenset(FUNCTIONS))
ARROW, SPARK = Engine("arrow", NO_SQL), Engine("spark")


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run._ENGINES, "arrow", ARROW)
    monkeypatch.setitem(run._ENGINES, "spark", SPARK)
    monkeypatch.delenv("MILLPOND_ENGINE", raising=False)
    monkeypatch.setattr(module, "is_spark_running", lambda: False)
    monkeypatch.setattr(module, "_memory", lambda: 16.0 * 2**30)
    monkeypatch.setenv("MILLPOND_SPARK_MASTER", "local[8]")


def scan(rows: int | None, size: int | None = None) -> Plan:
    return Scan("parquet", (File("/data/x.parquet", size, rows),), SCHEMA)


def test_an_instance_is_taken_as_it_is() -> None:
    mine = Engine("mine")
    choice = choose(scan(1), mine)
    assert choice.executor is mine
    assert choice.name == "mine"


def test_a_name_is_taken_as_it_is() -> None:
    choice = choose(scan(1), "spark")
    assert choice.executor is SPARK
    assert choice.reason == "spark: asked for by name"


def test_what_was_asked_for_and_can_not_run_it_is_an_error() -> None:
    query = sql("SELECT a FROM t", schema=Struct.of(a=LONG), t=scan(1))
    with pytest.raises(UnsupportedNodeError, match="the arrow engine does not run Sql"):
        choose(query, "arrow")


def test_the_setting_counts_when_the_call_says_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_ENGINE", "spark")
    assert choose(scan(1)).reason == "spark: the setting `engine` says so"
    assert choose(scan(1), "arrow").name == "arrow"


def test_few_rows_run_on_arrow() -> None:
    choice = choose(scan(1204))
    assert choice.executor is ARROW
    assert choice.reason == "arrow: 1,204 rows estimated, below 50,000,000"


def test_many_rows_run_on_spark() -> None:
    choice = choose(scan(10**9).filter(col("s").like("%x%")))
    assert choice.executor is SPARK
    assert choice.reason.startswith("spark: about ")


def test_many_rows_stay_on_arrow_when_spark_has_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_SPARK_MASTER", "local[1]")
    assert choose(scan(10**9).filter(col("s").like("%x%"))).name == "arrow"


def test_a_limit_over_many_rows_runs_on_arrow() -> None:
    choice = choose(scan(10**9).filter(col("a") > 1).head(10))
    assert choice.name == "arrow"


def test_what_memory_does_not_hold_runs_on_spark() -> None:
    few = scan(10).join(scan(10**9).select(k=col("a"), t=col("s")), on=[("a", "k")])
    assert choose(few).reason == (
        "spark: Join would hold 37.3 GiB, more than the 8.0 GiB allowed here"
    )


def test_only_one_engine_can_run_it() -> None:
    query = sql("SELECT a FROM t", schema=Struct.of(a=LONG), t=scan(1))
    assert choose(query).reason == "spark: Sql runs only there"


def test_no_engine_can_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = Engine("spark", Capabilities(frozenset({"Scan"}), frozenset()))
    monkeypatch.setitem(run._ENGINES, "spark", poor)
    with pytest.raises(UnsupportedNodeError, match="the spark engine does not run Sql"):
        choose(sql("SELECT 1 AS a", schema=Struct.of(a=LONG)))


def test_an_unknown_function_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = Engine("arrow", Capabilities(frozenset(NODES), frozenset(FUNCTIONS) - {"like"}))
    monkeypatch.setitem(run._ENGINES, "arrow", poor)
    plan = scan(1).filter(col("s").like("a%"))
    assert choose(plan).reason == "spark: like runs only there"
    with pytest.raises(UnsupportedExpressionError):
        choose(plan, "arrow")


def test_nothing_is_known() -> None:
    reason = "arrow: nothing is known about /x, and Spark would take seconds to start"
    assert choose(stored("/x", SCHEMA).sort("a")).reason == reason


def test_nothing_is_known_and_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_spark_running", lambda: True)
    assert choose(stored("/x", SCHEMA)).name == "arrow"
    held = choose(stored("/x", SCHEMA).sort("a"))
    assert held.reason == "spark: nothing is known about /x, Sort has to hold it, and Spark runs"


def test_a_scope_says_what_a_stored_path_is() -> None:
    @dataclass
    class Pinned:
        def resolve(self, found: Stored) -> Plan:
            return sql("SELECT a, s FROM t", schema=found.schema, t=scan(1))

    assert choose(stored("/x", SCHEMA), scope=Pinned()).reason == "spark: Sql runs only there"


def test_choosing_does_not_import_spark() -> None:
    code = (
        "import sys\n"
        "from millpond.plan.choose import is_spark_running\n"
        "from millpond.plan.make import values\n"
        "from millpond.plan.optimizer import optimize\n"
        "plan = optimize(values([{'a': 1}]).sort('a'))\n"
        "assert not is_spark_running()\n"
        "print([name for name in sys.modules if name.startswith('pyspark')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_values_are_counted() -> None:
    assert choose(values([{"a": 1}])).reason == "arrow: 1 row estimated, below 50,000,000"


def test_a_master_without_cores_is_reckoned_with_those_of_the_machine() -> None:
    masters = ("local[0]", "local[*]", "local")
    assert len({module._cores(Settings.load(env={}, spark_master=m)) for m in masters}) == 1

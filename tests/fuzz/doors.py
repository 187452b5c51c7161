"""The doors of Millpond through which inputs come, and the judgement of what it makes of each.

`judge` runs in a child (`children.py`). What it returns is `works` (nothing to compare with),
`compared` (the rows are right), `refused` (an error with a message and a hint), or a failure.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from tests.fuzz.children import Outcome, traceback_of
from tests.fuzz.inputs import sql as sql_inputs
from tests.fuzz.inputs.case import Case, rng_of
from tests.fuzz.oracles import comparable, json_objects, json_says, same_rows, says
from tests.fuzz.ponds import small_pond
from tests.kernel.history.compare import bag
from tests.kernel.history.faults import inject
from tests.kernel.history.readings import readings
from tests.kernel.history.strategies import case as history_case

import millpond as mp
from millpond.base.errors import MillpondError
from millpond.cli.exits import MEANINGS
from millpond.fs.entry import EntryType
from millpond.steward.places import parse_place
from millpond.steward.rows.selection import Which, select

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.node import Plan
    from millpond.steward.pond import Pond

WORKS: Final = Outcome("works")
COMPARED: Final = Outcome("compared")
MOST_PATHS: Final = 12
NOT_READ: Final = ("column-rename", "sql-derived-table", "sql-derived-series")
"""Factories whose nodes have nothing to read, or need Spark, which campaign 2 reads them with."""
MOST_ROWS: Final = 200


def generated(kind: str, seed: int, number: int) -> Case:
    """One case of a kind."""
    module = importlib.import_module(f"tests.fuzz.inputs.{kind}")
    made: Case = module.generate(rng_of(seed, kind, number))
    return made


def judge(key: tuple[str, int, int]) -> Outcome:
    """Give one input to Millpond and judge the result."""
    kind, seed, number = key
    if kind == "log":
        return judge_log(rng_seed=f"{seed}/log/{number}")
    return JUDGES[kind](generated(kind, seed, number))


def _read_both(case: Case, scheme: str) -> dict[str, pa.Table | MillpondError]:
    """The rows of a file through `mp.scan` and through a URL."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"input{case.suffix}"
        file.write_bytes(case.content)
        doors: dict[str, Callable[[], Plan]] = {"url": lambda: _url_plan(f"host+{scheme}://{file}")}
        if scheme != "arrow":
            doors["scan"] = lambda: mp.scan(str(file))
        return {name: _rows_or_error(door) for name, door in doors.items()}


def _url_plan(url: str) -> Plan:
    plan = select([parse_place(url)], _no_pond, Which()).plan
    assert plan is not None
    return plan


def _no_pond() -> Any:
    raise AssertionError("a file of this machine needs no pond")


def _rows_or_error(door: Callable[[], Plan]) -> pa.Table | MillpondError:
    try:
        rows = door().to_arrow(engine="arrow")
    except MillpondError as error:
        if not error.message.strip() or not error.hint:
            raise
        return error
    return rows


def _judge_readings(
    readings_: dict[str, pa.Table | MillpondError], wrong: Callable[[pa.Table], str | None] | None
) -> Outcome:
    """Judge each door's rows; a single refusal makes the case a refused one."""
    refused = [error for error in readings_.values() if isinstance(error, MillpondError)]
    tables = {name: rows for name, rows in readings_.items() if isinstance(rows, pa.Table)}
    for name, rows in tables.items():
        problem = None if wrong is None else wrong(rows)
        if problem is not None:
            return Outcome("wrong rows", f"{name}: {problem}")
        comparable(rows)  # touches every value: broken offsets show themselves
    if refused:
        return Outcome("refused", str(refused[0]))
    return WORKS if wrong is None else COMPARED


# Text


def judge_csv(case: Case) -> Outcome:
    """Each cell says what the text says."""

    def wrong(rows: pa.Table) -> str | None:
        names, expected = case.truth
        if rows.column_names != names:
            return f"columns {rows.column_names} instead of {names}"
        if rows.num_rows != len(expected):
            return f"{rows.num_rows} rows instead of {len(expected)}"
        for name, at in zip(names, range(len(names)), strict=True):
            column = rows.column(at)
            for number, value in enumerate(column.to_pylist()):
                if not says(expected[number][at], value):
                    return f"row {number} of {name}: {expected[number][at]!r} became {value!r}"
        return None

    return _judge_readings(_read_both(case, "csv"), None if case.truth is None else wrong)


def judge_json(case: Case) -> Outcome:
    """Each value is what Python's parser finds, with exact numbers."""
    objects = json_objects(case.content)

    def wrong(rows: pa.Table) -> str | None:
        assert objects is not None
        if rows.num_rows != len(objects):
            return f"{rows.num_rows} rows instead of {len(objects)}"
        for number, (meant, row) in enumerate(zip(objects, rows.to_pylist(), strict=True)):
            if not json_says(meant, row):
                bad = [n for n in {*meant, *row} if not json_says(meant.get(n), row.get(n))]
                return f"row {number}: {bad} became { {n: row.get(n) for n in bad} }"
        return None

    return _judge_readings(_read_both(case, "json"), None if objects is None else wrong)


# Binary


def judge_arrow(case: Case) -> Outcome:
    """The rows that were written; of damaged bytes, valid ones that pyarrow reads as well."""

    def wrong(rows: pa.Table) -> str | None:
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            return f"invalid rows: {error}"
        try:
            theirs = case.truth if case.truth is not None else _pyarrow_ipc(case.content)
        except (pa.ArrowException, OSError, ValueError):
            return "rows of bytes that pyarrow refuses"
        return None if same_rows(rows, theirs) else f"{rows.num_rows} rows that are not pyarrow's"

    return _judge_readings(_read_both(case, "arrow"), wrong)


def _pyarrow_ipc(content: bytes) -> pa.Table:
    is_file = content.startswith(b"ARROW1")
    reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(pa.BufferReader(content))
    rows = reader.read_all()
    rows.validate(full=True)
    return rows


def judge_parquet(case: Case) -> Outcome:
    """The rows that were written, or the same that pyarrow makes of damaged bytes."""
    truth, is_whole = case.truth

    def wrong(rows: pa.Table) -> str | None:
        if same_rows(rows, truth):
            return None
        if is_whole:
            return "other rows than were written"
        try:
            theirs = pq.read_table(
                pa.BufferReader(case.content), page_checksum_verification=True, partitioning=None
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            return f"rows where pyarrow refuses: {error}"
        return (
            None if same_rows(rows, theirs) else "rows that are neither the written nor pyarrow's"
        )

    outcome = _judge_readings(_read_both(case, "parquet"), wrong)
    if is_whole and outcome.kind == "refused":
        return Outcome("wrong rows", f"a good file is refused: {outcome.detail}")
    return outcome


def judge_log(*, rng_seed: str) -> Outcome:
    """A table with a fault in its log: an error, the true rows, or what the log says now."""
    from random import Random

    rng = Random(rng_seed)
    table = history_case(rng.getrandbits(32), rng.getrandbits(32), rng.randint(1, 6))
    with table.written() as path:
        log = Path(path) / "_delta_log"
        fault = inject(log, rng)
        try:
            opened = mp.delta_table(path)
            opened.files().to_arrow()
            rows = bag(opened.scan().to_arrow(engine="arrow").to_pylist())
        except MillpondError as error:
            if not error.hint:
                raise
            return Outcome("refused", str(error))
        if rows in readings(table.history, log, fault):
            return COMPARED
        return Outcome("wrong rows", f"{table} {fault}")


# Configurations, URLs, SQL


@cache
def _pond() -> Pond:
    """A pond of this child."""
    directory = tempfile.mkdtemp(prefix="fuzz-pond-")
    os.environ["FUZZ_SECRET"] = "the secret of the environment"
    Path(directory, "secret").write_text("the secret of the file")
    try:
        return small_pond(f"{directory}/pond")
    except MillpondError as error:  # not a refusal of an input
        raise AssertionError("the pond of the campaign can't be made") from error


def judge_yaml(case: Case) -> Outcome:
    """A configuration is refused, or its paths can be listed and read."""
    from millpond.provider.nodefile import read_node

    pond = _pond()
    text = case.content.decode("utf-8", "surrogatepass")
    try:
        spec = read_node(text, "node.yaml")
        with pond.write() as tx:
            tx.make_factory("/fuzz", spec.factory, spec.config)
            for path in _below(tx, "/fuzz") if spec.factory not in NOT_READ else ():
                _read_anything(tx, path)
            tx.rollback()
    except MillpondError:
        if case.truth is None:
            raise
        return Outcome("wrong rows", f"a good {case.truth} is refused")
    if case.truth not in (None, spec.factory):
        return Outcome("wrong rows", f"{spec.factory} instead of {case.truth}")
    return WORKS


def _below(scope: Any, path: str) -> list[str]:
    found: list[str] = []
    todo = [path]
    while todo and len(found) < MOST_PATHS:
        stat = scope.stat(todo.pop())
        found.append(stat.path)
        if stat.is_directory:
            todo += [each.path for each in scope.children(stat.path).values()]
    return found


def _read_anything(scope: Any, path: str) -> None:
    stat = scope.stat(path)
    if stat.is_directory or stat.entry_type is EntryType.EXECUTABLE:
        return
    if stat.entry_type.is_bytes or stat.entry_type is EntryType.DYNAMIC_FILE:
        scope.read_bytes(path)
    else:
        scope.plan(path).head(MOST_ROWS).to_arrow(engine="arrow")


def judge_url(case: Case) -> Outcome:
    """`pond cat URL` ends with a documented exit code and, where it fails, an error."""
    text = case.content.decode("utf-8", "surrogatepass")
    return run_cli("--pond", _pond().location, "cat", "--", text)


def run_cli(*args: str) -> Outcome:
    """Run a command in this process: the exit code is documented, and there is no traceback."""
    from millpond.cli.main import pond

    result = CliRunner().invoke(pond, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Outcome("traceback", traceback_of(result.exception))
    if result.exit_code == 0:
        return WORKS
    if result.exit_code not in MEANINGS:
        return Outcome("traceback", f"exit code {result.exit_code} is not documented")
    if "Traceback" in result.stderr or not result.stderr.strip():
        return Outcome("traceback", result.stderr[-500:] or f"code {result.exit_code}, no message")
    if result.exit_code != 2 and "hint:" not in result.stderr:  # usage errors show the usage
        return Outcome("no hint", result.stderr[-500:])
    return Outcome("refused", result.stderr[-500:])


def judge_sql(case: Case) -> Outcome:
    """A query is refused or answered as DuckDB answers it, and never reaches outside."""
    pond = _pond()
    outside = Path(pond.location).parent
    mark = outside / "mark"
    text = case.content.decode("utf-8", "surrogatepass")
    text = text.replace(sql_inputs.SECRET, str(outside / "secret")).replace(
        sql_inputs.MARK, str(mark)
    )
    try:
        rows = pond.sql(text).head(MOST_ROWS).to_arrow(engine="spark")
    finally:
        if mark.exists():
            return Outcome("wrong rows", f"a query wrote outside of the pond: {text}")  # noqa: B012
    if "the secret of" in str(rows.to_pylist()):
        return Outcome("wrong rows", f"a query read outside of the pond: {text}")
    if not case.truth:
        return WORKS
    theirs = _duckdb(text, pond)
    if _counted(rows) == _counted(theirs):
        return COMPARED
    return Outcome(
        "wrong rows", f"{text}: {rows.to_pylist()[:5]}, DuckDB: {theirs.to_pylist()[:5]}"
    )


def _counted(rows: pa.Table) -> Counter[str]:
    """The rows; a whole number is the same as a fraction, since types of results differ."""
    shown = ([_whole(value) for value in row] for row in comparable(rows))
    return Counter(map(str, shown))


def _whole(value: Any) -> Any:
    return value.removesuffix(".0") if isinstance(value, str) else str(value)


def _duckdb(text: str, pond: Pond) -> pa.Table:
    import duckdb

    numbers = pond["/numbers"].to_arrow()
    with duckdb.connect() as connection:
        connection.register("numbers", numbers)
        found = connection.execute(text.replace(sql_inputs.TABLE, "numbers")).to_arrow_table()
        return _narrowed(found)


def _narrowed(rows: pa.Table) -> pa.Table:
    """DuckDB sums whole numbers as HUGEINT, which comes as a decimal."""
    fields = [
        field.with_type(pa.int64())
        if pa.types.is_decimal(field.type) or pa.types.is_floating(field.type)
        else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


JUDGES: Final[dict[str, Callable[[Case], Outcome]]] = {
    "sql": judge_sql,
    "yaml": judge_yaml,
    "url": judge_url,
    "csv": judge_csv,
    "json": judge_json,
    "arrow": judge_arrow,
    "parquet": judge_parquet,
}

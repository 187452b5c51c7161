"""Guessed types of CSV and JSON, on both engines: nothing is changed or dropped in silence."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import millpond as mp
from millpond.base.errors import MillpondError, PlanError, SchemaError, SourceError
from millpond.engine.arrow.guess.json import guess_json
from millpond.engine.arrow.guess.texts import Guess
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.plan.executor import Executor

UTC: Final = dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC)
LARGE: Final = 2**53 + 1


def rows(plan: mp.Plan, engine: Executor) -> list[dict[str, Any]]:
    run = engine.execute(plan)
    found: list[dict[str, Any]] = pa.Table.from_batches(list(run), schema=run.schema).to_pylist()
    return found


def write(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return str(folder / name)


# JSON


def test_times_of_json_are_one_type(engine: Executor, tmp_path: Path) -> None:
    spellings = ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z", "2026-03-01T12:00:00+02:00")
    lines = (f'{{"t": "{text}", "in": {{"t": "{text}", "l": ["{text}"]}}}}' for text in spellings)
    plan = mp.scan(write(tmp_path, "a.jsonl", *lines))
    assert str(plan.schema) == (
        "struct<t: timestamp, in: struct<t: timestamp, l: list<timestamp>>>"
    )
    assert rows(plan, engine) == [{"t": UTC, "in": {"t": UTC, "l": [UTC]}}] * 3


def test_times_with_and_without_a_zone_are_text(engine: Executor, tmp_path: Path) -> None:
    texts = ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00"]
    plan = mp.scan(write(tmp_path, "a.jsonl", *(f'{{"t": "{text}"}}' for text in texts)))
    assert [row["t"] for row in rows(plan, engine)] == texts


def test_what_comes_after_the_first_megabyte_counts(engine: Executor, tmp_path: Path) -> None:
    lines = ['{"v": 1, "pad": "xxxxxxxxxxxxxxxxxxxxxxxx"}'] * 60_000
    path = write(tmp_path, "a.jsonl", *lines, '{"v": 2.75, "late": {"x": 7}}')
    plan = mp.scan(path)
    assert str(plan.schema) == "struct<v: double, pad: string, late: struct<x: long>>"
    summed = plan.aggregate(v=mp.agg.sum("v"), x=mp.agg.sum(mp.path("late.x")))
    assert rows(summed, engine) == [{"v": 60_002.75, "x": 7}]


NUMBERS: Final = [
    (["1", "2"], [1, 2]),
    (["1", "0.5"], [1.0, 0.5]),
    ([f"{LARGE}", "1.5"], [D(LARGE), D("1.5")]),
    ([f"-{LARGE}.0", "1"], [D(-LARGE), D(1)]),
    (["9223372036854775808", "-1"], [D(2**63), D(-1)]),
    (["1e3", "2"], [1000.0, 2.0]),
    (["9" * 38], [D("9" * 38)]),
]


@pytest.mark.parametrize(("texts", "wanted"), NUMBERS, ids=lambda value: str(value)[:30])
def test_numbers_are_exact(
    engine: Executor, tmp_path: Path, texts: list[str], wanted: list[Any]
) -> None:
    named = [f'{{"v": {text}, "l": [{text}]}}' for text in texts]
    found = rows(mp.scan(write(tmp_path, "a.jsonl", *named)), engine)
    assert found == [{"v": value, "l": [value]} for value in wanted]
    found = rows(mp.scan(write(tmp_path, "a.csv", "v", *texts)), engine)
    assert found == [{"v": value} for value in wanted]
    kinds = {type(row["v"]) for row in found}
    assert kinds == {type(value) for value in wanted}


@pytest.mark.parametrize("texts", [["1e400"], ["1", "1e-400"], [f"{LARGE}", "1e1"], ["9" * 39]])
def test_numbers_that_no_type_holds(engine: Executor, tmp_path: Path, texts: list[str]) -> None:
    plan = mp.scan(write(tmp_path, "a.csv", "v", *texts))
    assert [row["v"] for row in rows(plan, engine)] == texts
    path = write(tmp_path, "a.jsonl", *(f'{{"v": {text}}}' for text in texts))
    with pytest.raises(SourceError, match=r"a\.jsonl .*member 'v'") as caught:
        mp.scan(path)
    assert "schema=" in str(caught.value.hint)
    declared = mp.scan(path, schema={"v": "double"})
    assert [row["v"] for row in rows(declared, engine)] == [float(text) for text in texts]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ['{"v": 1}', "", '{"v": "x"}'],
            "line 3 of .* text in member 'v', .* number in line 1",
        ),
        (
            ['{"o": {"a": [1]}}', '{"o": {"a": [1, true]}}'],
            r"line 2 of .* member 'o.a\[",
        ),
        (
            ['{"v": [1]}', '{"v": {"x": 1}}'],
            "line 2 of .* member 'v', which is a list",
        ),
        (['{"v": 1}', '{"v": NaN}'], "line 2 of .* holds NaN, which is not JSON"),
        (['{"v": ' + "[" * 200 + "]" * 200 + "}"], "line 1 of .* deeper than 100 levels"),
    ],
)
def test_members_of_several_kinds_name_both_lines(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        mp.scan(write(tmp_path, "a.jsonl", *lines))
    assert "schema=" in str(caught.value.hint)


def test_a_member_of_several_kinds_can_be_declared_as_text(
    engine: Executor, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.jsonl", '{"v": 1}', '{"v": "x"}', '{"v": {"a": [2]}}')
    found = rows(mp.scan(path, schema={"v": "string"}), engine)
    assert [row["v"] for row in found] == ["1", "x", '{"a":[2]}']


VALUES = st.recursive(
    st.sampled_from(["null", "true", "1", "0.5", f"{LARGE}", f"{LARGE}.0", "1e400", "1e-400",
                     '"x"', '"2026-03-01"', '"2026-03-01T10:00:00Z"', '"\\ud800"', "{}", "[]"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda v: f"[{','.join(v)}]"),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2).map(
            lambda v: "{" + ",".join(f'"{name}":{item}' for name, item in v.items()) + "}"
        ),
    ),
    max_leaves=4,
)  # fmt: skip
LINES = st.lists(
    st.dictionaries(st.sampled_from("vw"), VALUES, max_size=2).map(
        lambda v: "{" + ",".join(f'"{name}":{item}' for name, item in v.items()) + "}\n"
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(LINES)
@example(['{"v":1}\n', '{"v":0.5}\n', f'{{"v":{LARGE}}}\n'])
@example(['{"v":[]}\n', '{"v":["x"]}\n', '{"v":[1]}\n'])
@example(['{"v":0.5}\n', '{"v":1e-400}\n'])
def test_blocks_that_hold_nothing_new_change_nothing(lines: list[str]) -> None:
    """A block a line takes the fast path where it can; all lines in one block never do."""
    assert _guessed(lines) == _guessed(["".join(lines)])


def _guessed(blocks: list[str]) -> object:
    try:
        return guess_json("x", lambda: [block.encode() for block in blocks])
    except MillpondError:  # which of two faults is seen first depends on the blocks
        return None


# CSV

LATE: Final = [
    ("1", "2.75"),
    ("1", "007"),
    ("1", "9223372036854775808"),
    ("1", "x"),
    ("0.5", f"{LARGE}"),
    ("0.5", f"-{LARGE}.0"),
    ("0.5", "1e400"),
    ("0.5", "1e-400"),
    ("0.5", "nan"),
    ("0.5", "-inf"),
    ("0.5", "00.5"),
    ("9223372036854775808", "1.5"),
    ("true", "1"),
    ("true", "yes"),
    ("2026-03-01", "2026-03-01T10:00:00"),
    ("2026-03-01T10:00:00", "2026-03-01T10:00:00Z"),
    ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00"),
    ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.1234567Z"),
]


def test_a_guess_of_csv_that_does_not_fit_later_is_an_error(
    engine: Executor, tmp_path: Path
) -> None:
    for first, later in LATE:
        path = write(tmp_path, "a.csv", "n,v", f'"1\n2",{first}', "", f"3,{first}", f"4,{later}")
        plan = mp.scan(path, infer_rows=1)
        found = re.escape(f"column 'v' holds '{later}', which is not of type")
        with pytest.raises(SourceError, match=rf"a\.csv: {found}") as caught:
            rows(plan, engine)
        assert "infer_rows=0" in str(caught.value.hint)
        assert "schema" in str(caught.value.hint)
        if "arrow" in str(type(engine)):
            assert caught.value.message.startswith("line 6 of ")
        assert rows(mp.scan(path, infer_rows=0).select("v"), engine)[2]["v"] is not None


def test_a_column_that_was_empty_at_first_is_text(engine: Executor, tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "n,v", "1,", "2,007")
    assert rows(mp.scan(path, infer_rows=1), engine)[1] == {"n": 2, "v": "007"}


CELLS: Final = (
    "", "0", "1", "-7", "+5", "007", "1.5", ".5", "1.", "-0.25", "1e3", "1E-2", "1e400", "1e-400",
    "9007199254740992", "9007199254740993", "9007199254740993.0", "9223372036854775807",
    "9223372036854775808", "9" * 38, "9" * 39, "nan", "inf", "true", "FALSE", "yes", "x", " 3",
    "2026-03-01", "2026-02-30", "2026-03-01 10:00", "2026-03-01T10:00:00.5", "2026-03-01T10:00:00Z",
    "2026-03-01T10:00:00.1234567Z", "2026-03-01T12:00:00+02:00", "2026-03-01T12:00:00+0200",
)  # fmt: skip


def naive(texts: list[str]) -> list[Any]:
    """The values of a column: the first way in which all of its texts say something."""
    there = [text for text in texts if text]
    for read in (_whole, _number, _decimal, _boolean, _date, _local, _zoned, str):
        values = [read(text) for text in there]
        if None in values:
            continue
        if read is _decimal and not _fits_38([D(text) for text in there]):
            continue
        found = iter(values)
        return [next(found) if text else None for text in texts]
    raise AssertionError("any text is text")


def _whole(text: str) -> Any:
    if re.fullmatch(r"[ ]*[+-]?(0|[1-9]\d*)", text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return None


def _number(text: str) -> Any:
    if not re.fullmatch(r"[ ]*[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text):
        return None
    value, said = float(text), D(text.strip())
    if abs(value) == float("inf") or (value == 0) != (said == 0):
        return None
    is_exact = "e" in text.lower() or abs(said) < 2**53 or (said == 2**53 and "." not in text)
    return value if is_exact else None


def _decimal(text: str) -> Any:
    plain = re.fullmatch(r"[ ]*[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)", text)
    return D(text.strip()) if plain else None


def _fits_38(values: list[D]) -> bool:
    wholes = max((len(str(abs(int(value)))) for value in values), default=0)
    return wholes + max((-int(v.as_tuple().exponent) for v in values), default=0) <= 38


def _boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower())


def _date(text: str) -> Any:
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        return None


def _local(text: str) -> Any:
    moment = _moment(text)
    return moment if moment is not None and moment.tzinfo is None else None


def _zoned(text: str) -> Any:
    moment = _moment(text)
    return moment if moment is not None and moment.tzinfo is not None else None


def _moment(text: str) -> Any:
    pattern = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?"
    try:
        return dt.datetime.fromisoformat(text) if re.fullmatch(pattern, text) else None
    except ValueError:
        return None


COLUMNS = st.lists(
    st.sampled_from([CELLS, CELLS[:8], CELLS[:16], CELLS[1:20], CELLS[28:]]).flatmap(
        lambda cells: st.lists(st.sampled_from(cells), min_size=4, max_size=4)
    ),
    min_size=30,
    max_size=30,
)


def _compare(columns: list[list[str]], path: Path, engine: Executor) -> None:
    text = io.StringIO()
    names = ["id", *(f"c{number}" for number in range(len(columns)))]
    data = [["0", "1", "2", "3"], *columns]
    csv.writer(text, lineterminator="\n").writerows([names, *zip(*data, strict=True)])
    path.write_text(text.getvalue())
    found = rows(mp.scan(str(path)), engine)
    for name, texts in zip(names, data, strict=True):
        values = [row[name] for row in found]
        wanted = naive(texts) if any(texts) else [None] * 4
        assert (values, list(map(type, values))) == (wanted, list(map(type, wanted))), texts


@settings(max_examples=100, deadline=None)
@given(columns=COLUMNS)
def test_random_columns_are_what_a_naive_reader_says(
    columns: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from millpond.plan.run import engine_named

    _compare(columns, tmp_path_factory.getbasetemp() / "arrow.csv", engine_named("arrow"))


@pytest.mark.spark
def test_random_columns_are_the_same_on_spark(spark: Any, tmp_path: Path) -> None:
    from millpond.engine.spark import SparkEngine

    @settings(max_examples=6, deadline=None)
    @given(columns=COLUMNS)
    def compare(columns: list[list[str]]) -> None:
        _compare(columns, tmp_path / "spark.csv", SparkEngine(spark))

    compare()


@pytest.mark.parametrize("texts", [["1", "2.5"], ["nan"], ["9" * 5000], ["\u0661"], ["1\n"]])
def test_a_guess_does_not_depend_on_batches(texts: list[str]) -> None:
    one, many = Guess(), Guess()
    one.see(pa.array(texts))
    for text in texts:
        many.see(pa.array([text]))
    assert one.type == many.type


# Several files


def test_all_files_are_looked_at(engine: Executor, tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "v", "1")
    write(tmp_path, "b.csv", "v,w", "2.5,x")
    plan = mp.scan(tmp_path)
    assert rows(plan, engine) == [{"v": 1.0, "w": None}, {"v": 2.5, "w": "x"}]
    write(tmp_path, "c.csv", "v", "high")
    with pytest.raises(SchemaError, match=r"'v' is double in .*b\.csv and string in .*c\.csv"):
        mp.scan(tmp_path)
    write(tmp_path, "c.csv", "v", f"{LARGE}")
    with pytest.raises(SchemaError, match=rf"long in .*c\.csv and double.*{LARGE} is beyond"):
        mp.scan(tmp_path)
    write(tmp_path, "c.csv", "v", f"{LARGE}.5")
    with pytest.raises(SchemaError, match=r"decimal\(17,1\) in .*c\.csv"):
        mp.scan(tmp_path)


def test_all_files_of_json_are_looked_at(engine: Executor, tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"v": 1}')
    write(tmp_path, "b.jsonl", "")
    write(tmp_path, "c.jsonl", '{"v": 0.5, "new": [1]}')
    assert rows(mp.scan(tmp_path), engine) == [{"v": 1.0, "new": None}, {"v": 0.5, "new": [1]}]


# Declared schemas


def read_declared(path: str, engine: Executor) -> Callable[..., list[dict[str, Any]]]:
    return lambda **options: rows(mp.scan(path, **options), engine)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.csv", ["v,t", "1,2026-03-01", "2.75,no day"]),
        ("a.jsonl", ['{"v": 1, "t": "2026-03-01"}', '{"v": 2.75, "t": "no day"}']),
    ],
)
def test_a_declared_type_is_null_only_where_asked(
    engine: Executor, tmp_path: Path, name: str, lines: list[str]
) -> None:
    read = read_declared(write(tmp_path, name, *lines), engine)
    schema = {"v": "long", "t": "date"}
    with pytest.raises(SourceError, match=f"{name}.*'v'.*which is not of type long|'v' is not of"):
        read(schema=schema)
    with pytest.raises(SourceError, match=f"{name}.*'t'.*which is not of type date|'t' is not of"):
        read(schema=schema, columns=["t"])
    day = dt.date(2026, 3, 1)
    assert read(schema=schema, on_error="null") == [{"v": 1, "t": day}, {"v": None, "t": None}]


NESTED: Final = {
    '{"v": [{"x": 1, "t": "2026-03-01"}, {"x": "no"}]}': "v[1].x",
    '{"v": [{"x": 1.5}]}': "v[0].x",
    '{"v": [{"t": "no day"}]}': "v[0].t",
    '{"m": {"k": {"b": 128}}}': "m.k.b",
    '{"m": {"k": {"b": 1}, "l": 7}}': "m.l",
    '{"s": {"l": ["2026-03-01", "no day"]}}': "s.l[1]",
    '{"it\'s?": "no"}': "it's?",
    '{"": [1]}': "",
}


def test_misfits_at_any_depth_are_errors(engine: Executor, tmp_path: Path) -> None:
    inner = t.Struct.of(x=t.LONG, t=t.DATE, b=t.BYTE)
    schema = t.Struct.of(
        v=t.List(inner),
        m=t.Map(t.STRING, inner),
        s=t.Struct.of(l=t.List(t.DATE)),
        **{"it's?": t.LONG, "": t.LONG},
    )
    good = '{"v": [null, {"x": null}, {}], "m": {}, "s": {"l": []}, "it\'s?": 1, "other": [1]}'
    assert len(rows(mp.scan(write(tmp_path, "a.jsonl", good), schema=schema), engine)) == 1
    for line, member in NESTED.items():
        plan = mp.scan(write(tmp_path, "a.jsonl", good, line), schema=schema)
        with pytest.raises(SourceError, match="does not fit") as caught:
            rows(plan, engine)
        if "arrow" in str(type(engine)):
            assert f"line 2 of {tmp_path}/a.jsonl" in caught.value.message
            assert f"member {member!r}" in caught.value.message
        plan = mp.scan(str(tmp_path / "a.jsonl"), schema=schema, on_error="null")
        assert len(rows(plan, engine)) == 2


def test_half_a_surrogate_pair_is_an_error(engine: Executor, tmp_path: Path) -> None:
    good = r'{"v": "\ud83d\ude00 \\ud800 \\\ud83d\ude00"}'
    found = rows(mp.scan(write(tmp_path, "a.jsonl", good)), engine)
    assert found == [{"v": "\U0001f600 \\ud800 \\\U0001f600"}]
    for text in (r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\\\ud83d", r"\ud83d\ude00\uDE00"):
        plan = mp.scan(write(tmp_path, "a.jsonl", good, f'{{"v": "{text}"}}'))
        with pytest.raises(SourceError, match="does not fit"):
            rows(plan, engine)


def test_names_of_any_kind(engine: Executor, tmp_path: Path) -> None:
    names = ["", "it's", 'q"', "a?b", "a.b", "a]b", "$", "with space", "b\\c", "ü"]
    line = "{" + ",".join(f'{json.dumps(n)}: "{i}"' for i, n in enumerate(names)) + "}"
    found = rows(mp.scan(write(tmp_path, "a.jsonl", line)), engine)
    assert found == [{name: str(number) for number, name in enumerate(names)}]


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    lines = write(tmp_path, "a.jsonl", '{"v": 1}')
    with pytest.raises(PlanError, match="needs a schema"):
        mp.scan(lines, on_error="null")
    with pytest.raises(PlanError, match="on_error='skip'"):
        mp.scan(lines, schema={"v": "long"}, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="infer_rows does not fit a json scan"):
        mp.scan(lines, infer_rows=5)
    path = write(tmp_path, "a.csv", "v", "1")
    with pytest.raises(PlanError, match="infer_rows is a number of rows"):
        mp.scan(path, infer_rows=-1)
    assert mp.scan(path, infer_rows=0).schema == t.Struct.of(v=t.LONG)

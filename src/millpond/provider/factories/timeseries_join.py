"""`timeseries-join`: series side by side, one row for each time that any of them has.

    factory: timeseries-join
    config:
      inputs:
        - {pattern: "series:///weir/old", scope: Weir, range: {end: 2024-06-01}}
        - {pattern: "series:///weir/new", scope: Weir, range: {begin: 2024-06-01}}
        - {pattern: "series:///mill", scope: Mill}

Columns are named `Weir.level`. Inputs of one scope are united first, so a sensor that was swapped
is one column; `scope: $0` gives each path the scope that the first wildcard stands for there.
Where a scope has several values at one time, the newest version wins, then the last row in it; of
several inputs of a scope the later one wins. `begin` and `end` of a range belong to it, or `end`
does not if the next one begins there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, ValidationInfo, field_validator, model_validator

from millpond.base.errors import PathNotFoundError, SchemaError
from millpond.fs.entry import to_micros
from millpond.plan import aggregates as agg
from millpond.plan.expr import col, if_else
from millpond.plan.lineage import source_column
from millpond.plan.types import Struct, is_orderable
from millpond.plan.unite import fitted, union_by_name
from millpond.provider.captures import check_captures, filled
from millpond.provider.factory import Config, Creates, RowsFactory
from millpond.provider.patterns import PatternUrl
from millpond.provider.rows import ALL, Asked, Piece, key_of, shape_of
from millpond.provider.stretches import Stretches
from millpond.provider.timed import timed
from millpond.provider.times import in_range, time_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millpond.plan.expr import Expr, Named
    from millpond.plan.node import Plan
    from millpond.provider.reading import Match, Reading
    from millpond.provider.rows import Rows

NAME: Final = "timeseries-join"


class TimeRange(Config):
    """From when to when an input counts; an open end is left out."""

    begin: datetime | None = None
    end: datetime | None = None

    @field_validator("begin", "end")
    @classmethod
    def _in_utc(cls, time: datetime | None) -> datetime | None:
        if time is None:
            return None
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)

    @model_validator(mode="after")
    def _fits(self) -> TimeRange:
        if self.begin is not None and self.end is not None and self.end < self.begin:
            raise ValueError(f"it would end at {self.end}, before it begins at {self.begin}")
        return self

    @property
    def asked(self) -> Asked:
        """The same in microseconds."""
        begin = None if self.begin is None else to_micros(self.begin)
        return Asked(begin, None if self.end is None else to_micros(self.end))


class Input(Config):
    """One input: a path or a pattern, and before which names its columns have its scope."""

    pattern: PatternUrl
    scope: str | None = None
    transforms: list[Any] = Field(default_factory=list)
    range: TimeRange = Field(default_factory=TimeRange)
    columns: list[str] | None = None

    @field_validator("scope")
    @classmethod
    def _has_captures(cls, scope: str | None, info: ValidationInfo) -> str | None:
        if scope is not None and "pattern" in info.data:
            check_captures(scope, info.data["pattern"])
        return scope


class TimeseriesJoinConfig(Config):
    """The inputs."""

    time_column: str | None = None
    inputs: list[Input] = Field(min_length=1)
    post_transforms: list[Any] = Field(default_factory=list)


def newest(column: str, where: Expr | None = None) -> agg.Measure:
    """Return the value that counts where several rows have one time: the last that is not null."""
    known = col(column).is_not_null()
    return agg.last(column, where=known if where is None else where & known)


def count_true(conditions: Iterable[Expr]) -> Expr:
    """Return how many conditions are true, as a sum of little depth: Spark recurses into it."""
    terms = [if_else(condition, 1, 0) for condition in conditions]
    while len(terms) > 1:
        pairs = [terms[at] + terms[at + 1] for at in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def _has_value(columns: Sequence[str]) -> Expr:
    return reduce(or_, (col(name).is_not_null() for name in columns))


class JoinedRows:
    """Rows of several series by their time."""

    def __init__(self, config: TimeseriesJoinConfig, reading: Reading) -> None:
        self.path = reading.path
        self._config = config
        self._reading = reading

    @cached_property
    def _matched(self) -> list[tuple[Input, list[Match]]]:
        """The inputs and their paths; paths whose captures give other scopes are inputs apart."""
        found: list[tuple[Input, list[Match]]] = []
        for each in self._config.inputs:
            scopes: dict[str | None, list[Match]] = {}
            for match in self._reading.match(each.pattern):
                scope = None if each.scope is None else filled(each.scope, match.captures)
                scopes.setdefault(scope, []).append(match)
            apart = [(each.model_copy(update={"scope": n}), some) for n, some in scopes.items()]
            found += apart or [(each, [])]
        return found

    @cached_property
    def _given(self) -> list[Input]:
        return [each for each, _ in self._matched]

    @cached_property
    def _inputs(self) -> dict[str, Rows]:
        """The inputs that have any path; one without is empty."""
        found: dict[str, Rows] = {}
        for number, (each, matches) in enumerate(self._matched):
            if matches:
                found[str(number)] = self._reading.united(each.pattern, matches)
        if not found:
            raise PathNotFoundError(
                f"nothing matches any input of {self.path}",
                path=self.path,
                hint=f"the first is {self._config.inputs[0].pattern}",
            )
        return found

    @cached_property
    def _ends(self) -> dict[str, Asked]:
        """The range of each input, which ends before the next of its scope begins."""
        found: dict[str, Asked] = {}
        begins: dict[str | None, set[int | None]] = {}
        for each in self._given:
            begins.setdefault(each.scope, set()).add(each.range.asked.start)
        for number, each in enumerate(self._given):
            asked = each.range.asked
            is_followed = asked.end in begins[each.scope] and asked.end != asked.start
            if asked.end is not None and is_followed:
                asked = Asked(asked.start, asked.end - 1)
            found[str(number)] = asked
        return found

    @cached_property
    def time_column(self) -> str:
        """The time, under the same name in all inputs."""
        names: dict[str, str] = {}
        for name, rows in self._inputs.items():
            each = self._given[int(name)]
            schema = self._reading.transformed(shape_of(rows), each.transforms).schema
            names.setdefault(time_column(schema, self._config.time_column, path=rows.path), name)
        if len(names) > 1:
            shown = " and ".join(f"{n!r} of {self._given[int(i)].pattern}"
                                 for n, i in names.items())  # fmt: skip
            raise SchemaError(
                f"{self.path}: the time is {shown}", hint="rename it by a transform: column-rename"
            )
        return next(iter(names))

    def _prepared(self, name: str, rows: Plan) -> Plan:
        """An input as it goes into the join: transformed, in its range, under its scope."""
        given, time = self._given[int(name)], self.time_column
        plan = self._reading.transformed(rows, given.transforms)
        plan = in_range(plan, time, self._ends[name]).filter(col(time).is_not_null())
        chosen = [n for n in plan.schema.names if n != time]
        if given.columns is not None:
            plan.schema.select(given.columns)
            chosen = [n for n in given.columns if n != time]
        columns: list[Named] = [col(time).alias(time)]
        for column in chosen:
            scope = "" if given.scope is None else f"{given.scope}."
            columns.append(col(column).alias(f"{scope}{column}"))
        return plan.select(*columns)

    def _all_prepared(self, plans: Mapping[str, Plan]) -> dict[str, Plan]:
        """Return the inputs as they go into the join, in order, by what errors call them."""
        inputs = self._given
        return {
            f"{inputs[int(name)].pattern} (input {int(name) + 1})": self._prepared(name, plan)
            for name, plan in plans.items()
        }

    def _quick(self, plans: Mapping[str, Plan], check: str) -> Plan | None:
        """Return the join for inputs that have one row at a time each.

        Then any value is the newest, and Spark finds the largest in half the time. `check` is true
        where more rows have a value at a time than there are inputs that can have one.
        """
        prepared = self._all_prepared(plans)
        time, groups = self.time_column, self._columns_apart(prepared)
        columns = [column for names in groups for column in names]
        if self._config.post_transforms or not columns:
            return None
        measures = {column: agg.max(column) for column in columns}
        measures[check] = agg.count(where=_has_value(columns))
        found = union_by_name(prepared).aggregate(time, **measures)
        repeats = (col(check) > count_true(map(_has_value, groups))).alias(check)
        checked = found.select(time, *columns, repeats)
        return fitted(checked, Struct((*self.schema.fields, checked.schema.field(check))))

    def _columns_apart(self, prepared: Mapping[str, Plan]) -> list[list[str]]:
        """Return the columns of each input; inputs that share one count as one input."""
        group_of: dict[str, dict[str, None]] = {}
        for plan in prepared.values():
            merged: dict[str, None] = {}
            for name in plan.schema.names:
                if name != self.time_column:
                    merged |= group_of.get(name, {name: None})
            group_of |= dict.fromkeys(merged, merged)
        return [list(group) for group in {id(group): group for group in group_of.values()}.values()]

    def _join(self, plans: Mapping[str, Plan]) -> Plan:
        """Return one row for each time: of each column the last value that is not null.

        The inputs are united in their order, and the rows of each come oldest version first.
        """
        time = self.time_column
        united = union_by_name(self._all_prepared(plans))
        measures = {}
        for field in united.schema:
            if field.name != time:
                if not is_orderable(field.type):
                    raise SchemaError(
                        f"{self.path}: {field.name!r} is a {field.type} and can't be joined",
                        hint="leave it out: columns: [...]",
                    )
                measures[field.name] = newest(field.name)
        found = united.aggregate(time, **measures)
        done = self._reading.transformed(found, self._config.post_transforms)
        if source_column(done, time, found) != time:
            raise SchemaError(
                f"{self.path}: post_transforms have to leave the time {time!r} as it is",
                hint="rename it in the transforms of each input",
            )
        return done

    @cached_property
    def schema(self) -> Struct:
        """The time, and the columns of all inputs under their scopes."""
        return self._join({name: shape_of(rows) for name, rows in self._inputs.items()}).schema

    @cached_property
    def _stretches(self) -> Stretches:
        return Stretches(
            self.path,
            {name: self._timed(name, rows) for name, rows in self._inputs.items()},
            self._reading,
            self._reading.kept.of("joined"),
            self._salt,
            self.time_column,
            self.schema,
            compute=self._whole,
            quick=self._quick,
        )

    def _timed(self, name: str, rows: Rows) -> Rows:
        transforms = self._given[int(name)].transforms
        return timed(
            rows, self.time_column, lambda plan: self._reading.transformed(plan, transforms)
        )

    def _whole(self, plans: Mapping[str, Plan]) -> Plan:
        return fitted(self._join(plans), self.schema)

    @cached_property
    def _salt(self) -> str:
        config = self._config
        transforms = [self._reading.transforms_key(each.transforms) for each in self._given]
        post = self._reading.transforms_key(config.post_transforms)
        said = [each.model_dump_json(exclude={"transforms"}) for each in self._given]
        return key_of("joined newest", self.time_column, said, transforms, post, self.schema)

    @cached_property
    def key(self) -> str:
        """The inputs, and what is made of them."""
        return key_of(self._salt, *(rows.key for rows in self._inputs.values()))

    def pieces(self) -> Sequence[Piece]:
        """Stretches of time."""
        return self._stretches.pieces()

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        return self._stretches.plan(asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some stretches."""
        return self._stretches.plan_of(pieces)


class TimeseriesJoin(RowsFactory[TimeseriesJoinConfig]):
    """The factory."""

    name = NAME
    creates: ClassVar[Creates] = "series"
    model = TimeseriesJoinConfig
    summary = "series side by side, one row for each time that any of them has"

    def rows(self, config: TimeseriesJoinConfig, reading: Reading) -> Rows:
        """One row for each time."""
        return JoinedRows(config, reading)

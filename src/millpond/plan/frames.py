"""DataFrames of pandas and Polars as Arrow tables: stored exactly, or refused with what to do.

Arrow alone drops or renames a pandas index, turns a `Period` into a number and makes names of what
is not text; of Python's values in one column it takes what it can, so that a time beside a date
loses its hours. Neither library is imported here: a frame brings its own.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_KINDS: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "boolean"),
    (Decimal, "decimal"),
    (Integral, "integer"),
    (Number, "number"),
    (str, "string"),
    ((bytes, bytearray, memoryview), "bytes"),
    (dt.date, "date"),
    (dict, "dictionary"),
    ((list, tuple), "list"),
)
_NAMED: Final = {"bool_": "boolean", "ndarray": "list"}
_TOGETHER: Final = ({"integer", "number"}, {"integer", "decimal"})
"""Kinds that one column can have without a change of any value; what is too large is an error."""
_REFUSED: Final = {
    "period": "its start is a time: frame[{0!r}].dt.to_timestamp(); its text: .astype(str)",
    "interval": "its ends are columns: frame[{0!r}].array.left and .right; its text: .astype(str)",
    "Sparse": "make it dense: frame[{0!r}].sparse.to_dense()",
    "complex": "its parts are columns: .to_numpy().real and .imag",
    "timedelta": "store a number: frame[{0!r}].dt.total_seconds()",
}
"""Types of pandas that have no counterpart, by how their names begin, and what to make of them."""


def is_pandas_frame(rows: object) -> bool:
    """Return whether something is a DataFrame of pandas."""
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")


def table_of_pandas(frame: Any) -> pa.Table:
    """Return a frame of pandas as a table; a named index comes first, level by level."""
    import pyarrow as pa

    frame = _with_index(frame)
    _check_columns(frame.columns)
    for name, type_ in frame.dtypes.items():
        _check_type(name, type_)
        if type_ == object:  # noqa: E721 - a dtype of NumPy
            check_alike(frame[name], f"column {name!r}", missing=_is_missing)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = " ".join(str(each) for each in reversed(error.args) if isinstance(each, str))
        reason = reason.encode("utf-8", "backslashreplace").decode()
        raise SchemaError(
            f"this frame does not make a table: {reason}",
            hint="give the column one type: frame.astype({...})",
        ) from error


def _is_missing(value: Any) -> bool:
    """Return whether pandas takes a value for missing: None, NaN, NaT, NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def _with_index(frame: Any) -> Any:
    """Return a frame whose named index is columns; one without a name is refused."""
    index = frame.index
    names = list(index.names)
    if all(name is None for name in names):
        is_default = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
        if is_default or not len(index):
            return frame
        raise SchemaError(
            "the frame has an index without a name, which would be lost",
            hint="drop it: frame.reset_index(drop=True); or keep it: frame.rename_axis('row')",
        )
    if None in names:
        raise SchemaError(
            f"level {names.index(None)} of the frame's index has no name",
            hint="name all levels: frame.rename_axis(['a', 'b']); or drop them: "
            "frame.reset_index(drop=True)",
        )
    twice = next((name for name in names if name in frame.columns or names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(
            f"the frame's index and a column are both named {twice!r}",
            hint="name it otherwise: frame.rename_axis('row')",
        )
    return frame.reset_index()


def _check_columns(columns: Any) -> None:
    if columns.nlevels > 1:
        raise SchemaError(
            "the frame's columns have several levels",
            hint="join them: frame.columns = ['.'.join(map(str, each)) for each in frame.columns]",
        )
    odd = next((name for name in columns if not isinstance(name, str)), None)
    if odd is not None or any(name is None for name in columns):
        raise SchemaError(
            f"the frame has a column named {odd!r}, a {type(odd).__name__} and not a string",
            hint="name it: frame.rename(columns=str)",
        )
    if not columns.is_unique:
        twice = columns[columns.duplicated()][0]
        raise SchemaError(
            f"the frame has more than one column {twice!r}",
            hint="leave one of them out, or name them apart",
        )


def _check_type(name: str, type_: Any) -> None:
    text = str(getattr(getattr(type_, "categories", None), "dtype", type_))
    for start, hint in _REFUSED.items():
        if text.startswith(start):
            raise SchemaError(
                f"column {name!r} is {text} of pandas, which no table can hold",
                hint=hint.format(name),
            )


def check_alike(values: Iterable[Any], what: str, *, missing: Any = None) -> None:
    """Refuse Python's values of which Arrow would cut or change some to fit the others."""
    kinds: dict[type, str] = {}
    found: dict[str, Any] = {}
    for value in values:
        if value is None:
            continue
        type_ = type(value)
        kind = kinds.get(type_)
        if kind is None or kind == "date":
            if missing is not None and missing(value):
                continue
            kind = kinds[type_] = _kind(value)
            found.setdefault(_with_zone(value, kind), value)
    if any(isinstance(value, set | frozenset) for value in found.values()):
        raise SchemaError(f"{what} has sets, which have no order", hint="make lists of them")
    if len(found) > 1 and not any(found.keys() <= kinds for kinds in _TOGETHER):
        one, other = list(found.values())[:2]
        raise SchemaError(
            f"{what} has values of different kinds: {_shown(one)} and {_shown(other)}",
            hint="convert one of them",
        )


def _kind(value: Any) -> str:
    name = type(value).__name__
    return next(
        (kind for type_, kind in _KINDS if isinstance(value, type_)), _NAMED.get(name, name)
    )


def _with_zone(value: Any, kind: str) -> str:
    """Return the kind; times with and without a zone are two, and dates a third."""
    if not isinstance(value, dt.datetime):
        return kind
    return "wall clock" if value.tzinfo is None else "time"


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:59] + '…'} ({type(value).__name__})"


def check_polars(rows: Any) -> None:
    """Refuse what Polars exports as something else, and what is not a frame."""
    if type(rows).__module__.partition(".")[0] != "polars":
        return
    name = type(rows).__name__
    if name == "LazyFrame":
        raise SchemaError("a LazyFrame has no rows yet", hint="collect() makes them")
    if name == "Series":
        raise SchemaError("a Series of Polars is one column", hint="a table is made by to_frame()")
    todo = [(column, type_) for column, type_ in getattr(rows, "schema", {}).items()]
    while todo:
        column, type_ = todo.pop()
        kind = type(type_).__name__ if not isinstance(type_, type) else type_.__name__
        if kind == "Object":
            raise SchemaError(
                f"column {column!r} holds Python's objects, which no table can",
                hint=f"make text of them: pl.col({column!r}).map_elements(str, pl.String)",
            )
        if kind in ("Int128", "UInt128"):
            raise SchemaError(
                f"column {column!r} is an {kind}, which no table can hold",
                hint=f"pl.col({column!r}).cast(pl.Int64), or .cast(pl.Decimal(38, 0))",
            )
        inner = getattr(type_, "inner", None)
        todo += [] if inner is None else [(column, inner)]
        todo += [(column, field.dtype) for field in getattr(type_, "fields", ())]

"""Constants of every type, built by Spark's own functions.

Dates and times go as numbers: PySpark would convert them through this process's time zone. They go
as text, which is one call to the JVM and not two.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from millpond.engine.spark.types import to_cast
from millpond.plan import types as t

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.api import Api

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INTEGERS = 1 << 31
_EPOCH_DAY = _EPOCH.date().toordinal()


def literal(value: Any, type_: t.DataType, api: Api) -> Column:
    """A constant of exactly this type."""
    f = api.functions
    made: Column
    if value is None:
        made = f.lit(None).cast(to_cast(type_))
    elif type_ == t.DATE:
        made = f.expr(f"date_from_unix_date({value.toordinal() - _EPOCH_DAY})")
    elif type_ == t.TIMESTAMP:
        made = f.expr(f"timestamp_micros({micros(value)}L)")
    elif type_ == t.TIMESTAMP_NTZ:
        # By text: a cast of a moment would go by the session's time zone, which may be a user's.
        made = f.lit(value.isoformat(sep=" ")).cast(to_cast(type_))
    elif isinstance(type_, t.Decimal):
        # By text: a Python decimal with an exponent would get another scale on the way.
        made = f.lit(format(value, "f")).cast(to_cast(type_))
    elif type_ == t.LONG:
        made = long(value, api)
    elif type_ == t.BINARY:
        made = f.unhex(f.lit(value.hex()))
    elif type_ in (t.BOOLEAN, t.STRING, t.DOUBLE, t.INTEGER):
        made = f.lit(float(value) if type_ == t.DOUBLE else value)
    else:
        made = f.lit(value).cast(to_cast(type_))
    return made


def long(value: int, api: Api) -> Column:
    """A long: PySpark makes an integer of a small number. What need not be cast begins sooner."""
    f = api.functions
    found: Column = f.lit(value) if abs(value) > _INTEGERS else f.expr(f"{value}L")
    return found


def micros(moment: dt.datetime) -> int:
    """Microseconds since the epoch; a moment without zone is taken as it stands."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)

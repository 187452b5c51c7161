"""The columns of a query over inputs of known columns: Spark is asked once, and remembered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millpond.plan.sqltext import check_sql
from millpond.plan.typejson import schema_from_json, schema_to_json
from millpond.provider.rows import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept


def sql_schema(text: str, inputs: Mapping[str, Struct], kept: Kept) -> Struct:
    """The columns that a query gives; a pure function of its text and of its inputs' columns."""
    from millpond.plan.run import engine_named

    check_sql(text)
    shown = json.dumps([(name, schema_to_json(schema)) for name, schema in inputs.items()])
    notes, key = kept.of("schemas"), key_of("schema", text, shown)
    known = notes.read_text(key)
    if known is not None:
        return schema_from_json(known)
    spark: Any = engine_named("spark")
    found: Struct = spark.sql_schema(text, inputs)
    notes.write_text(key, schema_to_json(found))
    return found

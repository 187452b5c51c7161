"""Table properties as people give them: what Delta could not read, or asks too much, is refused.

Only what is set now is looked at: a table that another tool gave an odd value can still be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PlanError
from millpond.kernel.durations import APP_TRANSACTIONS, DELETED_FILES, LOG_FILES, parse_duration
from millpond.plan.arguments import text_of, wrong
from millpond.plan.scalars import fits
from millpond.plan.types import INTEGER

if TYPE_CHECKING:
    from collections.abc import Sequence

_BOOLEANS: Final = (
    *("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableDeletionVectors"),
    *("delta.enableInCommitTimestamps", "delta.enableTypeWidening"),
    *("delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct"),
)
_NUMBERS: Final = (
    *("delta.checkpointInterval", "delta.dataSkippingNumIndexedCols"),
    "delta.columnMapping.maxColumnId",
)
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(_BOOLEANS, ("true", "false")),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.columnMapping.mode": ("none", "name", "id"),
    "delta.isolationLevel": ("Serializable", "WriteSerializable", "SnapshotIsolation"),
}
_DURATIONS: Final = (DELETED_FILES, LOG_FILES, APP_TRANSACTIONS)
_NOT_HERE: Final = (
    *("delta.enableRowTracking", "delta.enableVariantShredding", "delta.enableIcebergCompatV1"),
    *("delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3"),
    "delta.enableIcebergWriterCompatV1",
)


def checked_properties(given: Any, argument: str) -> dict[str, str | None]:
    """Properties in Delta's own spelling; refused if they are no texts, or mean nothing."""
    found: dict[str, str | None] = {}
    if not isinstance(given, Mapping):
        raise wrong(
            argument, "properties by name", given, hint="such as {'delta.appendOnly': 'true'}"
        )
    for key, value in given.items():
        text_of(key, argument, "names of properties")
        if value is not None:
            text_of(value, f"{argument}[{key!r}]", "a text", hint="such as 'true' or '10'")
        found[key] = None if value is None else _checked(key, value)
    return found


def _checked(key: str, text: str) -> str:
    choices = {choice.lower(): choice for choice in _CHOICES.get(key, ())}
    if choices and text.lower() not in choices:
        raise PlanError(f"{key} is {text!r}", hint=f"one of {', '.join(choices.values())}")
    if key in _NUMBERS:
        is_number = text.removeprefix("-").isdecimal() and text.isascii()
        if not is_number or not fits(int(text), INTEGER):
            raise PlanError(f"{key} is {text!r}", hint="a whole number of at most 32 bits")
    if key == "delta.checkpointInterval" and int(text) < 1:
        raise PlanError(
            f"{key} is {text!r}", hint="from 1 on; a very high one, if there should be none"
        )
    if key in _DURATIONS:
        parse_duration(key, text)
    if key in _NOT_HERE and text.lower() == "true":
        raise PlanError(
            f"{key} asks for what can't be written here",
            hint="leave it out, or write the table with an engine that knows it",
        )
    return choices.get(text.lower(), text)

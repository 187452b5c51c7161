"""Table properties as people give them: what Delta could not read, or asks too much, is refused.

Only what is set now is looked at: a table that another tool gave an odd value can still be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PlanError
from millpond.kernel.durations import APP_TRANSACTIONS, DELETED_FILES, LOG_FILES, parse_duration
from millpond.plan.arguments import wrong

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
    *("delta.enableIcebergCompatV2", "delta.enableIcebergWriterCompatV1"),
)


def check_properties(given: Any, argument: str) -> None:
    """Refuse properties that are no texts, or whose texts mean nothing."""
    if not isinstance(given, Mapping):
        raise wrong(
            argument, "properties by name", given, hint="such as {'delta.appendOnly': 'true'}"
        )
    for key, value in given.items():
        if not isinstance(key, str):
            raise wrong(argument, "names of properties", key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise wrong(f"{argument}[{key!r}]", "a text", value, hint="such as 'true' or '10'")
        _check_text(key, value)


def _check_text(key: str, text: str) -> None:
    choices = _CHOICES.get(key)
    if choices is not None and text.lower() not in {choice.lower() for choice in choices}:
        raise PlanError(f"{key} is {text!r}", hint=f"one of {', '.join(choices)}")
    if key in _NUMBERS and not (text.removeprefix("-").isdecimal() and text.isascii()):
        raise PlanError(f"{key} is {text!r}", hint="a whole number")
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

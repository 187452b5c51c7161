"""A table's metadata after a change of its schema and properties; what files forbid is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.base.errors import SchemaError
from millpond.kernel.write.evolve import WIDENING, evolved
from millpond.kernel.write.mapped import check_mode_change, is_mapped, unmapped, with_physical_names
from millpond.kernel.write.shape import check_shape
from millpond.plan.typejson import schema_to_json
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.kernel.actions import Metadata
    from millpond.kernel.snapshot import Snapshot


def reshaped(
    snapshot: Snapshot,
    schema: Struct | None,
    renamed: Mapping[str, str] | None,
    settings: Mapping[str, str | None],
) -> Metadata:
    """The new metadata; a property that is None is removed."""
    if renamed and schema is None:
        raise SchemaError("renamed columns need a schema", hint="give schema=… with the new names")
    old = snapshot.metadata
    known: dict[str, str] = {k: v for k, v in old.configuration.items() if k not in settings}
    known |= {key: value for key, value in settings.items() if value is not None}
    before = snapshot.schema
    if check_mode_change(old.configuration, known):
        # What an earlier mode left behind means nothing: files have the names of now.
        plain = Struct(tuple(map(unmapped, before)))
        before, known = with_physical_names(plain, known, keep_names=True)
    if schema is None:
        made, columns = before, snapshot.partition_columns
    else:
        made, columns = evolved(
            before,
            schema,
            partition_columns=snapshot.partition_columns,
            renamed=renamed,
            is_mapped=is_mapped(known),
            may_widen=known.get(WIDENING, "").lower() == "true",
        )
    made, known = with_physical_names(made, known)
    check_shape(made, known)
    if len(columns) == len(made):
        raise SchemaError(
            "no column would be left beside the partition columns", hint="keep at least one"
        )
    return replace(
        old, schema_string=schema_to_json(made), configuration=known, partition_columns=columns
    )

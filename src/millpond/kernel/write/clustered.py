"""Clustered tables: files have statistics of the columns that they are clustered by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.kernel.mapping import TableColumns
    from millpond.kernel.table import DeltaTable

FEATURE, DOMAIN = "clustering", "delta.clustering"
Path = tuple[str, ...]
NOT_CLUSTERED: Final[tuple[Path, ...]] = ()


def clustering_of(table: DeltaTable) -> tuple[Path, ...]:
    """The columns, by the names that files have for them; none of most tables."""
    if not table.protocol.writes(FEATURE):
        return NOT_CLUSTERED
    domain = table.domain_metadata.get(DOMAIN)
    try:
        found: Any = json.loads(domain.configuration if domain is not None else "{}")
        names = found.get("clusteringColumns") or ()
        return tuple(tuple(map(str, name)) for name in names)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise SchemaError(
            f"{table.location} does not say by which columns it is clustered: {error}",
            hint=f"its domain {DOMAIN} is damaged: set the clustering anew where it was made",
        ) from error


def check_clustered(clustering: Sequence[Path], columns: TableColumns) -> None:
    """Refuse a schema that lacks a column that the table is clustered by."""
    stored = {field.name for field in columns.stored_schema()}
    for path in clustering:
        if path[0] not in stored:
            raise SchemaError(
                f"the table is clustered by {'.'.join(path)!r}, which the new schema lacks",
                hint="keep the column, or cluster the table by others first",
            )

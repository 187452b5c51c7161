"""Writers that run in processes of their own: `python -m tests.kernel.write.worker <kind> …`.

Each prints a line for every commit that it knows to stand: the ids that came and the ids that went.
"""

from __future__ import annotations

import json
import sys

import millpond as mp
from millpond.base.errors import ConflictError
from millpond.kernel.table import DeltaTable, delta_table

GROUP = 3
"""Rows of one commit, each in another partition: they are all there or none is."""


def told(came: list[int], went: list[int]) -> None:
    """A commit stands."""
    say(json.dumps([came, went]))


def say(text: str) -> None:
    """A line for whoever started this process."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def group(start: int) -> list[dict[str, object]]:
    """The rows of one commit."""
    return [{"id": start + i, "site": "abc"[i]} for i in range(GROUP)]


def write(location: str, first: int, commits: int, deletes: bool) -> None:
    """Append groups of rows; after every fifth, delete one row, however often that takes."""
    table = delta_table(location)
    say("ready")
    for number in range(commits):
        start = first + GROUP * number
        tx = table.update().transaction()
        tx.append(group(start))
        tx.commit(max_retries=1000)
        told(list(range(start, start + GROUP)), [])
        if deletes and number % 5 == 4:
            _delete(table, start)


def _delete(table: DeltaTable, row: int) -> None:
    while True:
        tx = table.update().transaction()
        tx.delete(mp.col("id") == row)
        try:
            tx.commit(max_retries=1000)
        except ConflictError:
            continue
        return told([], [row])


def write_theirs(location: str, first: int, commits: int) -> None:
    """The same by `deltalake`, which tries again by itself, but not beside a delete."""
    import pyarrow as pa
    from deltalake import CommitProperties, write_deltalake
    from deltalake.exceptions import CommitFailedError

    say("ready")
    for number in range(commits):
        start = first + GROUP * number
        while True:
            try:
                write_deltalake(
                    location,
                    pa.Table.from_pylist(group(start)),
                    mode="append",
                    partition_by=["site"],
                    commit_properties=CommitProperties(max_commit_retries=1000),
                )
            except CommitFailedError:
                continue  # "a concurrent transaction deleted data this operation read"
            break
        told(list(range(start, start + GROUP)), [])


def main() -> None:
    """Run one writer."""
    kind, location, first, commits = sys.argv[1:5]
    if kind == "theirs":
        write_theirs(location, int(first), int(commits))
    else:
        write(location, int(first), int(commits), kind == "deleting")


if __name__ == "__main__":
    main()

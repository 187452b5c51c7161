"""Exit codes by kind of error, so that a script can tell what went wrong. `docs/cli.md` lists them.

The first kind that fits counts, so the special ones stand before the general ones.
"""

from __future__ import annotations

from typing import Final

from millpond.base import errors

OTHER: Final = 1
USAGE: Final = 2
STORAGE: Final = 11
INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells say it."""
BROKEN_PIPE: Final = 141
"""128 and the number of SIGPIPE: who read the output went away."""

KINDS: Final[tuple[tuple[type[errors.MillpondError], int], ...]] = (
    (errors.ConfigError, 3),
    (errors.PlanError, 4),
    (errors.EngineUnavailableError, 5),
    (errors.PondNotFoundError, 6),
    (errors.TransactionNotFoundError, 6),
    (errors.PathNotFoundError, 6),
    (errors.VersionNotFoundError, 6),
    (errors.ObjectNotFoundError, 6),
    (errors.PondExistsError, 7),
    (errors.PathExistsError, 7),
    (errors.ObjectExistsError, 7),
    (errors.PathError, 8),
    (errors.UrlError, 8),
    (errors.WriteConflictError, 9),
    (errors.ConflictError, 9),
    (errors.IntegrityError, 10),
    (errors.CorruptLogError, 10),
    (errors.DataFileMissingError, 10),
    (errors.DeletionVectorError, 10),
    (errors.StoreError, STORAGE),
    (errors.EngineError, 12),
    (errors.BudgetExceededError, 13),
)

MEANINGS: Final[dict[int, str]] = {
    0: "done",
    OTHER: "another error, or with diff: there are differences",
    USAGE: "the command line is wrong",
    3: "a setting is missing or wrong",
    4: "an expression or SQL is wrong",
    5: "an engine can't start here",
    6: "the pond, the path, the version, the transaction or the file is not there",
    7: "something is there already",
    8: "the path can't be used like this",
    9: "another writer changed the same thing",
    10: "stored data is damaged",
    STORAGE: "storage failed: access, space, network",
    12: "an engine failed",
    13: "it needs more than its budget",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "who read the output went away",
}


def exit_code(error: BaseException) -> int:
    """The exit code for an error.

    >>> exit_code(errors.PathNotFoundError("nothing there", path="/a"))
    6
    """
    if isinstance(error, errors.PhaseError | errors.SourceError) and _is_of_storage(error):
        return STORAGE
    return next((code for kind, code in KINDS if isinstance(error, kind)), OTHER)


def _is_of_storage(error: BaseException) -> bool:
    """Whether a file could not be read since there was no access to it, or no way to its store."""
    missing = (errors.ObjectNotFoundError, errors.ObjectExistsError)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PermissionError | errors.StoreError):
            return not isinstance(cause, missing)
        cause = cause.__cause__
    return False

"""Every error that Millpond raises, as one tree: catch `MillpondError` to catch them all.

    MillpondError
    ├── ConfigError (ValueError)              a setting is unknown or has a bad value
    │   └── FactoryConfigError                a factory's configuration; carries file, line, place
    ├── PluginError                           an entry point is missing or failed to load
    ├── StoreError (OSError)                  storage could not do what was asked
    │   ├── ObjectNotFoundError (FileNotFoundError)
    │   ├── ObjectExistsError (FileExistsError)      a create-only put lost: the name is taken
    │   ├── StoreAccessError (PermissionError)
    │   └── UnknownOutcomeError               a put may have taken effect, or may yet
    ├── PlanError (ValueError)                a plan that can't exist
    │   ├── SchemaError                       unknown or duplicate column, wrong shape
    │   ├── TypeMismatchError (TypeError)     a value or an argument of the wrong type
    │   ├── ExpressionSyntaxError             a path text that can't be read; carries the position
    │   └── SqlError                          SQL that can't be read; carries line and column
    ├── EngineError (RuntimeError)            an engine could not run a valid plan
    │   ├── UnsupportedNodeError              this engine does not run this node
    │   ├── UnsupportedExpressionError        this engine does not evaluate this function
    │   ├── EngineUnavailableError            the engine can't start here (no Java, no package)
    │   ├── RunCancelledError                 the run was stopped before its end
    │   ├── EvaluationError (ArithmeticError) overflow, division by zero, a bad cast: data decides
    │   └── SourceError                       a file that a plan names is missing or unreadable
    │       ├── DamagedFileError (IntegrityError)    it does not hold what was written
    │       └── StaleChecksumError            Hadoop's checksum beside it is of another content
    ├── DeltaError (RuntimeError)             a Delta table can't be read or written
    │   ├── TableNotFoundError (FileNotFoundError)   there is no log
    │   ├── VersionNotFoundError (LookupError)       the log does not reach this version or time
    │   ├── CorruptLogError (ValueError)      a file of the log breaks the rules
    │   │   ├── LogGapError                   commits are missing in between
    │   │   ├── MissingActionError            no protocol, or no metadata
    │   │   └── CheckpointError               a checkpoint can't be read
    │   ├── UnsupportedFeatureError           the table asks for what this version does not know
    │   ├── DataFileMissingError (FileNotFoundError) a live file of the table is gone
    │   ├── DeletionVectorError (ValueError)  a deletion vector can't be read
    │   ├── PhaseError                        an engine failed in a phase, which can be retried
    │   ├── MachineStateError                 a state machine was asked too early, or once more
    │   └── CommitError                       a transaction could not be committed
    │       ├── ConflictError                 another writer changed what this one relied on
    │       └── RepeatedTransactionError      an app transaction of this version is there already
    ├── PondError                             a pond can't do what was asked
    │   ├── PondNotFoundError (FileNotFoundError)    there is no pond at this place
    │   ├── PondExistsError (FileExistsError)        there is one already
    │   ├── TransactionNotFoundError (LookupError)   there is no such transaction
    │   ├── CycleError                        a path that is computed from itself
    │   ├── ScopeError                        a scope was used in a way that it does not allow
    │   ├── WriteConflictError                another writer changed the same node
    │   ├── IntegrityError (ValueError)       stored content is not what was written
    │   ├── PostCommitError                   a factory that runs after commits failed
    │   ├── UrlError (ValueError)             a URL of data that can't be read
    │   └── PathError (OSError)               about one path
    │       ├── PathSyntaxError (ValueError)  a path that can't be one
    │       ├── PathNotFoundError (FileNotFoundError)
    │       ├── PathExistsError (FileExistsError)
    │       ├── PathTypeError (TypeError)     this kind of node has no such thing
    │       ├── NoDirectoryError (NotADirectoryError)
    │       ├── DirectoryError (IsADirectoryError)       a directory, where a file is wanted
    │       ├── NotEmptyError                 a directory with something in it
    │       └── LinkLoopError                 symbolic links that lead round in a circle
    └── BudgetExceededError (MemoryError)     it would need more than its budget; nothing was spent

Each error has a `hint`: what to do next. `str(error)` shows the message and the hint.
"""

from __future__ import annotations

from typing import Any

from millpond.base.unsaid import masked


class MillpondError(Exception):
    """The root of the tree: a message for people, and a hint that says what to do next.

    >>> raise MillpondError("the gate is shut", hint="open it")
    Traceback (most recent call last):
    ...
    millpond.base.errors.MillpondError: the gate is shut
      hint: open it
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(masked(message))
        self.message: str = masked(message)
        self.hint: str | None = masked(hint)

    computing: tuple[str, ...] = ()
    """The computed paths in which it came up, the innermost first."""

    def came_up_in(self, path: str) -> None:
        """Take note of a computed path that failed by it, unless the message names it."""
        if path not in self.computing and path not in self.message:
            self.computing = (*self.computing, path)

    def __str__(self) -> str:
        parts = [self.message]
        if self.computing:
            parts.append(f"while computing {', for '.join(self.computing)}")
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return str(masked("\n  ".join(parts)))  # the message may have been added to

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, vars(self))

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data, for `--json` output."""
        known = {k: v for k, v in vars(self).items() if k not in ("message", "hint")}
        plain = (str, int, float, bool, type(None), tuple)
        fields = {k: masked(v) for k, v in known.items() if isinstance(v, plain)}
        said = masked({"message": self.message, "hint": self.hint})
        return {"error": type(self).__name__, **said, **fields}


def _rebuilt(kind: type[MillpondError], args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    """Unpickle an error without its constructor, whose arguments differ from class to class."""
    # `__base__` is the class whose memory layout `kind` has; MemoryError's own `__new__` has not.
    error = (kind.__base__ or kind).__new__(kind, *args)
    error.args = masked(args)  # it may come from a process that does not know what is concealed
    vars(error).update(fields, message=masked(fields["message"]), hint=masked(fields["hint"]))
    return error


class ConfigError(MillpondError, ValueError):
    """A setting is unknown or has a bad value."""

    def __init__(
        self, message: str, *, setting: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.setting = setting


class FactoryConfigError(ConfigError):
    """The configuration of a factory is wrong; `place` is the member, `file` and `line` where."""

    def __init__(
        self,
        message: str,
        *,
        place: tuple[str | int, ...] = (),
        file: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message, hint=hint)
        self.place = place
        self.file = file
        self.line = line


class PluginError(MillpondError):
    """An entry point is missing or failed to load."""

    def __init__(self, message: str, *, group: str, name: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.group = group
        self.name = name


class StoreError(MillpondError, OSError):
    """Storage could not do what was asked."""

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class ObjectNotFoundError(StoreError, FileNotFoundError):
    """No object has this name."""


class ObjectExistsError(StoreError, FileExistsError):
    """A create-only put lost: the name is taken."""


class StoreAccessError(StoreError, PermissionError):
    """The store refused access."""


class UnknownOutcomeError(StoreError):
    """The answer to a put was lost: it may have taken effect, or may yet."""


class PlanError(MillpondError, ValueError):
    """A plan that can't exist."""


class SchemaError(PlanError):
    """A column is unknown or named twice, or a schema has the wrong shape."""


class TypeMismatchError(PlanError, TypeError):
    """A value or an argument of the wrong type."""


class ExpressionSyntaxError(PlanError):
    """A path text that can't be read; `position` counts characters from 0."""

    def __init__(self, message: str, *, text: str, position: int, hint: str | None = None) -> None:
        super().__init__(f"{message}\n  {text}\n  {' ' * position}^", hint=hint)
        self.text = text
        self.position = position


class SqlError(PlanError):
    """SQL that can't be read; `line` and `column` count from 1."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column


class EngineError(MillpondError, RuntimeError):
    """An engine could not run a valid plan."""

    def __init__(self, message: str, *, engine: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.engine = engine


class UnsupportedNodeError(EngineError):
    """This engine does not run this node."""

    def __init__(self, node: str, engine: str, *, hint: str | None = None) -> None:
        hint = hint or "choose another engine with engine=..., or engine='auto'"
        super().__init__(f"the {engine} engine does not run {node}", engine=engine, hint=hint)
        self.node = node


class UnsupportedExpressionError(EngineError):
    """This engine does not evaluate this function."""

    def __init__(self, function: str, engine: str, *, hint: str | None = None) -> None:
        hint = hint or "choose another engine with engine=..., or engine='auto'"
        super().__init__(
            f"the {engine} engine does not evaluate {function}", engine=engine, hint=hint
        )
        self.function = function


class EngineUnavailableError(EngineError):
    """The engine can't start here: no Java, or a package is missing."""


class RunCancelledError(EngineError):
    """A run was stopped before its end, so its rows so far are not all."""

    def __init__(self, engine: str) -> None:
        super().__init__(
            f"the run on the {engine} engine was cancelled before its end",
            engine=engine,
            hint="run it again, with a larger budget if that is what stopped it",
        )


class EvaluationError(EngineError, ArithmeticError):
    """A value made an expression fail: overflow, division by zero, a bad cast."""


class SourceError(EngineError):
    """A file that a plan names is unreadable, or `missing`."""

    def __init__(
        self,
        message: str,
        *,
        engine: str,
        path: str,
        missing: bool = False,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, engine=engine, hint=hint)
        self.path = path
        self.missing = missing


class StaleChecksumError(SourceError):
    """A file does not fit the checksum that Hadoop's client keeps in a hidden file beside it.

    Whoever writes the file without that client leaves the checksum of the old content there.
    """

    def __init__(self, *, engine: str, path: str) -> None:
        folder, _, name = path.rpartition("/")
        super().__init__(
            f"{path} does not fit Hadoop's checksum of it in {folder}/.{name}.crc",
            engine=engine,
            path=path,
            hint=f"if another program has written {name} since, remove .{name}.crc; otherwise "
            "the file is damaged: restore it from a backup",
        )


class BudgetExceededError(MillpondError, MemoryError):
    """An operation would need more than its budget; it stopped before it spent it."""

    def __init__(self, budget: str, *, required: int, limit: int, suggestion: str) -> None:
        super().__init__(
            f"{budget} would be exceeded: {required:,} needed, {limit:,} allowed", hint=suggestion
        )
        self.budget = budget
        self.required = required
        self.limit = limit
        self.suggestion = suggestion


class DeltaError(MillpondError, RuntimeError):
    """A Delta table can't be read or written; `table` says which."""

    def __init__(self, message: str, *, table: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.table = table


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta log at this place."""


class VersionNotFoundError(DeltaError, LookupError):
    """The log does not reach this version or time; the hint says what it has."""


class CorruptLogError(DeltaError, ValueError):
    """A file of the log breaks the rules; `path` names it where one file is to blame."""

    def __init__(
        self, message: str, *, table: str, path: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, table=table, hint=hint)
        self.path = path


class LogGapError(CorruptLogError):
    """Commits are missing between others."""


class MissingActionError(CorruptLogError):
    """The log has no protocol, or no metadata."""


class CheckpointError(CorruptLogError):
    """A checkpoint can't be read."""


class UnsupportedFeatureError(DeltaError):
    """The table asks its readers or writers for features that are not known here."""

    def __init__(
        self, message: str, *, table: str, features: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, table=table, hint=hint)
        self.features = features


class DataFileMissingError(DeltaError, FileNotFoundError):
    """A file that the log calls live is not there any more."""

    def __init__(self, message: str, *, table: str, path: str, hint: str | None = None) -> None:
        super().__init__(message, table=table, hint=hint)
        self.path = path


class DeletionVectorError(DeltaError, ValueError):
    """A deletion vector can't be read, so it is not known which rows are live."""


class PhaseError(DeltaError):
    """An engine failed in a phase. The phase has not changed: it can be retried."""

    def __init__(
        self, message: str, *, table: str, phase: str, plan: str, hint: str | None = None
    ) -> None:
        super().__init__(message, table=table, hint=hint)
        self.phase = phase
        self.plan = plan


class MachineStateError(DeltaError):
    """A state machine was asked for what it can't give yet, or can't give again."""


class CommitError(DeltaError):
    """A transaction could not be committed; the table is as it was."""


class ConflictError(CommitError):
    """Another writer committed something that this transaction relied on; `version` is theirs."""

    def __init__(self, message: str, *, table: str, version: int, hint: str | None = None) -> None:
        super().__init__(message, table=table, hint=hint)
        self.version = version


class RepeatedTransactionError(CommitError):
    """An app transaction of this version, or a later one, is in the table already."""


class PondError(MillpondError):
    """A pond can't do what was asked."""


class TransactionNotFoundError(PondError, LookupError):
    """The pond has no such transaction; the hint says what it has."""


class CycleError(PondError):
    """A path is computed from itself; `paths` is the way round."""

    def __init__(self, message: str, *, paths: tuple[str, ...], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class PondNotFoundError(PondError, FileNotFoundError):
    """There is no pond at this place."""

    def __init__(self, message: str, *, location: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.location = location


class PondExistsError(PondError, FileExistsError):
    """There is a pond at this place already."""

    def __init__(self, message: str, *, location: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.location = location


class ScopeError(PondError):
    """A scope was used in a way that it does not allow."""


class WriteConflictError(PondError):
    """Another transaction changed the same node first; nothing of this one was kept."""

    def __init__(
        self, message: str, *, path: str, txn_seq: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.txn_seq = txn_seq


class IntegrityError(PondError, ValueError):
    """Stored content is not what was written."""

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class DamagedFileError(SourceError, IntegrityError):
    """A file that a plan names does not hold what was written."""

    def __init__(self, message: str, *, engine: str, path: str, hint: str | None = None) -> None:
        MillpondError.__init__(self, message, hint=hint)
        self.engine = engine
        self.path = path
        self.missing = False


class PostCommitError(PondError):
    """A factory that runs after commits failed."""


class UrlError(PondError, ValueError):
    """A URL of data that can't be read; one that may hold a secret is not repeated."""

    def __init__(self, message: str, *, url: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.url = url


class PathError(PondError, OSError):
    """Something about one path of a pond."""

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class PathSyntaxError(PathError, ValueError):
    """A text that can't be a path."""


class PathNotFoundError(PathError, FileNotFoundError):
    """Nothing is at this path."""


class PathExistsError(PathError, FileExistsError):
    """Something is at this path already."""


class PathTypeError(PathError, TypeError):
    """The node at this path is of a kind that has no such thing."""


class NoDirectoryError(PathError, NotADirectoryError):
    """A path leads through something that is no directory."""


class DirectoryError(PathError, IsADirectoryError):
    """A directory stands where a file is wanted."""


class NotEmptyError(PathError):
    """A directory still has something in it."""


class LinkLoopError(PathError):
    """Symbolic links lead round in a circle."""

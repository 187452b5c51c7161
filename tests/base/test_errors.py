"""The tree that is drawn in the docstring is the tree that exists."""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest

from millpond.base import errors
from millpond.base.errors import MillpondError

# One of each, with every field set.
EXAMPLES: list[MillpondError] = [
    MillpondError("m", hint="h"),
    errors.ConfigError("m", setting="s", hint="h"),
    errors.FactoryConfigError("m", place=("a", 0), file="f", line=3, hint="h"),
    errors.PluginError("m", group="g", name="n", hint="h"),
    errors.StoreError("m", path="p", hint="h"),
    errors.ObjectNotFoundError("m", path="p", hint="h"),
    errors.ObjectExistsError("m", path="p", hint="h"),
    errors.StoreAccessError("m", path="p", hint="h"),
    errors.UnknownOutcomeError("m", path="p", hint="h"),
    errors.PlanError("m", hint="h"),
    errors.SchemaError("m", hint="h"),
    errors.TypeMismatchError("m", hint="h"),
    errors.ExpressionSyntaxError("m", text="a..b", position=2, hint="h"),
    errors.SqlError("m", line=1, column=2, hint="h"),
    errors.EngineError("m", engine="e", hint="h"),
    errors.UnsupportedNodeError("Sort", "e"),
    errors.UnsupportedExpressionError("f", "e", hint="h"),
    errors.EngineUnavailableError("m", engine="e", hint="h"),
    errors.RunCancelledError("e"),
    errors.EvaluationError("m", engine="e", hint="h"),
    errors.SourceError("m", engine="e", path="p", hint="h"),
    errors.StaleChecksumError(engine="e", path="/d/p"),
    errors.BudgetExceededError("b", required=2, limit=1, suggestion="s"),
    errors.DeltaError("m", table="t", hint="h"),
    errors.TableNotFoundError("m", table="t", hint="h"),
    errors.VersionNotFoundError("m", table="t", hint="h"),
    errors.CorruptLogError("m", table="t", path="p", hint="h"),
    errors.LogGapError("m", table="t", path="p", hint="h"),
    errors.MissingActionError("m", table="t", path="p", hint="h"),
    errors.CheckpointError("m", table="t", path="p", hint="h"),
    errors.UnsupportedFeatureError("m", table="t", features=("f",), hint="h"),
    errors.DataFileMissingError("m", table="t", path="p", hint="h"),
    errors.DeletionVectorError("m", table="t", hint="h"),
    errors.PhaseError("m", table="t", phase="p", plan="q", hint="h"),
    errors.MachineStateError("m", table="t", hint="h"),
    errors.CommitError("m", table="t", hint="h"),
    errors.ConflictError("m", table="t", version=1, hint="h"),
    errors.RepeatedTransactionError("m", table="t", hint="h"),
    errors.PondError("m", hint="h"),
    errors.TransactionNotFoundError("m", hint="h"),
    errors.CycleError("m", paths=("/a", "/a"), hint="h"),
    errors.PondNotFoundError("m", location="l", hint="h"),
    errors.PondExistsError("m", location="l", hint="h"),
    errors.ScopeError("m", hint="h"),
    errors.WriteConflictError("m", path="/p", txn_seq=3, hint="h"),
    errors.IntegrityError("m", path="/p", hint="h"),
    errors.DamagedFileError("m", engine="e", path="p", hint="h"),
    errors.PostCommitError("m", hint="h"),
    errors.UrlError("m", url="u", hint="h"),
    errors.PathError("m", path="/p", hint="h"),
    errors.PathSyntaxError("m", path="/p", hint="h"),
    errors.PathNotFoundError("m", path="/p", hint="h"),
    errors.PathExistsError("m", path="/p", hint="h"),
    errors.PathTypeError("m", path="/p", hint="h"),
    errors.NoDirectoryError("m", path="/p", hint="h"),
    errors.DirectoryError("m", path="/p", hint="h"),
    errors.NotEmptyError("m", path="/p", hint="h"),
    errors.LinkLoopError("m", path="/p", hint="h"),
]


def drawn_tree() -> dict[str, tuple[str | None, str | None]]:
    """Name → (parent, builtin) as the docstring draws it."""
    line = re.compile(r"^    ([│├└─ ]*)(\w+Error)(?: \((\w+)\))?", re.MULTILINE)
    tree: dict[str, tuple[str | None, str | None]] = {}
    above: list[str] = []
    for branch, name, builtin in line.findall(errors.__doc__ or ""):
        depth = len(branch) // 4
        tree[name] = (above[depth - 1] if depth else None, builtin or None)
        above[depth:] = [name]
    return tree


def existing_tree() -> dict[str, tuple[str | None, str | None]]:
    tree: dict[str, tuple[str | None, str | None]] = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, MillpondError):
            bases = [base for base in kind.__bases__ if base is not Exception]
            ours = [base.__name__ for base in bases if issubclass(base, MillpondError)]
            # The second base is drawn in parentheses, whether it is one of ours or not.
            others = [base.__name__ for base in bases if base.__name__ not in ours[:1]]
            assert len(others) <= 1
            tree[name] = (ours[0] if ours else None, others[0] if others else None)
    return tree


def test_the_drawing_is_true() -> None:
    assert drawn_tree() == existing_tree()


def test_there_is_an_example_of_each() -> None:
    assert [type(error).__name__ for error in EXAMPLES] == list(existing_tree())


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_message_and_hint_are_shown(error: MillpondError) -> None:
    assert str(error) == f"{error.message}\n  hint: {error.hint}"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_travel_between_processes(error: MillpondError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
        assert twin.args == error.args


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_become_json(error: MillpondError) -> None:
    data = json.loads(json.dumps(error.to_dict()))
    assert data["error"] == type(error).__name__
    assert data["message"] == error.message
    assert data["hint"] == error.hint
    assert set(data) == {"error", *vars(error)}


def test_builtins_catch_them() -> None:
    with pytest.raises(FileNotFoundError):
        raise errors.ObjectNotFoundError("m", path="p")
    with pytest.raises(ArithmeticError):
        raise errors.EvaluationError("m", engine="e")

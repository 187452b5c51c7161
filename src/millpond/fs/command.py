"""What a node that is run can be told to do: commands with options, declared by its factory.

    commands = (
        NodeCommand("push", "Send what is new.", options=(
            CommandOption("dry-run", "Show what would be sent, and send nothing.", kind="flag"),
        )),
        NodeCommand("status", "Show what was sent.", reports=True),
    )

`pond run PATH` makes them commands of its own with help; what is not declared is
wrong usage, and nothing runs. A run finds the values under `run.options`, by the names of options
and arguments with `_` for `-`: `run.options["dry_run"]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from millpond.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ValueKind: TypeAlias = Literal["text", "integer", "number", "flag", "time", "path", "file"]
"""A `path` is one of the pond, a `file` one of this machine; a `time` without a zone is UTC."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "flag": (bool,),
    "time": (datetime,),
    "path": (str,),
    "file": (str,),
}
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RESERVED: Final = frozenset({"help", "json"})
"""Options that every command has."""


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option: `--dry-run`, `--from 2026-01-01`. One that is not given is its default."""

    name: str
    """Without the dashes before it."""
    help: str = ""
    kind: ValueKind = "text"
    default: Any = None
    """Of a flag false, and of an option that may be repeated an empty tuple."""
    choices: tuple[str, ...] = ()
    """Of texts: which there are."""
    repeated: bool = False
    required: bool = False

    def __post_init__(self) -> None:
        _check_part(self, f"option {self.name!r}")
        if self.name in RESERVED:
            raise ValueError(f"option {self.name!r} is one that every command has")
        if self.kind == "flag" and (self.repeated or self.required or self.default is not None):
            raise ValueError(f"option {self.name!r} is a flag, which is false if it is not given")

    @property
    def unset(self) -> Any:
        """The value where the option is not given."""
        if self.kind == "flag":
            return False
        return () if self.repeated and self.default is None else self.default


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """A word without dashes: what a command is about."""

    name: str
    help: str = ""
    kind: ValueKind = "text"
    choices: tuple[str, ...] = ()
    repeated: bool = False
    """Any number of words: the last argument alone may be."""
    required: bool = True

    def __post_init__(self) -> None:
        _check_part(self, f"argument {self.name!r}")
        if self.kind == "flag":
            raise ValueError(f"argument {self.name!r} can't be a flag: make it an option")

    @property
    def unset(self) -> Any:
        """The value where the argument is not given."""
        return () if self.repeated else None


@dataclass(frozen=True, slots=True)
class NodeCommand:
    """One thing that a factory does; the first of its commands is the one without a name."""

    name: str
    help: str = ""
    """A sentence; the first line is shown beside the name."""
    options: tuple[CommandOption, ...] = ()
    arguments: tuple[CommandArgument, ...] = ()
    reports: bool = False
    """Whether what `run()` returns is shown: a mapping, or a list of mappings of one shape."""
    settles: bool = False
    """Whether it writes nothing where nothing has changed: after a commit it runs again when a node
    that ran later has written, so that the order of nodes does not matter."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"command {self.name!r}: a name is lowercase words, joined by -")
        parts = [key_of_part(part) for part in self.parts]
        twice = sorted({key for key in parts if parts.count(key) > 1})
        if twice:
            raise ValueError(f"command {self.name!r} has {twice[0]!r} more than once")
        if any(argument.repeated for argument in self.arguments[:-1]):
            raise ValueError(f"command {self.name!r}: only its last argument can be repeated")

    @property
    def parts(self) -> tuple[CommandOption | CommandArgument, ...]:
        """Arguments and options."""
        return (*self.arguments, *self.options)

    @property
    def runs_alone(self) -> bool:
        """Whether it can be run without any words, as it is after a commit."""
        return not any(part.required for part in self.parts)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all options and arguments; ConfigError for what is not declared."""
        known = {key_of_part(part): part for part in self.parts}
        unknown = [key for key in given if key not in known]
        if unknown:
            hint = f"there are: {', '.join(known)}" if known else "it has no options"
            raise ConfigError(f"{self.name} has no option {unknown[0]!r}", hint=hint)
        values = {key: part.unset for key, part in known.items()} | dict(given)
        for key, value in values.items():
            _check_value(self.name, known[key], value, is_given=key in given)
        return values


def key_of_part(part: CommandOption | CommandArgument) -> str:
    """Return the name under which a run finds a value.

    >>> key_of_part(CommandOption("dry-run", kind="flag"))
    'dry_run'
    """
    return part.name.replace("-", "_")


def check_commands(commands: Sequence[NodeCommand]) -> None:
    """Refuse a declaration that can't be used; ValueError says why."""
    if not commands or not all(isinstance(each, NodeCommand) for each in commands):
        raise ValueError("its commands are a tuple of NodeCommand, one at least")
    names = [each.name for each in commands]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"it has the command {twice[0]!r} more than once")


def _check_part(part: CommandOption | CommandArgument, what: str) -> None:
    if not _NAME.fullmatch(part.name):
        raise ValueError(f"{what}: a name is lowercase words, joined by -")
    if part.kind not in _TYPES:
        raise ValueError(f"{what} is one of {', '.join(_TYPES)}, not {part.kind!r}")
    if part.choices and part.kind != "text":
        raise ValueError(f"{what} has choices, so its kind is text")


def _check_value(
    command: str, part: CommandOption | CommandArgument, value: Any, *, is_given: bool
) -> None:
    if part.required and (value is None or value == ()):
        raise ConfigError(f"{command} needs {part.name!r}", hint=part.help or None)
    if not is_given or value is None:
        return
    values = value if part.repeated and isinstance(value, tuple | list) else (value,)
    for each in values:
        is_odd = isinstance(each, bool) and part.kind != "flag"
        if is_odd or not isinstance(each, _TYPES[part.kind]):
            raise ConfigError(f"{command}: {part.name!r} takes a {part.kind}, not {each!r}")
        if part.choices and each not in part.choices:
            raise ConfigError(
                f"{command}: {part.name!r} is not {each!r}",
                hint=f"one of {', '.join(part.choices)}",
            )

"""What can be set in a pond, and where the values are looked up fast.

Each setting is a row of the control table. A small file beside it holds all of them together as
of its newest such row, so that who opens a pond need not read the table.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from millpond.base import setting
from millpond.base.errors import ConfigError, ObjectNotFoundError
from millpond.base.textseals import SEAL, UNSEALED, is_intact, sealed
from millpond.fs.blobs import INLINE_BYTES
from millpond.fs.factory import OFF, executable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.setting import Parser
    from millpond.base.store import Store

IDENTITY: Final = "pond."
"""What begins like this says who the pond is, and is never set by hand."""
RECORD_READS: Final = "control.record_reads"
INLINE: Final = "fs.inline_bytes"
RETENTION_DAYS: Final = "maintain.retention_days"
DIRECTORY: Final = "_settings"
_MODE: Final = re.compile(r"factory\.(.+)\.mode")

SETTINGS: Final[Mapping[str, tuple[Parser, Any, str]]] = {
    RECORD_READS: (setting.switch, False, "whether reads are recorded in the control table"),
    INLINE: (setting.positive, INLINE_BYTES, "files up to this size are kept in their rows"),
    RETENTION_DAYS: (setting.positive, 7, "what nothing needs is kept for so many days"),
}
"""Each setting: how it is read, its default, what it is for. Beside them: `factory.NAME.mode`."""


def checked(key: str, value: object) -> str:
    """A value as it is stored; ConfigError for an unknown name or a bad value."""
    parse = _parser(key)
    try:
        found = parse(value)
    except ValueError as error:
        raise ConfigError(
            f"{key} has a bad value {value!r}", setting=key, hint=f"allowed: {error}"
        ) from None
    return str(found).lower() if isinstance(found, bool) else str(found)


def _parser(key: str) -> Parser:
    if key in SETTINGS:
        return SETTINGS[key][0]
    mode = _MODE.fullmatch(key)
    if mode is not None:
        commands = executable(mode[1]).commands
        return setting.one_of(*(each.name for each in commands if each.runs_alone), OFF)
    if key.startswith(IDENTITY):
        raise ConfigError(f"{key} says who the pond is and can't be changed", setting=key)
    near = get_close_matches(key, SETTINGS, n=1)
    known = f"{', '.join(SETTINGS)}, factory.NAME.mode"
    raise ConfigError(
        f"unknown setting {key!r}",
        setting=key,
        hint=f"did you mean {near[0]}?" if near else f"known settings: {known}",
    )


def typed(key: str, stored: Mapping[str, str]) -> Any:
    """The value of a setting, or its default."""
    parse, default, _ = SETTINGS[key]
    return parse(stored[key]) if key in stored else default


def mode_key(factory: str) -> str:
    """The setting with a factory's mode.

    >>> mode_key("remote")
    'factory.remote.mode'
    """
    return f"factory.{factory}.mode"


class SettingsFile:
    """All settings and the identity in one file, named after the version that they are of."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> dict[str, str] | None:
        """The newest ones; None if there is no file, or it is damaged."""
        for _ in range(3):
            path = max((meta.path for meta in self._store.list(f"{DIRECTORY}/")), default=None)
            if path is None:
                return None
            try:
                text = self._store.get(path)
            except ObjectNotFoundError:  # a newer one has just come
                continue
            return dict(json.loads(text)["values"]) if is_intact(text) else None
        return None

    def write(self, version: int, values: Mapping[str, str]) -> None:
        """Those as of a version of the control table; older files go."""
        path = f"{DIRECTORY}/{version:020d}.json"
        text = json.dumps({"values": dict(values), SEAL: UNSEALED}, separators=(",", ":"))
        self._store.put(path, sealed(text.encode()), mode="overwrite")
        for meta in list(self._store.list(f"{DIRECTORY}/")):
            if meta.path < path:
                self._store.delete(meta.path)

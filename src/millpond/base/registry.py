"""Plugins by name, loaded when first asked for: engines, formats, factories, commands.

The built-in ones are entry points like everybody else's, so `names()` imports no plugin and
`get()` imports one. `importlib.metadata` costs more than all of `millpond.base`; it is imported
with the first question, not with this module.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from millpond.base.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

# Where the name to import is not the name to install.
_DISTRIBUTIONS = {"google": "protobuf", "grpc": "grpcio", "grpc_status": "grpcio-status"}


class Registry(Generic[T]):
    """The plugins of one entry-point group; safe to share between threads.

    >>> shapes: Registry[float] = Registry(group="millpond.shapes")
    >>> shapes.register("circle", 3.14)
    >>> shapes.get("circle"), shapes.names()
    (3.14, ('circle',))
    >>> shapes.get("circel")
    Traceback (most recent call last):
    ...
    millpond.base.errors.PluginError: 'circel' is not in millpond.shapes; known: circle
      hint: did you mean 'circle'?
    """

    def __init__(self, *, group: str) -> None:
        self.group = group
        self._loaded: dict[str, T] = {}
        self._entries: dict[str, tuple[EntryPoint, ...]] | None = None
        # Re-entrant, because a plugin may use the registry while it is imported.
        self._lock = threading.RLock()

    def names(self) -> tuple[str, ...]:
        """Every name there is, sorted; nothing is imported for it."""
        with self._lock:
            return tuple(sorted({*self._loaded, *self._entry_points()}))

    def get(self, name: str) -> T:
        """The plugin of this name; it is imported once."""
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            return self._loaded[name]

    def register(self, name: str, value: T) -> None:
        """Add a plugin of this process; a name is given once."""
        with self._lock:
            if name in self._loaded or name in self._entry_points():
                raise PluginError(
                    f"{name!r} is already in {self.group}",
                    group=self.group,
                    name=name,
                    hint="register it under another name",
                )
            self._loaded[name] = value

    def __repr__(self) -> str:
        return f"Registry(group={self.group!r})"

    def _entry_points(self) -> dict[str, tuple[EntryPoint, ...]]:
        if self._entries is None:
            from importlib.metadata import entry_points

            found: dict[str, tuple[EntryPoint, ...]] = {}
            for entry in entry_points(group=self.group):
                others = found.get(entry.name, ())
                # One distribution can be seen twice on sys.path; it is still one plugin.
                if all(entry.value != other.value for other in others):
                    found[entry.name] = (*others, entry)
            self._entries = found
        return self._entries

    def _load(self, name: str) -> T:
        entries = self._entry_points().get(name, ())
        if not entries:
            raise self._unknown(name)
        if len(entries) > 1:
            raise self._failed(
                name,
                f"is offered more than once: {', '.join(sorted(e.value for e in entries))}",
                hint="uninstall all but one of the packages",
            )
        entry = entries[0]
        try:
            return cast("T", entry.load())
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if _is_installed(package):
                raise self._broken(entry, error) from error
            raise self._failed(
                name, f"needs the package {package!r}", hint=_install_hint(entry, package)
            ) from error
        except Exception as error:
            raise self._broken(entry, error) from error

    def _unknown(self, name: str) -> PluginError:
        from difflib import get_close_matches

        known = self.names()
        near = get_close_matches(name, known, n=1)
        return PluginError(
            f"{name!r} is not in {self.group}; known: {', '.join(known) or 'none'}",
            group=self.group,
            name=name,
            hint=f"did you mean {near[0]!r}?" if near else "install the package that offers it",
        )

    def _broken(self, entry: EntryPoint, error: Exception) -> PluginError:
        return self._failed(
            entry.name,
            f"can't be imported from {entry.value}: {type(error).__name__}: {error}",
            hint="the plugin is broken or does not fit this version of millpond",
        )

    def _failed(self, name: str, why: str, *, hint: str) -> PluginError:
        return PluginError(
            f"{name!r} of {self.group} {why}", group=self.group, name=name, hint=hint
        )


def _is_installed(package: str) -> bool:
    """Whether a package is there, so that a module of it is what is missing."""
    from importlib.util import find_spec

    try:
        return bool(package) and find_spec(package) is not None
    except ValueError:  # it is loaded, and does not say from where
        return True


def _install_hint(entry: EntryPoint, package: str) -> str:
    """Name the extra of the plugin's own distribution that brings the missing package."""
    wanted = _normal(_DISTRIBUTIONS.get(package, package))
    distribution = entry.dist
    for requirement in (distribution.requires or []) if distribution is not None else []:
        match = re.match(r"([\w.-]+).*;.*\bextra\s*==\s*['\"]([\w.-]+)['\"]", requirement)
        if match and distribution is not None and _normal(match[1]) == wanted:
            return f"pip install '{distribution.name}[{match[2]}]'"
    return f"pip install {_DISTRIBUTIONS.get(package, package)}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

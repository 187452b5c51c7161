"""Paths of a pond: absolute, `/` between names, `@v3` at the end for one version."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from millpond.base.errors import PathSyntaxError

LONGEST_NAME: Final = 255
_VERSION: Final = re.compile(r"(.+)@v([0-9]{1,18})", re.DOTALL)


class Versioned(NamedTuple):
    """A path, and the version of it that is meant; None is the latest."""

    path: str
    version: int | None


def parts(path: str) -> tuple[str, ...]:
    """The names of a path, `.` left out; `..` stays, since links decide where it leads.

    >>> parts("/a//b/./c/")
    ('a', 'b', 'c')
    """
    if not path:
        raise PathSyntaxError("a path is not empty", path=path, hint="/ is the root")
    if not path.startswith("/"):
        scheme, slashes, rest = path.partition("://")
        hint = f"write /{path}"
        if slashes and scheme.replace("+", "").isalnum():
            # Without a third slash a host follows, perhaps with a user and a password.
            inside = ""
            if rest.startswith("/"):
                inside = f"the path in it is /{rest.partition('?')[0].lstrip('/')}"
            hint = f"it is a URL; {inside or 'a path of the pond begins with /'}"
        raise PathSyntaxError(f"{path!r} does not begin with /", path=path, hint=hint)
    if "\0" in path:
        raise PathSyntaxError(
            f"{path!r} holds a NUL character", path=path, hint="no name in a pond has one"
        )
    return tuple(name for name in path.split("/") if name not in ("", "."))


def join(*names: str) -> str:
    """The path of names.

    >>> join("a", "b"), join()
    ('/a/b', '/')
    """
    return "/" + "/".join(names)


def child(path: str, name: str) -> str:
    """The path of something in a directory.

    >>> child("/", "a"), child("/a", "b")
    ('/a', '/a/b')
    """
    return f"{path.rstrip('/')}/{name}"


def split(path: str) -> tuple[str, str]:
    """The directory, and the name in it.

    >>> split("/a/b/")
    ('/a', 'b')
    """
    names = parts(path)
    if not names:
        raise PathSyntaxError("the root has no name", path=path, hint="name something in it")
    return join(*names[:-1]), names[-1]


def split_version(path: str) -> Versioned:
    """Take `@v3` from the end of a path.

    >>> split_version("/a/b@v3")
    Versioned(path='/a/b', version=3)
    >>> split_version("/mail/me@home")
    Versioned(path='/mail/me@home', version=None)
    """
    match = _VERSION.fullmatch(path)
    return Versioned(path, None) if match is None else Versioned(match[1], int(match[2]))


def check_name(name: str, *, path: str) -> str:
    """A name that a node can have.

    >>> check_name("b", path="/a/b")
    'b'
    """
    reason = None
    if name in ("", ".", ".."):
        reason = "names nothing of its own"
    elif "/" in name or "\0" in name:
        reason = "holds a / or NUL"
    elif len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        reason = f"is longer than {LONGEST_NAME} bytes"
    elif _VERSION.fullmatch(f"/{name}"):
        reason = "ends like the version of a path"
    elif not is_text(name):
        reason = "is no valid Unicode"
    if reason is not None:
        raise PathSyntaxError(
            f"{name!r} can't be a name in a pond: it {reason}", path=path, hint="choose another"
        )
    return name


def is_text(name: str) -> bool:
    """Whether it is valid Unicode, which can be written down.

    >>> is_text("fish"), is_text("\\ud800")
    (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

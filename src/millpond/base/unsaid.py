"""What is not said: a value that may be a secret is shown as the reference that it came from.

What is secret by its position in a URL is not said either.
Errors, plans and explanations pass through `masked`, wherever they are made; what is computed has
the value itself.
"""

from __future__ import annotations

from typing import Any, Final

from millpond.base.redact import safe_urls

_SHORTEST: Final = 4
"""What is shorter is no secret, and is in many a word."""
_taken: Final[dict[str, str]] = {}
"""Values, and how each was referred to."""


def conceal(value: str, reference: str) -> None:
    """From now on, say `reference` in place of this value."""
    if len(value) >= _SHORTEST:
        _taken[value] = reference


def masked(said: Any) -> Any:
    """A text, or texts inside of others, without what was concealed.

    >>> conceal("open sesame", "${env:DOOR}")
    >>> masked("SELECT 'open sesame'"), masked(["x", {"word": "open sesame"}, 3])
    ("SELECT '${env:DOOR}'", ['x', {'word': '${env:DOOR}'}, 3])
    """
    if isinstance(said, str):
        said = safe_urls(said)
        for secret in sorted(_taken, key=len, reverse=True):
            said = said.replace(secret, _taken[secret])
    elif type(said) in (tuple, list):
        return type(said)(map(masked, said))
    elif type(said) is dict:
        return {name: masked(value) for name, value in said.items()}
    return said


def cause_of(error: BaseException) -> BaseException | None:
    """The error as the cause of another one; None if it says what was concealed."""
    return error if masked(said := str(error)) == said else None

"""A rule by name, for cases and fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.optimizer import RULES, optimize

if TYPE_CHECKING:
    from millpond.plan.optimizer import Rule

BY_NAME: dict[str, Rule] = {**{rule.__name__: rule for rule in RULES}, "optimize": optimize}

"""`column-rename`: a transform that gives columns other names, drops some, casts some.

    factory: column-rename
    config:
      renames: {"DO mg/L": do, "Temp*": "Temperature_$0"}
      drops: ["Unnamed*"]
      casts: {depth: double}

Names match by wildcards, `$0` is what the first of them stands for; `rules` do it by regular
expressions, in which `\\1` is the first group. First columns are dropped, then cast, then renamed.
A name without wildcards in `renames` or `casts` has to be there, a pattern may match nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationInfo, field_validator

from millpond.base.errors import MillpondError, SchemaError
from millpond.plan.expr import col
from millpond.provider.captures import filled
from millpond.provider.expand import has_references
from millpond.provider.factory import KINDS, Config, Entry, TransformFactory
from millpond.provider.wildcards import matching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.expr import Expr, Named
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.reading import Reading


class Rule(Config):
    """A regular expression that a whole name matches, and the new name: `\\\\1` is a group."""

    pattern: str
    replacement: str

    @field_validator("pattern")
    @classmethod
    def _is_regex(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return pattern

    @field_validator("replacement")
    @classmethod
    def _has_groups(cls, replacement: str, info: ValidationInfo) -> str:
        odd = re.search(r"\$(\{[0-9]+\}|[0-9]+)", replacement)
        if odd is not None:
            raise ValueError(f"{odd[0]} is no group here: the first is \\1, the second \\2")
        pattern = info.data.get("pattern")
        if pattern is not None and not has_references(pattern):
            try:
                re.sub(pattern, replacement, "")  # reads the replacement, whatever matches
            except (re.error, IndexError) as error:
                raise ValueError(f"{replacement!r} does not fit the pattern: {error}") from None
        return replacement


class ColumnRenameConfig(Config):
    """What becomes of columns."""

    renames: dict[str, str] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)
    drops: list[str] = Field(default_factory=list)
    casts: dict[str, str] = Field(default_factory=dict)

    @field_validator("casts")
    @classmethod
    def _are_types(cls, casts: dict[str, str]) -> dict[str, str]:
        from millpond.plan.arguments import type_of

        for name, type_ in casts.items():
            try:
                type_of(type_, "casts")
            except MillpondError as error:
                raise ValueError(f"{name}: {error.message}") from None
        return casts


class ColumnRename(TransformFactory[ColumnRenameConfig]):
    """The factory."""

    name = "column-rename"
    model = ColumnRenameConfig
    summary = "a transform that renames, drops and casts columns"

    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """The node, which shows its configuration."""
        del name, reading
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        return Entry(KINDS[self.creates], "column-rename", text, content=text.encode)

    def transform(self, plan: Plan, config: ColumnRenameConfig) -> Plan:
        """The rows under their new names; columns that nothing is said of stay as they are."""
        _check_names(config, plan.schema)
        columns: list[Named] = []
        made: dict[str, str] = {}
        for name in plan.schema.names:
            if any(matching(pattern, name) is not None for pattern in config.drops):
                continue
            value: Expr = col(name)
            for pattern, type_ in config.casts.items():
                if matching(pattern, name) is not None:
                    value = value.cast(type_)
            new = _renamed(name, config)
            if new in made:
                raise SchemaError(
                    f"{made[new]!r} and {name!r} would both be named {new!r}",
                    hint="rename or drop one of them in column-rename",
                )
            made[new] = name
            columns.append(value.alias(new))
        return plan.select(*columns)


def _check_names(config: ColumnRenameConfig, schema: Struct) -> None:
    """Names are of columns that are there; to drop one that is not is no mistake."""
    for what, names in (("casts", config.casts), ("renames", config.renames)):
        for name in names:
            if name not in schema.names and not {"*", "?"} & set(name):
                raise SchemaError(
                    f"{what} of column-rename: there is no column {name!r}",
                    hint=f"{schema.near(name)} A pattern ('temp*') or a rule may match nothing",
                )


def _renamed(name: str, config: ColumnRenameConfig) -> str:
    if name in config.renames:
        return config.renames[name]
    for pattern, new in config.renames.items():
        captures = matching(pattern, name)
        if captures is not None:
            return filled(new, captures)
    for rule in config.rules:
        if re.fullmatch(rule.pattern, name):
            return re.sub(rule.pattern, rule.replacement, name, count=1)
    return name

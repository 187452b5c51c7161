"""`materialize`: the rows of a computed node written down as a table, and kept up to date.

    factory: materialize
    config: {source: /derived/daily, target: /published/daily}

It is run by `pond run`, or after each commit if it is under `/etc/system.d`. Where the source is
what it was, nothing is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import field_validator, model_validator

from millpond.base.errors import PathSyntaxError
from millpond.fs.paths import parts
from millpond.provider.factory import Config, ConfiguredFactory, Creates

if TYPE_CHECKING:
    from millpond.fs.factory import Run

SOURCE_KEY: Final = "millpond.source_key"
"""An attribute of the target: what the source was when it was written."""


class MaterializeConfig(Config):
    """What is written, and where."""

    source: str
    target: str

    @field_validator("source", "target")
    @classmethod
    def _is_path(cls, path: str) -> str:
        try:
            if not parts(path):
                raise ValueError("the root can't be materialized")
        except PathSyntaxError as error:
            raise ValueError(error.message) from None
        return path

    @model_validator(mode="after")
    def _are_two(self) -> MaterializeConfig:
        if parts(self.source) == parts(self.target):
            raise ValueError("source and target are one path")
        return self


class Materialize(ConfiguredFactory[MaterializeConfig]):
    """The factory."""

    name = "materialize"
    creates: ClassVar[Creates] = "executable"
    model = MaterializeConfig
    modes: tuple[str, ...] = ("refresh", "always")
    summary: ClassVar[str] = "writes the rows of a computed node down as a table"

    def run(self, run: Run) -> None:
        """Write the rows, unless the source is what it was; mode `always` writes in any case."""
        scope = run.read()
        config = self.parse(run.config, scope.pond.variables)
        rows = scope.derivation.rows(config.source)
        if run.mode != "always" and _key(scope, config.target) == rows.key:
            return
        with run.write(f"materialize {config.source} as {config.target}") as tx:
            directory = config.target.rpartition("/")[0]
            if directory:
                tx.make_directory(directory, parents=True)
            tx.write_table(config.target, rows.plan())
            told = tx.row(config.target).with_attributes(**{SOURCE_KEY: rows.key})
            tx.change(config.target, extended_attributes=told.extended_attributes)
            tx.commit()


def _key(scope: Any, target: str) -> str | None:
    if not scope.exists(target):
        return None
    found: str | None = scope.row(target).attributes.get(SOURCE_KEY)
    return found

"""`materialize`: the rows of a computed node written down as a table, and kept up to date.

    factory: materialize
    config: {source: /derived/daily, target: /published/daily}

It is run by `pond run`, or after each commit if it is under `/etc/system.d`. Where the source is
what it was, nothing is written. A refresh that failed is made up for by the next one, since the
target still names the older source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import field_validator, model_validator

from millpond.base.errors import PathSyntaxError, WriteConflictError
from millpond.fs.command import NodeCommand
from millpond.fs.paths import parts
from millpond.provider.factory import Config, ConfiguredFactory, Creates

if TYPE_CHECKING:
    from millpond.fs.factory import Run

MOST_ATTEMPTS: Final = 50
"""A refresh that other writers overtook that often has failed; the next one tries again."""
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
    commands: ClassVar[tuple[NodeCommand, ...]] = (
        NodeCommand("refresh", "Write the rows, unless the source is what it was.", settles=True),
        NodeCommand("always", "Write the rows in any case."),
    )
    summary: ClassVar[str] = "writes the rows of a computed node down as a table"

    def run(self, run: Run) -> None:
        """Write the rows, unless the source is what it was; `always` writes in any case.

        The rows are those of the state that the transaction is based on. Where another writer has
        changed the target meanwhile, its rows may be older or newer than these, so everything
        starts again from the newest state.
        """
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                self._refresh(run)
            except WriteConflictError:
                if attempt == MOST_ATTEMPTS:
                    raise
            else:
                return

    def _refresh(self, run: Run) -> None:
        config = self.parse(run.config, run.variables)
        with run.write(f"materialize {config.source} as {config.target}") as tx:
            if refresh(tx, config.source, config.target, always=run.command == "always"):
                tx.commit()


def refresh(tx: Any, source: str, target: str, *, always: bool = False) -> bool:
    """Write the rows of a source to a target in an open transaction; return whether it had to be.

    With `always`, they are written also where the source is what it was.
    """
    # Not those of the transaction itself: nothing that is computed in one is cached.
    rows = tx.base().derivation.rows(source)
    if not always and _key(tx, target) == rows.key:
        return False
    directory = target.rpartition("/")[0]
    if directory:
        tx.make_directory(directory, parents=True)
    tx.write_table(target, rows.plan())
    attributes = tx.row(target).with_attributes(**{SOURCE_KEY: rows.key})
    tx.change(target, extended_attributes=attributes.extended_attributes)
    return True


def _key(tx: Any, target: str) -> str | None:
    if not tx.exists(target):
        return None
    key: str | None = tx.row(target).attributes.get(SOURCE_KEY)
    return key

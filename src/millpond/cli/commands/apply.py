"""`pond apply -f`: make or change many nodes of factories, all of them or none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from millpond.cli.configtext import config_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.cli.context import Context
    from millpond.provider.nodefile import NodeSpec
    from millpond.steward.write import WriteScope

_FILES = click.Path(exists=True, allow_dash=True)


@click.command("apply")
@click.option(
    "-f", "files", type=_FILES, multiple=True, required=True, help="YAML, or a directory."
)
@click.option("--dry-run", is_flag=True, help="Check all of it, and write nothing.")
@click.pass_obj
def command(context: Context, *, files: tuple[str, ...], dry_run: bool) -> None:
    """Bring nodes into the state that YAML files describe; what is so already stays.

    A file has any number of documents with path:, factory: and config:. All of them are checked
    first, and one transaction makes them. Directories above are made where they are missing.

    \b
    Examples:
      pond apply -f pipeline.yaml
      pond apply -f pipeline/ --dry-run
    """
    specs = list(_specs(files))
    found: dict[str, list[str]] = {"made": [], "changed": [], "unchanged": []}
    with context.write("apply") as tx:
        for spec in specs:
            assert spec.path is not None
            found[_state(tx, spec)].append(spec.path)
        if dry_run or not (found["made"] or found["changed"]):
            tx.rollback()
        else:
            for spec in specs:
                if spec.path in (*found["made"], *found["changed"]):
                    assert spec.path is not None
                    tx.make_directory(spec.path.rpartition("/")[0] or "/", parents=True)
                    tx.make_factory(spec.path, spec.factory, spec.config)
            tx.commit()
    would = "would be " if dry_run else ""
    said = [f"{would}{what} {path}" for what, paths in found.items() for path in paths]
    context.out.done("\n".join(said), **found)


def _state(tx: WriteScope, spec: NodeSpec) -> str:
    import json

    assert spec.path is not None
    if not tx.exists(spec.path):
        return "made"
    row = tx.row(spec.path)
    is_same = row.factory == spec.factory and json.loads(row.config or "{}") == spec.config
    return "unchanged" if is_same else "changed"


def _specs(files: Iterable[str]) -> Iterable[NodeSpec]:
    from millpond.base.errors import FactoryConfigError
    from millpond.provider.nodefile import read_nodes

    seen: dict[str, str] = {}
    for file in files:
        for name, text in _texts(file):
            for spec in read_nodes(text, name):
                assert spec.path is not None
                if spec.path in seen:
                    raise FactoryConfigError(
                        f"{spec.path} stands in {seen[spec.path]}, too",
                        file=name,
                        hint="keep one of them",
                    )
                seen[spec.path] = name
                yield spec


def _texts(file: str) -> Iterable[tuple[str, str]]:
    if file == "-":
        yield "-", config_text(file)
        return
    place = Path(file)
    if not place.is_dir():
        yield file, config_text(file)
        return
    inside = sorted([*place.glob("**/*.yaml"), *place.glob("**/*.yml")])
    if not inside:
        raise click.UsageError(f"There is no .yaml file in {file}.")
    for each in inside:
        yield str(each), config_text(str(each))

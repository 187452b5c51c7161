"""`pond mknod`: make a node that a factory computes, or that can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.configtext import config_text
from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.provider.nodefile import NodeSpec

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


@click.command("mknod")
@click.argument("words", nargs=-1, required=True, metavar="[FACTORY] PATH")
@click.option("--config", "node_file", type=_FILE, help="YAML with factory: and config:.")
@click.option("--config-path", "config_file", type=_FILE, help="YAML with the bare configuration.")
@click.option("--overwrite", is_flag=True, help="Give a node that is there another configuration.")
@click.option("-p", "--parents", is_flag=True, help="Also make the directories above it.")
@click.pass_obj
def command(
    context: Context,
    *,
    words: tuple[str, ...],
    node_file: str | None,
    config_file: str | None,
    overwrite: bool,
    parents: bool,
) -> None:
    """Make a node whose content a factory computes, or that can be run.

    The configuration is checked before anything is written, nested ones too. ${env:NAME} and
    {{ name }} in it are filled in when it is used, and never stored.

    \b
    Examples:
      pond mknod --config reduce.yaml /derived/reduced
      pond mknod temporal-reduce /derived/reduced --config-path config.yaml
      pond mknod --config reduce.yaml /derived/reduced --overwrite
    """
    path = PATH.convert(words[-1], None, None)
    spec = _spec(words[:-1], node_file, config_file)
    with context.write("mknod") as tx:
        there = tx.exists(path)
        if there and not overwrite:
            from millpond.base.errors import PathExistsError

            kind = tx.stat(path).entry_type
            raise PathExistsError(
                f"{path} is there already: a {kind}", path=path, hint="--overwrite changes it"
            )
        if parents:
            tx.make_directory(path.rpartition("/")[0] or "/", parents=True)
        tx.make_factory(path, spec.factory, spec.config)
        done = "changed" if there else "made"
        context.committed(tx, f"{done} {path}", path=path, factory=spec.factory)


def _spec(words: tuple[str, ...], node_file: str | None, config_file: str | None) -> NodeSpec:
    from millpond.provider.nodefile import read_config, read_node

    if len(words) > 1:
        raise click.UsageError("Give one path, and before it one factory at most.")
    if words:
        if node_file is not None:
            raise click.UsageError(
                "--config names the factory; give its bare config by --config-path."
            )
        text = "{}" if config_file is None else config_text(config_file)
        return read_config(text, config_file or "config", words[0])
    if node_file is None:
        raise click.UsageError("Give --config FILE, or a factory and --config-path FILE.")
    if config_file is not None:
        raise click.UsageError("--config-path goes with the name of a factory.")
    return read_node(config_text(node_file), node_file)

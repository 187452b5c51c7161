"""`pond engine status`: which engines exist, and whether they could run here. Starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.group("engine", help="Show the engines that can run here.")
def command() -> None:
    """Group of the engine commands."""


@command.command("status")
@click.pass_obj
def status(context: Context) -> None:
    """Show each engine, whether it can run here, and if not, why."""
    from millpond.plan.plugins import ENGINES

    context.out.rows([_describe(name) for name in ENGINES.names()])


def _describe(name: str) -> dict[str, Any]:
    from millpond.base.errors import EngineUnavailableError, PluginError
    from millpond.plan.run import engine_named

    row: dict[str, Any] = {"engine": name, "ready": "yes", "nodes": None, "detail": ""}
    try:
        engine = engine_named(name)
        row["nodes"] = len(engine.capabilities.nodes)
        check = getattr(engine, "check_available", None)
        row["detail"] = check() if check else "runs in this process"
    except (EngineUnavailableError, PluginError) as error:
        row["ready"], row["detail"] = "no", str(error).replace("\n", " ")
    return row

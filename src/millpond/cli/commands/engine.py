"""`pond engine`: which engines can run here, and the warm one, which stays between commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.group("engine", help="Show the engines that can run here; start and stop a warm one.")
def command() -> None:
    """Group of the engine commands."""


@command.command("status")
@click.pass_obj
def status(context: Context) -> None:
    """Show each engine, whether it can run here, and how the warm engine is.

    The warm engine is used by commands with the same settings. In JSON, sizes are bytes.
    """
    from millpond.cli.ready.launching import is_there
    from millpond.engine.spark.warm import control
    from millpond.plan.plugins import ENGINES

    engines = [_describe(name) for name in ENGINES.names()]
    warm = control.status()
    if warm is not None:
        warm["differs"] = control.differences(context.settings)
        warm["ready"] = is_there()
    if context.as_json:
        context.out.facts({"engines": engines, "warm": warm})
        return
    context.out.rows(engines)
    if warm is None:
        context.out.text("\nno warm engine runs: pond engine start\n")
    else:
        context.out.text("\n")
        _show(context, warm)


@command.command("start")
@click.pass_obj
def start(context: Context) -> None:
    """Start a warm engine: a Spark of yours that stays, so that queries answer at once.

    It has the settings of this command, and commands with the same settings use it. It listens on
    this machine alone, to its user alone, and ends when it was idle for warm.idle_minutes.
    """
    from millpond.cli.doing import doing
    from millpond.cli.ready.launching import launch
    from millpond.engine.spark.warm import control

    with doing(context, "starting Spark"):
        found, is_new = control.start(context.settings)
        launch()
    said = "started" if is_new else "runs already"
    context.out.done(
        f"the warm engine {said}: process {found['pid']}, ends after "
        f"{found['idle_minutes']:g} idle minutes",
        started=is_new,
        **found,
    )


@command.command("stop")
@click.pass_obj
def stop(context: Context) -> None:
    """Stop the warm engine, and what runs on it."""
    from millpond.cli.doing import doing
    from millpond.engine.spark.warm import control

    with doing(context, "stopping Spark"):
        was_there = control.stop()
    said = "the warm engine is stopped" if was_there else "no warm engine runs"
    context.out.done(said, stopped=was_there)


def _show(context: Context, warm: dict[str, Any]) -> None:
    from millpond.cli.output import human_size

    differs = warm["differs"]
    use = "by commands with these settings"
    if differs:
        use = f"not with these settings: it has another {', '.join(differs)}"
    context.out.facts(
        {
            "warm engine": f"process {warm['pid']} at {warm['address']}",
            "since": warm["since"],
            "idle": f"{warm['idle_seconds']:.0f} s of {warm['idle_minutes']:g} min",
            "running": warm["running"],
            "answered": warm["served"],
            "memory": human_size(warm["memory"]),
            "used": use,
            "commands": "begin at once" if warm["ready"] else "have to import what they need",
        }
    )


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

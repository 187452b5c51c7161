"""`pond control`: the control table, which knows what was done, and the pond's settings."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from millpond.cli.rowout import FORMATS

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.steward.control.records import Transaction

_USUAL: Final = 20


@click.group("control")
def command() -> None:
    """Look into the control table; settings of the pond."""


# Transactions


@command.command("recent")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_USUAL, show_default=True)
@click.pass_obj
def recent(context: Context, *, limit: int) -> None:
    """Show the last transactions, newest first: also those that failed or are at work.

    \b
    Example:
      pond control recent -n 5
    """
    found = context.open_pond().control.recent(limit)
    if not found:
        context.out.say("there are no transactions yet")
    _show_all(context, found)


@command.command("incomplete")
@click.pass_obj
def incomplete(context: Context) -> None:
    """Show transactions that have begun and not ended: at work, or left by a crash."""
    found = context.open_pond().control.incomplete()
    _show_all(context, found)
    if not found:
        context.out.say("no transaction is open")
    else:
        context.out.say("pond recover finishes what crashed, and leaves alone what is at work")


@command.command("detail")
@click.argument("transaction")
@click.pass_obj
def detail(context: Context, *, transaction: str) -> None:
    """Show all that is known of a TRANSACTION: its number, its id, or how its id begins.

    \b
    Example:
      pond control detail 17
    """
    from millpond.cli.output import short_time

    key = int(transaction) if transaction.isdigit() and len(transaction) < 12 else transaction
    found = context.open_pond().control.detail(key)
    facts = _facts(found.transaction)
    if context.as_json:
        followers = [_facts(each) for each in found.followers]
        context.out.facts({**facts, "records": found.records, "followers": followers})
        return
    shown = {name: value for name, value in facts.items() if value not in (None, {})}
    shown["command"] = _command(found.transaction)
    shown.pop("cli_args", None)
    shown |= {f"environment {k}": v for k, v in shown.pop("environment", {}).items()}
    context.out.facts({name.replace("_", " "): value for name, value in shown.items()})
    context.out.text("\n")
    rows = [
        {"time": row["timestamp"], "record": row["record_type"], "error": row["error_message"]}
        for row in found.records
    ]
    context.out.rows(rows, show={"time": short_time})
    if found.followers:
        context.out.text("\n")
        _show_all(context, found.followers)


def _show_all(context: Context, found: list[Transaction]) -> None:
    from millpond.cli.output import short_time

    if context.as_json:
        context.out.rows([_facts(each) for each in found])
        return
    rows = [
        {
            "txn": each.txn_seq,
            "kind": each.kind,
            "state": each.state,
            "begun": each.begun,
            "ms": each.duration_ms,
            "id": each.txn_id[:8] + "…" + each.txn_id[-4:],
            "command": each.error_message or _command(each),
        }
        for each in found
    ]
    context.out.rows(rows, show={"begun": short_time}, right=("txn", "ms"))


def _command(found: Transaction) -> str:
    said = found.cli_args
    if isinstance(said, list):
        return shlex.join(map(str, said))
    return str(said or found.factory_name or "")


def _facts(found: Transaction) -> dict[str, Any]:
    return {**asdict(found), "environment": dict(found.environment)}


# Upkeep


@command.command("sync")
@click.pass_obj
def sync(context: Context) -> None:
    """Let the control table know what the OpLog knows, and finish what crashed."""
    found = context.open_pond().sync()
    if context.as_json:
        context.out.facts({**asdict(found), "clean": found.is_clean})
        return
    out = context.out
    for seq in found.added:
        out.say(f"transaction {seq} was not known, and was added")
    for seq in found.recovery.completed:
        out.say(f"transaction {seq} was committed; its records are now complete")
    for txn_id in found.recovery.failed:
        out.say(f"{txn_id} ended before it was committed; nothing of it was kept")
    if found.closed:
        out.say(f"{found.closed} notes of transactions were closed")
    if found.is_clean:
        out.say("nothing had to be done")


@command.command("rebuild")
@click.pass_obj
def rebuild(context: Context) -> None:
    """Make the control table anew, out of the OpLog and what can be read of the old one.

    Nobody else may write to the pond meanwhile.
    """
    found = context.open_pond().rebuild_control()
    added = f"{len(found.added)} transactions that only the OpLog knew"
    context.out.done(
        f"made anew: {found.kept} records of the old table, {found.settings} settings, {added}",
        **asdict(found),
    )
    for name in found.unreadable:
        context.out.say(f"{name} of the old table could not be read")


# Settings


@command.command("show-config")
@click.pass_obj
def show_config(context: Context) -> None:
    """Show the settings of the pond, their values and what they are for, and who the pond is."""
    from millpond.steward.control.settings import SETTINGS

    stored = context.open_pond().control.metadata()
    rows = [
        {
            "setting": name,
            "value": stored.get(name, str(default).lower()),
            "set": name in stored,
            "what": what,
        }
        for name, (_, default, what) in SETTINGS.items()
    ]
    rows += [
        {"setting": name, "value": value, "set": True, "what": _meaning(name)}
        for name, value in sorted(stored.items())
        if name not in SETTINGS
    ]
    context.out.rows(rows, show={"set": lambda is_set: "set" if is_set else "default"})


def _meaning(name: str) -> str:
    if name.startswith("pond."):
        return "who the pond is; it can't be changed"
    return "when a factory runs after commits" if name.endswith(".mode") else ""


@command.command("set-config")
@click.argument("pairs", metavar="NAME=VALUE...", nargs=-1)
@click.option("--unset", metavar="NAME", multiple=True, help="Take a setting back to its default.")
@click.pass_obj
def set_config(context: Context, *, pairs: tuple[str, ...], unset: tuple[str, ...]) -> None:
    """Change settings of the pond; pond control show-config lists them.

    \b
    Examples:
      pond control set-config maintain.retention_days=30
      pond control set-config --unset maintain.retention_days
    """
    values: dict[str, str | None] = {}
    texts = [f"{pairs[0]}={pairs[1]}"] if len(pairs) == 2 and "=" not in pairs[0] else pairs
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{text!r} is not like NAME=VALUE.")
        values[name] = value
    values |= dict.fromkeys(unset)
    if not values:
        raise click.UsageError("Give NAME=VALUE, or --unset NAME.")
    control = context.open_pond().control
    control.set(values)
    stored = control.metadata()
    context.out.done(
        "\n".join(f"{name} is {stored.get(name, 'the default')} now" for name in values),
        settings={name: stored.get(name) for name in values},
    )


# SQL


@command.command("sql")
@click.argument("query")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="How rows are written.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@click.pass_obj
def sql_command(context: Context, *, query: str, format_: str | None, limit: int | None) -> None:
    """Run a QUERY over the table control, on Spark.

    It has a row for each thing that happened: record_type (begin, data_committed, completed,
    failed, …), txn_seq, txn_id, timestamp, cli_args, environment, error_message, duration_ms, and
    settings as key and value where record_category is metadata.

    \b
    Example:
      pond control sql "SELECT txn_seq, duration_ms FROM control WHERE record_type = 'completed'"
    """
    from millpond.cli.rowout import query_engine, write_plan
    from millpond.plan.make import sql

    plan = sql(query, control=context.open_pond().control.to_plan())
    if limit is not None:
        plan = plan.head(limit)
    write_plan(context, plan, format_, engine=query_engine(context))

"""`pond export`: rows and files of the pond as files below a directory, also cut by time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.dataparams import PLACE

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.steward.exporting import Export, Written
    from millpond.steward.places import Place
    from millpond.steward.temporal.hive import Unit

FORMATS = ("parquet", "csv", "json")


@click.command("export")
@click.argument("patterns", metavar="PATTERN...", nargs=-1, required=True, type=PLACE)
@click.argument("directory")
@click.option("--temporal", metavar="UNITS", help="Cut series into folders: year,month,day,hour.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="parquet",
              help="How rows are written; Parquet unless it is said.")  # fmt: skip
@click.option("--strip-prefix", metavar="PATH", help="Leave this front of paths away.")
@click.option("--overwrite", is_flag=True, help="Exchange files that are there.")
@click.pass_obj
def command(
    context: Context,
    *,
    patterns: tuple[str, ...],
    directory: str,
    temporal: str | None,
    format_: Any,
    strip_prefix: str | None,
    overwrite: bool,
) -> None:
    """Write what PATTERN names as files below DIRECTORY, a directory of this machine.

    Paths are kept below it, directories with all that is in them. Rows become files of --format,
    stored or computed; files stay what they are. csv:///raw/*.csv and the like are the rows of raw
    files. With --temporal year,month a series becomes a folder with year=2024/month=05/ and so on
    in it, by its time in UTC; what has no time stays one file.

    Templates are rendered last, and see in `exported` where everything else is. Files that are
    there are not touched without --overwrite.

    \b
    Examples:
      pond export '/sensors/*' out
      pond export '/reduced/**' /pages site --temporal year,month
      pond export /sensors /srv/data --strip-prefix /sensors --format csv --overwrite
    """
    from millpond.steward.exporting import Asked, export

    context.start()
    asked = Asked(_directory(directory), format_, _units(temporal), strip_prefix, overwrite)
    found = export(context.read(), [_place(text) for text in patterns], asked)
    with context.out.progress("exporting", len(found.items)) as watch:
        written = found.run(watch)
    _report(context, found, written)


def _place(text: str) -> Place:
    from millpond.steward.places import parse_place

    place = parse_place(text)
    if place.is_host:
        raise click.UsageError(f"{text} is of this machine; what is exported is of the pond.")
    return place


def _directory(text: str) -> str:
    if text.startswith("host:"):
        from millpond.steward.places import parse_place

        text = parse_place(text).path
    elif "://" in text:
        raise click.UsageError(f"Files are exported to a directory of this machine, not to {text}.")
    return str(Path(text).expanduser().absolute())


def _units(text: str | None) -> tuple[Unit, ...]:
    from millpond.steward.temporal.hive import UNITS

    if text is None:
        return ()
    given = tuple(part.strip() for part in text.split(","))
    if given != UNITS[: len(given)]:
        raise click.BadParameter(
            f"{text!r} is not year, year,month, year,month,day or year,month,day,hour.",
            param_hint="--temporal",
        )
    return UNITS[: len(given)]


def _report(context: Context, found: Export, written: list[Written]) -> None:
    from millpond.cli.output import human_size

    files = sum(len(one.files) for one in written)
    size = sum(one.size for one in written)
    where = found.asked.directory
    for path in found.skipped if not context.as_json else ():
        context.out.say(f"left out {path}: it has neither bytes nor rows")
    count = f"{len(written):,} path{'' if len(written) == 1 else 's'}"
    made = f"{files:,} file{'' if files == 1 else 's'} ({human_size(size)})"
    context.out.done(
        f"exported {count} as {made} to {where}",
        directory=where,
        exported=[asdict(one) for one in written],
        skipped=list(found.skipped),
        files=files,
        size=size,
    )

"""`python -m bench`: measure, print a table for each suite, say which targets are met."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.options import Options
from bench.table import as_markdown, as_text

if TYPE_CHECKING:
    from bench.result import Report

SUITES: Final = {
    "engine": "queries on nested events: Arrow engine, DuckDB, hand-written Spark, Spark engine",
    "kernel": "Delta tables: opening, listing, planning, reading, checkpoints, against deltalake",
    "pipeline": "computed paths: appends, reductions, joins, pivots against hand-written Spark",
    "pond": "transactions, listing, opening and copying, against deltalake and bare imports",
    "startup": "what `import millpond` and `pond --help` cost over bare Python",
}
EXAMPLES: Final = """\
examples:
  python -m bench                                        everything
  python -m bench startup
  python -m bench engine --contenders arrow,duckdb --only 'filter_*'
  python -m bench engine --rows 200000 --only top_k --json result.json
  python -m bench kernel --adds 100000 --rows 1000000 --repeat 1
  python -m bench kernel --only log_300k --log 300k-add-files-100-col-partitioned.tar.zst
  python -m bench --markdown bench.md

CPU seconds are over all threads and child processes, best of --repeat runs after a warm-up, each
contender in a process of its own. `× peer` is CPU seconds as a multiple of the peer's: DuckDB's for
the Arrow engine, hand-written Spark's for the Spark engine, deltalake's for the kernel. The two on
Spark also take turns in one process, and then show medians and the range of the ratio. The exit
code is 1 when a contender failed or gave other rows than its peers; a missed target does not change
it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the suites that were asked for."""
    given = _parser().parse_args(arguments)
    options = Options(
        rows=given.rows,
        adds=given.adds,
        log=given.log,
        repeat=given.repeat,
        only=given.only,
        contenders=None if given.contenders is None else tuple(given.contenders.split(",")),
        data=given.data,
    )
    reports: list[Report] = []
    for name in given.suites or SUITES:
        report: Report = import_module(f"bench.{name}.suite").run(options, progress=_progress)
        print(as_text(report), end="\n\n", flush=True)
        reports.append(report)
    if not any(report.results for report in reports):
        print("nothing was measured: --only or --contenders name nothing", file=sys.stderr)
        return 2
    if given.json is not None:
        given.json.write_text(json.dumps([_plain(r) for r in reports], indent=2), encoding="utf-8")
    if given.markdown is not None:
        text = "\n\n".join(as_markdown(report) for report in reports)
        given.markdown.write_text(text + "\n", encoding="utf-8")
    return 1 if any(report.has_errors for report in reports) else 0


def _parser() -> argparse.ArgumentParser:
    suites = "\n".join(f"  {name:<9} {text}" for name, text in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Measure Millpond against its peers.\n\nsuites:\n{suites}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    defaults = Options()
    parser.add_argument(
        "suites", nargs="*", type=_suite, metavar="SUITE", help="default: every suite"
    )
    parser.add_argument(
        "--rows",
        type=_positive,
        metavar="N",
        help="rows that are read (default: 2 million events, 20 million of a table)",
    )
    parser.add_argument(
        "--adds",
        type=_positive,
        metavar="N",
        help="add actions of a checkpoint (default: 1 million); the other logs follow",
    )
    parser.add_argument(
        "--log",
        type=Path,
        default=_from_environment("BENCH_LOG"),
        metavar="FILE",
        help="a .tar.zst of a table's log, for log_300k (default: the environment's BENCH_LOG)",
    )
    parser.add_argument(
        "--repeat",
        type=_positive,
        default=None,
        metavar="N",
        help="runs of which the best counts (default: 3, for startup 15)",
    )
    parser.add_argument("--only", metavar="PATTERN", help="only work of this name, * allowed")
    parser.add_argument(
        "--contenders", metavar="A,B", help="only these, separated by commas, such as arrow,duckdb"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=defaults.data,
        metavar="DIR",
        help="where generated data is kept (default: bench/data)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    return parser


def _from_environment(name: str) -> Path | None:
    text = os.environ.get(name)
    return Path(text) if text else None


def _suite(text: str) -> str:
    if text not in SUITES:
        raise argparse.ArgumentTypeError(f"no suite {text!r}: choose from {', '.join(SUITES)}")
    return text


def _positive(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _plain(report: Report) -> dict[str, object]:
    results = [{**asdict(r), "ratio": report.ratio(r)} for r in report.results]
    goals = [{**asdict(g), "met": g.is_met} for g in report.goals]
    return {"suite": report.suite, "results": results, "goals": goals, "notes": report.notes}


if __name__ == "__main__":
    sys.exit(main())

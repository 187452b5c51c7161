"""Secrets on a command line or in a URL are neither stored in the pond nor shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import millpond as mp
from millpond.base.errors import MillpondError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.cli.calls import Cli

PLANTED = re.compile(r"planted\d+")
SIGNED = (
    "https://ann:planted10@host/x?sv=planted11&se=planted12&sp=planted13&sig=planted14",
    "https://host/x?X-Amz-Credential=planted20&X-Amz-Signature=planted21&x-amz-security-token=planted22",
    "https://host/x?GoogleAccessId=planted30&Expires=planted31&Signature=planted32",
    "https://planted40@host/x?access_token=planted41",
    "s3://key:planted50@bucket/x",
    "s3://bucket/x?token=planted51",
    "abfss://raw:planted52@account/x?sig=planted53",
    "host+csv:///no/x.csv?sig=planted60",
    "csv:///no?signature=planted61",
)  # fmt: skip
"""URLs as somebody may paste them; none of them can be read."""


def stored(place: Path) -> str:
    """All text below a pond: names, and contents of Parquet as rows."""
    found = []
    for file in sorted(place.rglob("*")):
        found.append(str(file))
        if file.suffix == ".parquet":
            found.append(str(pq.read_table(file).to_pylist()))
        elif file.is_file():
            found.append(file.read_bytes().decode("utf-8", "replace"))
    return "\n".join(found)


def test_nothing_that_was_planted_is_found(
    cli: Cli, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    given = ("-v", "db_pass=planted1", "-v", "site=planted2", "-vdepth=planted3")
    said = [
        cli(*given, "mkdir", "/made").output,
        cli("-v", "planted4", "mkdir", "/other").output,
        cli(*given, "rm", "/nothing").output,
    ]
    (place.parent / "a.csv").write_text("a\n1\n")
    for url in SIGNED:
        said += [
            cli(*given, "copy", url, "/copied").output,
            cli("copy", str(place.parent / "a.csv"), url).output,
            cli("--json", "cat", url).output,
            cli("cat", "host+csv://" + str(place.parent / "a.csv"), url).output,
            cli("list", url).output,
            cli("export", "/made", url).output,
            cli("--pond", url, "list").output,
            cli("describe", url).output,
            cli("mknod", "--config", url, "/node").output,
        ]
    pond = mp.open(place)
    for url in SIGNED:
        with pond.write(f"loaded {url}", source=url, args=["load", "--from", url]) as tx:
            tx.write_bytes("/loaded", url[:3].encode())
            tx.commit()
        try:
            pond.read().read_bytes(url)
        except MillpondError as error:
            said += [str(error), repr(error), str(error.to_dict())]
    said += [cli("show").output, cli("control", "recent").output, cli("--json", "show").output]

    assert "/made" in cli.ok("list", "/") + str(said)
    assert "site=***" in cli.ok("--json", "control", "recent") + stored(place)
    shown = [line for text in said for line in text.splitlines() if PLANTED.search(line)]
    assert "\n".join(shown) == ""
    assert not PLANTED.findall(stored(place))
    assert not PLANTED.findall(caplog.text)

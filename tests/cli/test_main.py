"""`pond` as its user sees it: help, JSON, exit codes, and what it must not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from tests.rights import without_rights

import millpond as mp
from millpond.cli.main import main, pond
from millpond.cli.table import COMMANDS


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millpond.cli", *args]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **env}, check=False
    )


def test_help_names_every_command_and_its_other_names() -> None:
    text = CliRunner().invoke(pond, ["--help"]).output
    for entry in COMMANDS.values():
        assert entry.help in text
        assert ", ".join((entry.name, *entry.aliases)) in text


def test_unknown_command_is_wrong_usage() -> None:
    answer = run("swim")
    assert answer.returncode == 2
    assert "swim" in answer.stderr
    assert answer.stdout == ""


def test_settings_say_where_they_come_from() -> None:
    answer = run("--json", "settings", MILLPOND_ENGINE="arrow")
    rows = {row["setting"]: row for row in json.loads(answer.stdout)}
    assert rows["engine"]["value"] == "arrow"
    assert "MILLPOND_ENGINE" in rows["engine"]["origin"]


def test_secrets_are_never_shown() -> None:
    secret = "do-not-show-me"
    for flags in ((), ("--json",)):
        answer = run(*flags, "settings", MILLPOND_STORE_SECRET_ACCESS_KEY=secret)
        assert answer.returncode == 0, answer.stderr
        assert secret not in answer.stdout + answer.stderr


@pytest.mark.parametrize("path", ["s3://bucket/pond", "s3://bucket/pond/"])
def test_a_store_that_can_not_be_reached(path: str) -> None:
    env = {
        "MILLPOND_STORE_ENDPOINT": "http://127.0.0.1:9",
        "MILLPOND_STORE_ALLOW_HTTP": "true",
        "MILLPOND_STORE_REGION": "us-east-1",
        "MILLPOND_STORE_ACCESS_KEY_ID": "a",
        "MILLPOND_STORE_SECRET_ACCESS_KEY": "b",
    }
    answer = run("--pond", path, "list", **env)
    assert answer.returncode == 11
    assert "can't be reached" in answer.stderr
    assert "hint: check store.endpoint, store.region and the network" in answer.stderr


def test_arguments_and_variables_that_are_not_utf8(tmp_path: Path) -> None:
    place = str(tmp_path / "pond")
    assert run("init", place, USER="\udcff").returncode == 0
    assert run("--pond", place, "mkdir", "/a", USER="\udcff").returncode == 0
    for words, code in (
        (["restore", "/\udc80"], 6),
        (["mkdir", "/\udc80"], 8),
        (["-v", "a=\udc80", "mkdir", "/b"], 0),
        (["sql", "select '\udc80'"], 4),
    ):
        answer = run("--pond", place, *words)
        assert answer.returncode == code, answer.stderr
        assert "Traceback" not in answer.stderr
    kinds = mp.open(place).control.recent(20)
    assert [found.state for found in kinds] == ["completed", "failed", "failed", "completed"]
    assert mp.open(place).control.detail(1).transaction.environment["USER"] == "\\xff"


@pytest.mark.parametrize("top", ["tables", "data"])
def test_no_access_to_a_part_of_a_pond(tmp_path_factory: pytest.TempPathFactory, top: str) -> None:
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        place = Path(directory, "pond")
        made = mp.create(str(place))
        with made.write() as tx:
            tx.write_table("/t", [{"a": 1}])
            tx.commit()
        assert CliRunner().invoke(pond, ["--pond", str(place), "cat", "/t"]).exit_code == 0
        (place / top).chmod(0)
        try:
            with without_rights():
                answer = CliRunner().invoke(pond, ["--pond", str(place), "cat", "/t"])
        finally:
            (place / top).chmod(0o755)
        assert answer.exit_code == 11, answer.stderr
        assert "hint: check" in answer.stderr


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    answer = run("settings", MILLPOND_STORE_ENDPOINT="http://ann:hush@host:9000")
    assert answer.returncode == 3
    assert "store.endpoint" in answer.stderr
    assert "hush" not in answer.stdout + answer.stderr


def test_bad_setting_is_exit_code_3_and_names_it() -> None:
    answer = run("settings", MILLPOND_ENGINE="sparc")
    assert answer.returncode == 3
    assert "MILLPOND_ENGINE" in answer.stderr
    assert "sparc" in answer.stderr
    as_json = run("--json", "settings", MILLPOND_ENGINE="sparc")
    assert json.loads(as_json.stderr)["error"] == "ConfigError"


def test_engine_status_lists_both_engines() -> None:
    rows = json.loads(run("--json", "engine", "status").stdout)["engines"]
    assert {"arrow", "spark"} <= {row["engine"] for row in rows}


def test_engine_status_without_java_says_what_to_do() -> None:
    answer = run("--json", "engine", "status", JAVA_HOME="/nonexistent")
    spark = next(r for r in json.loads(answer.stdout)["engines"] if r["engine"] == "spark")
    assert spark["ready"] == "no"
    assert "JAVA_HOME" in spark["detail"]


@pytest.mark.parametrize("statement", ["import millpond", "import millpond.cli.main"])
def test_light_imports(statement: str) -> None:
    banned = ("pyspark", "pandas", "pyarrow", "numpy", "pydantic", "sqlglot", "rich", "obstore")
    source = f"{statement}\nimport sys\nprint([m for m in {banned!r} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert "0.1.0" in capsys.readouterr().out

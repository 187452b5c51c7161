"""Settings: which layer wins, and what a mistake looks like."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base import settings as module
from millpond.base.errors import ConfigError
from millpond.base.secret import Secret
from millpond.base.settings import (
    ArrowSettings,
    Settings,
    SparkSettings,
    StoreSettings,
)

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
engine = "spark"

[spark]
master = "local[1]"
driver_memory = "2g"

[spark.conf]
spark.ui.enabled = false
"spark.cores.max" = 4
"spark.hadoop.fs.s3a.secret.key" = "hunter2"

[arrow]
batch_rows = 1000

[store]
endpoint = "https://s3.example.org"
secret_access_key = "hunter2"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "millpond.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_defaults() -> None:
    settings = Settings.load(env={})
    assert settings == Settings()
    assert settings.engine == "auto"
    assert settings.spark == SparkSettings(None, None, {}, "ERROR")
    assert settings.arrow == ArrowSettings(65_536, None, "auto")
    assert settings.store == StoreSettings(None, None, False, None, None, None)
    assert {row.origin for row in settings.describe()} == {"default"}


def test_every_field_is_a_setting_and_back() -> None:
    settings = Settings()
    names = {"engine"}
    for section in ("spark", "arrow", "store", "sql", "warm", "limits"):
        names |= {f"{section}.{field.name}" for field in fields(getattr(settings, section))}
    assert names == set(module.PARSERS)
    assert {f.name for f in fields(settings)} == {
        "engine", "spark", "arrow", "store", "sql", "warm", "limits", "origins",
    }  # fmt: skip


def test_each_layer_wins_over_the_one_below(file: Path) -> None:
    env = {"MILLPOND_CONFIG": str(file), "MILLPOND_SPARK_MASTER": "local[2]", "OTHER": "x"}
    settings = Settings.load(env=env, spark_driver_memory="3g")
    assert settings.engine == "spark"
    assert settings.spark.master == "local[2]"
    assert settings.spark.driver_memory == "3g"
    assert settings.arrow.batch_rows == 1000
    origins = {row.name: row.origin for row in settings.describe()}
    assert origins["engine"] == f"file {file}"
    assert origins["spark.master"] == "environment variable MILLPOND_SPARK_MASTER"
    assert origins["spark.driver_memory"] == "the call"
    assert origins["arrow.max_buffer_rows"] == "default"


def test_a_file_given_by_path_wins_over_the_variable(file: Path) -> None:
    settings = Settings.load(file, env={"MILLPOND_CONFIG": "/nowhere"})
    assert settings.engine == "spark"


def test_spark_conf_merges_by_name(file: Path) -> None:
    env = {"MILLPOND_SPARK_CONF": "spark.cores.max=8, spark.a.b=x=y"}
    settings = Settings.load(file, env=env, **{"spark.conf": {"spark.a.c": True}})
    assert dict(settings.spark.conf) == {
        "spark.a.b": "x=y",
        "spark.a.c": "true",
        "spark.cores.max": "8",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.ui.enabled": "false",
    }
    origins = {row.name: row.origin for row in settings.describe()}
    assert origins["spark.conf.spark.cores.max"] == "environment variable MILLPOND_SPARK_CONF"
    assert origins["spark.conf.spark.a.c"] == "the call"
    assert origins["spark.conf.spark.ui.enabled"] == f"file {file}"


def test_the_environment_is_the_process_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_ENGINE", "Arrow")
    assert Settings.load().engine == "arrow"


def test_empty_variables_and_none_mean_not_given() -> None:
    env = {"MILLPOND_ENGINE": "", "MILLPOND_CONFIG": "", "MILLPOND_SPARK_MASTER": " "}
    assert Settings.load(env=env, engine=None, spark_conf=None) == Settings()


def test_copies() -> None:
    first = Settings.load(env={}, arrow_max_buffer_rows=2)
    second = first.with_overrides(arrow_max_buffer_rows="3", store_allow_http="yes")
    assert (first.arrow.max_buffer_rows, second.arrow.max_buffer_rows) == (2, 3)
    assert second.store.allow_http
    with pytest.raises(FrozenInstanceError):
        second.engine = "spark"  # type: ignore[misc]
    assert len({first, second, first.with_overrides()}) == 2


def test_secrets_are_not_shown(file: Path) -> None:
    settings = Settings.load(file, env={"MILLPOND_STORE_SESSION_TOKEN": "hunter2"})
    assert settings.store.secret_access_key == Secret("hunter2")
    shown = repr(settings) + str(settings) + str(settings.describe())
    assert "hunter2" not in shown
    values = {row.name: row.value for row in settings.describe()}
    assert values["store.secret_access_key"] == "***"
    assert values["spark.conf.spark.hadoop.fs.s3a.secret.key"] == "***"
    assert values["store.region"] == ""


def test_spark_settings_that_hold_secrets_are_not_shown() -> None:
    conf = {
        "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net": "hunter2",
        "spark.hadoop.fs.gs.auth.service.account.private.key": "hunter2",
        "spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=hunter2",
    }
    settings = Settings.load(env={}, spark_conf=conf)
    assert dict(settings.spark.conf) == conf
    assert "hunter2" not in repr(settings) + str(settings.describe())


def test_the_tail_of_a_secret_is_not_quoted() -> None:
    with pytest.raises(
        ConfigError, match=r"part 2 has no name that starts with 'spark\.'"
    ) as caught:
        Settings.load(env={"MILLPOND_SPARK_CONF": "spark.x.password=aa,hunter2=bb"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://h:7077",
     "sc://h:15002/;token=x", "yarn", "k8s://https://h:6443"],
)  # fmt: skip
def test_masters(master: str) -> None:
    assert Settings.load(env={}, spark_master=master).spark.master == master


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine", "duck"), ("engine", 3), ("spark_master", "local[2"), ("spark_master", "http://h"),
        ("spark_driver_memory", "much"), ("spark_log_level", "LOUD"), ("arrow_batch_rows", 0),
        ("arrow_batch_rows", -5), ("arrow_batch_rows", "many"), ("arrow_batch_rows", True),
        ("arrow_batch_rows", 1.5), ("arrow_spill", "maybe"), ("arrow_max_buffer_rows", "1e6"),
        ("warm_idle_minutes", "0"), ("warm_idle_minutes", True), ("warm_use", "always"),
        ("store_endpoint", "s3.example.org"), ("store_allow_http", "perhaps"),
        ("store_allow_http", 2), ("store_region", ""), ("spark_conf", 3),
        ("spark_conf", {"ui.enabled": "false"}), ("spark_conf", {"spark.a": [1]}),
        ("spark_conf", "spark.a"), ("spark_conf", "spark.a=1,spark.a=2"),
    ],
)  # fmt: skip
def test_bad_values_say_what_is_allowed(name: str, value: object) -> None:
    kwargs: dict[str, Any] = {name: value}
    with pytest.raises(
        ConfigError, match=r"bad value.* from the call\n  hint: allowed: "
    ) as caught:
        Settings.load(env={}, **kwargs)
    assert caught.value.setting == name.replace("_", ".", 1 if "_" in name else 0)


def test_bad_values_of_sections_built_by_hand() -> None:
    with pytest.raises(ConfigError, match=r"arrow\.batch_rows"):
        ArrowSettings(batch_rows=0)
    with pytest.raises(ConfigError, match="engine"):
        Settings(engine="duck")  # type: ignore[arg-type]
    rows = Settings(arrow=ArrowSettings(batch_rows=5)).describe()
    [row] = [row for row in rows if row.name == "arrow.batch_rows"]
    assert row == ("arrow.batch_rows", "5", "the call")


def test_bad_secrets_are_not_repeated() -> None:
    for kwargs in ({"spark_conf": "spark.password=hunter,2"}, {"store_session_token": 2}):
        with pytest.raises(ConfigError) as caught:
            Settings.load(env={}, **kwargs)
        assert "2" not in caught.value.message
        assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("MILLPOND_SPARK_MASTR", "did you mean MILLPOND_SPARK_MASTER?"),
        ("MILLPOND_SPRAK_MASTER", "did you mean MILLPOND_SPARK_MASTER?"),
        ("MILLPOND_ENGIN", "did you mean MILLPOND_ENGINE?"),
        ("MILLPOND_QQ", "known settings: engine, spark.master"),
    ],
)
def test_unknown_variables(variable: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load(env={variable: "x"})
    message = f"unknown setting '{variable}' in environment variable {variable}"
    assert caught.value.message == message
    assert hint in str(caught.value)


def test_unknown_names_in_a_call() -> None:
    with pytest.raises(ConfigError, match=r"(?s)'spark_mastr' in the call.*mean spark\.master\?"):
        Settings.load(env={}, spark_mastr="x")
    with pytest.raises(ConfigError, match="unknown setting"):
        Settings().with_overrides(spark={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[spark]\nmastr = 'x'", r"(?s)unknown setting 'spark\.mastr' in file .*spark\.master\?"),
        ("[sprak]\nmaster = 'x'", "unknown setting 'sprak' in file"),
        ("spark = 3", "'spark' in file .* must be a table"),
        ("[arrow]\nbatch_rows = '0'", r"arrow\.batch_rows has a bad value '0' from file"),
        ("engine = ?", r"is not valid TOML: .*line 1"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "millpond.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        Settings.load(path, env={})
    assert str(path) in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*can't be read"):
        Settings.load(env={"MILLPOND_CONFIG": str(tmp_path / "nowhere")})


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "millpond.toml"
    path.write_bytes(b"engine = '\xff'")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        Settings.load(path, env={})

"""Settings in layers: defaults < file < environment < the call; each value knows its origin.

A setting has one dotted name, `spark.master`. In a file that is `master` in the table `[spark]`;
in the environment it is `MILLPOND_SPARK_MASTER`; in a call it is `spark_master=`. Sections have no
underscore in their names, so the first underscore after `MILLPOND_` always ends the section.
An empty environment variable and `None` in a call mean "not given".

The values are read by `base/setting.py`. `Settings.describe()` shows where each one came from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from millpond.base import setting
from millpond.base.errors import ConfigError
from millpond.base.setting import Parser, SparkConf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.base.secret import Secret

EngineChoice: TypeAlias = Literal["auto", "arrow", "spark"]

_PREFIX = "MILLPOND_"
_FILE_VARIABLE = "MILLPOND_CONFIG"
_MASTER = r"local(\[[^\]]+\])?|local-cluster\[\d+,\d+,\d+\]|(spark|sc|k8s)://\S+|yarn"
_MEMORY = r"\d+([kmgt]b?)?"

# Every setting there is, by its dotted name.
PARSERS: Mapping[str, Parser] = {
    "engine": setting.one_of("auto", "arrow", "spark"),
    "spark.master": setting.optional(
        setting.matching(
            _MASTER,
            allowed="local[4], local-cluster[2,1,1024], spark://host:7077, sc://host, k8s://, yarn",
        )
    ),
    "spark.driver_memory": setting.optional(
        setting.matching(f"(?i:{_MEMORY})", allowed="an amount such as 4g or 512m")
    ),
    "spark.conf": setting.spark_conf,
    "spark.verify": setting.one_of("pages", "full", "none"),
    "spark.log_level": setting.one_of(
        "ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"
    ),
    "arrow.batch_rows": setting.positive,
    "arrow.max_buffer_rows": setting.optional(setting.positive),
    "arrow.spill": setting.one_of("auto", "never"),
    "arrow.max_parse_bytes": setting.positive,
    "arrow.threads": setting.optional(setting.positive),
    "arrow.native": setting.one_of("auto", "never"),
    "store.endpoint": setting.optional(
        setting.matching(
            r"https?://[^\s@]+",
            allowed="an http:// or https:// address without user and password, which are "
            "store.access_key_id and store.secret_access_key",
        )
    ),
    "store.region": setting.optional(setting.text),
    "store.allow_http": setting.switch,
    "store.access_key_id": setting.optional(setting.text),
    "store.secret_access_key": setting.optional(setting.secret),
    "store.session_token": setting.optional(setting.secret),
    "sql.allow": setting.one_of("inputs", "session"),
    "warm.use": setting.one_of("auto", "never"),
    "warm.idle_minutes": setting.amount,
    "limits.template_seconds": setting.amount,
    "limits.template_bytes": setting.positive,
    "limits.unpacked_bytes": setting.positive,
    "limits.unpacked_ratio": setting.positive,
    "limits.line_bytes": setting.positive,
}
_SECTIONS = ("spark", "arrow", "store", "sql", "warm", "limits")


class SettingRow(NamedTuple):
    """One line of `Settings.describe()`; secrets are masked."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark is started or reached."""

    master: str | None = None
    """None starts Spark in this process, sized to the machine."""
    driver_memory: str | None = None
    conf: Mapping[str, str] = field(default_factory=SparkConf)
    """Any `spark.*` setting; wins over what Millpond sets itself."""
    log_level: str = "ERROR"
    verify: Literal["pages", "full", "none"] = "pages"
    """What is checked of the Parquet files that Spark reads: see `engine/spark/verify.py`."""

    def __post_init__(self) -> None:
        _check_section(self, "spark")


@dataclass(frozen=True, slots=True)
class ArrowSettings:
    """How the Arrow engine uses this machine."""

    batch_rows: int = 65_536
    max_buffer_rows: int | None = None
    """How many rows a sort or a join may hold; None derives it from the machine's memory."""
    spill: Literal["auto", "never"] = "auto"
    max_parse_bytes: int = 512 << 20
    """Raw files in a pond that are larger, and that Spark reads by itself, are parsed by Spark."""
    threads: int | None = None
    """How many Parquet files are decoded at a time; None is one a processor, up to eight."""
    native: Literal["auto", "never"] = "auto"
    """Whether pages of Parquet files are decoded by compiled functions, where there are some."""

    def __post_init__(self) -> None:
        _check_section(self, "arrow")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How an object store is reached; what is None is taken from the usual AWS variables."""

    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False
    access_key_id: str | None = None
    secret_access_key: Secret | None = None
    session_token: Secret | None = None

    def __post_init__(self) -> None:
        _check_section(self, "store")


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """What queries may do that users write themselves; those of factories never may more."""

    allow: Literal["inputs", "session"] = "inputs"
    """`session` allows programs, files, tables and functions that the Spark session reaches."""

    def __post_init__(self) -> None:
        _check_section(self, "sql")


@dataclass(frozen=True, slots=True)
class WarmSettings:
    """The engine that stays between commands: `pond engine start`."""

    use: Literal["auto", "never"] = "auto"
    """Whether commands use one that runs."""
    idle_minutes: float = 30
    """How long it waits for work before it ends."""

    def __post_init__(self) -> None:
        _check_section(self, "warm")


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What input of others may cost at most; beyond it is an error that names the setting."""

    template_seconds: float = 60
    """Processor time for rendering one file of a template."""
    template_bytes: int = 64 << 20
    """The size of a rendered file, and of any value that its template computes."""
    unpacked_bytes: int = 256 << 30
    """The size of the content of one packed file."""
    unpacked_ratio: int = 1000
    """How many times larger than the file it may be, beyond 64 MiB."""
    line_bytes: int = 128 << 20
    """The length of a line of JSON or of a log, and of a row of CSV."""

    def __post_init__(self) -> None:
        _check_section(self, "limits")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a process or a pond.

    >>> settings = Settings.load(env={"MILLPOND_ENGINE": "arrow"}, spark_master="local[2]")
    >>> settings.engine, settings.spark.master, settings.arrow.batch_rows
    ('arrow', 'local[2]', 65536)
    >>> [row for row in settings.describe() if row.origin != "default"][0]
    SettingRow(name='engine', value='arrow', origin='environment variable MILLPOND_ENGINE')
    """

    engine: EngineChoice = "auto"
    spark: SparkSettings = field(default_factory=SparkSettings)
    arrow: ArrowSettings = field(default_factory=ArrowSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    sql: SqlSettings = field(default_factory=SqlSettings)
    warm: WarmSettings = field(default_factory=WarmSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    origins: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        engine = _parsed("engine", self.engine, origin="the call")
        object.__setattr__(self, "engine", engine)

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        **overrides: object,
    ) -> Settings:
        """Read all layers; `env` is the process's environment unless one is given."""
        env = os.environ if env is None else env
        file = file or env.get(_FILE_VARIABLE) or None
        layers = [_from_file(os.fspath(file))] if file is not None else []
        layers += [_from_env(env), _from_call(overrides)]
        return _apply(cls(), chain.from_iterable(layers))

    def with_overrides(self, **overrides: object) -> Settings:
        """A copy in which some settings are changed: `with_overrides(spark_master="local[2]")`."""
        return _apply(self, _from_call(overrides))

    def describe(self) -> tuple[SettingRow, ...]:
        """Every setting with its value and origin, in a fixed order, safe to show."""
        origins, defaults = dict(self.origins), Settings()
        rows = []
        for name in PARSERS:
            value = _value(self, name)
            unnamed = "default" if value == _value(defaults, name) else "the call"
            if name == "spark.conf":
                rows += [
                    SettingRow(f"{name}.{k}", v, origins.get(f"{name}.{k}", "the call"))
                    for k, v in cast("SparkConf", value).masked().items()
                ]
            else:
                shown = "" if value is None else str(value)
                rows.append(SettingRow(name, shown, origins.get(name, unnamed)))
        return tuple(rows)


def process_limits() -> LimitSettings:
    """Return the limits of this process: those of its settings file and environment.

    They hold for all ponds, since content passes from one to another.
    """
    names = [f"{_PREFIX}LIMITS_{item.name.upper()}" for item in fields(LimitSettings)]
    return _limits(tuple(map(os.environ.get, (_FILE_VARIABLE, *names))))


@lru_cache(maxsize=4)
def _limits(variables: tuple[str | None, ...]) -> LimitSettings:
    del variables
    return Settings.load().limits


class _Given(NamedTuple):
    name: str
    value: object
    origin: str


def _value(settings: Settings, name: str) -> object:
    section, _, key = name.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, key)


def _apply(settings: Settings, given: Iterator[_Given]) -> Settings:
    """Apply values from the weakest layer to the strongest; `spark.conf` merges by name."""
    origins = dict(settings.origins)
    changes: dict[str, dict[str, Any]] = {}
    for name, raw, origin in given:
        section, _, key = name.rpartition(".")
        value = _parsed(name, raw, origin=origin)
        section_changes = changes.setdefault(section, {})
        if isinstance(value, SparkConf):
            origins |= {f"{name}.{k}": origin for k in value}
            value = SparkConf({**section_changes.get(key, settings.spark.conf), **value})
        else:
            origins[name] = origin
        section_changes[key] = value
    top: dict[str, Any] = changes.pop("", {})
    top |= {name: replace(getattr(settings, name), **new) for name, new in changes.items()}
    return replace(settings, **top, origins=tuple(sorted(origins.items())))


def _from_file(path: str) -> Iterator[_Given]:
    import tomllib
    from pathlib import Path

    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the settings file {path} can't be read: {error.strerror}",
            hint=f"check the path, or unset {_FILE_VARIABLE}",
        ) from error
    except ValueError as error:
        raise ConfigError(f"the settings file {path} is not valid TOML: {error}") from error
    origin = f"file {path}"
    for key, value in table.items():
        if key not in _SECTIONS:
            yield _Given(_known(key, shown=key, origin=origin), value, origin)
        elif isinstance(value, dict):
            for sub, item in value.items():
                name = f"{key}.{sub}"
                yield _Given(_known(name, shown=name, origin=origin), item, origin)
        else:
            raise ConfigError(f"'{key}' in {origin} must be a table: [{key}]", setting=key)


def _from_env(env: Mapping[str, str]) -> Iterator[_Given]:
    for variable in sorted(env):
        if variable.startswith(_PREFIX) and variable != _FILE_VARIABLE and env[variable].strip():
            origin = f"environment variable {variable}"
            dotted = _dotted(variable.removeprefix(_PREFIX).lower())
            yield _Given(_known(dotted, shown=variable, origin=origin), env[variable], origin)


def _from_call(overrides: Mapping[str, object]) -> Iterator[_Given]:
    for name, value in overrides.items():
        known = _known(_dotted(name), shown=name, origin="the call")
        if value is not None:
            yield _Given(known, value, "the call")


def _dotted(name: str) -> str:
    """`spark_driver_memory` → `spark.driver_memory`; a name with a dot stays as it is."""
    section, underscore, rest = name.partition("_")
    return f"{section}.{rest}" if underscore and "." not in name and section in _SECTIONS else name


def _known(name: str, *, shown: str, origin: str) -> str:
    if name in PARSERS:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name.replace("_", "."), PARSERS, n=1)
    spelled = near[0] if near else ""
    if spelled and shown.startswith(_PREFIX):
        spelled = _PREFIX + spelled.replace(".", "_").upper()
    hint = f"did you mean {spelled}?" if spelled else f"known settings: {', '.join(PARSERS)}"
    raise ConfigError(f"unknown setting {shown!r} in {origin}", setting=shown, hint=hint)


def _parsed(name: str, value: object, *, origin: str) -> Any:
    try:
        return PARSERS[name](value)
    except ValueError as error:
        # A secret, or a table that may hold one, is not repeated in a message.
        hidden = name in (
            *("store.secret_access_key", "store.session_token", "spark.conf"),
            "store.endpoint",
        )
        got = "" if hidden else f" {value!r}"
        raise ConfigError(
            f"{name} has a bad value{got} from {origin}", setting=name, hint=f"allowed: {error}"
        ) from None


def _check_section(section: object, name: str) -> None:
    """Make sections built by hand as strict as loaded ones."""
    for item in fields(cast("Any", section)):
        value = _parsed(f"{name}.{item.name}", getattr(section, item.name), origin="the call")
        object.__setattr__(section, item.name, value)

"""The data: nested events like GitHub's, the same for every run of the same size.

24 leaves in structs, a list of strings and a list of structs; timestamps nearly in order; keys as
skewed as real ones. One Parquet file (zstd, row groups of 65,536 rows), kept in `bench/data`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

VERSION: Final = 1
"""Part of the file's name: raise it with every change of what is generated."""

SEED: Final = 20240531
ROW_GROUP: Final = 65_536
START_MICROS: Final = 1_704_067_200_000_000  # 2024-01-01 00:00:00 UTC
SPAN_MICROS: Final = 30 * 86_400 * 1_000_000
JITTER_MICROS: Final = 60_000_000
DATA: Final = Path(__file__).resolve().parents[1] / "data"

TYPES: Final = {
    "PushEvent": 0.52,
    "PullRequestEvent": 0.13,
    "CreateEvent": 0.12,
    "WatchEvent": 0.09,
    "IssueCommentEvent": 0.07,
    "IssuesEvent": 0.03,
    "ForkEvent": 0.02,
    "ReleaseEvent": 0.013,
    "GollumEvent": 0.007,
}
RARE_TYPE: Final = "DeleteEvent"
RARE_EVERY: Final = 2_000
ACTIONS: Final = ("opened", "closed", "edited", "reopened", "labeled", "synchronize")
LABELS: Final = (
    "bug",
    "docs",
    "feature",
    "question",
    "ci",
    "stale",
    "good first issue",
    "p1",
    "p0",
)
LABEL_SHARES: Final = (0.25, 0.18, 0.17, 0.12, 0.1, 0.08, 0.06, 0.035, 0.005)
LANGUAGES: Final = ("Python", "Java", "C++", "Rust", "Go", "TypeScript", "Ruby", "Scala", None)
VERBS: Final = (
    *("fix", "add", "remove", "update", "refactor", "document", "test", "bump", "rename", "move"),
    *("simplify", "clean up", "speed up", "prepare", "revert"),
)
VERB_SHARES: Final = (*(0.0705,) * 14, 0.013)
NOUNS: Final = (
    *("parser", "build", "release notes", "scheduler", "cache", "config loader", "tests", "docs"),
    *("login page", "retry loop", "index", "schema", "reader", "writer", "error message", "API"),
)
PLACES: Final = ("in core", "for Windows", "after review", "again", "on main", "of the CLI", "")


@dataclass(frozen=True, slots=True)
class Pools:
    """What events refer to again and again: actors and repositories, the popular ones first."""

    logins: pa.Array
    names: pa.Array
    stars: np.ndarray[Any, Any]
    languages: np.ndarray[Any, Any]
    forks: np.ndarray[Any, Any]


def events(rows: int, *, directory: Path = DATA) -> Path:
    """The file with that many events; it is made when it is not there yet."""
    path = directory / f"events-v{VERSION}-{rows}.parquet"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp")
        write(unfinished, rows=rows)
        unfinished.rename(path)
    return path


def write(path: Path, *, rows: int) -> None:
    """Generate the events, a row group at a time."""
    pools = make_pools(rows)
    first = chunk(0, min(rows, ROW_GROUP), total=rows, pools=pools)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first, row_group_size=ROW_GROUP)
        for start in range(ROW_GROUP, rows, ROW_GROUP):
            batch = chunk(start, min(rows - start, ROW_GROUP), total=rows, pools=pools)
            writer.write_batch(batch, row_group_size=ROW_GROUP)


def make_pools(rows: int) -> Pools:
    """Actors and repositories: one for every 10 and every 20 events, but a hundred at least."""
    rng = np.random.default_rng(SEED)
    actors, repos = max(100, rows // 10), max(100, rows // 20)
    numbers = pa.array(rng.permutation(repos))
    owners = pa.array(rng.integers(0, max(10, repos // 4), repos))
    return Pools(
        logins=_joined("user-", pa.array(rng.permutation(actors))),
        names=_joined("org-", owners, "/repo-", numbers),
        stars=np.minimum(rng.lognormal(3.0, 2.2, repos), 400_000).astype(np.int32),
        languages=rng.integers(0, len(LANGUAGES), repos),
        forks=rng.random(repos) < 0.2,
    )


def chunk(start: int, rows: int, *, total: int, pools: Pools) -> pa.RecordBatch:
    """Some consecutive events; they depend on where they start and on the total alone."""
    rng = np.random.default_rng([SEED, start])
    position = np.arange(start, start + rows, dtype=np.int64)
    created = START_MICROS + position * (SPAN_MICROS // total)
    created += rng.integers(0, JITTER_MICROS, rows)
    kinds = rng.choice(len(TYPES), rows, p=list(TYPES.values()))
    kinds[position % RARE_EVERY == RARE_EVERY // 2] = len(TYPES)
    return pa.RecordBatch.from_pydict(
        {
            "id": 30_000_000_000 + position * 3,
            "type": _taken((*TYPES, RARE_TYPE), kinds),
            "public": rng.random(rows) < 0.97,
            "created_at": pa.array(created).cast(pa.timestamp("us", tz="UTC")),
            "score": rng.random(rows),
            "actor": _actors(rng, rows, pools),
            "repo": _repos(rng, rows, pools),
            "payload": _payloads(rng, rows),
        }
    )


def _actors(rng: np.random.Generator, rows: int, pools: Pools) -> pa.Array:
    who = _skewed(rng, rows, len(pools.logins))
    login = pools.logins.take(pa.array(who))
    ids = pa.array(1_000 + who)
    return _struct(
        id=ids,
        login=login,
        display_login=pc.utf8_title(login),
        avatar_url=_joined("https://avatars.example.com/u/", ids),
    )


def _repos(rng: np.random.Generator, rows: int, pools: Pools) -> pa.Array:
    which = _skewed(rng, rows, len(pools.names))
    return _struct(
        id=pa.array(500_000 + which),
        name=pools.names.take(pa.array(which)),
        stars=pa.array(pools.stars[which]),
        language=_taken(LANGUAGES, pools.languages[which]),
        fork=pa.array(pools.forks[which]),
    )


def _payloads(rng: np.random.Generator, rows: int) -> pa.Array:
    missing = rng.random(rows) < 0.7
    labels = np.where(missing, 0, rng.binomial(4, 0.35, rows))
    commits = np.where(missing, 0, rng.geometric(0.3, rows).clip(max=20) - 1)
    actions = rng.choice(len(ACTIONS), rows, p=(0.3, 0.25, 0.15, 0.05, 0.15, 0.1))
    label = rng.choice(len(LABELS), labels.sum(), p=LABEL_SHARES)
    numbers = rng.integers(1, 50_000, rows, dtype=np.int32)
    return _struct(
        missing,
        action=_taken(ACTIONS, actions),
        number=pa.array(numbers, mask=rng.random(rows) < 0.4),
        size=pa.array(rng.integers(0, 1 << 20, rows)),
        ref=_joined("refs/heads/branch-", pa.array(rng.integers(0, 5_000, rows))),
        labels=_lists(labels, _taken(LABELS, label)),
        commits=_lists(commits, _commits(rng, int(commits.sum()))),
    )


def _commits(rng: np.random.Generator, count: int) -> pa.Array:
    verb = _taken(VERBS, rng.choice(len(VERBS), count, p=VERB_SHARES))
    noun = _taken(NOUNS, rng.integers(0, len(NOUNS), count))
    place = _taken(PLACES, rng.integers(0, len(PLACES), count))
    ticket = pa.array(rng.integers(1, 100_000, count))
    author = pa.array(_skewed(rng, count, 20_000))
    return _struct(
        sha=_hex(rng, count),
        message=_joined(verb, " the ", noun, " ", place, " (#", ticket, ")"),
        author=_struct(
            name=_joined("Author ", author), email=_joined("a", author, "@mail.example.com")
        ),
        distinct=pa.array(rng.random(count) < 0.9),
    )


def _skewed(rng: np.random.Generator, rows: int, among: int) -> np.ndarray[Any, Any]:
    """Numbers below `among`, the small ones often: squares of equally likely ones."""
    return (rng.random(rows) ** 2 * among).astype(np.int64)


def _taken(pool: tuple[str | None, ...], indices: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(pool, pa.string()).take(pa.array(indices))


def _joined(*parts: str | pa.Array) -> pa.Array:
    texts = [part if isinstance(part, str) else part.cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _hex(rng: np.random.Generator, count: int) -> pa.Array:
    """Texts of 40 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, count * 40)]
    offsets = np.arange(0, count * 40 + 1, 40, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _struct(missing: np.ndarray[Any, Any] | None = None, **fields: pa.Array) -> pa.Array:
    mask = None if missing is None else pa.array(missing)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=mask)


def _lists(lengths: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
